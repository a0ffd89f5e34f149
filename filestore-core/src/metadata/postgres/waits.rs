//! Waits that a clock that was ahead has made long.

use crate::domain::clock::Timestamp;

use super::fault::Fault;
use super::sql::Sql;

/// Each of these reads every row that waits: they run once, at start.
const PURGES: &str = "UPDATE files SET purge_not_before = $1
     WHERE purge_claimed AND purge_not_before > $1 AND purge_owner IS NULL";

const SYNCS: &str = "UPDATE files SET sync_not_before = $1
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND sync_not_before > $1";

const BLOBS: &str = "UPDATE blob_gc SET not_before = $1, kept_until = least(kept_until, $1)
     WHERE not_before > $1";

/// Makes failed purges and syncs wait until `retries` at the longest, dropped blobs until `blobs`.
pub(super) async fn cap(sql: &Sql, retries: Timestamp, blobs: Timestamp) -> Result<(), Fault> {
    sql.be_patient().await?;
    sql.execute(PURGES, &[&retries.as_millis()]).await?;
    sql.execute(SYNCS, &[&retries.as_millis()]).await?;
    sql.execute(BLOBS, &[&blobs.as_millis()]).await?;
    Ok(())
}
