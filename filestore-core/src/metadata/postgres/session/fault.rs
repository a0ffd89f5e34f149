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
//! No fault makes the engine unusable. PostgreSQL recovers by itself, and the next call uses another
//! connection.
//!
//! A fault contains the text of all its causes and has no source, because the server's details contain values
//! of rows.

use std::io;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::{Severity, SqlState};

use crate::domain::error::{Error, ErrorKind};
use crate::domain::file::damage::DamagedRow;
pub(in crate::metadata::postgres) use crate::metadata::stored::Source;

/// The pause, in seconds, before a client retries.
const RETRY_AFTER_SECS: u64 = 1;

/// The pause, in seconds, before a client retries if an operator must free space.
const ROOM_AFTER_SECS: u64 = 10;

const BUSY: &str = "the database is busy";

/// A failure inside the engine.
#[derive(Debug, thiserror::Error)]
pub(in crate::metadata::postgres) enum Fault {
    /// A statement failed, and its transaction will not be committed.
    #[error("{}", told(.0))]
    Sql(tokio_postgres::Error),
    /// No connection was available.
    #[error("no connection: {}", unconnected(.0))]
    NoConnection(PoolError),
    /// An answer did not arrive in time.
    #[error("the database was silent for {0:?}")]
    Silent(Duration),
    /// The server refused the COMMIT.
    #[error("cannot commit: {}", told(.0))]
    Commit(tokio_postgres::Error),
    /// The connection was lost at COMMIT, and the server reports that the transaction was rolled back.
    #[error("the transaction was rolled back")]
    RolledBack,
    /// The connection was lost at COMMIT, and the outcome could not be determined.
    #[error("it is not known whether the transaction was committed: {0}")]
    Unknown(String),
    /// The state from which the change was decided has changed. Decide again.
    #[error("another change came first")]
    Overtaken,
    /// This server counted as gone, and others have its work.
    #[error("this server was not seen for a while, and was taken for gone")]
    Outlived,
    /// The server cannot be used as it is.
    #[error("{0}")]
    Refused(String),
    /// A stored row that filestore never writes. `what` names it, for example `a dropped blob`.
    #[error("inconsistent row: {source}")]
    Row { what: String, source: Source },
    /// A record that filestore never writes.
    #[error("inconsistent record: {source}")]
    Record { file_id: String, source: Source },
    /// A number that the database cannot hold.
    #[error("out of range: {0}")]
    Range(#[from] std::num::TryFromIntError),
}

/// The consequences of a fault. See the module's table.
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

    /// Returns true if the server might not know yet that the transaction has ended.
    pub(super) fn lost_connection(&self) -> bool {
        match self {
            Self::Sql(error) => error.as_db_error().is_none(),
            Self::Silent(_) => true,
            _ => false,
        }
    }

    /// Returns true if a unique index refused the row.
    pub(in crate::metadata::postgres) fn is_duplicate(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        error.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Returns true if a constraint of the schema refused the row.
    pub(in crate::metadata::postgres) fn is_constraint(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        error.code().is_some_and(|code| code.code().starts_with("23"))
    }

    /// Describes the row, if the fault is a damaged row.
    pub(in crate::metadata::postgres) fn damaged_row(&self) -> Option<DamagedRow> {
        match self {
            Self::Row { what, source } => Some(DamagedRow::new(what, &source)),
            Self::Record { file_id, source } => {
                Some(DamagedRow::new(format!("file {file_id}"), &source))
            }
            _ => None,
        }
    }

    /// Returns the error for the caller.
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

    /// Returns the error for a failed opening. A fault that an operator must fix is reported in full.
    pub(in crate::metadata::postgres) fn at_opening(self) -> Error {
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

    /// Returns the reason, for callers, why the database cannot be used now.
    fn unavailable(&self) -> &'static str {
        match self {
            Self::NoConnection(PoolError::Timeout(TimeoutType::Wait)) => BUSY,
            Self::NoConnection(_) | Self::Refused(_) => "the database cannot be reached",
            Self::Silent(_) => "the database does not answer",
            Self::Sql(error) if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
                "the database takes no writes"
            }
            _ if self.class() == Class::Refused => "the database refuses the request",
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

/// Returns the error for a call that the database cannot serve now.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, BUSY).with_retry_after_secs(RETRY_AFTER_SECS)
}

/// Returns the error for every call after [`close`](crate::metadata::Metadata::close).
pub(in crate::metadata::postgres) fn closed() -> Error {
    Error::new(ErrorKind::Unusable, "the database is closed")
}

/// Returns true if a failed COMMIT proves that nothing was committed. A server that ends the session may have
/// committed before.
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

/// Returns true if the server ended the session with this message.
fn ends_session(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(tokio_postgres::error::DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// Returns true if a connection was abandoned because its server is read-only. tokio-postgres reports this,
/// not the operating system.
fn takes_no_writes(error: &tokio_postgres::Error) -> bool {
    cause::<io::Error>(error).is_some_and(|error| {
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
    })
}

/// Finds a cause of a given type.
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

/// Returns the server's message, or the reason for the failed connection. Omits the server's details, because
/// they contain values of rows.
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
