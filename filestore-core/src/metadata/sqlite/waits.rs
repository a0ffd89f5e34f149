//! Waits that a clock that was ahead has made long.

use rusqlite::Connection;

use crate::domain::clock::Timestamp;

use super::fault::Fault;
use super::row;

/// Reads every claimed row. This statement and the others run once, at start.
const PURGES: &str = "UPDATE files SET purge_not_before = ?1
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before > ?1 AND purge_owner IS NULL)";

/// Reads no row that does not wait: a store without providers may have millions that are pending.
/// Looks up the organizations and their providers one by one, and of each pair what waits.
pub(super) const SYNCS: &str = "WITH RECURSIVE
     organizations (organization) AS (
         SELECT min(organization_id) FROM files INDEXED BY files_pending
         WHERE sync_status = 'PENDING' AND purge_status IS NULL
         UNION ALL
         SELECT (SELECT min(organization_id) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id > organization)
         FROM organizations WHERE organization IS NOT NULL),
     pairs (organization, provider) AS (
         SELECT organization, (SELECT min(storage_provider) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id = organization)
         FROM organizations WHERE organization IS NOT NULL
         UNION ALL
         SELECT organization, (SELECT min(storage_provider) FROM files INDEXED BY files_pending
             WHERE sync_status = 'PENDING' AND purge_status IS NULL
             AND organization_id = organization AND storage_provider > provider)
         FROM pairs WHERE provider IS NOT NULL)
     UPDATE files SET sync_not_before = ?1 WHERE rowid IN (
         SELECT files.rowid FROM pairs CROSS JOIN files INDEXED BY files_pending
         WHERE provider IS NOT NULL AND sync_status = 'PENDING' AND purge_status IS NULL
         AND organization_id = organization AND storage_provider = provider
         AND sync_not_before > ?1)";

const BLOBS: &str = "UPDATE blob_gc SET not_before = ?1, kept_until = min(kept_until, ?1)
     WHERE not_before > ?1";

/// Makes failed purges and syncs wait until `retries` at the longest, dropped blobs until `blobs`.
pub(super) fn cap(sql: &Connection, retries: Timestamp, blobs: Timestamp) -> Result<(), Fault> {
    row::execute(sql, PURGES, [retries.as_millis()])?;
    row::execute(sql, SYNCS, [retries.as_millis()])?;
    row::execute(sql, BLOBS, [blobs.as_millis()])?;
    Ok(())
}
