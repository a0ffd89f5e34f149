//! Publishing: committed blobs get their final names (step U6), next to the replies.
//!
//! A committed blob is durable and readable under its staged name, so no request waits for the rename. Keys
//! gather while a round of renames runs, and share the next round. Under load, this saves a visit to the
//! blocking pool for each upload.
//!
//! # Crash safety
//! A rename can be repeated. If keys of this queue are lost, the next start finds their blobs in staging.

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::domain::error::ErrorKind;
use crate::domain::file::path::BlobKey;
use crate::service::Inner;
use crate::tasks;

/// Committed blobs on their way to their final names.
pub(crate) struct PublishQueue {
    waiting: Mutex<Vec<BlobKey>>,
    /// True while a task takes rounds from `waiting`. Change this value only while `waiting` is locked.
    running: watch::Sender<bool>,
    /// Blobs whose rename failed. Readers get them from staging, and upkeep repeats the rename.
    pub(crate) failed: Mutex<HashSet<BlobKey>>,
    /// Blobs of live records that have neither name on the disk.
    pub(crate) missing: Mutex<HashSet<BlobKey>>,
}

impl PublishQueue {
    pub(in crate::service) fn new() -> Self {
        Self {
            waiting: Mutex::new(Vec::new()),
            running: watch::Sender::new(false),
            failed: Mutex::new(HashSet::new()),
            missing: Mutex::new(HashSet::new()),
        }
    }

    /// Adds keys. Returns true if the caller must take the rounds.
    fn add(&self, keys: impl IntoIterator<Item = BlobKey>) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.extend(keys);
        !self.running.send_replace(true)
    }

    /// Takes the waiting keys. If there are none, the rounds are over.
    fn next_round(&self) -> Vec<BlobKey> {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            self.running.send_replace(false);
        }
        mem::take(&mut waiting)
    }

    /// Forgets keys before their blobs are removed.
    pub(crate) fn forget(&self, keys: &[BlobKey]) {
        let mut failed = self.failed.lock();
        for key in keys {
            failed.remove(key);
        }
    }

    /// Records that a live record has no bytes, and logs this the first time.
    pub(crate) fn note_missing(&self, key: &BlobKey) {
        if self.missing.lock().insert(key.clone()) {
            tracing::error!(%key, "a live record has no bytes: neither its staged nor its final name is there");
        }
    }

    /// Records that the blob of a live record is in quarantine. Upkeep looks for its bytes again.
    pub(in crate::service) fn give_up(&self, key: &BlobKey) {
        self.failed.lock().insert(key.clone());
        self.note_missing(key);
    }

    /// Resolves when no keys wait.
    pub(crate) async fn idle(&self) {
        // Fails only if the sender is gone, and `self` contains the sender.
        let _ = self.running.subscribe().wait_for(|running| !running).await;
    }
}

/// The task that takes rounds until no keys wait. A drop ends the rounds, also if the runtime ends in the
/// middle of a round. The next upload then takes the waiting keys.
struct Rounds {
    publishing: Arc<PublishQueue>,
    /// Weak between rounds, so that a store that is closed and dropped releases its directory at once.
    inner: Weak<Inner>,
    are_over: bool,
}

impl Rounds {
    async fn take(mut self) {
        loop {
            let keys = self.publishing.next_round();
            if keys.is_empty() {
                self.are_over = true;
                return;
            }
            // The store is gone. Its next start publishes these blobs.
            let Some(inner) = self.inner.upgrade() else { return };
            inner.publish_all(keys).await;
        }
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if !self.are_over {
            let _waiting = self.publishing.waiting.lock();
            self.publishing.running.send_replace(false);
        }
    }
}

impl Inner {
    /// Starts to give committed blobs their final names, and returns at once.
    pub(crate) fn publish_soon(self: &Arc<Self>, keys: impl IntoIterator<Item = BlobKey>) {
        if self.uploads.publishing.add(keys) {
            let publishing = Arc::clone(&self.uploads.publishing);
            tasks::spawn(
                Rounds { publishing, inner: Arc::downgrade(self), are_over: false }.take(),
            );
        }
    }

    /// Gives committed blobs their final names. A failed rename is not an error for the caller: the record is
    /// committed, readers find the staged name, and upkeep repeats the rename.
    pub(crate) async fn publish_all(&self, keys: Vec<BlobKey>) {
        self.publish_each(keys).await;
    }

    /// Gives committed blobs their final names like [`publish_all`](Self::publish_all). Returns the blobs
    /// that have neither name.
    pub(crate) async fn publish_each(&self, keys: Vec<BlobKey>) -> Vec<BlobKey> {
        let outcomes = self.stores.local().publish_all(keys.clone()).await;
        let mut absent = Vec::new();

        for (key, outcome) in keys.into_iter().zip(outcomes) {
            let Err(error) = outcome else {
                self.uploads.publishing.missing.lock().remove(&key);
                continue;
            };
            // A purge might have been faster. Upkeep asks the database.
            if error.kind() == ErrorKind::NotFound {
                absent.push(key.clone());
            } else {
                tracing::warn!(error = %error.chain(), "a committed blob stays in staging for now");
            }
            self.uploads.publishing.failed.lock().insert(key);
        }
        absent
    }
}

#[cfg(test)]
mod tests {
    use crate::FileStore;
    use crate::domain::file::record::FileRecord;
    use crate::service::NewUpload;

    async fn upload(store: &FileStore) -> FileRecord {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.unwrap()
    }

    #[tokio::test]
    async fn closing_waits_for_the_renames() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let mut keys = Vec::new();
        for _ in 0..20 {
            keys.push(upload(&store).await.blob.key);
        }
        store.close().await;
        assert!(keys.iter().all(|key| dir.path().join("blobs").join(key.as_str()).exists()));
        assert_eq!(std::fs::read_dir(dir.path().join("staging")).unwrap().count(), 0);
    }

    #[test]
    fn rounds_that_end_with_their_runtime_are_taken_up_by_the_next_upload() {
        let dir = tempfile::tempdir().unwrap();
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (store, first) = runtime().block_on(async {
            let store = FileStore::open(dir.path()).await.unwrap();
            let first = upload(&store).await;
            // Dropped with the runtime. On one thread, no other task ran since the last await.
            store.inner().publish_soon([first.blob.key.clone()]);
            (store, first)
        });
        runtime().block_on(async {
            let second = upload(&store).await;
            store.inner().uploads.publishing.idle().await;
            for key in [first.blob.key, second.blob.key] {
                assert!(dir.path().join("blobs").join(key.as_str()).exists(), "{key}");
            }
        });
    }
}
