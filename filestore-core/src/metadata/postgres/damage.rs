//! Damaged rows: passed over by queries, and set aside by claims, or rows that fail would be the first of
//! every claim. What was passed over is reported once the call is over.

use crate::metadata::stored::NEVER;

use super::fault::Fault;
use super::sql::Sql;

pub(super) const PURGE_NEVER: &str =
    "UPDATE files SET purge_claimed = true, purge_owner = NULL, purge_not_before = $2
     WHERE file_id = $1 AND purge_status = 'SYSTEM_PURGE'";

pub(super) const SYNC_NEVER: &str = "UPDATE files SET sync_not_before = $2
     WHERE file_id = $1 AND sync_status = 'PENDING' AND purge_status IS NULL";

/// Sets the files aside that the call has passed over, by `statement`: no claim meets them again. Returns
/// how many; what even this cannot change stays where it is.
pub(super) async fn set_aside(sql: &Sql, statement: &str) -> Result<u64, Fault> {
    let mut aside = 0;
    for file in sql.newly_passed_over() {
        aside += set_file_aside(sql, statement, &file).await?;
    }
    Ok(aside)
}

/// Sets one file aside by `statement`. Returns how many rows that changed.
pub(super) async fn set_file_aside(sql: &Sql, statement: &str, file: &str) -> Result<u64, Fault> {
    sql.batch("SAVEPOINT aside").await?;
    match sql.execute(statement, &[&file, &NEVER]).await {
        Err(fault) if fault.is_constraint() => {
            sql.batch("ROLLBACK TO SAVEPOINT aside; RELEASE SAVEPOINT aside").await?;
            Ok(0)
        }
        Err(fault) => Err(fault),
        Ok(changed) => {
            sql.batch("RELEASE SAVEPOINT aside").await?;
            Ok(changed)
        }
    }
}
