//! Conversion between rows and records.

use std::str::FromStr;

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::metadata::stored::RecordRow;
pub(super) use crate::metadata::stored::{RECORD_COLUMNS as COLUMNS, record_columns as columns};

use super::fault::{Fault, Source};

/// Reads the record in the first [`COLUMNS`] columns.
pub(super) fn record(row: &Row) -> Result<FileRecord, Fault> {
    read_record(row).map_err(|source| Fault::Record { file_id: raw_id(row), source })
}

/// Reads the id of a record as it is stored, whatever it is.
pub(super) fn raw_id(row: &Row) -> String {
    row.try_get(0).unwrap_or_else(|_| String::from("?"))
}

fn read_record(row: &Row) -> Result<FileRecord, Source> {
    RecordRow {
        file_id: row.try_get(0)?,
        organization_id: row.try_get(1)?,
        sub_system: row.try_get(2)?,
        original_name: row.try_get(3)?,
        mime_type: row.try_get(4)?,
        ext: row.try_get(5)?,
        status: row.try_get(6)?,
        sync_status: row.try_get(7)?,
        purge_status: row.try_get(8)?,
        storage_location: row.try_get(9)?,
        storage_provider: row.try_get(10)?,
        blob_key: row.try_get(11)?,
        size_bytes: row.try_get(12)?,
        sha256: row.try_get(13)?,
        sniffed_type: row.try_get(14)?,
        width: row.try_get(15)?,
        height: row.try_get(16)?,
        stored_at: row.try_get(17)?,
        version: row.try_get(18)?,
        created_at: row.try_get(19)?,
        updated_at: row.try_get(20)?,
        expires_at: row.try_get(21)?,
        metadata: row.try_get(22)?,
        edited_at: row.try_get(23)?,
        thumbhash: row.try_get(24)?,
    }
    .record()
}

/// Writes an id as it is stored.
pub(super) fn id(id: FileId) -> String {
    id.to_string()
}

/// Writes ids as they are stored.
pub(super) fn ids(ids: &[FileId]) -> Vec<String> {
    ids.iter().map(FileId::to_string).collect()
}

/// Converts a size or count to what PostgreSQL stores.
pub(super) fn integer(value: u64) -> Result<i64, Fault> {
    Ok(i64::try_from(value)?)
}

/// Returns the operand of `LIMIT`.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Parses a text column.
pub(super) fn parse<T>(row: &Row, column: usize) -> Result<T, Source>
where
    T: FromStr<Err: Into<Source>>,
{
    row.try_get::<_, &str>(column)?.parse().map_err(Into::into)
}

/// Reads a column that is never negative.
pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, Source> {
    Ok(u64::try_from(row.try_get::<_, i64>(column)?)?)
}

/// Reads an instant.
pub(super) fn instant(row: &Row, column: usize) -> Result<Timestamp, Source> {
    Ok(Timestamp::from_millis(row.try_get(column)?))
}

/// Reads an instant that may be absent.
pub(super) fn instant_or_none(row: &Row, column: usize) -> Result<Option<Timestamp>, Source> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

/// Reads a count or total; a negative one means a broken table.
pub(super) fn count(row: &Row, column: usize) -> Result<u64, Fault> {
    unsigned(row, column).map_err(|source| Fault::Row { what: "a total".into(), source })
}

/// Reads how often work has failed.
pub(super) fn attempts(row: &Row, column: usize) -> Result<u32, Fault> {
    Ok(u32::try_from(row.try_get::<_, i32>(column)?)?)
}
