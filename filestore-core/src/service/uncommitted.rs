//! Staged bytes after a commit that failed.
//!
//! # Crash safety
//! Nothing is discarded before it is certain that no record names it. A commit whose answer was lost may
//! still be under way at a database on another machine: it is waited for, as long as the process runs.
//! Blobs that were not settled by its end are left to the next start.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::Inner;
use super::commit::leaves_nothing;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::path::BlobKey;
use crate::metadata::Metadata;
use crate::tasks;

/// The pause between two questions to a database that is away.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Inner {
    /// Settles staged blobs after their commit failed with `error`: those that no record names are
    /// discarded. Where the error leaves it open whether the commit was made the database is asked;
    /// if the database does not answer either, the blobs stay until the next start, which asks
    /// again.
    ///
    /// A commit that may still be under way is waited for first, in the background: its client has an
    /// answer already.
    pub(super) async fn discard_uncommitted(self: &Arc<Self>, staged: Vec<BlobId>, error: &Error) {
        if leaves_nothing(error) {
            return self.discard(staged).await;
        }
        if error.kind() != ErrorKind::OutcomeUnknown {
            let live = self.metadata.live_local_keys(&staged).await;
            return self.settle_staged(staged, live).await;
        }

        // Weak: a store that is dropped must not go on holding its directory.
        let (inner, metadata) = (Arc::downgrade(self), Arc::clone(&self.metadata));
        tasks::spawn(async move {
            let live = live_once_known(&*metadata, &staged).await;
            if let Some(inner) = inner.upgrade() {
                inner.settle_staged(staged, live).await;
            }
        });
    }

    /// Publishes the staged blobs that are `live`, and discards the others. Without an answer of the
    /// database they stay.
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

    /// Discards staged blobs that no record will name. Those that cannot be removed now are removed
    /// at the next start.
    pub(super) async fn discard(&self, staged: Vec<BlobId>) {
        if let Err(error) = self.stores.local().discard_staged(staged).await {
            tracing::warn!(error = %error.chain(), "staged blobs stay until the next start");
        }
    }
}

/// Looks up which of the staged blobs have a record, once no commit of them is under way any more. A
/// database that is away is asked again and again.
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
    use crate::domain::scope::Scope;
    use crate::service::{Change, NewUpload, Replacement};

    fn staged_names(store: &FileStore) -> usize {
        std::fs::read_dir(store.data_dir().path().join("staging")).unwrap().count()
    }

    /// A store whose organization 42 has a binding that cannot be read, and a file of it.
    async fn with_a_broken_binding(dir: &Path) -> (FileStore, crate::domain::record::FileRecord) {
        let store = FileStore::open(dir).await.unwrap();
        let record = store.upload(new(), &b"old"[..]).await.unwrap();
        store.inner.publishing.idle().await;
        let other = Connection::open(store.data_dir().database()).unwrap();
        let sql = "INSERT INTO bindings (organization_id, organization_name, storage_provider, sync_enabled,
             is_active, effective_from) VALUES (42, 'x', 'no code', 0, 1, 0)";
        assert_eq!(other.execute(sql, []).unwrap(), 1);
        (store, record)
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

        let staged = store.uploads().stage_bytes("new".into()).await.unwrap();
        let change = Change::Replace(Replacement::new(staged));
        let error = store.change(record.file_id, &Scope::All, change, None).await.unwrap_err();
        assert_eq!((error.kind(), staged_names(&store)), (ErrorKind::Internal, 0));
        assert_eq!(store.read(record.file_id, &Scope::All).await.unwrap(), "old");
    }

    #[tokio::test]
    async fn an_unknown_outcome_is_settled_by_what_the_database_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let key = store.upload(new(), &b"kept"[..]).await.unwrap().blob.key;
        store.inner.publishing.idle().await;
        let stored = dir.path().join("blobs").join(key.as_str());
        std::fs::rename(&stored, dir.path().join("staging").join(key.blob_id().to_string()))
            .unwrap();
        let nobodys = store.uploads().stage_bytes("nobody's".into()).await.unwrap().keep();

        let unknown = Error::internal("committing", "no answer");
        store.inner.discard_uncommitted(vec![key.blob_id(), nobodys], &unknown).await;
        assert!(stored.exists());
        assert_eq!(staged_names(&store), 0);
    }

    #[tokio::test]
    async fn what_a_closed_database_cannot_settle_stays_for_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let id = store.uploads().stage_bytes("x".into()).await.unwrap().keep();
        store.close().await;
        store
            .inner
            .discard_uncommitted(vec![id], &Error::internal("committing", "no answer"))
            .await;
        assert_eq!(staged_names(&store), 1);
    }
}
