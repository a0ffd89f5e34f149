//! Holds: what a snapshot names waits for its removal until the snapshot is whole.
//!
//! A hold is taken before the snapshot is read, so the snapshot shows as claimed every file that was
//! claimed before, and such a file is not named. While a hold lasts, no other deleted file is claimed
//! up to the snapshot's last row, and no dropped blob comes due: which of them the snapshot names is
//! not known here.

use crate::domain::clock::Timestamp;

use super::fault::Fault;
use super::sql::{Lock, Sql};

const TAKE: &str = "INSERT INTO holds (hold_id, last_row, lasts_until) VALUES ($1, $2, $3)
     ON CONFLICT (hold_id) DO UPDATE SET last_row = excluded.last_row, lasts_until = excluded.lasts_until";

pub(super) const RENEW: &str =
    "UPDATE holds SET lasts_until = $3 WHERE hold_id = $1 AND lasts_until > $2";

pub(super) const NARROW: &str = "UPDATE holds SET last_row = $2 WHERE hold_id = $1";

pub(super) const RELEASE: &str = "DELETE FROM holds WHERE hold_id = $1";

/// Reads a table of a few rows.
const FORGET: &str = "DELETE FROM holds WHERE lasts_until <= $1";

const CLEAR: &str = "DELETE FROM holds";

/// Reads a table of a few rows.
const LAST_ROW: &str = "SELECT max(last_row) FROM holds WHERE lasts_until > $1";

/// Takes a hold of all that is there, and forgets those that have ended. Waits for the claims under way.
pub(super) async fn take(
    sql: &Sql,
    id: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Fault> {
    sql.lock(Lock::Holds).await?;
    sql.execute(FORGET, &[&now.as_millis()]).await?;
    sql.execute(TAKE, &[&id, &i64::MAX, &until.as_millis()]).await.map(drop)
}

/// Renews a hold; false if it has ended.
pub(super) async fn renew(
    sql: &Sql,
    id: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Fault> {
    Ok(sql.execute(RENEW, &[&id, &now.as_millis(), &until.as_millis()]).await? > 0)
}

/// Frees the files behind `last_row`, which the snapshot does not name.
pub(super) async fn narrow(sql: &Sql, id: &str, last_row: i64) -> Result<(), Fault> {
    sql.execute(NARROW, &[&id, &last_row]).await.map(drop)
}

pub(super) async fn release(sql: &Sql, id: &str) -> Result<(), Fault> {
    sql.execute(RELEASE, &[&id]).await.map(drop)
}

/// Ends all holds.
pub(super) async fn clear(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR, &[]).await.map(drop)
}

/// Returns the largest row of `files` that is held at `now`; 0 if none is.
pub(super) async fn last_held_row(sql: &Sql, now: Timestamp) -> Result<i64, Fault> {
    let row = sql.first(LAST_ROW, &[&now.as_millis()]).await?;
    let last: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(last.unwrap_or(0))
}
