//! Entries: what one server alone does at a time (`under_way`).

use std::time::Duration;

use super::fault::Fault;
use super::sql::Sql;

/// An entry of a server that is gone makes room.
pub(super) const ENTER: &str = "INSERT INTO under_way AS entry (name, owner) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner WHERE NOT EXISTS (
     SELECT 1 FROM servers WHERE server = split_part(entry.owner, '.', 1)
     AND epoch::text = split_part(entry.owner, '.', 2)
     AND seen_at > clock_timestamp() - $3::double precision * interval '1 second')";

pub(super) const LEAVE: &str = "DELETE FROM under_way WHERE name = $1 AND owner = $2";

pub(super) const CLEAR_ENTRIES: &str = "DELETE FROM under_way";

/// An entry is worth no wait for the disk: at the worst a server that crashed with it is asked to do
/// something twice.
const LAZILY: &str = "SET LOCAL synchronous_commit TO off";

pub(super) async fn enter(
    sql: &Sql,
    name: &str,
    owner: &str,
    gone_after: Duration,
) -> Result<bool, Fault> {
    sql.batch(LAZILY).await?;
    Ok(sql.execute(ENTER, &[&name, &owner, &gone_after.as_secs_f64()]).await? > 0)
}

pub(super) async fn leave(sql: &Sql, name: &str, owner: &str) -> Result<(), Fault> {
    sql.batch(LAZILY).await?;
    sql.execute(LEAVE, &[&name, &owner]).await.map(drop)
}

/// Ends all entries.
pub(super) async fn clear(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_ENTRIES, &[]).await.map(drop)
}
