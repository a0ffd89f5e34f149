//! Placeholders: a few bytes for each picture, made after its first variant.
//!
//! # Purpose
//! Placeholders are optional, like variants in advance. They are made in the background after all requests,
//! and dropped if requests need the threads or the memory. The next variant of the file tries again. If the
//! retained pixels of the first variant show the whole picture, they are used. Otherwise the picture is
//! decoded again, at the smallest scale of its format.
//!
//! # Locking
//! One mutex protects the set of files in progress. It is held only for look-ups.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::caller::Source;
use super::pool::busy;
use super::shared::Shared;
use crate::domain::error::{Error, Result};
use crate::domain::file::record::Thumbhash;
use crate::domain::id::FileId;
use crate::tasks;
use crate::variant::VariantKey;
use crate::variant::pictures::{Deadline, Sketch};

/// The files whose placeholders are in progress.
#[derive(Default)]
pub(super) struct Sketching(Arc<Mutex<HashSet<FileId>>>);

/// The work on one file's placeholder.
struct Turn {
    under_way: Arc<Mutex<HashSet<FileId>>>,
    file_id: FileId,
}

impl Sketching {
    /// Begins the work on a file. `None` if it is already in progress.
    fn begin(&self, file_id: FileId) -> Option<Turn> {
        let is_new = self.0.lock().insert(file_id);
        is_new.then(|| Turn { under_way: Arc::clone(&self.0), file_id })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.under_way.lock().remove(&self.file_id);
    }
}

impl Shared {
    /// Makes the placeholder that the caller wants, in the background. Returns at once.
    pub(super) fn sketch_later(self: &Arc<Self>, key: &VariantKey, source: &Source) {
        if !source.wants_placeholder() {
            return;
        }
        let Some(turn) = self.sketching.begin(key.file_id) else { return };

        let organization = key.organization_id.clone();
        let (shared, key, source) = (Arc::clone(self), key.clone(), source.clone());
        let sketch = Box::pin(async move {
            match shared.sketch(&key, &source).await {
                Ok(thumbhash) => source.note(thumbhash).await,
                Err(error) => {
                    tracing::debug!(file_id = %key.file_id, %error, "no placeholder was made");
                }
            }
            drop(turn);
        });
        self.eager.push(&organization, sketch);
    }

    async fn sketch(&self, key: &VariantKey, source: &Source) -> Result<Thumbhash> {
        if let Some(retained) = self.caches.retained(key)
            && let Some(wanted) = retained.plan_sketch()
        {
            let bytes = wanted.memory_bytes();
            return self.when_idle(bytes, move |_| retained.sketch(wanted)).await;
        }

        let (file, config) = (source.open().await?, self.config.clone());
        let assessed =
            tasks::blocking(move || Sketch::assess(&file, &config).map(|planned| (planned, file)));
        let (planned, file) =
            assessed.await.map_err(|error| Error::internal("reading a header", error))??;
        self.when_idle(planned.memory_bytes, move |deadline| planned.make(&file, deadline)).await
    }

    /// Runs `work` on the pool when no request needs the thread. [`busy`] if the memory is not free.
    async fn when_idle<T: Send + 'static>(
        &self,
        memory_bytes: u64,
        work: impl FnOnce(Deadline) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let memory = self.pool.memory_if_free(memory_bytes).ok_or_else(busy)?;
        let deadline = self.config.deadline;
        let (report, outcome) = oneshot::channel();

        self.pool.submit_when_idle(move || {
            let done = work(Deadline::after(deadline));
            drop(memory);
            let _ = report.send(done);
        })?;
        outcome.await.map_err(|error| Error::internal("making a placeholder", error))?
    }
}
