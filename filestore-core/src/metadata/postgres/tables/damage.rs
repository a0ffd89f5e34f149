//! Damaged rows. Queries skip them. Claims set them aside, because otherwise failing rows would come first in
//! every claim. Skipped rows are reported at the end of the call.

use crate::metadata::stored::NEVER;

use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;

pub(in crate::metadata::postgres) const PURGE_NEVER: &str =
    "UPDATE files SET purge_claimed = true, purge_owner = NULL, purge_not_before = $2
     WHERE file_id = $1 AND purge_status = 'SYSTEM_PURGE'";

pub(in crate::metadata::postgres) const SYNC_NEVER: &str = "UPDATE files SET sync_not_before = $2
     WHERE file_id = $1 AND sync_status = 'PENDING' AND purge_status IS NULL";

/// Runs `statement` to exclude the skipped files of a call from later claims. Returns their number. Rows that
/// the statement cannot change stay as they are.
pub(in crate::metadata::postgres) async fn set_aside(
    sql: &Sql,
    statement: &str,
) -> Result<u64, Fault> {
    let mut aside = 0;
    for file in sql.newly_passed_over() {
        aside += set_file_aside(sql, statement, &file).await?;
    }
    Ok(aside)
}

/// Runs `statement` to set one file aside. Returns the number of changed rows.
pub(in crate::metadata::postgres) async fn set_file_aside(
    sql: &Sql,
    statement: &str,
    file: &str,
) -> Result<u64, Fault> {
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
