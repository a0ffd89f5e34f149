//! Reading a database anew from the disk, when it is opened.
//!
//! # Crash safety
//! After a failed write-back the kernel keeps the pages as clean (Linux: ext4, XFS), and no disk
//! holds them. A process that reads them takes the frames of the log for committed. What it appends
//! behind them is flushed, and is lost all the same at a power cut: frames are a chain of
//! checksums, and on the disk the chain is broken. So cached pages are dropped before SQLite reads
//! any, and the log is checkpointed before anything is acknowledged: what is believed is written
//! and flushed again, and new frames follow nothing doubtful.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks::step::{Step, reached};

use super::connection::OpenError;

/// Drops what the kernel has cached of the database and its log, so that the disk itself is read.
/// No connection may be open: closing these files ends SQLite's locks on them.
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

/// Makes the commits in the log of the open database durable. SQLite's locks on a log are in another
/// file, so that closing it here ends none.
pub(super) fn flush_log(path: &Path) -> io::Result<()> {
    match File::open(log_of(path)) {
        Ok(log) => log.sync_all()?,
        // There is none before the first commit.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Returns the path of the log beside a database.
fn log_of(path: &Path) -> PathBuf {
    let mut log = OsString::from(path);
    log.push("-wal");
    log.into()
}

/// Flushes a file, as only clean pages can be dropped, and drops its pages.
fn drop_pages(file: &File, durability: Durability) -> io::Result<()> {
    if durability == Durability::Full {
        file.sync_all()?;
    }

    // Advice that is not followed does no harm: the checkpoint writes what is believed again.
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).ok();
    Ok(())
}

/// Writes the whole log back into the database, durably, and begins a new log.
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
