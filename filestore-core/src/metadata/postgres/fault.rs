//! Faults inside the engine, and their consequences.
//!
//! | class | cause | to the caller | then |
//! |---|---|---|---|
//! | [`Class::Again`] | a deadlock, a serialization failure, a connection lost before COMMIT, a transaction found rolled back, a server that was taken for gone | `Busy`, nothing was committed | tried again a few times |
//! | [`Class::Busy`] | no connection, no answer, a timeout of a statement or a lock, a server that starts, stops or only reads | `Busy`, nothing was committed | – |
//! | [`Class::Full`] | no space on the server's disk | `DatabaseFull`, nothing was committed | – |
//! | [`Class::Refused`] | settings of the server with which the promises cannot be kept, a wrong password, a standby | `Busy`, nothing was committed; at opening `Unusable` | – |
//! | [`Class::Unknown`] | a connection lost at COMMIT, and no answer afterwards | `OutcomeUnknown`: committed or not | the server is asked on and on (`fates`) |
//! | [`Class::Other`] | anything else, such as an inconsistent row | `Internal` | – |
//!
//! No fault makes the engine unusable: what PostgreSQL has lost it finds again by itself, and the next
//! call gets another connection.
//!
//! A fault says all its causes itself, and has no source: what a server details has values of rows.

use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::{Severity, SqlState};

use crate::domain::damage::DamagedRow;
use crate::domain::error::{Error, ErrorKind};
pub(super) use crate::metadata::stored::Source;

/// The pause in seconds that a client is asked to make.
const RETRY_AFTER_SECS: u64 = 1;

/// That pause, where somebody has to make room first.
const ROOM_AFTER_SECS: u64 = 10;

const BUSY: &str = "the database is busy";

/// A failure inside the engine.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// A statement failed: its transaction will not be committed.
    #[error("{}", told(.0))]
    Sql(tokio_postgres::Error),
    /// No connection was to be had.
    #[error("no connection: {}", unconnected(.0))]
    NoConnection(PoolError),
    /// An answer did not come in time.
    #[error("the database was silent for {0:?}")]
    Silent(Duration),
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
    /// This server was taken for gone, and others have what it had under way.
    #[error("this server was not seen for a while, and was taken for gone")]
    Outlived,
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
            Self::NoConnection(PoolError::Backend(error)) if takes_no_writes(error) => {
                Class::Refused
            }
            Self::NoConnection(
                PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)),
            ) => {
                match class_of(error) {
                    // The pool has tried already.
                    Class::Again | Class::Other => Class::Busy,
                    known => known,
                }
            }
            Self::NoConnection(_) | Self::Silent(_) => Class::Busy,
            Self::RolledBack | Self::Overtaken | Self::Outlived => Class::Again,
            Self::Unknown(_) => Class::Unknown,
            Self::Refused(_) => Class::Refused,
            Self::Row { .. } | Self::Record { .. } | Self::Range(_) => Class::Other,
        }
    }

    /// Tells if the server may not know yet that the transaction is over.
    pub(super) fn lost_connection(&self) -> bool {
        match self {
            Self::Sql(error) => error.as_db_error().is_none(),
            Self::Silent(_) => true,
            _ => false,
        }
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
                return Error::internal(&doing, self);
            }
            Self::Record { file_id, .. } => {
                let message = format!(
                    "the record of the file is damaged, and has to be repaired in the database or restored from a \
                     backup: {file_id}"
                );
                return Error::new(ErrorKind::RecordDamaged, message).with_source(self);
            }
            _ => {}
        }

        let (kind, message) = match self.class() {
            Class::Other => return Error::internal(doing, self),
            Class::Full => (ErrorKind::DatabaseFull, "the disk of the database server is full"),
            Class::Unknown => {
                (ErrorKind::OutcomeUnknown, "the database does not say whether the change was made")
            }
            Class::Again | Class::Busy | Class::Refused => (ErrorKind::Busy, self.unavailable()),
        };
        let after =
            if kind == ErrorKind::DatabaseFull { ROOM_AFTER_SECS } else { RETRY_AFTER_SECS };
        Error::new(kind, message).with_retry_after_secs(after).with_source(self)
    }

    /// Makes the error of an opening that failed. What somebody has to mend first is told as it is.
    pub(super) fn at_opening(self) -> Error {
        if self.class() != Class::Refused {
            return self.into_error("opening the database");
        }
        let message = match &self {
            Self::Refused(why) => why.clone(),
            Self::NoConnection(PoolError::Backend(error)) if takes_no_writes(error) => {
                "the database takes no writes: its server is a standby, or default_transaction_read_only is on"
                    .to_owned()
            }
            _ => "the database refuses the connection".to_owned(),
        };
        Error::new(ErrorKind::Unusable, message).with_source(self)
    }

    /// Says to a caller why the database cannot be used now.
    fn unavailable(&self) -> &'static str {
        match self {
            Self::NoConnection(PoolError::Timeout(TimeoutType::Wait)) => BUSY,
            Self::NoConnection(_) | Self::Refused(_) => "the database cannot be reached",
            Self::Silent(_) => "the database does not answer",
            Self::Sql(error) if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
                "the database takes no writes"
            }
            _ if self.class() == Class::Refused => "the database refuses what is asked of it",
            _ => BUSY,
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
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
    Error::new(ErrorKind::Busy, BUSY).with_retry_after_secs(RETRY_AFTER_SECS)
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
    let Some(told) = error.as_db_error() else {
        // The connection is gone, or the values could not be sent.
        let is_lost = error.is_closed() || cause::<io::Error>(error).is_some();
        return if is_lost { Class::Again } else { Class::Other };
    };

    match told.code().code() {
        // A serialization failure, a deadlock; the server ended the session.
        "40001" | "40P01" | "57P01" | "57P02" | "57P05" | "25P03" => Class::Again,
        // A statement or a lock took too long; too many connections; the server starts; it only reads.
        "57014" | "55P03" | "53300" | "57P03" | "25006" | "53200" | "53000" => Class::Busy,
        "53100" => Class::Full,
        // No such role, database or right; the database takes no connections, or is gone.
        "28000" | "28P01" | "3D000" | "42501" | "57P04" => Class::Refused,
        "55000" if ends_session(error) => Class::Refused,
        code if code.starts_with("08") => Class::Again,
        _ if ends_session(error) => Class::Again,
        _ => Class::Other,
    }
}

/// Tells if the server ended the session with these words.
fn ends_session(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(tokio_postgres::error::DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// Tells if a connection was given up because its server only reads: so says tokio-postgres, not the
/// operating system.
fn takes_no_writes(error: &tokio_postgres::Error) -> bool {
    cause::<io::Error>(error).is_some_and(|error| {
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
    })
}

/// Looks for a cause of a type.
fn cause<E: std::error::Error + 'static>(error: &tokio_postgres::Error) -> Option<&E> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Says what the server said, or what kept it from being heard. Not the server's detail: that has values of
/// rows.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{} ({})", told.message(), told.code().code());
    }

    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

fn unconnected(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            told(error)
        }
        PoolError::Timeout(TimeoutType::Wait) => "all are in use".to_owned(),
        PoolError::Timeout(_) => "no answer in time".to_owned(),
        other => other.to_string(),
    }
}
