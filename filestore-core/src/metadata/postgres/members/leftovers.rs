//! Ends the work of servers that are gone.
//!
//! # Locking
//! The lock of the server's writes is taken exclusively, and only tried. While one of its writes is running,
//! its work is not ended. A write can therefore not be open while its claims are given to others. A later
//! write sees that its server is gone (`member`).

use std::time::Duration;

use crate::domain::time::clock::Timestamp;

use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, Sql};

pub(super) const GONE: &str =
    "SELECT server FROM servers
     WHERE server <> $1 AND seen_at <= clock_timestamp() - $2::double precision * interval '1 second'
     ORDER BY server";

pub(in crate::metadata::postgres) const STILL_GONE: &str = "SELECT 1 FROM servers WHERE server = $1
     AND seen_at <= clock_timestamp() - $2::double precision * interval '1 second' FOR UPDATE SKIP LOCKED";

const TRY: &str = "SELECT pg_try_advisory_xact_lock($1)";

const FORGET: &str = "DELETE FROM servers WHERE server = $1";

// Each of what the owners have from one name up to another, not included.

pub(in crate::metadata::postgres) const END_PURGES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE purge_owner >= $1 AND purge_owner < $2";

pub(in crate::metadata::postgres) const END_SYNCS: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE sync_owner >= $1 AND sync_owner < $2 AND sync_status = 'SYNCING'";

pub(in crate::metadata::postgres) const END_DROPPED: &str =
    "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner >= $1 AND owner < $2";

pub(in crate::metadata::postgres) const END_NOTES: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE owner >= $1 AND owner < $2 FOR UPDATE
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $3, $3 FROM gone";

pub(in crate::metadata::postgres) const END_ENTRIES: &str =
    "DELETE FROM under_way WHERE owner >= $1 AND owner < $2";

pub(in crate::metadata::postgres) const END_LANES: &str =
    "UPDATE webhook_lanes SET owner = NULL, leased_until = 0 WHERE owner >= $1 AND owner < $2";

/// A range of owner names. The upper bound is excluded.
type Owners<'o> = (&'o str, &'o str);

/// Ends the work of a server's earlier epochs. No other process has the name.
pub(in crate::metadata::postgres) async fn end_earlier(
    sql: &Sql,
    (server, epoch): (&str, i64),
    not_before: Timestamp,
) -> Result<(), Fault> {
    let (first, last) = all_of(server);
    let (present, behind) = (format!("{server}.{epoch}."), format!("{server}.{epoch}/"));
    end(sql, (&first, &present), not_before).await?;
    end(sql, (&behind, &last), not_before).await
}

/// Returns the bounds of a server's run names, in all its epochs.
fn all_of(server: &str) -> (String, String) {
    // The character behind the dot.
    (format!("{server}."), format!("{server}/"))
}

/// Lists the servers that are gone.
pub(in crate::metadata::postgres) async fn gone(
    sql: &Sql,
    member: &str,
    gone_after: Duration,
) -> Result<Vec<String>, Fault> {
    let rows = sql.rows(GONE, &[&member, &gone_after.as_secs_f64()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Ends the work of a server if it is still gone and has no running write. Returns true if it did.
pub(in crate::metadata::postgres) async fn end_one(
    sql: &Sql,
    server: &str,
    gone_after: Duration,
    not_before: Timestamp,
) -> Result<bool, Fault> {
    if !sql.exists(STILL_GONE, &[&server, &gone_after.as_secs_f64()]).await? {
        return Ok(false);
    }
    let number = Lock::WritersOf(server).number(sql.store());
    let row = sql.first(TRY, &[&number]).await?;
    let is_quiet: bool = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if !is_quiet {
        return Ok(false);
    }

    let (first, last) = all_of(server);
    end(sql, (&first, &last), not_before).await?;
    sql.execute(FORGET, &[&server]).await?;
    Ok(true)
}

async fn end(sql: &Sql, (from, to): Owners<'_>, not_before: Timestamp) -> Result<(), Fault> {
    for statement in [END_PURGES, END_SYNCS, END_DROPPED, END_ENTRIES, END_LANES] {
        sql.execute(statement, &[&from, &to]).await?;
    }
    sql.execute(END_NOTES, &[&from, &to, &not_before.as_millis()]).await.map(drop)
}
