//! Opening, reopening, refusing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::error::ErrorKind;
use crate::domain::file::listing::ListFilter;
use crate::domain::id::StoreId;
use crate::metadata::contract::{at, get, put, ready};
use crate::metadata::prelude::*;
use crate::metadata::sqlite::session::schema::MIGRATIONS;

/// Makes a database file by `sql` and tries to open it.
fn refusal(sql: &str) -> (ErrorKind, String) {
    let directory = tempfile::tempdir().unwrap();
    let connection = Connection::open(file(&directory)).unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let before = std::fs::read(file(&directory)).unwrap();
    let error = SqliteMetadata::open(&file(&directory), Durability::Full, None).err().unwrap();
    assert_eq!(std::fs::read(file(&directory)).unwrap(), before, "a refused file was changed");
    (error.kind(), error.to_string())
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let (kind, message) = refusal(
        "PRAGMA application_id = 0x46535452; PRAGMA user_version = 99; CREATE TABLE t (c);",
    );
    assert_eq!(kind, ErrorKind::Unusable);
    assert_eq!(
        message,
        "the database was written by a newer version of this program: it knows schema 12, the file has 99"
    );
}

#[test]
fn another_programs_database_is_refused_untouched() {
    for sql in ["CREATE TABLE t (c);", "PRAGMA application_id = 7;", "PRAGMA user_version = 1;"] {
        let (kind, message) = refusal(sql);
        assert_eq!(
            (kind, message.as_str()),
            (ErrorKind::Unusable, "the database file belongs to another program")
        );
    }
}

#[test]
fn what_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(file(&directory), "x".repeat(5000)).unwrap();
    let error = SqliteMetadata::open(&file(&directory), Durability::Full, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    let missing = directory.path().join("missing").join("metadata.db");
    assert!(SqliteMetadata::open(&missing, Durability::Full, None).is_err());
}

#[tokio::test]
async fn reopening_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let metadata = SqliteMetadata::open(&file(&directory), Durability::Full, None).unwrap();
    let first = put(&metadata, ready("acme")).await;
    metadata.close().await;
    assert_eq!(
        std::fs::metadata(directory.path().join("metadata.db-wal")).unwrap().len(),
        0,
        "checkpointed"
    );

    drop(metadata);

    let metadata = SqliteMetadata::open(&file(&directory), Durability::Full, None).unwrap();
    let second = put(&metadata, ready("acme")).await;
    drop(metadata);

    let metadata = open(&directory);
    for record in [first, second] {
        assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
    }
}

#[test]
fn the_file_is_its_owners_only() {
    let (_metadata, directory) = fresh();
    for name in ["metadata.db", "metadata.db-wal"] {
        let mode = std::fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn connections_are_set_up_as_promised() {
    let directory = tempfile::tempdir().unwrap();
    let metadata = SqliteMetadata::open(&file(&directory), Durability::Full, None).unwrap();
    let pragmas =
        ["synchronous", "foreign_keys", "trusted_schema", "mmap_size", "wal_autocheckpoint"];
    let read = move |sql: &Connection| {
        let value = |name| sql.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
        pragmas.map(|name| value(name).unwrap_or(-1))
    };

    let writer = metadata.writer.run("test", move |tx| Ok(read(tx.sql))).await.unwrap();
    // mmap_size answers nothing where SQLite was built without it.
    let off = |value| matches!(value, 0 | -1);
    assert_eq!((writer[0], writer[1], writer[2], writer[4]), (2, 1, 0, 0));
    assert!(off(writer[3]));

    let reader = metadata.readers.run("test", move |sql| Ok(read(sql))).await.unwrap();
    assert_eq!((reader[1], reader[2], reader[4]), (1, 0, 0));

    let write = metadata.readers.run("test", |sql| Ok(sql.execute("DELETE FROM files", [])?)).await;
    assert!(write.is_err(), "a reader cannot write");
}

#[tokio::test]
async fn the_id_of_a_store_stays_the_same() {
    let (metadata, directory) = fresh();
    let id = metadata.store_id();
    drop(metadata);
    assert_eq!(open(&directory).store_id(), id);

    let given = StoreId::generate(at(7));
    let other = tempfile::tempdir().unwrap();
    let open_as =
        |id| SqliteMetadata::open_known_as(id, &file(&other), Durability::Process, None).unwrap();
    assert_eq!(open_as(given).store_id(), given);
    assert_eq!(open_as(id).store_id(), given, "it has one already");
}

/// Leaves in `directory` what a SIGKILL in the last migration of an old database leaves: all its
/// pages are in the log, and no commit.
fn killed_in_the_last_migration(directory: &TempDir) {
    let old =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/integration/old_data/84e346b/data");
    let working = tempfile::tempdir().unwrap();
    let (log, killed_log) =
        (working.path().join("db-wal"), directory.path().join("metadata.db-wal"));
    std::fs::copy(old.join("metadata.sqlite3"), working.path().join("db")).unwrap();
    std::fs::copy(old.join("metadata.sqlite3-wal"), &log).unwrap();

    let mut dying = Connection::open(working.path().join("db")).unwrap();
    let version: i64 = dying.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
    dying.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 1").unwrap();

    let before = std::fs::metadata(&log).unwrap().len();
    let migration = dying.transaction().unwrap();
    for step in &MIGRATIONS[2..] {
        migration.execute_batch(step).unwrap();
    }
    // More pages than the cache takes: those of the migration are written before it is committed.
    migration
        .execute_batch("CREATE TABLE ballast (b); INSERT INTO ballast VALUES (zeroblob(4000000))")
        .unwrap();
    assert!(std::fs::metadata(&log).unwrap().len() > before + 1_000_000);

    std::fs::copy(working.path().join("db"), file(directory)).unwrap();
    std::fs::copy(&log, killed_log).unwrap();
}

#[tokio::test]
async fn a_migration_that_was_killed_is_made_at_the_next_opening() {
    let directory = tempfile::tempdir().unwrap();
    killed_in_the_last_migration(&directory);
    let metadata = open(&directory);

    let everything = ListFilter::default();
    let records = metadata.list_files(&everything, &Scope::All, None, 1000).await.unwrap().records;
    assert!(!records.is_empty());
    let id = metadata.store_id();
    put(&metadata, ready("acme")).await;

    drop(metadata);
    let again = open(&directory);
    assert_eq!(again.store_id(), id);
    let listed = again.list_files(&everything, &Scope::All, None, 1000).await.unwrap().records;
    assert_eq!(listed.len(), records.len() + 1);
}

#[tokio::test]
async fn a_damaged_row_does_not_stop_a_migration() {
    let directory = tempfile::tempdir().unwrap();
    let old = Connection::open(file(&directory)).unwrap();
    for step in &MIGRATIONS[..3] {
        old.execute_batch(step).unwrap();
    }
    old.execute_batch(
        "PRAGMA application_id = 1179866194; PRAGMA user_version = 3;
         INSERT INTO settings VALUES ('store_id', '01ARZ3NDEKTSV4RRFFQ69G5FAV');
         PRAGMA ignore_check_constraints = ON;
         INSERT INTO files (file_id, organization_id, sub_system, original_name, mime_type, ext, status,
             sync_status, storage_location, storage_provider, blob_key, size_bytes, sha256, stored_at,
             version, created_at, updated_at)
         VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'acme', 'docs', 'a', 'text/plain', '', 'ODD', 'NONE', 'LOCAL',
             'LOCAL', 'acme/docs/2026/01/01/01ARZ3NDEKTSV4RRFFQ69G5FAV', 1, zeroblob(32), 0, 1, 0, 0)",
    )
    .unwrap();
    drop(old);

    let metadata = open(&directory);
    put(&metadata, ready("acme")).await;
    let listed = metadata.list_files(&ListFilter::default(), &Scope::All, None, 10).await.unwrap();
    assert_eq!(listed.records.len(), 1, "the damaged row is passed over");

    let set_up = metadata.writer.run("test", |tx| {
        let value =
            |name| tx.sql.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
        Ok([value("ignore_check_constraints")?, value("temp_store")?])
    });
    assert_eq!(set_up.await.unwrap(), [0, 2], "what the migration needed is over");
}
