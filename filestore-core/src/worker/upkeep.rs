//! Upkeep: renames that failed after their commit, the reserve file, writes to providers that broke off, what
//! servers left that are gone, variants of what other servers removed, forgotten idempotency keys, spent permits and retired secrets of signed URLs, old receipts, and files that
//! no upload flushed.

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::path::BlobKey;
use crate::service::recovery::{end_gone, withdraw_stale_writes};
use crate::service::unflushed;

/// Age from which a write counts as broken off without a word.
const WRITE_AGE: Duration = Duration::from_hours(24);

impl FileStore {
    /// Does one round of upkeep. A part that fails does not keep the rest from being done; the
    /// first failure is returned, and its part is attempted again in the next round.
    pub async fn upkeep(&self) -> Result<()> {
        let inner = self.inner();
        let mut outcome = self.publish_again().await;
        inner.stores.local().refill_reserve().await;

        if self.may_remove() {
            withdraw_stale_writes(self, inner.now().minus(WRITE_AGE)).await;
            outcome = outcome.and(self.forget_signatures().await);
            outcome = outcome.and(self.forget_receipts().await);
        }
        outcome = outcome.and(end_gone(self).await);
        outcome = outcome.and(self.forget_removed_elsewhere().await);
        outcome = outcome.and(self.forget_idempotency().await);
        outcome.and(unflushed::flush(self).await)
    }

    /// Forgets the idempotency keys whose time is over.
    async fn forget_idempotency(&self) -> Result<()> {
        let inner = self.inner();
        while inner.metadata.forget_idempotency(inner.now(), 500).await? == 500 {}
        Ok(())
    }

    /// Renames blobs whose rename failed. A key is forgotten only when the database says what
    /// becomes of its blob.
    async fn publish_again(&self) -> Result<()> {
        let inner = self.inner();
        let waiting: Vec<_> = inner.publishing.failed.lock().iter().cloned().collect();

        let mut outcome = Ok(());
        inner.publishing.missing.lock().retain(|key| waiting.contains(key));
        for key in waiting {
            match inner.metadata.live_local_keys(&[key.blob_id()]).await {
                Ok(live) => {
                    inner.publishing.forget(&[key]);
                    for absent in inner.publish_each(live).await {
                        outcome = outcome.and(self.settle_absent(&absent).await);
                    }
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Settles a blob that has no name on the disk. A purge may have removed it since the database
    /// was asked; if a live record still names it, bytes are missing.
    async fn settle_absent(&self, key: &BlobKey) -> Result<()> {
        let inner = self.inner();
        if inner.metadata.live_local_keys(&[key.blob_id()]).await?.contains(key) {
            inner.publishing.note_missing(key);
        } else {
            inner.publishing.forget(std::slice::from_ref(key));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::domain::record::FileRecord;
    use crate::domain::scope::Scope;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    async fn uploaded(store: &FileStore) -> FileRecord {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.unwrap()
    }

    #[tokio::test]
    async fn a_rename_that_failed_is_tried_again_however_the_round_before_went() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let mut places = Vec::new();
        for _ in 0..2 {
            let key = uploaded(&store).await.blob.key;
            store.inner().publishing.idle().await;
            let stored = dir.path().join("blobs").join(key.as_str());
            std::fs::rename(&stored, dir.path().join("staging").join(key.blob_id().to_string()))
                .unwrap();
            store.inner().publishing.failed.lock().insert(key.clone());
            places.push((key, stored));
        }
        let other = Connection::open(store.data_dir().database()).unwrap();
        let bad = &places[0].0;
        let set_key = |text: &str| {
            let sql = "UPDATE files SET blob_key = ?1 WHERE blob_id = ?2";
            assert_eq!(other.execute(sql, [text, &bad.blob_id().to_string()]).unwrap(), 1);
        };

        set_key(&format!("broken/{}", bad.blob_id()));
        assert!(store.upkeep().await.is_err());
        assert!(!places[0].1.exists() && places[1].1.exists(), "one does not keep the other");
        set_key(bad.as_str());
        store.upkeep().await.unwrap();
        assert!(places[0].1.exists());
        assert!(store.inner().publishing.failed.lock().is_empty());
    }

    #[tokio::test]
    async fn a_live_record_without_bytes_is_counted_until_they_are_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let record = uploaded(&store).await;
        store.inner().publishing.idle().await;
        let stored = dir.path().join("blobs").join(record.blob.key.as_str());
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&stored, &elsewhere).unwrap();
        store.inner().publishing.failed.lock().insert(record.blob.key.clone());

        for _ in 0..2 {
            store.upkeep().await.unwrap();
            assert_eq!(store.damage().missing_blobs, 1);
        }

        std::fs::rename(&elsewhere, &stored).unwrap();
        store.upkeep().await.unwrap();
        assert!(!store.damage().is_any());
    }

    #[tokio::test]
    async fn a_blob_that_was_purged_before_its_rename_is_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let record = uploaded(&store).await;
        store.inner().publishing.idle().await;
        store.delete(record.file_id, &Scope::All).await.unwrap();
        store.admin().purge(&NoProgress).await.unwrap();
        store.inner().publishing.failed.lock().insert(record.blob.key);

        store.upkeep().await.unwrap();
        assert!(!store.damage().is_any());
        assert!(store.inner().publishing.failed.lock().is_empty());
    }
}
