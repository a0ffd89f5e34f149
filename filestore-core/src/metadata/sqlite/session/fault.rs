//! Faults inside the engine, and their consequences.
//!
//! | class | cause | to the caller | afterwards |
//! |---|---|---|---|
//! | [`Class::Full`] | `SQLITE_FULL`; `SQLITE_IOERR_WRITE` while a disk quota is exceeded; `SQLITE_IOERR_SHMSIZE` before a COMMIT: the log's index cannot grow | `StorageFull`, nothing was committed | goes on |
//! | [`Class::Busy`] | a failed BEGIN, `SQLITE_BUSY` | `Busy`, nothing was committed | goes on |
//! | [`Class::Poison`] | `SQLITE_IOERR`, `SQLITE_CORRUPT`, `SQLITE_NOTADB`, a lost transaction, any other failed COMMIT | `Internal` | nothing works until opened again |
//! | [`Class::Other`] | anything else, such as an inconsistent row | `Internal` | goes on |
//!
//! Poison is final, because the page cache and the disk differ after a failed write or fsync. Only the next
//! opening reads from the disk again, and flushes the recovered data ([`reread`](super::reread)).

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ErrorCode;
use tokio::sync::watch;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::damage::DamagedRow;

use crate::metadata::damaged_rows::DamagedRows;
pub(in crate::metadata::sqlite) use crate::metadata::stored::Source;

/// A failure inside the engine.
#[derive(Debug, thiserror::Error)]
pub(in crate::metadata::sqlite) enum Fault {
    /// A statement failed.
    #[error("{0}")]
    Sql(#[from] rusqlite::Error),
    /// The transaction did not begin, so it changed nothing.
    #[error("cannot begin: {0}")]
    Begin(rusqlite::Error),
    /// The transaction was not committed, or its outcome is unknown.
    #[error("cannot commit: {0}")]
    Commit(rusqlite::Error),
    /// After an error, the transaction could not be rolled back, or had already ended.
    #[error("lost the transaction: {0}")]
    Lost(String),
    /// A write was refused, and the file system refuses other writes too, because there is no space.
    #[error("no room: {0}")]
    NoRoom(String),
    /// A stored row that filestore never writes. `what` names it, for example `a dropped blob`.
    #[error("inconsistent row: {source}")]
    Row { what: String, source: Source },
    /// A record that filestore never writes.
    #[error("inconsistent record: {source}")]
    Record { file_id: String, source: Source },
    /// The log of the database could not be flushed.
    #[error("cannot flush: {0}")]
    Flush(std::io::Error),
    /// No reader connection was available.
    #[error("no connection: {0}")]
    Pool(#[from] r2d2::Error),
}

/// The consequences of a fault. See the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metadata::sqlite) enum Class {
    Full,
    Busy,
    Poison,
    Other,
}

impl Fault {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Sql(error) => class_of(error),
            Self::Begin(error) => match class_of(error) {
                Class::Other => Class::Busy,
                known => known,
            },
            // The log may hold the whole transaction although the call failed (it is indexed last):
            // only SQLITE_FULL and SQLITE_BUSY come before that.
            Self::Commit(error) => match class_of(error) {
                Class::Other => Class::Poison,
                _ if lacks_index_space(error) => Class::Poison,
                known => known,
            },
            Self::Lost(_) | Self::Flush(_) => Class::Poison,
            Self::NoRoom(_) => Class::Full,
            Self::Row { .. } | Self::Record { .. } => Class::Other,
            Self::Pool(_) => Class::Busy,
        }
    }

    /// Returns true if a write to the database or its log was refused. SQLite gives no other reason if a disk
    /// quota is exceeded.
    pub(super) fn is_refused_write(&self) -> bool {
        let (Self::Sql(error) | Self::Begin(error) | Self::Commit(error)) = self else {
            return false;
        };
        let rusqlite::Error::SqliteFailure(error, _) = error else { return false };
        error.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE
    }

    /// Returns true if a UNIQUE index refused the row.
    pub(in crate::metadata::sqlite) fn is_duplicate(&self) -> bool {
        let Self::Sql(rusqlite::Error::SqliteFailure(error, _)) = self else { return false };
        error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE
    }

    /// Describes the row, if the fault is a damaged row.
    pub(in crate::metadata::sqlite) fn damaged_row(&self) -> Option<DamagedRow> {
        match self {
            Self::Row { what, source } => Some(DamagedRow::new(what, &source)),
            Self::Record { file_id, source } => {
                Some(DamagedRow::new(format!("file {file_id}"), &source))
            }
            _ => None,
        }
    }

    /// Returns the error for the caller.
    pub(in crate::metadata::sqlite) fn into_error(self, doing: &str) -> Error {
        match &self {
            Self::Row { what, .. } => {
                let doing = format!("{doing}: the record of {what} is inconsistent");
                error(self.class(), &doing, self)
            }
            Self::Record { file_id, .. } => {
                let message = format!(
                    "the record of the file is damaged, and has to be repaired in the database or restored from a \
                     backup: {file_id}"
                );
                Error::new(ErrorKind::RecordDamaged, message).with_source(self)
            }
            _ => error(self.class(), doing, self),
        }
    }
}

/// Returns the caller's error for a fault of `class`.
pub(in crate::metadata::sqlite) fn error(
    class: Class,
    doing: &str,
    source: impl Into<Source>,
) -> Error {
    match class {
        Class::Full => {
            Error::new(ErrorKind::StorageFull, "the storage is full").with_source(source)
        }
        Class::Busy => busy().with_source(source),
        Class::Poison | Class::Other => Error::internal(doing, source),
    }
}

/// Returns the error for a call that had no turn and did nothing.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, "the database is busy").with_retry_after_secs(1)
}

/// Returns the error for every call after [`close`](crate::metadata::Metadata::close).
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Unusable, "the database is closed")
}

fn class_of(error: &rusqlite::Error) -> Class {
    match error.sqlite_error_code() {
        _ if lacks_index_space(error) => Class::Full,
        Some(ErrorCode::DiskFull) => Class::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Class::Busy,
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Class::Poison
        }
        _ => Class::Other,
    }
}

/// Returns true if the index of the log, a separate file, cannot grow because the disk is full.
fn lacks_index_space(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(error, _) = error else { return false };
    error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
}

/// The engine's poisonous fault, if any, and the damaged rows. The fault is set once and never cleared.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct Health {
    /// A fast flag without the reason.
    poisoned: AtomicBool,
    reason: watch::Sender<Option<String>>,
    /// Unreadable rows.
    pub(in crate::metadata::sqlite) damaged: DamagedRows,
}

impl Health {
    pub(in crate::metadata::sqlite) fn new() -> Self {
        Self {
            poisoned: AtomicBool::new(false),
            reason: watch::Sender::new(None),
            damaged: DamagedRows::default(),
        }
    }

    pub(in crate::metadata::sqlite) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Returns an error after the engine is poisoned.
    pub(in crate::metadata::sqlite) fn check(&self) -> Result<()> {
        if !self.is_poisoned() {
            return Ok(());
        }
        let reason = self.reason.borrow().clone().unwrap_or_default();
        Err(Error::internal("using a database that must be opened again", reason))
    }

    /// Poisons the engine if `fault` belongs to that class. Remembers a damaged row.
    pub(in crate::metadata::sqlite) fn note(&self, fault: &Fault) {
        self.damaged.report(fault.damaged_row().into_iter().collect());
        if fault.class() == Class::Poison {
            self.poison(fault.to_string());
        }
    }

    /// Poisons the engine. The first reason stays.
    pub(super) fn poison(&self, why: String) {
        self.reason.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                tracing::error!(reason = %why, "the database must be opened again");
                *reason = Some(why);
            }
            first
        });
        self.poisoned.store(true, Ordering::Release);
    }

    /// Resolves once the engine is poisoned, with the reason.
    pub(in crate::metadata::sqlite) async fn poisoned(&self) -> String {
        let mut reasons = self.reason.subscribe();
        let reason = reasons.wait_for(Option::is_some).await.expect("the sender lives in self");
        reason.clone().unwrap_or_default()
    }
}
