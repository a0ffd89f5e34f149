//! Conversion between rows and records.

use std::str::FromStr;

use rusqlite::{Connection, Row, ToSql};

use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::status::PurgeStatus;
use crate::domain::id::FileId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::stored::RecordRow;

use super::damage;
use crate::metadata::sqlite::session::fault::{Fault, Source};

pub(in crate::metadata::sqlite) use crate::metadata::stored::{
    RECORD_COLUMNS as COLUMNS, record_columns as columns,
};

/// Reads the record in the first [`COLUMNS`] columns.
pub(in crate::metadata::sqlite) fn record(row: &Row<'_>) -> Result<FileRecord, Fault> {
    read_record(row).map_err(|source| Fault::Record {
        file_id: row.get(0).unwrap_or_else(|_| String::from("?")),
        source,
    })
}

fn read_record(row: &Row<'_>) -> Result<FileRecord, Source> {
    RecordRow {
        file_id: whole_text(row, 0)?,
        organization_id: whole_text(row, 1)?,
        sub_system: whole_text(row, 2)?,
        original_name: whole_text(row, 3)?,
        mime_type: whole_text(row, 4)?,
        ext: whole_text(row, 5)?,
        status: whole_text(row, 6)?,
        sync_status: whole_text(row, 7)?,
        purge_status: text(row, 8)?,
        storage_location: whole_text(row, 9)?,
        storage_provider: whole_text(row, 10)?,
        blob_key: whole_text(row, 11)?,
        size_bytes: row.get(12)?,
        sha256: row.get_ref(13)?.as_blob()?,
        sniffed_type: text(row, 14)?,
        width: row.get(15)?,
        height: row.get(16)?,
        stored_at: row.get(17)?,
        version: row.get(18)?,
        created_at: row.get(19)?,
        updated_at: row.get(20)?,
        expires_at: row.get(21)?,
        metadata: text(row, 22)?,
        edited_at: row.get(23)?,
        thumbhash: row.get_ref(24)?.as_blob_or_null()?,
        purge_marked_at: row.get(25)?,
        deleted_at: row.get(26)?,
        sync_attempts: row.get(27)?,
        sync_error: text(row, 28)?,
    }
    .record()
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
        &record.deletion.map(|deletion| deletion.marked_at.as_millis()),
        &record.deletion.map(|deletion| deletion.deleted_at.as_millis()),
        &record.sync_attempts,
        &record.sync_error,
    ])
}

/// Encodes an id for storage.
pub(in crate::metadata::sqlite) fn id(id: FileId) -> String {
    id.to_string()
}

/// Converts a size or count to a SQLite number.
pub(in crate::metadata::sqlite) fn integer(value: u64) -> Result<i64, Fault> {
    i64::try_from(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)).into())
}

/// Returns the operand of `LIMIT`.
pub(in crate::metadata::sqlite) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Parses a text column.
pub(in crate::metadata::sqlite) fn parse<T>(row: &Row<'_>, column: usize) -> Result<T, Source>
where
    T: FromStr<Err: Into<Source>>,
{
    whole_text(row, column)?.parse().map_err(Into::into)
}

fn whole_text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, Source> {
    Ok(text(row, column)?.ok_or("unexpected NULL")?)
}

/// Reads a column that is never negative.
pub(in crate::metadata::sqlite) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, Source> {
    Ok(u64::try_from(row.get::<_, i64>(column)?)?)
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, Source> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

/// Reads a count or total. A negative number means a damaged table.
pub(in crate::metadata::sqlite) fn count(row: &Row<'_>, column: usize) -> Result<u64, Fault> {
    unsigned(row, column).map_err(|source| Fault::Row { what: "a total".into(), source })
}

/// Runs `read` on each row of a query. Skips damaged rows.
pub(in crate::metadata::sqlite) fn collect<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    collect_up_to(usize::MAX, sql, query, params, read)
}

/// Runs `read` on the rows of a query until `limit` are read. Damaged rows are skipped and do not count,
/// unlike with a limit in the query itself. Fewer rows therefore mean the end.
pub(in crate::metadata::sqlite) fn collect_up_to<T>(
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

/// Runs `read` on each row of a query. Fails at the first damaged row.
pub(in crate::metadata::sqlite) fn collect_whole<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    statement.query_and_then(params, read)?.collect()
}

/// Runs `read` on the first row of a query, if any.
pub(in crate::metadata::sqlite) fn first<T>(
    sql: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Runs a statement. Returns the number of changed rows.
pub(in crate::metadata::sqlite) fn execute(
    sql: &Connection,
    statement: &str,
    params: impl rusqlite::Params,
) -> Result<usize, Fault> {
    Ok(sql.prepare_cached(statement)?.execute(params)?)
}
