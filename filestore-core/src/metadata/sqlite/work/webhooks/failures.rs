//! Events that endpoints did not accept at once.

use rusqlite::{Connection, params};

use super::ONE;
use super::rows::{damaged, webhook};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::FailureState;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::{erasures, row};
use crate::metadata::{FailureRow, MOST_FAILURES, Requeued, Retried, RetriedFailure};

macro_rules! failure_columns {
    () => {
        "row_id, event_id, kind, organization_id, file_id, body, state, is_repeat, attempts, due_at, last_status"
    };
}

/// Removes a row of the event that an earlier delivery or a request left. What the lane finds out now counts, and its
/// row must stand behind those of the file's earlier events.
pub(in crate::metadata::sqlite) const REPLACE_FAILURE: &str = "DELETE FROM webhook_failures WHERE webhook_id = ?1 AND event_id = ?2 AND (state = 'failed' OR is_repeat = 1)";

/// A row that waits or is held goes on as it is.
const INSERT_FAILURE: &str =
    "INSERT INTO webhook_failures (webhook_id, event_id, kind, organization_id, file_id, body,
     state, is_repeat, attempts, due_at, last_status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
     ON CONFLICT (webhook_id, event_id) DO NOTHING";

pub(in crate::metadata::sqlite) const END_FAILURE: &str =
    "DELETE FROM webhook_failures WHERE row_id = ?1 AND webhook_id = ?2";

pub(in crate::metadata::sqlite) const SET_FAILURE: &str =
    "UPDATE webhook_failures SET state = ?3, attempts = ?4, due_at = ?5, last_status = ?6
     WHERE row_id = ?1 AND webhook_id = ?2";

/// Finds the next event of a file, if none waits before it.
pub(in crate::metadata::sqlite) const NEXT_OF_FILE: &str =
    "SELECT row_id, state FROM webhook_failures
     WHERE webhook_id = ?1 AND file_id = ?2 AND state <> 'failed' AND is_repeat = 0 ORDER BY row_id LIMIT 1";

pub(in crate::metadata::sqlite) const LET_GO: &str =
    "UPDATE webhook_failures SET state = 'waiting', due_at = ?2 WHERE row_id = ?1";

/// Lists the files that delay later events.
pub(in crate::metadata::sqlite) const FAILING: &str =
    "SELECT DISTINCT file_id FROM webhook_failures
     WHERE webhook_id = ?1 AND state <> 'failed' AND is_repeat = 0 AND file_id IS NOT NULL";

pub(in crate::metadata::sqlite) const LIVE: &str =
    "SELECT count(*) FROM webhook_failures WHERE webhook_id = ?1 AND state <> 'failed'";

pub(in crate::metadata::sqlite) const NEXT_DUE: &str =
    "SELECT min(due_at) FROM webhook_failures WHERE webhook_id = ?1 AND state = 'waiting'";

pub(in crate::metadata::sqlite) const DUE: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = ?1 AND state = 'waiting' AND due_at <= ?2 ORDER BY due_at"
);

pub(in crate::metadata::sqlite) const FAILURES: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = ?1 AND row_id > ?2 AND (?3 IS NULL OR state = ?3) ORDER BY row_id"
);

pub(in crate::metadata::sqlite) const FAILURE_OF: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = ?1 AND event_id = ?2"
);

/// A failed event becomes a repeat, and one that waits is due earlier.
const REQUEUE: &str =
    "INSERT INTO webhook_failures (webhook_id, event_id, kind, organization_id, file_id, body,
     state, is_repeat, attempts, due_at, last_status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', 1, 0, ?7, NULL)
     ON CONFLICT (webhook_id, event_id) DO UPDATE SET
     is_repeat = CASE state WHEN 'failed' THEN 1 ELSE is_repeat END,
     attempts = CASE state WHEN 'failed' THEN 0 ELSE attempts END,
     due_at = CASE state WHEN 'held' THEN due_at ELSE excluded.due_at END,
     state = CASE state WHEN 'failed' THEN 'waiting' ELSE state END";

/// Looks for a failed event to forget, because most calls find none.
pub(in crate::metadata::sqlite) const ANY_OVER: &str =
    "SELECT 1 FROM webhook_failures WHERE state = 'failed' AND due_at < ?1 LIMIT 1";

pub(in crate::metadata::sqlite) const FORGET: &str = "DELETE FROM webhook_failures WHERE row_id IN
     (SELECT row_id FROM webhook_failures WHERE state = 'failed' AND due_at < ?1 ORDER BY due_at LIMIT ?2)";

/// Spares what [`BLANK`](crate::metadata::sqlite::tables::events::BLANK) spares in the log.
pub(in crate::metadata::sqlite) const FORGET_EVENTS_OF: &str =
    "DELETE FROM webhook_failures WHERE organization_id = ?1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = webhook_failures.file_id)";

/// Lets held events go whose earlier events are gone in another way, for example by an erasure.
pub(super) fn let_go_all(sql: &Connection, id: &str, now: Timestamp) -> Result<(), Fault> {
    for file in failing(sql, id)? {
        next_of_file(sql, id, file, now)?;
    }
    Ok(())
}

/// Makes the next held event of a file due, unless an earlier one waits. Returns true if there is no such event.
pub(super) fn next_of_file(
    sql: &Connection,
    id: &str,
    file: FileId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let next = row::first(sql, NEXT_OF_FILE, params![id, file.to_string()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((next, state)) = next else { return Ok(true) };
    if state == FailureState::Held.as_str() {
        row::execute(sql, LET_GO, params![next, now.as_millis()])?;
    }
    Ok(false)
}

pub(super) fn failing(sql: &Connection, id: &str) -> Result<Vec<FileId>, Fault> {
    row::collect(sql, FAILING, [id], |row| {
        row::parse(row, 0).map_err(|source| damaged("a failed delivery", source))
    })
}

pub(super) fn live(sql: &Connection, id: &str) -> Result<u64, Fault> {
    Ok(row::first(sql, LIVE, [id], |row| row::count(row, 0))?.unwrap_or(0))
}

pub(super) fn next_due(sql: &Connection, id: &str) -> Result<Option<Timestamp>, Fault> {
    let due = row::first(sql, NEXT_DUE, [id], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(due.flatten().map(Timestamp::from_millis))
}

pub(super) fn insert_failure(sql: &Connection, id: &str, failed: &FailureRow) -> Result<(), Fault> {
    row::execute(sql, REPLACE_FAILURE, params![id, failed.event.as_bytes()])?;
    let params = params![
        id,
        failed.event.as_bytes(),
        failed.kind.as_str(),
        failed.organization.as_ref().map(OrganizationId::as_str),
        failed.file.map(row::id),
        failed.body,
        failed.state.as_str(),
        failed.is_repeat,
        failed.attempts,
        failed.at.as_millis(),
        failed.last_status,
    ];
    row::execute(sql, INSERT_FAILURE, params).map(drop)
}

pub(super) fn end_retry(
    sql: &Connection,
    id: &str,
    retried: &RetriedFailure,
    now: Timestamp,
) -> Result<(), Fault> {
    let (state, at) = match retried.outcome {
        Retried::Delivered => {
            return row::execute(sql, END_FAILURE, params![retried.row, id]).map(drop);
        }
        Retried::Postponed(at) => (FailureState::Waiting, at),
        Retried::GivenUp => (FailureState::Failed, now),
    };
    let params =
        params![retried.row, id, state.as_str(), retried.attempts, at.as_millis(), retried.status];
    row::execute(sql, SET_FAILURE, params).map(drop)
}

pub(super) fn requeue(
    sql: &Connection,
    id: &str,
    rows: &[FailureRow],
    (era, now): (Era, Timestamp),
) -> Result<Requeued, Fault> {
    if row::first(sql, ONE, [id], webhook)?.is_none() {
        return Ok(Requeued::Unknown);
    }
    if live(sql, id)? + rows.len() as u64 > MOST_FAILURES {
        return Ok(Requeued::Full);
    }
    let mut queued = 0;
    for again in rows {
        if let Some(organization) = &again.organization
            && erasures::is_since(sql, organization, era)?
        {
            continue;
        }
        let params = params![
            id,
            again.event.as_bytes(),
            again.kind.as_str(),
            again.organization.as_ref().map(OrganizationId::as_str),
            again.file.map(row::id),
            again.body,
            now.as_millis(),
        ];
        row::execute(sql, REQUEUE, params)?;
        queued += 1;
    }
    Ok(Requeued::Done(queued))
}
