//! Conversion between rows and records. A value that is read passes its checked constructor again.

use std::str::FromStr;

use rusqlite::{Connection, Row, ToSql};

use crate::domain::clock::Timestamp;
use crate::domain::custom_metadata::CustomMetadata;
use crate::domain::id::{FileId, Sha256};
use crate::domain::lifecycle::FileState;
use crate::domain::record::{Blob, Dimensions, FileRecord, Thumbhash};
use crate::domain::status::PurgeStatus;

use super::damage;
use super::fault::{Fault, Source};

/// The columns of a record, in the order [`record`] reads and [`with_record`] binds them.
macro_rules! columns {
    () => {
        "file_id, organization_id, sub_system, original_name, mime_type, ext, status, sync_status, \
         purge_status, storage_location, storage_provider, blob_key, size_bytes, sha256, sniffed_type, \
         width, height, stored_at, version, created_at, updated_at, expires_at, metadata, edited_at, \
         thumbhash"
    };
}
pub(super) use columns;

/// The number of [`columns!`].
pub(super) const COLUMNS: usize = 25;

/// Reads the record in the first [`COLUMNS`] columns.
pub(super) fn record(row: &Row<'_>) -> Result<FileRecord, Fault> {
    read_record(row).map_err(|source| Fault::Record {
        file_id: row.get(0).unwrap_or_else(|_| String::from("?")),
        source,
    })
}

fn read_record(row: &Row<'_>) -> Result<FileRecord, Source> {
    Ok(FileRecord {
        file_id: parse(row, 0)?,
        organization_id: parse(row, 1)?,
        sub_system: parse(row, 2)?,
        original_name: row.get(3)?,
        mime_type: row.get(4)?,
        ext: row.get(5)?,
        state: FileState::from_row(
            parse(row, 6)?,
            parse(row, 7)?,
            text(row, 8)?.map(str::parse).transpose()?,
            parse(row, 9)?,
        )?,
        blob: Blob {
            provider: parse(row, 10)?,
            key: parse(row, 11)?,
            size_bytes: unsigned(row, 12)?,
            sha256: Sha256(row.get(13)?),
            sniffed_type: row.get(14)?,
            dimensions: dimensions(row.get(15)?, row.get(16)?)?,
            stored_at: Timestamp::from_millis(row.get(17)?),
            thumbhash: thumbhash(row)?,
        },
        version: unsigned(row, 18)?,
        created_at: Timestamp::from_millis(row.get(19)?),
        updated_at: Timestamp::from_millis(row.get(20)?),
        expires_at: row.get::<_, Option<i64>>(21)?.map(Timestamp::from_millis),
        metadata: text(row, 22)?.map(CustomMetadata::stored).unwrap_or_default(),
        edited_at: row.get::<_, Option<i64>>(23)?.map(Timestamp::from_millis),
    })
}

fn thumbhash(row: &Row<'_>) -> Result<Option<Thumbhash>, Source> {
    let bytes = row.get_ref(24)?.as_blob_or_null()?;
    bytes.map(|bytes| Thumbhash::new(bytes).ok_or_else(|| "no ThumbHash".into())).transpose()
}

fn dimensions(width: Option<u32>, height: Option<u32>) -> Result<Option<Dimensions>, Source> {
    match (width, height) {
        (Some(width), Some(height)) => Ok(Some(Dimensions { width, height })),
        (None, None) => Ok(None),
        _ => Err("width and height go together".into()),
    }
}

/// Calls `run` with the values of the record's [`columns!`].
pub(super) fn with_record<T>(
    record: &FileRecord,
    run: impl FnOnce(&[&dyn ToSql; COLUMNS]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let state = record.state;
    let blob = &record.blob;

    run(&[
        &id(record.file_id),
        &record.organization_id.as_str(),
        &record.sub_system.as_str(),
        &record.original_name,
        &record.mime_type,
        &record.ext,
        &state.status().as_str(),
        &state.sync().as_str(),
        &state.purge().map(PurgeStatus::as_str),
        &state.location().as_str(),
        &blob.provider.as_str(),
        &blob.key.as_str(),
        &integer(blob.size_bytes)?,
        &blob.sha256.0.as_slice(),
        &blob.sniffed_type,
        &blob.dimensions.map(|dimensions| dimensions.width),
        &blob.dimensions.map(|dimensions| dimensions.height),
        &blob.stored_at.as_millis(),
        &integer(record.version)?,
        &record.created_at.as_millis(),
        &record.updated_at.as_millis(),
        &record.expires_at.map(Timestamp::as_millis),
        &(!record.metadata.is_empty()).then(|| record.metadata.as_json()),
        &record.edited_at.map(Timestamp::as_millis),
        &blob.thumbhash.as_ref().map(Thumbhash::as_bytes),
    ])
}

/// Writes an id as it is stored.
pub(super) fn id(id: FileId) -> String {
    id.to_string()
}

/// Converts a size or count to what SQLite stores.
pub(super) fn integer(value: u64) -> Result<i64, Fault> {
    i64::try_from(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)).into())
}

/// Returns the operand of `LIMIT`.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Parses a text column.
pub(super) fn parse<T>(row: &Row<'_>, column: usize) -> Result<T, Source>
where
    T: FromStr<Err: Into<Source>>,
{
    text(row, column)?.ok_or("unexpected NULL")?.parse().map_err(Into::into)
}

/// Reads a column that is never negative.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, Source> {
    Ok(u64::try_from(row.get::<_, i64>(column)?)?)
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, Source> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

/// Reads a count or total; a negative one means a broken table.
pub(super) fn count(row: &Row<'_>, column: usize) -> Result<u64, Fault> {
    unsigned(row, column).map_err(|source| Fault::Row { what: "a total".into(), source })
}

/// Runs `read` on each row of a query. Damaged rows are passed over.
pub(super) fn collect<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    collect_up_to(usize::MAX, sql, query, params, read)
}

/// Runs `read` on the rows of a query until `limit` were read. Damaged rows are passed over and do
/// not count, as they would where the query itself has a limit: fewer rows mean the end.
pub(super) fn collect_up_to<T>(
    limit: usize,
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    let mut rows = statement.query(params)?;

    let mut all = Vec::new();
    while all.len() < limit
        && let Some(row) = rows.next()?
    {
        all.extend(damage::pass_over(read(row))?);
    }
    Ok(all)
}

/// Runs `read` on each row of a query, and fails at the first damaged one.
pub(super) fn collect_whole<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    statement.query_and_then(params, read)?.collect()
}

/// Runs `read` on the first row of a query, if it has one.
pub(super) fn first<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Runs a statement; returns how many rows it changed.
pub(super) fn execute(
    sql: &Connection,
    statement: &str,
    params: impl rusqlite::Params,
) -> Result<usize, Fault> {
    Ok(sql.prepare_cached(statement)?.execute(params)?)
}
