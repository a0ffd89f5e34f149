//! Waits that a clock that was ahead has made long.

use rusqlite::Connection;

use crate::domain::clock::Timestamp;

use super::fault::Fault;
use super::row;

/// Each of these reads every row that waits: they run once, at start.
const PURGES: &str = "UPDATE files SET purge_not_before = ?1
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before > ?1 AND purge_owner IS NULL)";

const SYNCS: &str = "UPDATE files SET sync_not_before = ?1
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND sync_not_before > ?1)";

const BLOBS: &str = "UPDATE blob_gc SET not_before = ?1, kept_until = min(kept_until, ?1)
     WHERE not_before > ?1";

/// Makes failed purges and syncs wait until `retries` at the longest, dropped blobs until `blobs`.
pub(super) fn cap(sql: &Connection, retries: Timestamp, blobs: Timestamp) -> Result<(), Fault> {
    row::execute(sql, PURGES, [retries.as_millis()])?;
    row::execute(sql, SYNCS, [retries.as_millis()])?;
    row::execute(sql, BLOBS, [blobs.as_millis()])?;
    Ok(())
}
