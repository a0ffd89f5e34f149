//! Deleting is a mark; the purge worker does the rest. Until it has claimed the file it can be
//! restored.

use std::sync::Arc;

use super::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::Status;
use crate::metadata::{Expected, UpdateFile, Updated};

/// How often a change is decided again after losing to someone.
const DECISIONS: usize = 8;

impl FileStore {
    /// Marks a file for purge; from then on its content is `NotFound`. A second call finds the mark
    /// and answers the same; after the record is gone the file is `NotFound`.
    pub async fn delete(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        for _ in 0..DECISIONS {
            let old = self.info(id, scope).await?;
            if old.state.is_deleted() {
                return Ok(old);
            }
            let mut next = (*old).clone();
            next.state = old.state.delete();
            if let Some(record) = self.mark(&old, next).await? {
                self.inner.purge_wanted.notify_one();
                return Ok(record);
            }
        }
        Err(Error::new(ErrorKind::Conflict, "the file keeps changing"))
    }

    /// Takes the mark off again; a file without it stays as it is, so that a second call finds what
    /// the first has done. `AlreadyPurging` once the purge has claimed the file. An expired TEMP file
    /// gets a new time to live.
    pub async fn restore(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        for _ in 0..DECISIONS {
            let old = self.info(id, scope).await?;
            if !old.state.is_deleted() {
                return Ok(old);
            }
            let mut next = (*old).clone();
            next.state = old.state.restore();
            let now = Timestamp::now();
            if next.state.status() == Status::Temp && next.expires_at.is_none_or(|at| at <= now) {
                next.expires_at = Some(now.plus(self.inner.config.temp_ttl));
            }
            if let Some(record) = self.mark(&old, next).await? {
                return Ok(record);
            }
            if *self.info(id, scope).await? == *old {
                return Err(Error::new(
                    ErrorKind::AlreadyPurging,
                    "the purge has claimed the file already",
                ));
            }
        }
        Err(Error::new(ErrorKind::Conflict, "the file keeps changing"))
    }

    async fn mark(
        &self,
        old: &FileRecord,
        mut next: FileRecord,
    ) -> Result<Option<Arc<FileRecord>>> {
        next.updated_at = Timestamp::now().max(old.updated_at);
        let update = UpdateFile {
            expected: Expected::of(old),
            next: next.clone(),
            drop_blob: None,
            quota_bytes: None,
            binding: None,
        };
        match self.inner.metadata.update_file(update).await? {
            Updated::Done => Ok(Some(Arc::new(next))),
            Updated::Lost | Updated::BindingChanged | Updated::OverQuota => Ok(None),
        }
    }
}
