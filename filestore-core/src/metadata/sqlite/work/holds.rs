//! Holds: data in a snapshot is not removed until the snapshot is complete.
//!
//! A hold is taken before the snapshot is read. The snapshot therefore shows all earlier claims, and does not
//! name claimed files. During a hold, no other deleted file up to the snapshot's last row is claimed, and no
//! dropped blob becomes due, because this module does not know which of them the snapshot names.

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::error::{Error, Result};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Holds;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::session::snapshot;
use crate::metadata::sqlite::tables::row;
use crate::tasks;

const TAKE: &str = "INSERT INTO holds (hold_id, last_row, lasts_until) VALUES (?1, ?2, ?3)
     ON CONFLICT (hold_id) DO UPDATE SET last_row = excluded.last_row, lasts_until = excluded.lasts_until";

pub(in crate::metadata::sqlite) const RENEW: &str =
    "UPDATE holds SET lasts_until = ?3 WHERE hold_id = ?1 AND lasts_until > ?2";

pub(in crate::metadata::sqlite) const NARROW: &str =
    "UPDATE holds SET last_row = ?2 WHERE hold_id = ?1";

pub(in crate::metadata::sqlite) const RELEASE: &str = "DELETE FROM holds WHERE hold_id = ?1";

/// Reads a table with few rows.
const FORGET: &str = "DELETE FROM holds WHERE lasts_until <= ?1";

const CLEAR: &str = "DELETE FROM holds";

/// Reads a table with few rows.
const LAST_ROW: &str = "SELECT max(last_row) FROM holds WHERE lasts_until > ?1";

#[async_trait]
impl Holds for SqliteMetadata {
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        let id = id.to_owned();
        self.writer
            .run("taking a hold", move |tx| {
                row::execute(tx.sql, FORGET, [now.as_millis()])?;
                row::execute(tx.sql, TAKE, params![id, i64::MAX, until.as_millis()]).map(drop)
            })
            .await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        let id = id.to_owned();
        self.writer
            .run("renewing a hold", move |tx| {
                let params = params![id, now.as_millis(), until.as_millis()];
                Ok(row::execute(tx.sql, RENEW, params)? > 0)
            })
            .await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        let id = id.to_owned();
        self.writer
            .run("narrowing a hold", move |tx| {
                row::execute(tx.sql, NARROW, params![id, last_row]).map(drop)
            })
            .await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.writer
            .run("releasing a hold", move |tx| row::execute(tx.sql, RELEASE, [&id]).map(drop))
            .await
    }

    async fn snapshot_to(&self, path: &Path) -> Result<()> {
        self.readers.check()?;
        let (live, copy) = (self.path.clone(), path.to_owned());
        tasks::blocking(move || snapshot::copy(&live, &copy))
            .await
            .unwrap_or_else(|lost| Err(Error::internal("copying the database", lost)))
    }
}

/// Ends all holds.
pub(super) fn clear(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, CLEAR, []).map(drop)
}

/// Returns the largest row of `files` under a hold at `now`, or 0.
pub(super) fn last_held_row(sql: &Connection, now: Timestamp) -> Result<i64, Fault> {
    let last = row::first(sql, LAST_ROW, [now.as_millis()], |row| Ok(row.get(0)?))?;
    Ok(last.flatten().unwrap_or(0))
}
