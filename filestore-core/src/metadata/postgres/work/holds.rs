//! Holds: data in a snapshot is not removed until the snapshot is complete.
//!
//! A hold is taken before the snapshot is read. The snapshot therefore shows all earlier claims, and does not
//! name claimed files. During a hold, no other deleted file up to the snapshot's last row is claimed, and no
//! dropped blob becomes due, because this module does not know which of them the snapshot names.

use std::path::Path;

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::metadata::Holds;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, Sql};

const TAKE: &str = "INSERT INTO holds (hold_id, last_row, lasts_until) VALUES ($1, $2, $3)
     ON CONFLICT (hold_id) DO UPDATE SET last_row = excluded.last_row, lasts_until = excluded.lasts_until";

pub(in crate::metadata::postgres) const RENEW: &str =
    "UPDATE holds SET lasts_until = $3 WHERE hold_id = $1 AND lasts_until > $2";

pub(in crate::metadata::postgres) const NARROW: &str =
    "UPDATE holds SET last_row = $2 WHERE hold_id = $1";

pub(in crate::metadata::postgres) const RELEASE: &str = "DELETE FROM holds WHERE hold_id = $1";

/// Reads a table with few rows.
const FORGET: &str = "DELETE FROM holds WHERE lasts_until <= $1";

const CLEAR: &str = "DELETE FROM holds";

/// Reads a table with few rows.
const LAST_ROW: &str = "SELECT max(last_row) FROM holds WHERE lasts_until > $1";

#[async_trait]
impl Holds for PostgresMetadata {
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        self.engine
            .write("taking a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(async move {
                    // Waits for the claims under way.
                    sql.lock(Lock::Holds).await?;
                    sql.execute(FORGET, &[&now.as_millis()]).await?;
                    sql.execute(TAKE, &[id, &i64::MAX, &until.as_millis()]).await.map(drop)
                })
            })
            .await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        self.engine
            .write("renewing a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(async move {
                    let (now, until) = (now.as_millis(), until.as_millis());
                    Ok(sql.execute(RENEW, &[id, &now, &until]).await? > 0)
                })
            })
            .await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        self.engine
            .write("narrowing a hold", (id.to_owned(), last_row), |sql, (id, last_row)| {
                Box::pin(async move { sql.execute(NARROW, &[id, last_row]).await.map(drop) })
            })
            .await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        self.engine
            .write("releasing a hold", id.to_owned(), |sql, id| {
                Box::pin(async move { sql.execute(RELEASE, &[id]).await.map(drop) })
            })
            .await
    }

    async fn snapshot_to(&self, path: &Path) -> Result<()> {
        self.write_snapshot(path).await
    }
}

/// Ends all holds.
pub(super) async fn clear(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR, &[]).await.map(drop)
}

/// Returns the largest row of `files` under a hold at `now`, or 0.
pub(super) async fn last_held_row(sql: &Sql, now: Timestamp) -> Result<i64, Fault> {
    let row = sql.first(LAST_ROW, &[&now.as_millis()]).await?;
    let last: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(last.unwrap_or(0))
}
