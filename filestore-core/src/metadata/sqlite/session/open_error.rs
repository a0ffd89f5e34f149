//! Failures to open a database.

use std::path::Path;

use rusqlite::ErrorCode;
use rustix::fs::statvfs;

use crate::domain::error::{Error, ErrorKind};

use super::room;

/// The free space, in bytes, below which the disk counts as full. The index grows by 32 KiB.
const SCARCE: u64 = 64 << 10;

/// A failure to open: SQLite's error, or a refusal by filestore.
pub(super) enum OpenError {
    Sql(rusqlite::Error),
    Refused(Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl OpenError {
    /// Returns the caller's error for the database at `path`.
    pub(in crate::metadata::sqlite) fn into_error(self, path: &Path) -> Error {
        let error = match self {
            Self::Refused(error) => return error,
            Self::Sql(error) => error,
        };

        let code = error.sqlite_error_code();
        if is_for_lack_of_space(code, path) {
            return Error::new(ErrorKind::StorageFull, "the storage is full").with_source(error);
        }

        let message = match code {
            Some(ErrorCode::NotADatabase) => "the database file is not a SQLite database",
            Some(ErrorCode::DatabaseCorrupt) => "the database file is corrupt",
            Some(ErrorCode::CannotOpen) => "the database file cannot be opened",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "the database is locked by another process"
            }
            _ => return Error::internal("opening the database", error),
        };

        Error::new(ErrorKind::Unusable, message).with_source(error)
    }
}

/// Returns true if the disk was too full for SQLite. SQLite reports only that its shared-memory index and its
/// log cannot be created, without the reason.
fn is_for_lack_of_space(code: Option<ErrorCode>, path: &Path) -> bool {
    match code {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let free = statvfs(path).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
            free.is_ok_and(|free| free < SCARCE) || room::is_used_up(path)
        }
        _ => false,
    }
}
