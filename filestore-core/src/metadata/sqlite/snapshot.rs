//! Copies of the database: made while the store runs, read by backups, made ready by restores.
//!
//! # Locking
//! The live database is copied through a connection of SQLite's own. Nothing else may open its files in
//! this process: closing them would end SQLite's locks (<https://sqlite.org/howtocorrupt.html>, 2.2).

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::domain::backup::RestoredAs;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, OrganizationId, Sha256, StoreId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;

use super::connection;
use super::fault::{Fault, Source};
use super::row::{self, columns};
use super::{damage, schema, settings};

const COPYING: &str = "copying the database";
const READING: &str = "reading a snapshot's database";
const PREPARING: &str = "preparing a restored database";

/// The files whose bytes a snapshot names. Those that a purge had claimed may have lost theirs.
const NAMED: &str = "SELECT file_id, sha256, size_bytes, storage_provider, blob_key FROM files
     WHERE purge_claimed = 0 ORDER BY sha256";

/// Reads the table on from a file: no index has the digest.
const NAMED_ALIKE: &str =
    "SELECT file_id, sha256, size_bytes, storage_provider, blob_key FROM files
     WHERE sha256 = ?1 AND purge_claimed = 0 AND file_id > ?2 ORDER BY file_id LIMIT ?3";

const COUNT: &str = "SELECT count(*) FROM files WHERE purge_claimed = 0";

const LAST_ROW: &str = "SELECT coalesce(max(rowid), 0) FROM files";

const ONE: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = ?1 AND purge_claimed = 0");

const OF_ORGANIZATION: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE organization_id = ?1 AND purge_status IS NULL ORDER BY file_id"
);

/// Removal of what a process that is gone was about to do, and of what is remembered of its directory.
const FORGET_WORK: &str = "DELETE FROM holds; DELETE FROM settings WHERE name = 'directory_marked';
     DELETE FROM blob_gc WHERE storage_provider = 'LOCAL';";

/// Removal of the work that only the original may still do at its providers, and of what it knows of other
/// places.
const FORGET_CLAIMS: &str =
    "DELETE FROM write_intents; DELETE FROM blob_gc; DELETE FROM files WHERE purge_claimed = 1;
     DELETE FROM settings WHERE name = 'store_id' OR substr(name, 1, 16) = 'provider_marked:'
     OR substr(name, 1, 14) = 'backup_marked:' OR substr(name, 1, 12) = 'receipt_key:';
     DELETE FROM purge_receipts; DELETE FROM removed_blobs;";

const LOCALIZE: &str = "UPDATE files SET storage_location = 'LOCAL', storage_provider = 'LOCAL',
     sync_status = CASE status WHEN 'READY' THEN 'PENDING' ELSE 'NONE' END,
     sync_owner = NULL, sync_not_before = 0, sync_attempts = 0 WHERE file_id = ?1";

/// The bytes of one record of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBytes {
    /// The file.
    pub file_id: FileId,
    /// The digest of the bytes.
    pub sha256: Sha256,
    /// Their size.
    pub size_bytes: u64,
    /// The provider that held them.
    pub provider: ProviderCode,
    /// Their key there.
    pub key: BlobKey,
}

/// Copies the database at `live`, as it is at one instant, to the new file `to`. Blocks; other
/// connections go on reading and writing.
pub(super) fn copy(live: &Path, to: &Path) -> Result<()> {
    match copy_in_one_step(live, to) {
        Ok(StepResult::Done) => Ok(()),
        Ok(other) => Err(Error::internal(COPYING, format!("SQLite stopped with {other:?}"))),
        Err(error) => Err(Fault::from(error).into_error(COPYING)),
    }
}

fn copy_in_one_step(live: &Path, to: &Path) -> rusqlite::Result<StepResult> {
    let from = Connection::open_with_flags(live, connection::reader_flags())?;
    connection::set_up_reader(&from)?;
    let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut copy = Connection::open_with_flags(to, create)?;
    // The copy is flushed with all else, before it counts.
    copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")?;

    // Under one read lock: what others commit meanwhile restarts nothing.
    let outcome = Backup::new(&from, &mut copy)?.step(-1)?;
    // One file, which can be read where nothing can be written.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(outcome)
}

/// A snapshot's copy of the database, opened for reading. All methods block.
#[derive(Debug)]
pub struct SnapshotDatabase {
    sql: Connection,
}

impl SnapshotDatabase {
    /// Opens a copy.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|sql| {
            // Sorted on the disk: memory is bounded.
            sql.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -16384;")?;
            Ok(sql)
        });
        let sql = opened.map_err(|error| Fault::from(error).into_error(READING))?;
        Ok(Self { sql })
    }

    /// Returns the last row that the snapshot may name; see
    /// [`Holds::narrow_hold`](crate::metadata::Holds::narrow_hold).
    pub fn last_row(&self) -> Result<i64> {
        self.number(LAST_ROW)
    }

    /// Counts the records whose bytes the snapshot names.
    pub fn count(&self) -> Result<u64> {
        Ok(u64::try_from(self.number(COUNT)?).unwrap_or(0))
    }

    fn number(&self, query: &str) -> Result<i64> {
        let number = row::first(&self.sql, query, [], |row| Ok(row.get(0)?));
        Ok(number.map_err(|fault| fault.into_error(READING))?.unwrap_or(0))
    }

    /// Gives the bytes that the snapshot names to `give`, in the order of their digests. Damaged records
    /// are passed over; returns how many.
    pub fn each_named(&self, give: &mut dyn FnMut(NamedBytes) -> Result<()>) -> Result<u64> {
        self.each(NAMED, [], named, give)
    }

    /// Returns the bytes of up to `limit` records with a digest that come after the file `after`, in the
    /// order of their ids. Damaged records are passed over.
    pub fn records_of(
        &self,
        sha256: Sha256,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<NamedBytes>> {
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        let params = params![sha256.0, after, row::limit(limit)];
        let mut records = Vec::new();
        self.each(NAMED_ALIKE, params, named, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }

    /// Gives the records of an organization that were not deleted to `give`, the oldest first. Damaged
    /// ones are passed over; returns how many.
    pub fn each_of(
        &self,
        organization: &OrganizationId,
        give: &mut dyn FnMut(FileRecord) -> Result<()>,
    ) -> Result<u64> {
        self.check_version()?;
        self.each(OF_ORGANIZATION, [organization.as_str()], row::record, give)
    }

    /// Returns one record.
    pub fn file(&self, id: FileId) -> Result<Option<FileRecord>> {
        self.check_version()?;
        row::first(&self.sql, ONE, [row::id(id)], row::record)
            .map_err(|fault| fault.into_error(READING))
    }

    /// Refuses a copy whose records have other columns than ours.
    fn check_version(&self) -> Result<()> {
        let version = self.number("PRAGMA user_version")?;
        if usize::try_from(version) == Ok(schema::MIGRATIONS.len()) {
            return Ok(());
        }
        let message = "the snapshot is of another version of this program: restore all of it into a directory, and take the files from there";
        Err(Error::new(ErrorKind::Unusable, message))
    }

    fn each<T>(
        &self,
        query: &str,
        params: impl rusqlite::Params,
        read: impl Fn(&Row<'_>) -> Result<T, Fault>,
        give: &mut dyn FnMut(T) -> Result<()>,
    ) -> Result<u64> {
        let mut statement = self.sql.prepare(query).map_err(unread)?;
        let mut rows = statement.query(params).map_err(unread)?;

        let mut damaged = 0;
        while let Some(row) = rows.next().map_err(unread)? {
            match damage::pass_over(read(row)).map_err(|fault| fault.into_error(READING))? {
                Some(value) => give(value)?,
                None => damaged += 1,
            }
        }
        damage::take();
        Ok(damaged)
    }
}

fn unread(error: rusqlite::Error) -> Error {
    Fault::from(error).into_error(READING)
}

fn named(row: &Row<'_>) -> Result<NamedBytes, Fault> {
    named_columns(row).map_err(|source| Fault::Record {
        file_id: row.get(0).unwrap_or_else(|_| String::from("?")),
        source,
    })
}

fn named_columns(row: &Row<'_>) -> Result<NamedBytes, Source> {
    Ok(NamedBytes {
        file_id: row::parse(row, 0)?,
        sha256: Sha256(row.get(1)?),
        size_bytes: row::unsigned(row, 2)?,
        provider: row::parse(row, 3)?,
        key: row::parse(row, 4)?,
    })
}

/// Makes the database of a snapshot, at `path`, that of a restored store; the files in `local` have
/// their bytes on its own disk now. `copy_id` becomes the id of one that is restored as a copy. Blocks.
pub fn prepare_restored(
    path: &Path,
    restored_as: RestoredAs,
    copy_id: StoreId,
    local: &[FileId],
) -> Result<()> {
    let mut sql = Connection::open(path).map_err(unprepared)?;
    // The file is flushed before it counts.
    sql.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")
        .map_err(unprepared)?;
    let version = schema::identify(&sql).map_err(|error| error.into_error(path))?;
    schema::migrate(&mut sql, version, copy_id).map_err(unprepared)?;

    let transaction = sql.transaction().map_err(unprepared)?;
    transaction.execute_batch(FORGET_WORK).map_err(unprepared)?;
    if restored_as == RestoredAs::Copy {
        transaction.execute_batch(FORGET_CLAIMS).map_err(unprepared)?;
        settings::put_id(&transaction, copy_id).map_err(unprepared)?;
    }
    for &id in local {
        row::execute(&transaction, LOCALIZE, params![row::id(id)])
            .map_err(|fault| fault.into_error(PREPARING))?;
    }
    transaction.commit().map_err(unprepared)
}

fn unprepared(error: rusqlite::Error) -> Error {
    Fault::from(error).into_error(PREPARING)
}
