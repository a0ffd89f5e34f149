//! The index of custom metadata: a row for each member that a listing can ask for. Triggers keep the rows
//! equal to their file in status and deletion, and remove them with it.

use crate::domain::record::FileRecord;
use crate::metadata::stored::term;

use super::fault::Fault;
use super::row::id;
use super::sql::Sql;

const PUT: &str = "INSERT INTO file_terms (of_organization, term, is_deleted, in_status, of_file)
     SELECT * FROM unnest($1::text[], $2::bytea[], $3::boolean[], $4::text[], $5::text[])";

pub(super) const FORGET: &str = "DELETE FROM file_terms WHERE of_file = $1";

/// Notes the terms of files that have none yet.
pub(super) async fn put(sql: &Sql, records: &[FileRecord]) -> Result<(), Fault> {
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

/// Notes the terms of a file in the place of those that it had.
pub(super) async fn replace(sql: &Sql, record: &FileRecord) -> Result<(), Fault> {
    sql.execute(FORGET, &[&id(record.file_id)]).await?;
    put(sql, std::slice::from_ref(record)).await
}
