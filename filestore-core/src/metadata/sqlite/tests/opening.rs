//! Opening, reopening, refusing.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use super::*;
use crate::domain::error::ErrorKind;
use crate::metadata::Metadata;
use crate::metadata::contract::{get, put, ready};

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
        "the database was written by a newer version of this program: it knows schema 2, the file has 99"
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
