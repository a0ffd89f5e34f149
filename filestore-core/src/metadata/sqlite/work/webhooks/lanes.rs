//! The lanes of webhooks: claims, leases and progress.

use rusqlite::{Connection, params};

use super::disable;
use super::failures::{end_retry, failing, insert_failure, live, next_due, next_of_file};
use super::rows::{damaged, health, place};
use crate::domain::event::EventId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row;
use crate::metadata::webhook::{event_ids, event_ids_bytes, fault_text};
use crate::metadata::{ClaimedLane, LaneSave, LaneSaved, Retried};

pub(in crate::metadata::sqlite) const CLAIM: &str =
    "UPDATE webhook_lanes SET owner = ?2, leased_until = ?4
     WHERE webhook_id = ?1 AND (owner IS NULL OR owner = ?2 OR leased_until <= ?3)
     AND EXISTS (SELECT 1 FROM webhooks w WHERE w.webhook_id = ?1 AND disabled_at IS NULL)";

pub(in crate::metadata::sqlite) const LANE: &str =
    "SELECT place, ahead, failing_since, paused_until, pauses, last_status, last_fault,
     last_attempt_at, last_success_at, gaps FROM webhook_lanes WHERE webhook_id = ?1";

/// Reads a table with few rows.
pub(super) const RENEW: &str = "UPDATE webhook_lanes SET leased_until = ?2 WHERE owner = ?1";

/// Reads a table with few rows.
pub(super) const OF_OWNER: &str = "SELECT webhook_id FROM webhook_lanes WHERE owner = ?1";

pub(in crate::metadata::sqlite) const RELEASE: &str =
    "UPDATE webhook_lanes SET owner = NULL, leased_until = 0 WHERE webhook_id = ?1 AND owner = ?2";

/// Takes all lanes from their owners. Reads a table with few rows.
pub(super) const END_LEASES: &str = "UPDATE webhook_lanes SET owner = NULL, leased_until = 0";

pub(in crate::metadata::sqlite) const SAVE: &str =
    "UPDATE webhook_lanes SET place = ?3, ahead = ?4, failing_since = ?5, paused_until = ?6,
     pauses = ?7, last_status = ?8, last_fault = ?9, last_attempt_at = ?10, last_success_at = ?11, gaps = ?12
     WHERE webhook_id = ?1 AND owner = ?2";

/// Takes all lanes from their owners.
pub(in crate::metadata::sqlite) fn end_leases(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, END_LEASES, []).map(drop)
}

pub(super) fn claimed(sql: &Connection, id: &str) -> Result<Option<ClaimedLane>, Fault> {
    let lane = row::first(sql, LANE, [id], |row| {
        let read = || -> Result<_, Source> {
            let place = row.get::<_, Option<[u8; 16]>>(0)?.map(EventId::from_bytes);
            Ok((place, event_ids(row.get_ref(1)?.as_blob()?), health(row, 2)?))
        };
        read().map_err(|source| damaged("the lane of a webhook", source))
    })?;
    let Some((place, ahead, health)) = lane else { return Ok(None) };
    let failing = failing(sql, id)?;
    let rows = live(sql, id)?;
    let next_due = next_due(sql, id)?;
    Ok(Some(ClaimedLane { place, ahead, health, failing, rows, next_due }))
}

pub(super) fn store(sql: &Connection, save: &LaneSave) -> Result<Option<LaneSaved>, Fault> {
    let id = save.id.to_string();
    let health = &save.health;
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let params = params![
        id,
        save.owner,
        place(save.place),
        event_ids_bytes(&save.ahead),
        millis(health.failing_since),
        millis(health.paused_until),
        health.pauses,
        health.last_status,
        fault_text(health.last_fault),
        millis(health.last_attempt_at),
        millis(health.last_success_at),
        row::integer(health.gaps)?,
    ];
    if row::execute(sql, SAVE, params)? == 0 {
        return Ok(None);
    }

    for failed in &save.failed {
        insert_failure(sql, &id, failed)?;
    }
    let mut freed = Vec::new();
    for retried in &save.retried {
        end_retry(sql, &id, retried, save.now)?;
        if let Some(file) = retried.file
            && !matches!(retried.outcome, Retried::Postponed(_))
            && next_of_file(sql, &id, file, save.now)?
        {
            freed.push(file);
        }
    }
    if let Some(reason) = save.disable {
        disable(sql, save.id, reason, save.now)?;
    }
    let (rows, next_due) = (live(sql, &id)?, next_due(sql, &id)?);
    Ok(Some(LaneSaved { freed, rows, next_due }))
}
