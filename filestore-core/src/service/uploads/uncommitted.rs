//! Staged bytes after a failed commit.
//!
//! # Crash safety
//! Bytes are discarded only if certainly no record names them. If the answer to a commit was lost, the commit
//! might still be running in a database on another machine. While the process lives, it waits for this
//! commit. The next start settles the remaining blobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::metadata::Metadata;
use crate::service::Inner;
use crate::tasks;

/// The pause between two questions to a database that does not answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Inner {
    /// Settles staged blobs after their commit failed with `error`. Discards the blobs without a record. If
    /// the error does not tell if the commit happened, asks the database. If the database does not answer
    /// either, the blobs stay until the next start, which asks again.
    ///
    /// If the commit might still be running, waits for its end in the background. The client already has its
    /// reply.
    pub(in crate::service) async fn discard_uncommitted(
        self: &Arc<Self>,
        staged: Vec<BlobId>,
        error: &Error,
    ) {
        if leaves_nothing(error) {
            return self.discard(staged).await;
        }
        if error.kind() != ErrorKind::OutcomeUnknown {
            let live = self.metadata.live_local_keys(&staged).await;
            return self.settle_staged(staged, live).await;
        }

        // Weak, because a dropped store must release its directory.
        let (inner, metadata) = (Arc::downgrade(self), Arc::clone(&self.metadata));
        tasks::spawn(async move {
            let live = live_once_known(&*metadata, &staged).await;
            if let Some(inner) = inner.upgrade() {
                inner.settle_staged(staged, live).await;
            }
        });
    }

    /// Publishes the staged blobs in `live`, and discards the others. If the database did not answer, all
    /// blobs stay.
    async fn settle_staged(&self, staged: Vec<BlobId>, live: Result<Vec<BlobKey>>) {
        match live {
            Ok(live) => {
                let mut dead = staged;
                dead.retain(|id| live.iter().all(|key| key.blob_id() != *id));
                self.publish_all(live).await;
                self.discard(dead).await;
            }
            Err(error) => {
                tracing::warn!(error = %error.chain(), "staged blobs stay until the next start");
            }
        }
    }

    /// Discards staged blobs that no record will name. If a removal fails, the next start repeats it.
    pub(in crate::service) async fn discard(&self, staged: Vec<BlobId>) {
        if let Err(error) = self.stores.local().discard_staged(staged).await {
            tracing::warn!(error = %error.chain(), "staged blobs stay until the next start");
        }
    }
}

/// Returns true if this error proves that no commit happened. Exceptions: a fault of the service, which might
/// happen during the commit, and a remote database that did not answer.
fn leaves_nothing(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Internal | ErrorKind::OutcomeUnknown)
}

/// Looks up the staged blobs that have a record, after the last commit of these blobs has ended. If the
/// database does not answer, asks again.
async fn live_once_known(metadata: &dyn Metadata, staged: &[BlobId]) -> Result<Vec<BlobKey>> {
    loop {
        metadata.outcomes_known().await?;
        match metadata.live_local_keys(staged).await {
            Err(error) if error.kind() == ErrorKind::Busy => sleep(ASK_AGAIN).await,
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::FileStore;
    use crate::domain::access::scope::Scope;
    use crate::service::NewUpload;

    fn staged_names(store: &FileStore) -> usize {
        std::fs::read_dir(store.data_dir().path().join("staging")).unwrap().count()
    }

    /// A store with a damaged binding of organization 42, and a file of this organization.
    async fn with_a_broken_binding(
        dir: &Path,
    ) -> (FileStore, crate::domain::file::record::FileRecord) {
        let store = FileStore::open(dir).await.unwrap();
        let record = store.upload(new(), &b"old"[..]).await.unwrap();
        store.inner.uploads.publishing.idle().await;
        let other = Connection::open(store.data_dir().database()).unwrap();
        let sql = "INSERT INTO bindings (organization_id, organization_name, storage_provider, sync_enabled,
             is_active, effective_from) VALUES (42, 'x', 'no code', 0, 1, 0)";
        assert_eq!(other.execute(sql, []).unwrap(), 1);
        (store, record)
    }

    /// Stages bytes, and leaves them like a commit with an unknown outcome.
    async fn staged(store: &FileStore, bytes: &'static str) -> BlobId {
        let id = BlobId::generate(store.now());
        let mut writer = store.inner.stores.local().stage(id, 100).await.unwrap();
        writer.write(bytes.into()).await.unwrap();
        writer.finish().await.unwrap().keep()
    }

    fn new() -> NewUpload {
        NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
    }

    #[tokio::test]
    async fn an_internal_error_before_the_commit_leaves_nothing_in_staging() {
        let dir = tempfile::tempdir().unwrap();
        let (store, record) = with_a_broken_binding(dir.path()).await;
        let error = store.upload(new(), &b"bytes"[..]).await.unwrap_err();
        assert_eq!((error.kind(), staged_names(&store)), (ErrorKind::Internal, 0));

        let error =
            store.scoped(&Scope::All).replace(record.file_id, &b"new"[..]).await.unwrap_err();
        assert_eq!((error.kind(), staged_names(&store)), (ErrorKind::Internal, 0));
        assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "old");
    }

    #[tokio::test]
    async fn an_unknown_outcome_is_settled_by_what_the_database_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let key = store.upload(new(), &b"kept"[..]).await.unwrap().blob.key;
        store.inner.uploads.publishing.idle().await;
        let stored = dir.path().join("blobs").join(key.as_str());
        std::fs::rename(&stored, dir.path().join("staging").join(key.blob_id().to_string()))
            .unwrap();
        let nobodys = staged(&store, "nobody's").await;

        let unknown = Error::internal("committing", "no answer");
        store.inner.discard_uncommitted(vec![key.blob_id(), nobodys], &unknown).await;
        assert!(stored.exists());
        assert_eq!(staged_names(&store), 0);
    }

    #[tokio::test]
    async fn what_a_closed_database_cannot_settle_stays_for_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let id = staged(&store, "x").await;
        store.close().await;
        store
            .inner
            .discard_uncommitted(vec![id], &Error::internal("committing", "no answer"))
            .await;
        assert_eq!(staged_names(&store), 1);
    }
}
