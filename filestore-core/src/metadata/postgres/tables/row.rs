//! Conversion between rows and records.

use std::str::FromStr;

use tokio_postgres::Row;

use crate::domain::file::record::FileRecord;
use crate::domain::id::FileId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::stored::RecordRow;
pub(in crate::metadata::postgres) use crate::metadata::stored::{
    RECORD_COLUMNS as COLUMNS, record_columns as columns,
};

use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Param, Sql};

/// Reads the record in the first [`COLUMNS`] columns.
pub(in crate::metadata::postgres) fn record(row: &Row) -> Result<FileRecord, Fault> {
    read_record(row).map_err(|source| Fault::Record { file_id: raw_id(row), source })
}

/// Reads the stored text of a record's id, valid or not.
pub(in crate::metadata::postgres) fn raw_id(row: &Row) -> String {
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
        purge_marked_at: row.try_get(25)?,
        deleted_at: row.try_get(26)?,
        sync_attempts: row.try_get::<_, i32>(27)?.into(),
        sync_error: row.try_get(28)?,
    }
    .record()
}

/// Returns the width and height of a picture, if known.
pub(super) fn sides(record: &FileRecord) -> (Option<i64>, Option<i64>) {
    let dimensions = record.blob.dimensions;
    (dimensions.map(|sides| sides.width.into()), dimensions.map(|sides| sides.height.into()))
}

/// Encodes an id for storage.
pub(in crate::metadata::postgres) fn id(id: FileId) -> String {
    id.to_string()
}

/// Encodes ids for storage.
pub(in crate::metadata::postgres) fn ids(ids: &[FileId]) -> Vec<String> {
    ids.iter().map(FileId::to_string).collect()
}

/// Converts a size or count to a PostgreSQL number.
pub(in crate::metadata::postgres) fn integer(value: u64) -> Result<i64, Fault> {
    Ok(i64::try_from(value)?)
}

/// Returns the operand of `LIMIT`.
pub(in crate::metadata::postgres) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Parses a text column.
pub(in crate::metadata::postgres) fn parse<T>(row: &Row, column: usize) -> Result<T, Source>
where
    T: FromStr<Err: Into<Source>>,
{
    row.try_get::<_, &str>(column)?.parse().map_err(Into::into)
}

/// Reads a column that is never negative.
pub(in crate::metadata::postgres) fn unsigned(row: &Row, column: usize) -> Result<u64, Source> {
    Ok(u64::try_from(row.try_get::<_, i64>(column)?)?)
}

/// Reads an instant.
pub(in crate::metadata::postgres) fn instant(
    row: &Row,
    column: usize,
) -> Result<Timestamp, Source> {
    Ok(Timestamp::from_millis(row.try_get(column)?))
}

/// Reads an instant that may be absent.
pub(in crate::metadata::postgres) fn instant_or_none(
    row: &Row,
    column: usize,
) -> Result<Option<Timestamp>, Source> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

/// Reads a count or total. A negative number means a damaged table.
pub(in crate::metadata::postgres) fn count(row: &Row, column: usize) -> Result<u64, Fault> {
    unsigned(row, column).map_err(|source| Fault::Row { what: "a total".into(), source })
}

/// Reads the number of failed attempts.
pub(in crate::metadata::postgres) fn attempts(row: &Row, column: usize) -> Result<u32, Fault> {
    Ok(u32::try_from(row.try_get::<_, i32>(column)?)?)
}

/// Runs a query for records in the order of their ids until `limit` are read. The query's last parameters are
/// the id to continue after and the number of rows. Damaged rows are skipped and do not count, so fewer
/// records mean the end.
pub(in crate::metadata::postgres) async fn records_by_id(
    sql: &Sql,
    query: &str,
    params: &[Param<'_>],
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let mut after = after.map(id).unwrap_or_default();
    let mut records = Vec::new();

    while records.len() < limit {
        let wanted = limit - records.len();
        let rows_wanted = self::limit(wanted);
        let mut all = params.to_vec();
        all.extend([&after as Param<'_>, &rows_wanted]);

        let rows = sql.rows(query, &all).await?;
        for row in &rows {
            records.extend(sql.pass_over(record(row))?);
        }
        match rows.last() {
            Some(last) if rows.len() == wanted => after = raw_id(last),
            _ => break,
        }
    }
    Ok(records)
}
