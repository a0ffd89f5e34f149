//! The index of custom metadata, with a row for each member that a listing can filter by. Triggers copy the
//! file's status and deletion to the rows, and remove them with the file.

use crate::domain::file::record::FileRecord;
use crate::metadata::stored::term;

use super::row::id;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;

const PUT: &str = "INSERT INTO file_terms (of_organization, term, is_deleted, in_status, of_file)
     SELECT * FROM unnest($1::text[], $2::bytea[], $3::boolean[], $4::text[], $5::text[])";

pub(in crate::metadata::postgres) const FORGET: &str = "DELETE FROM file_terms WHERE of_file = $1";

/// Stores the terms of files without terms.
pub(in crate::metadata::postgres) async fn put(
    sql: &Sql,
    records: &[FileRecord],
) -> Result<(), Fault> {
    let (mut organizations, mut terms, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    let (mut statuses, mut files) = (Vec::new(), Vec::new());
    for record in records {
        for (key, value) in record.metadata.terms() {
            organizations.push(record.organization_id.as_str());
            terms.push(term(&key, &value).to_vec());
            deleted.push(record.state.is_deleted());
            statuses.push(record.state.status().as_str());
            files.push(id(record.file_id));
        }
    }

    if files.is_empty() {
        return Ok(());
    }
    sql.execute(PUT, &[&organizations, &terms, &deleted, &statuses, &files]).await.map(drop)
}

/// Replaces the terms of a file.
pub(in crate::metadata::postgres) async fn replace(
    sql: &Sql,
    record: &FileRecord,
) -> Result<(), Fault> {
    sql.execute(FORGET, &[&id(record.file_id)]).await?;
    put(sql, std::slice::from_ref(record)).await
}
