//! Deleting is a mark; the purge worker does the rest. Until it has claimed the file it can be
//! restored.

use std::sync::Arc;

use futures_util::future::join_all;

use super::FileStore;
use super::request::Preconditions;
use super::settled::until_settled;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::receipt::DeletedBy;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::Status;
use crate::metadata::{Expected, UpdateFile, Updated, Writes};

/// Times a mark is decided before it ends in `Conflict`; one that lost to another change is decided
/// again.
const DECISIONS: usize = 8;

impl FileStore {
    /// Marks a file for purge; from then on its content is `NotFound`. A second call finds the mark
    /// and answers the same; after the record is gone the file is `NotFound`.
    pub async fn delete(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        self.delete_if(id, scope, None).await
    }

    /// Deletes a file as [`delete`](Self::delete) does if the conditions hold, else
    /// `PreconditionFailed`. A second call finds the mark, and the content that the file was deleted
    /// with: it answers as the first did.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, IfMatch, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let seen = store.info(id, &Scope::All).await?.blob.sha256;
    /// store.delete_if(id, &Scope::All, IfMatch::OneOf(vec![seen])).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_if(
        &self,
        id: FileId,
        scope: &Scope,
        conditions: impl Into<Preconditions>,
    ) -> Result<Arc<FileRecord>> {
        self.delete_by(id, scope, conditions, &DeletedBy::Library).await
    }

    /// Deletes a file as [`delete_if`](Self::delete_if) does, on behalf of `by`, whom the receipt of the
    /// purge names.
    pub async fn delete_by(
        &self,
        id: FileId,
        scope: &Scope,
        conditions: impl Into<Preconditions>,
        by: &DeletedBy,
    ) -> Result<Arc<FileRecord>> {
        let conditions = &conditions.into();
        until_settled("the file", DECISIONS, || async {
            let old = self.info(id, scope).await?;
            conditions.check(&old)?;
            if old.state.is_deleted() {
                return Ok(Some(old));
            }

            let mut next = (*old).clone();
            next.state = old.state.delete();
            let marked = self.mark(&old, next, Some(by)).await?;
            if marked.is_some() {
                self.inner.purge_wanted.notify();
            }
            Ok(marked)
        })
        .await
    }

    /// Deletes files as [`delete`](Self::delete) does, each for itself: one that is not there keeps no
    /// other. The outcomes come in the order of the ids. All marks share a few commits.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, ids: Vec<FileId>) {
    /// let outcomes = store.delete_many(&ids, &Scope::All).await;
    /// let gone = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    /// println!("{gone} of {} deleted", ids.len());
    /// # }
    /// ```
    pub async fn delete_many(&self, ids: &[FileId], scope: &Scope) -> Vec<Result<Arc<FileRecord>>> {
        self.delete_many_by(ids, scope, &DeletedBy::Library).await
    }

    /// Deletes files as [`delete_many`](Self::delete_many) does, on behalf of `by`, whom the receipts of
    /// the purge name.
    pub async fn delete_many_by(
        &self,
        ids: &[FileId],
        scope: &Scope,
        by: &DeletedBy,
    ) -> Vec<Result<Arc<FileRecord>>> {
        join_all(ids.iter().map(|id| self.delete_by(*id, scope, None, by))).await
    }

    /// Takes the mark off again; a file without it stays as it is, so that a second call finds what
    /// the first has done. `AlreadyPurging` once the purge has claimed the file. An expired TEMP file
    /// gets a new time to live.
    pub async fn restore(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        until_settled("the file", DECISIONS, || async {
            let old = self.info(id, scope).await?;
            if !old.state.is_deleted() {
                return Ok(Some(old));
            }

            let marked = self.mark(&old, self.restored(&old), None).await?;
            if marked.is_none() && *self.info(id, scope).await? == *old {
                let message = "the purge has claimed the file already";
                return Err(Error::new(ErrorKind::AlreadyPurging, message));
            }
            Ok(marked)
        })
        .await
    }

    fn restored(&self, old: &FileRecord) -> FileRecord {
        let mut next = old.clone();
        next.state = old.state.restore();

        let now = self.inner.now();
        if next.state.status() == Status::Temp && next.expires_at.is_none_or(|at| at <= now) {
            next.expires_at = Some(now.plus(self.inner.config().temp_ttl));
        }
        next
    }

    /// Commits `next`, which differs from `old` in its mark; `None` if the file changed meanwhile.
    async fn mark(
        &self,
        old: &FileRecord,
        mut next: FileRecord,
        by: Option<&DeletedBy>,
    ) -> Result<Option<Arc<FileRecord>>> {
        let now = self.inner.now();
        next.updated_at = now.max(old.updated_at);

        let update = UpdateFile {
            expected: Expected::of(old),
            next: next.clone(),
            now,
            drop_blob: None,
            quota_bytes: None,
            binding: None,
            deleted_by: by.cloned(),
            writes: Writes::Record,
        };

        match self.inner.metadata.update_file(update).await? {
            Updated::Done => Ok(Some(Arc::new(next))),
            Updated::Lost | Updated::PlacementStale | Updated::OverQuota => Ok(None),
        }
    }
}
