//! Faults inside the engine, and their consequences.
//!
//! | class | cause | to the caller | then |
//! |---|---|---|---|
//! | [`Class::Again`] | a deadlock, a serialization failure, a connection lost before COMMIT, a transaction found rolled back | `Busy`, nothing was committed | tried again a few times |
//! | [`Class::Busy`] | no connection, a timeout of a statement or a lock, a server that starts, stops or only reads | `Busy`, nothing was committed | – |
//! | [`Class::Full`] | no space on the server's disk | `StorageFull`, nothing was committed | – |
//! | [`Class::Refused`] | settings of the server with which the promises cannot be kept, a wrong password | `Unusable`, nothing was committed | – |
//! | [`Class::Unknown`] | a connection lost at COMMIT, and no answer afterwards | `Internal`: committed or not | – |
//! | [`Class::Other`] | anything else, such as an inconsistent row | `Internal` | – |
//!
//! No fault makes the engine unusable: what PostgreSQL has lost it finds again by itself, and the next
//! call gets another connection.

use deadpool_postgres::{HookError, PoolError};
use tokio_postgres::error::{Severity, SqlState};

use crate::domain::damage::DamagedRow;
use crate::domain::error::{Error, ErrorKind};
pub(super) use crate::metadata::stored::Source;

/// A failure inside the engine.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A statement failed: its transaction will not be committed.
    #[error("{}", told(.0))]
    Sql(#[from] tokio_postgres::Error),
    /// No connection was to be had.
    #[error("no connection: {0}")]
    NoConnection(PoolError),
    /// The server refused the COMMIT.
    #[error("cannot commit: {}", told(.0))]
    Commit(tokio_postgres::Error),
    /// The connection was lost at COMMIT, and the server says that the transaction was rolled back.
    #[error("the transaction was rolled back")]
    RolledBack,
    /// The connection was lost at COMMIT, and it could not be found out whether it was done.
    #[error("it is not known whether the transaction was committed: {0}")]
    Unknown(String),
    /// The state from which the change was decided has changed meanwhile: to be decided again.
    #[error("another change came first")]
    Overtaken,
    /// The server cannot be used as it is.
    #[error("{0}")]
    Refused(String),
    /// A stored row that no code of ours writes. `what` names it, as in `a dropped blob`.
    #[error("inconsistent row: {source}")]
    Row { what: String, source: Source },
    /// A record that no code of ours writes.
    #[error("inconsistent record: {source}")]
    Record { file_id: String, source: Source },
    /// A number that the database cannot hold.
    #[error("out of range: {0}")]
    Range(#[from] std::num::TryFromIntError),
}

/// The consequences of a fault; see the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Again,
    Busy,
    Full,
    Refused,
    Unknown,
    Other,
}

impl Fault {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Sql(error) | Self::Commit(error) => class_of(error),
            Self::NoConnection(
                PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)),
            ) => {
                match class_of(error) {
                    // The pool has tried already.
                    Class::Again | Class::Other => Class::Busy,
                    known => known,
                }
            }
            Self::NoConnection(_) => Class::Busy,
            Self::RolledBack | Self::Overtaken => Class::Again,
            Self::Unknown(_) => Class::Unknown,
            Self::Refused(_) => Class::Refused,
            Self::Row { .. } | Self::Record { .. } | Self::Range(_) => Class::Other,
        }
    }

    /// Tells if the server may not know yet that the transaction is over.
    pub(super) fn lost_connection(&self) -> bool {
        matches!(self, Self::Sql(error) if error.as_db_error().is_none())
    }

    /// Tells if a unique index refused the row.
    pub(super) fn is_duplicate(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        error.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Tells if a constraint of the schema refused the row.
    pub(super) fn is_constraint(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        error.code().is_some_and(|code| code.code().starts_with("23"))
    }

    /// Describes the row, if the fault is that of a damaged row.
    pub(super) fn damaged_row(&self) -> Option<DamagedRow> {
        match self {
            Self::Row { what, source } => Some(DamagedRow::new(what, &source)),
            Self::Record { file_id, source } => {
                Some(DamagedRow::new(format!("file {file_id}"), &source))
            }
            _ => None,
        }
    }

    /// Makes the error that a caller gets.
    pub(super) fn into_error(self, doing: &str) -> Error {
        match &self {
            Self::Row { what, .. } => {
                let doing = format!("{doing}: the record of {what} is inconsistent");
                Error::internal(&doing, self)
            }
            Self::Record { file_id, .. } => {
                let message = format!(
                    "the record of the file is damaged, and has to be repaired in the database or restored from a \
                     backup: {file_id}"
                );
                Error::new(ErrorKind::RecordDamaged, message).with_source(self)
            }
            _ => match self.class() {
                Class::Full => {
                    Error::new(ErrorKind::StorageFull, "the storage is full").with_source(self)
                }
                Class::Again | Class::Busy if matches!(self, Self::NoConnection(_)) => {
                    let message = "the database cannot be reached";
                    let error = Error::new(ErrorKind::Busy, message).with_retry_after_secs(1);
                    error.with_source(self)
                }
                Class::Again | Class::Busy => busy().with_source(self),
                Class::Refused => {
                    let message = match &self {
                        Self::Refused(why) => why.clone(),
                        _ => "the database refuses the connection".to_owned(),
                    };
                    Error::new(ErrorKind::Unusable, message).with_source(self)
                }
                Class::Unknown | Class::Other => Error::internal(doing, self),
            },
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::PostCreateHook(HookError::Message(why)) => Self::Refused(why.into_owned()),
            error => Self::NoConnection(error),
        }
    }
}

/// Makes the error of a call that the database cannot serve now.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, "the database is busy").with_retry_after_secs(1)
}

/// Makes the error of every call after [`close`](crate::metadata::Metadata::close).
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Unusable, "the database is closed")
}

/// Tells whether a failed COMMIT says for certain that nothing was committed. A server that ends the
/// session may have committed before.
pub(super) fn refuses_commit(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|told| told.parsed_severity() == Some(Severity::Error))
}

fn class_of(error: &tokio_postgres::Error) -> Class {
    let Some(code) = error.code() else {
        // The connection is gone, or the values could not be sent.
        return if error.is_closed() || is_io(error) { Class::Again } else { Class::Other };
    };

    match code.code() {
        // A serialization failure, a deadlock; the server ended the session.
        "40001" | "40P01" | "57P01" | "57P02" | "57P05" | "25P03" => Class::Again,
        // A statement or a lock took too long; too many connections; the server starts; it only reads.
        "57014" | "55P03" | "53300" | "57P03" | "25006" | "53200" | "53000" => Class::Busy,
        "53100" => Class::Full,
        "28000" | "28P01" | "3D000" | "42501" => Class::Refused,
        code if code.starts_with("08") => Class::Again,
        _ => Class::Other,
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Says what the server said, which the error itself leaves to its source. Not its detail: that has values
/// of rows.
fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => error.to_string(),
    }
}
