//! Deletes and restores files. Deleting sets a mark. After the grace period, the purge worker removes the
//! file. You can restore the file until the purge claims it.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::Files;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::{Deletion, FileRecord};
use crate::domain::file::status::Status;
use crate::domain::id::FileId;
use crate::domain::report::receipt::DeletedBy;
use crate::metadata::{Expected, UpdateFile, Updated, Writes};
use crate::service::request::Preconditions;
use crate::service::retry::retry_if_changed;

/// The maximum number of attempts before `Conflict`. An attempt that lost to another change is repeated.
const DECISIONS: usize = 8;

/// The number of files that a call for many changes at the same time. The database groups them, and other callers
/// still get their turns.
const AT_ONCE: usize = 64;

impl Files<'_> {
    /// Deletes a file. The content is `NotFound` from now on. You can [`restore`](Self::restore) the file
    /// until the purge removes it, after the store's `purge_grace` (default 1 day).
    ///
    /// A second call succeeds and has no effect. `NotFound` after the purge. Use
    /// [`delete_if`](Self::delete_if) if another caller might have replaced the content since your last read.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// store.scoped(&Scope::All).delete(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(self, id: FileId) -> Result<Arc<FileRecord>> {
        self.delete_if(id, None).await
    }

    /// Deletes a file like [`delete`](Self::delete), but only if the conditions hold. Otherwise returns
    /// `PreconditionFailed`. A second call compares the conditions with the content at the time of the
    /// deletion, and returns the same result as the first call.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, IfMatch, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let files = store.scoped(&Scope::All);
    /// let seen = files.info(id).await?.blob.sha256;
    /// files.delete_if(id, IfMatch::OneOf(vec![seen])).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_if(
        self,
        id: FileId,
        conditions: impl Into<Preconditions>,
    ) -> Result<Arc<FileRecord>> {
        let conditions = &conditions.into();
        retry_if_changed("the file", DECISIONS, || async {
            let old = self.info(id).await?;
            conditions.check(&old)?;
            if old.state.is_deleted() {
                return Ok(Some(old));
            }

            let mut next = (*old).clone();
            next.state = old.state.delete();
            let marked = self.mark(&old, next, Some(self.deleted_by)).await?;
            if marked.is_some() {
                self.store.inner.background.purge_wanted.notify();
            }
            Ok(marked)
        })
        .await
    }

    /// Deletes many files like [`delete`](Self::delete), in a few transactions. Each deletion is independent:
    /// the call continues after an unknown id. The results have the order of the ids.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, ids: Vec<FileId>) {
    /// let outcomes = store.scoped(&Scope::All).delete_many(&ids).await;
    /// let gone = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    /// println!("{gone} of {} deleted", ids.len());
    /// # }
    /// ```
    pub async fn delete_many(self, ids: &[FileId]) -> Vec<Result<Arc<FileRecord>>> {
        let deletions = ids.iter().copied().map(move |id| self.delete(id));
        stream::iter(deletions).buffered(AT_ONCE).collect().await
    }

    /// Restores a deleted file. If the file is not deleted, the call succeeds and has no effect. An expired
    /// TEMP file gets a new lifetime.
    ///
    /// `AlreadyPurging` if the purge has already claimed the file. `NotFound` after the purge.
    pub async fn restore(self, id: FileId) -> Result<Arc<FileRecord>> {
        retry_if_changed("the file", DECISIONS, || async {
            let old = self.info(id).await?;
            if !old.state.is_deleted() {
                return Ok(Some(old));
            }

            let marked = self.mark(&old, self.restored(&old), None).await?;
            if marked.is_none() && *self.info(id).await? == *old {
                let message = "the purge has claimed the file already";
                return Err(Error::new(ErrorKind::AlreadyPurging, message));
            }
            Ok(marked)
        })
        .await
    }

    /// Restores many files as [`restore`](Self::restore) does, in a few transactions. Each restoration is
    /// independent: an unknown id does not stop the others. The outcomes have the order of the ids.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, ids: Vec<FileId>) {
    /// let outcomes = store.scoped(&Scope::All).restore_many(&ids).await;
    /// let back = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    /// println!("{back} of {} restored", ids.len());
    /// # }
    /// ```
    pub async fn restore_many(self, ids: &[FileId]) -> Vec<Result<Arc<FileRecord>>> {
        let restorations = ids.iter().copied().map(move |id| self.restore(id));
        stream::iter(restorations).buffered(AT_ONCE).collect().await
    }

    fn restored(self, old: &FileRecord) -> FileRecord {
        let mut next = old.clone();
        next.state = old.state.restore();

        let now = self.store.inner.now();
        if next.state.status() == Status::Temp && next.expires_at.is_none_or(|at| at <= now) {
            next.expires_at = Some(now.plus(self.store.inner.config().temp_ttl));
        }
        next
    }

    /// Commits `next`, a copy of `old` with another deletion mark. `None` if the file changed in the
    /// meantime.
    async fn mark(
        self,
        old: &FileRecord,
        mut next: FileRecord,
        by: Option<&DeletedBy>,
    ) -> Result<Option<Arc<FileRecord>>> {
        let now = self.store.inner.now();
        next.updated_at = now.max(old.updated_at);
        next.deletion = next.state.is_deleted().then(|| Deletion::at(now));

        let update = UpdateFile {
            expected: Expected::of(old),
            next: next.clone(),
            now,
            drop_blob: None,
            quota_bytes: None,
            binding: None,
            deleted_by: by.cloned(),
            writes: Writes::Record,
            upload: None,
        };

        match self.store.inner.metadata.update_file(update).await? {
            Updated::Done => Ok(Some(Arc::new(next))),
            Updated::Lost | Updated::PlacementStale | Updated::OverQuota | Updated::UploadLost => {
                Ok(None)
            }
        }
    }
}
