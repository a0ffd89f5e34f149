//! Reads a database from the disk again when it is opened.
//!
//! # Crash safety
//! After a failed write-back, the kernel keeps the pages as clean (Linux: ext4, XFS), although no disk has
//! them. A process that reads these pages would treat the frames of the log as committed. It would append and
//! flush new frames, and lose them at a power cut, because frames form a chain of checksums and the chain on
//! the disk is broken.
//!
//! Cached pages are therefore dropped before SQLite reads any, and the log is checkpointed before new changes
//! are acknowledged. All recovered data is written and flushed again, and new frames follow only reliable
//! frames.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks::step::{Step, reached};

use super::open_error::OpenError;

/// Drops the cached pages of the database and its log, so that the disk itself is read. No connection can be
/// open, because closing these files ends SQLite's locks on them.
pub(super) fn drop_cached(path: &Path, durability: Durability) -> Result<()> {
    for part in [path.to_owned(), log_of(path)] {
        match File::open(&part) {
            Ok(file) => drop_pages(&file, durability)
                .map_err(|error| Error::io("flushing the database before it is read", error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("opening the database", error)),
        }
    }
    Ok(())
}

/// Makes the commits in the log of the open database durable. SQLite's locks are in another file, so closing
/// the log here ends no lock.
pub(in crate::metadata::sqlite) fn flush_log(path: &Path) -> io::Result<()> {
    match File::open(log_of(path)) {
        Ok(log) => log.sync_all()?,
        // There is none before the first commit.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Returns the path of a database's log.
fn log_of(path: &Path) -> PathBuf {
    let mut log = OsString::from(path);
    log.push("-wal");
    log.into()
}

/// Flushes a file and drops its pages. Only clean pages can be dropped.
fn drop_pages(file: &File, durability: Durability) -> io::Result<()> {
    if durability == Durability::Full {
        file.sync_all()?;
    }

    // Advice that is not followed does no harm: the checkpoint writes what is believed again.
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).ok();
    Ok(())
}

/// Writes the whole log back to the database, durably, and begins a new log.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), OpenError> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 {
        reached(Step::LogWrittenBack);
        return Ok(());
    }

    let message = "another process reads the database: its log cannot be written back";
    Err(Error::new(ErrorKind::Unusable, message).into())
}
