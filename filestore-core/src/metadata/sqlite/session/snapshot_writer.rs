//! A snapshot's copy of a database of another engine, written row by row.
//!
//! # Purpose
//! Snapshots have their records in one format, that of SQLite, whichever engine the store uses. So the same
//! code verifies them, restores them, and makes them forget what they must.
//!
//! # Speed
//! The other engine keeps a transaction open while its rows are read. So the indexes are made afterwards.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::metadata::copying::{Cells, Table};

use super::fault::Fault;
use super::schema;
use super::snapshot::{COPYING, make_file};
use crate::metadata::sqlite::tables::copying;

/// Nothing of the file counts before the snapshot is whole, and then it was flushed. A row that another engine
/// has is copied as it is, damaged or not: readers pass over what is damaged.
const SET_UP: &str =
    "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA temp_store = FILE;
     PRAGMA cache_size = -16384; PRAGMA ignore_check_constraints = ON;";

/// The id of the store comes with the other settings.
const BEGIN: &str = "BEGIN; DELETE FROM settings;";

/// Those of UNIQUE have no text, and stay.
const INDEXES: &str =
    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";

const HAS_NUMBER: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'bindings')";

const NUMBER_FROM: &str = "INSERT INTO sqlite_sequence (name, seq) VALUES ('bindings', ?1)";

const NUMBER_ON: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'bindings'";

/// A copy that is being written. All methods block.
#[derive(Debug)]
pub struct SnapshotWriter {
    sql: Connection,
    /// The statements that make the indexes.
    indexes: Vec<String>,
}

impl SnapshotWriter {
    /// Creates the file for the records of `store`, and replaces an existing file.
    pub fn create(path: &Path, store: StoreId) -> Result<Self> {
        make_file(path)?;
        begin(path, store).map_err(|error| Fault::from(error).into_error(COPYING))
    }

    /// Adds rows to a table. The rows must come in key order.
    pub fn put(&self, table: &Table, rows: &[Cells]) -> Result<()> {
        copying::put(&self.sql, table, rows).map_err(|fault| fault.into_error(COPYING))
    }

    /// Completes the copy. Bindings that are made in it are numbered behind `last_binding`. Nothing is flushed.
    pub fn finish(self, last_binding: i64) -> Result<()> {
        self.complete(last_binding).map_err(|error| Fault::from(error).into_error(COPYING))
    }

    fn complete(self, last_binding: i64) -> rusqlite::Result<()> {
        let Self { sql, indexes } = self;
        for index in indexes {
            sql.execute_batch(&index)?;
        }

        let has_number = sql.query_row(HAS_NUMBER, [], |row| row.get(0))?;
        let number = if has_number { NUMBER_ON } else { NUMBER_FROM };
        sql.execute(number, [last_binding])?;

        // One file, which can be read where nothing can be written.
        sql.execute_batch("COMMIT; PRAGMA journal_mode = DELETE;")
    }
}

fn begin(path: &Path, store: StoreId) -> rusqlite::Result<SnapshotWriter> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut sql = Connection::open_with_flags(path, flags)?;
    sql.execute_batch(SET_UP)?;
    schema::migrate(&mut sql, 0, store)?;
    sql.execute_batch(BEGIN)?;

    let indexes = {
        let mut statement = sql.prepare(INDEXES)?;
        let indexes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        indexes.collect::<rusqlite::Result<Vec<(String, String)>>>()?
    };
    for (name, _) in &indexes {
        sql.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    Ok(SnapshotWriter { sql, indexes: indexes.into_iter().map(|(_, text)| text).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;
    use crate::metadata::contract::{at, put, put_deleted, ready};
    use crate::metadata::copying::{Cell, Page, TABLES};
    use crate::metadata::prelude::*;
    use crate::metadata::sqlite::tests::{file, fresh};
    use crate::metadata::sqlite::{SnapshotDatabase, SqliteMetadata};

    const WHOLE: Page = Page { rows: 1000, bytes: usize::MAX };

    async fn rows(metadata: &SqliteMetadata) -> Vec<(&'static Table, Vec<Cells>)> {
        let mut all = Vec::new();
        for table in TABLES {
            all.push((table, metadata.rows_of(table, None, WHOLE).await.unwrap()));
        }
        all
    }

    /// All that a database has, with what triggers keep, and its schema.
    fn everything(path: &Path) -> Vec<String> {
        let sql = Connection::open(path).unwrap();
        let mut all = Vec::new();
        for query in [
            "SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1",
            "SELECT organization_id || storage_location || files || ' ' || bytes FROM organization_usage ORDER BY 1",
            "SELECT sync_status || files FROM sync_totals ORDER BY 1",
            "SELECT rowid || file_id FROM files ORDER BY 1",
            "SELECT name || seq FROM sqlite_sequence ORDER BY 1",
        ] {
            let mut statement = sql.prepare(query).unwrap();
            let found = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            all.extend(found.map(Result::unwrap));
        }
        all
    }

    #[tokio::test]
    async fn a_copy_by_rows_is_the_same_as_one_by_pages() {
        let (metadata, directory) = fresh();
        for organization in ["acme", "7", "acme"] {
            put(&metadata, ready(organization)).await;
        }
        put_deleted(&metadata, ready("acme"), at(5)).await;
        metadata.put_settings([("name".into(), "value".into())].into()).await.unwrap();

        let (by_rows, by_pages) = (directory.path().join("rows"), directory.path().join("pages"));
        metadata.snapshot_to(&by_pages).await.unwrap();
        let writer = SnapshotWriter::create(&by_rows, metadata.store_id()).unwrap();
        for (table, rows) in rows(&metadata).await {
            for page in rows.chunks(2) {
                writer.put(table, page).unwrap();
            }
        }
        writer.finish(metadata.last_binding().await.unwrap()).unwrap();

        let mut expected = everything(&by_pages);
        let found = everything(&by_rows);
        // Only a copy by rows has numbered no binding, and says so.
        expected.push("bindings0".to_owned());
        assert_eq!(found, expected);
        let copy = SnapshotDatabase::open_foreign(&by_rows).unwrap();
        assert_eq!((copy.count().unwrap(), copy.last_row().unwrap()), (4, 4));
        let again = SqliteMetadata::open(&by_rows, crate::domain::config::Durability::Full, None);
        let again = again.unwrap();
        assert_eq!(again.store_id(), metadata.store_id());
        for ((table, copied), (_, original)) in
            rows(&again).await.into_iter().zip(rows(&metadata).await)
        {
            assert_eq!(copied, original, "{}", table.name);
        }
    }

    #[tokio::test]
    async fn a_damaged_record_is_copied_and_passed_over() {
        let (metadata, directory) = fresh();
        for _ in 0..2 {
            put(&metadata, ready("acme")).await;
        }
        let path = directory.path().join("copy");
        let writer = SnapshotWriter::create(&path, metadata.store_id()).unwrap();
        for (table, mut rows) in rows(&metadata).await {
            if table.name == "files" {
                let at = table.columns.iter().position(|column| column.name == "width").unwrap();
                (rows[1][at], rows[1][at + 1]) = (Cell::Integer(-1), Cell::Integer(-1));
                let at = table.columns.iter().position(|column| column.name == "sha256").unwrap();
                rows[0][at] = Cell::Bytes(vec![1; 7]);
            }
            writer.put(table, &rows).unwrap();
        }
        writer.finish(0).unwrap();

        let mut named = Vec::new();
        let copy = SnapshotDatabase::open_foreign(&path).unwrap();
        let damaged = copy.each_named(&mut |bytes| {
            named.push(bytes.file_id);
            Ok(())
        });
        assert_eq!((damaged.unwrap(), named.len()), (1, 1));
    }

    #[tokio::test]
    async fn bindings_are_numbered_behind_the_last_that_ever_was() {
        let (metadata, directory) = fresh();
        let path = directory.path().join("copy");
        SnapshotWriter::create(&path, metadata.store_id()).unwrap().finish(41).unwrap();
        let sql = Connection::open(&path).unwrap();
        let insert = "INSERT INTO bindings (organization_id, organization_name, storage_provider, sync_enabled,
             is_active, effective_from) VALUES (7, 'Seven', 'LOCAL', 0, 1, 0) RETURNING id";
        assert_eq!(sql.query_row(insert, [], |row| row.get::<_, i64>(0)).unwrap(), 42);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_made_is_an_error() {
        let (metadata, directory) = fresh();
        let nowhere = file(&directory).join("below a file");
        let error = SnapshotWriter::create(&nowhere, metadata.store_id()).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::NotFound);
    }
}
