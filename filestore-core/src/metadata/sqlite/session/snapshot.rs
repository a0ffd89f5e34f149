//! Copies of the database: taken while the store runs, read by backups, and prepared by restores.
//!
//! # Locking
//! The live database is copied through a separate SQLite connection. No other code in this process can open
//! its files, because closing them would end SQLite's locks (<https://sqlite.org/howtocorrupt.html>, 2.2).

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::domain::access::key::ApiKey;
use crate::domain::access::signed_url::SigningSecretInfo;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId, Sha256, StoreId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::backup::{RestoreOptions, RestoredAccess, RestoredAs};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;

use super::connection;
use super::fault::{Fault, Source};
use super::{schema, store_id};
use crate::metadata::sqlite::tables::row;
use crate::metadata::sqlite::tables::row::columns;
use crate::metadata::sqlite::tables::{damage, erasures, keys, signing};

pub(super) const COPYING: &str = "copying the database";
const READING: &str = "reading a snapshot's database";
const PREPARING: &str = "preparing a restored database";

/// Selects the files with bytes in a snapshot. Files that a purge had claimed may have lost their bytes.
const NAMED: &str = "SELECT file_id, sha256, size_bytes, storage_provider, blob_key FROM files
     WHERE purge_claimed = 0 ORDER BY sha256";

/// Reads the table from a given file on, because no index contains the digest.
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

/// Begins a new log of events at the first opening, with a new key and the event `log.gap`: readers that know later
/// events than the snapshot must not miss what is told under the same positions.
const BEGIN_LOG: &str =
    "UPDATE event_log SET is_on = 0, off_since = ?1, id_key = NULL, gap_position = NULL";

/// Removes the pending work of a process that has ended, its events, and the facts about its directory.
const FORGET_WORK: &str = "DELETE FROM events; DELETE FROM holds; DELETE FROM resumable_uploads;
     UPDATE webhook_lanes SET owner = NULL, leased_until = 0, place = NULL, ahead = x'';
     DELETE FROM settings WHERE name = 'directory_marked'; DELETE FROM blob_gc WHERE storage_provider = 'LOCAL';";

/// Removes the work that only the original store can do at its providers, and its facts about other places.
const FORGET_CLAIMS: &str =
    "DELETE FROM write_intents; DELETE FROM blob_gc; DELETE FROM files WHERE purge_claimed = 1;
     DELETE FROM settings WHERE name = 'store_id' OR substr(name, 1, 16) = 'provider_marked:'
     OR substr(name, 1, 14) = 'backup_marked:' OR substr(name, 1, 12) = 'backup_done:' OR substr(name, 1, 12) = 'receipt_key:'
     OR name = 'upload_secret';
     DELETE FROM purge_receipts; DELETE FROM removed_blobs;";

const REVOKE_KEYS: &str = "UPDATE api_keys SET revoked_at = ?1 WHERE revoked_at IS NULL";

/// Removes all secrets, including those that only verify. The next signature creates a new secret.
const FORGET_SECRETS: &str = "DELETE FROM signing_secrets;";

/// Disables all webhooks, because only the original store sends its events.
const DISABLE_WEBHOOKS: &str = "UPDATE webhooks SET disabled_reason = 'copied', disabled_at = ?1";

/// Gives each webhook a secret that nobody knows.
const FORGET_WEBHOOK_SECRETS: &str =
    "UPDATE webhooks SET secret = randomblob(32), former_secret = NULL, former_until = NULL;
     DELETE FROM webhook_failures;";

const LOCALIZE: &str = "UPDATE files SET storage_location = 'LOCAL', storage_provider = 'LOCAL',
     sync_status = CASE status WHEN 'READY' THEN 'PENDING' ELSE 'NONE' END,
     sync_owner = NULL, sync_not_before = 0, sync_attempts = 0, sync_error = NULL WHERE file_id = ?1";

/// The bytes of one record in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBytes {
    /// The file.
    pub file_id: FileId,
    /// The digest of the bytes.
    pub sha256: Sha256,
    /// The size of the bytes.
    pub size_bytes: u64,
    /// The provider with the bytes.
    pub provider: ProviderCode,
    /// The key of the bytes at the provider.
    pub key: BlobKey,
}

/// Copies the database at `live`, at one instant, to the new file `to`. Blocks. Other connections continue to
/// read and write.
pub(in crate::metadata::sqlite) fn copy(live: &Path, to: &Path) -> Result<()> {
    make_file(to)?;
    match copy_in_one_step(live, to) {
        Ok(StepResult::Done) => Ok(()),
        Ok(other) => Err(Error::internal(COPYING, format!("SQLite stopped with {other:?}"))),
        Err(error) => Err(Fault::from(error).into_error(COPYING)),
    }
}

/// Makes the empty file of a copy. It will have signing secrets, and SQLite would make it by the mask of the
/// process.
pub(super) fn make_file(path: &Path) -> Result<()> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    made.map(drop).map_err(|error| Error::io(COPYING, error))
}

fn copy_in_one_step(live: &Path, to: &Path) -> rusqlite::Result<StepResult> {
    let from = Connection::open_with_flags(live, connection::reader_flags())?;
    connection::set_up_reader(&from)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
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
    /// Opens a copy that this process created.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|sql| {
            distrust(&sql)?;
            // Sorted on the disk: memory is bounded.
            sql.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -16384;")?;
            Ok(sql)
        });
        let sql = opened.map_err(|error| Fault::from(error).into_error(READING))?;
        Ok(Self { sql })
    }

    /// Opens a copy from a destination. `Unusable` if its schema contains objects that this program does not
    /// create.
    pub fn open_foreign(path: &Path) -> Result<Self> {
        let copy = Self::open(path)?;
        let version = schema::identify(&copy.sql).map_err(|error| error.into_error(path))?;
        schema::expect_ours(&copy.sql, version).map_err(|error| error.into_error(path))?;
        Ok(copy)
    }

    /// Returns the last row that the snapshot can name. See
    /// [`Holds::narrow_hold`](crate::metadata::Holds::narrow_hold).
    pub fn last_row(&self) -> Result<i64> {
        self.number(LAST_ROW)
    }

    /// Returns the era in which the snapshot was taken.
    pub fn era(&self) -> Result<Era> {
        self.check_version()?;
        Ok(Era::from_number(self.number(erasures::LAST)?))
    }

    /// Counts the records with bytes in the snapshot.
    pub fn count(&self) -> Result<u64> {
        Ok(u64::try_from(self.number(COUNT)?).unwrap_or(0))
    }

    fn number(&self, query: &str) -> Result<i64> {
        let number = row::first(&self.sql, query, [], |row| Ok(row.get(0)?));
        Ok(number.map_err(|fault| fault.into_error(READING))?.unwrap_or(0))
    }

    /// Passes the bytes that the snapshot names to `give`, ordered by digest. Skips damaged
    /// records, and returns their number.
    pub fn each_named(&self, give: &mut dyn FnMut(NamedBytes) -> Result<()>) -> Result<u64> {
        self.each(NAMED, [], named, give)
    }

    /// Returns the bytes of at most `limit` records with a digest, after the file `after`, in the order of
    /// their ids. Skips damaged records.
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

    /// Passes an organization's records that were not deleted to `give`, oldest first. Skips damaged
    /// records, and returns their number.
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

    /// Refuses a copy if its records and this program's have different columns.
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

/// Disables dangerous features of a schema that another program may have written: functions with effects, and
/// changes of the schema. Call it before anything is read.
fn distrust(sql: &Connection) -> rusqlite::Result<()> {
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(())
}

/// A snapshot's keys and secrets that are valid when it is restored.
#[derive(Debug, Default)]
pub struct GoodAccess {
    /// The keys, oldest first.
    pub keys: Vec<ApiKey>,
    /// The secrets that sign URLs, oldest first.
    pub secrets: Vec<SigningSecretInfo>,
}

/// Turns a snapshot's database, at `path`, into the database of a restored store. The bytes of the files
/// in `local` are now on its local disk. `copy_id` becomes the id of a restored copy. Returns the keys and
/// secrets that were valid at `now`, which are revoked if `options` request it. Blocks.
pub fn prepare_restored(
    path: &Path,
    options: RestoreOptions,
    copy_id: StoreId,
    local: &[FileId],
    now: Timestamp,
) -> Result<GoodAccess> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut sql = Connection::open_with_flags(path, flags).map_err(unprepared)?;
    distrust(&sql).map_err(unprepared)?;
    let version = schema::identify(&sql).map_err(|error| error.into_error(path))?;
    schema::expect_ours(&sql, version).map_err(|error| error.into_error(path))?;
    // The file is flushed before it counts.
    sql.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")
        .map_err(unprepared)?;
    schema::migrate(&mut sql, version, copy_id).map_err(unprepared)?;

    let transaction = sql.transaction().map_err(unprepared)?;
    transaction.execute_batch(FORGET_WORK).map_err(unprepared)?;
    row::execute(&transaction, BEGIN_LOG, [now.as_millis()])
        .map_err(|fault| fault.into_error(PREPARING))?;
    let good = good_access(&transaction, now).map_err(|fault| fault.into_error(PREPARING))?;
    if options.access == RestoredAccess::Revoked {
        row::execute(&transaction, REVOKE_KEYS, [now.as_millis()])
            .map_err(|fault| fault.into_error(PREPARING))?;
        transaction.execute_batch(FORGET_SECRETS).map_err(unprepared)?;
    }
    if options.restored_as == RestoredAs::Copy {
        transaction.execute_batch(FORGET_CLAIMS).map_err(unprepared)?;
        row::execute(&transaction, DISABLE_WEBHOOKS, [now.as_millis()])
            .map_err(|fault| fault.into_error(PREPARING))?;
        transaction.execute_batch(FORGET_WEBHOOK_SECRETS).map_err(unprepared)?;
        store_id::put(&transaction, copy_id).map_err(unprepared)?;
    }
    for &id in local {
        row::execute(&transaction, LOCALIZE, params![row::id(id)])
            .map_err(|fault| fault.into_error(PREPARING))?;
    }
    transaction.commit().map_err(unprepared)?;
    Ok(good)
}

fn good_access(sql: &Connection, now: Timestamp) -> Result<GoodAccess, Fault> {
    let keys = keys::list(sql)?.into_iter().map(|stored| stored.key);
    let secrets = signing::all(sql)?.into_iter().filter(|one| one.is_valid_at(now));
    let secrets = secrets.map(|one| SigningSecretInfo {
        kid: one.secret.kid().to_owned(),
        is_configured: false,
        signs: one.valid_until.is_none(),
        created_at: Some(one.created_at),
        valid_until: one.valid_until,
    });
    Ok(GoodAccess {
        keys: keys.filter(|key| key.is_good_at(now)).collect(),
        secrets: secrets.collect(),
    })
}

fn unprepared(error: rusqlite::Error) -> Error {
    Fault::from(error).into_error(PREPARING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Clock;

    /// Makes the database of a version, and changes it by `forged`.
    fn database(path: &Path, version: usize, forged: &str) {
        let sql = Connection::open(path).unwrap();
        for step in &schema::MIGRATIONS[..version] {
            sql.execute_batch(step).unwrap();
        }
        let marks = format!("PRAGMA application_id = 1179866194; PRAGMA user_version = {version};");
        sql.execute_batch(&marks).unwrap();
        sql.execute_batch(forged).unwrap();
    }

    fn prepared(path: &Path) -> Result<GoodAccess> {
        let now = Clock::system().now();
        let options = RestoreOptions::from(RestoredAs::Original);
        prepare_restored(path, options, StoreId::generate(now), &[], now)
    }

    #[test]
    fn a_database_of_each_version_is_made_ready() {
        let dir = tempfile::tempdir().unwrap();
        for version in 1..=schema::MIGRATIONS.len() {
            let path = dir.path().join(version.to_string());
            database(&path, version, "");
            SnapshotDatabase::open_foreign(&path).unwrap();
            prepared(&path).unwrap();
            SnapshotDatabase::open_foreign(&path).unwrap().check_version().unwrap();
        }
    }

    #[test]
    fn a_database_with_triggers_views_or_tables_of_others_is_refused_and_none_of_them_runs() {
        let dir = tempfile::tempdir().unwrap();
        for (number, (forged, named)) in [
            (
                "CREATE TRIGGER evil AFTER DELETE ON settings BEGIN
                     INSERT INTO settings VALUES ('evil', 'ran'); END;
                 INSERT INTO settings VALUES ('directory_marked', 'x');",
                "trigger evil",
            ),
            (
                "DROP TRIGGER usage_insert; CREATE TRIGGER usage_insert AFTER INSERT ON files BEGIN
                     INSERT INTO settings VALUES ('evil', 'ran'); END;",
                "trigger usage_insert",
            ),
            ("CREATE VIEW evil AS SELECT 1;", "view evil"),
            ("DROP TABLE holds; CREATE VIEW holds AS SELECT 1 AS name;", "view holds"),
            ("CREATE TABLE evil (x);", "table evil"),
            ("CREATE INDEX evil ON files (abs(size_bytes));", "index evil"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = dir.path().join(number.to_string());
            database(&path, schema::MIGRATIONS.len(), forged);
            for refused in
                [SnapshotDatabase::open_foreign(&path).unwrap_err(), prepared(&path).unwrap_err()]
            {
                assert_eq!(refused.kind(), ErrorKind::Unusable);
                assert!(refused.message().ends_with(named), "{refused}");
            }

            let sql = Connection::open(&path).unwrap();
            let ran = "SELECT count(*) FROM settings WHERE name = 'evil'";
            assert_eq!(sql.query_row(ran, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        }
    }

    #[test]
    fn the_schema_of_a_snapshot_is_trusted_with_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        database(&path, schema::MIGRATIONS.len(), "");
        let copy = SnapshotDatabase::open(&path).unwrap();
        for (config, on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        ] {
            assert_eq!(copy.sql.db_config(config).unwrap(), on);
        }
    }
}
