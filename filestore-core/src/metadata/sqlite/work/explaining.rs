//! The record of one file with the work that waits for it, for explanations.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::explain::{FileWork, PurgeWork, ReplacedBlobs, UnfinishedWrite};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Explaining;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row::{self, COLUMNS, columns};
use crate::metadata::sqlite::tables::{bindings, files};

pub(in crate::metadata::sqlite) const WORK: &str = concat!(
    "SELECT ",
    columns!(),
    ", deleted_by, sync_not_before, purge_claimed, purge_owner IS NOT NULL, purge_not_before, purge_attempts, rowid
     FROM files WHERE file_id = ?1"
);

pub(in crate::metadata::sqlite) const REPLACED: &str = "SELECT storage_provider, not_before, attempts FROM blob_gc WHERE file_id = ?1 AND is_absent = 0";

pub(in crate::metadata::sqlite) const WRITES: &str =
    "SELECT storage_provider, begun_at FROM write_intents WHERE file_id = ?1";

/// Reads a table with few rows.
const HELD_UNTIL: &str =
    "SELECT max(CASE WHEN last_row >= ?1 THEN lasts_until END), max(lasts_until)
     FROM holds WHERE lasts_until > ?2";

#[async_trait]
impl Explaining for SqliteMetadata {
    async fn file_work(
        &self,
        file: FileId,
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Option<FileWork>> {
        let scope = scope.clone();
        self.readers
            .run("reading the work on a file", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                if !files::is_within(&snapshot, file, &scope)? {
                    return Ok(None);
                }
                work_on(&snapshot, file, now)
            })
            .await
    }
}

fn work_on(sql: &Connection, file: FileId, now: Timestamp) -> Result<Option<FileWork>, Fault> {
    let id = row::id(file);
    let Some((mut work, row_number)) = row::first(sql, WORK, [&id], work)? else {
        return Ok(None);
    };

    row::collect_whole(sql, REPLACED, [&id], |row| {
        let (provider, due_at) = at_provider(row, file)?;
        ReplacedBlobs::add_to(&mut work.replaced, provider, due_at, row.get(2)?);
        Ok(())
    })?;
    work.writes = row::collect_whole(sql, WRITES, [&id], |row| {
        let (provider, begun_at) = at_provider(row, file)?;
        Ok(UnfinishedWrite { provider, begun_at })
    })?;

    let held = row::first(sql, HELD_UNTIL, params![row_number, now.as_millis()], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    let (held, replaced_held) = held.unwrap_or_default();
    work.held_until = held.map(Timestamp::from_millis);
    work.replaced_held_until = replaced_held.map(Timestamp::from_millis);

    if let Some(number) = work.record.organization_id.number() {
        work.binding = bindings::active(sql, number)?;
    }
    Ok(Some(work))
}

/// Reads the record and the state of its work, without other tables. Also returns the row number.
fn work(row: &Row<'_>) -> Result<(FileWork, i64), Fault> {
    let record = row::record(row)?;
    let deleted_by = row.get::<_, Option<String>>(COLUMNS)?;
    let deleted_by = deleted_by.map(|text| text.parse()).transpose();
    let file_id = record.file_id;
    let work = FileWork {
        record,
        deleted_by: deleted_by.map_err(|source| Fault::Record {
            file_id: file_id.to_string(),
            source: Source::from(source),
        })?,
        sync_not_before: Timestamp::from_millis(row.get(COLUMNS + 1)?),
        purge: PurgeWork {
            is_claimed: row.get(COLUMNS + 2)?,
            is_leased: row.get(COLUMNS + 3)?,
            not_before: Timestamp::from_millis(row.get(COLUMNS + 4)?),
            attempts: row.get(COLUMNS + 5)?,
        },
        replaced: Vec::new(),
        writes: Vec::new(),
        held_until: None,
        replaced_held_until: None,
        binding: None,
    };
    Ok((work, row.get(COLUMNS + 6)?))
}

/// Reads a provider and an instant.
fn at_provider(row: &Row<'_>, file: FileId) -> Result<(ProviderCode, Timestamp), Fault> {
    let provider = row::parse(row, 0)
        .map_err(|source| Fault::Row { what: format!("a blob of file {file}"), source })?;
    Ok((provider, Timestamp::from_millis(row.get(1)?)))
}
