//! Events that endpoints did not accept at once.

use tokio_postgres::Row;

use super::lanes::TAKE;
use super::rows::damaged;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::FailureState;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::{erasures, row};
use crate::metadata::{FailureRow, MOST_FAILURES, Requeued, Retried, RetriedFailure};

macro_rules! failure_columns {
    () => {
        "row_id, event_id, kind, organization_id, file_id, body, state, is_repeat, attempts, due_at, last_status"
    };
}

/// Removes a row of the event that an earlier delivery or a request left. What the lane finds out now counts, and its
/// row must stand behind those of the file's earlier events.
pub(in crate::metadata::postgres) const REPLACE_FAILURE: &str = "DELETE FROM webhook_failures WHERE webhook_id = $1 AND event_id = $2 AND (state = 'failed' OR is_repeat)";

/// A row that waits or is held goes on as it is.
const INSERT_FAILURE: &str =
    "INSERT INTO webhook_failures (webhook_id, event_id, kind, organization_id, file_id, body,
     state, is_repeat, attempts, due_at, last_status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     ON CONFLICT (webhook_id, event_id) DO NOTHING";

pub(in crate::metadata::postgres) const END_FAILURE: &str =
    "DELETE FROM webhook_failures WHERE row_id = $1 AND webhook_id = $2";

pub(in crate::metadata::postgres) const SET_FAILURE: &str =
    "UPDATE webhook_failures SET state = $3, attempts = $4, due_at = $5, last_status = $6
     WHERE row_id = $1 AND webhook_id = $2";

/// Finds the next event of a file, if none waits before it.
pub(in crate::metadata::postgres) const NEXT_OF_FILE: &str =
    "SELECT row_id, state FROM webhook_failures
     WHERE webhook_id = $1 AND file_id = $2 AND state <> 'failed' AND NOT is_repeat ORDER BY row_id LIMIT 1";

pub(in crate::metadata::postgres) const LET_GO: &str =
    "UPDATE webhook_failures SET state = 'waiting', due_at = $2 WHERE row_id = $1";

/// Lists the files that delay later events.
pub(in crate::metadata::postgres) const FAILING: &str =
    "SELECT DISTINCT file_id FROM webhook_failures
     WHERE webhook_id = $1 AND state <> 'failed' AND NOT is_repeat AND file_id IS NOT NULL";

pub(in crate::metadata::postgres) const LIVE: &str =
    "SELECT count(*) FROM webhook_failures WHERE webhook_id = $1 AND state <> 'failed'";

pub(in crate::metadata::postgres) const NEXT_DUE: &str =
    "SELECT min(due_at) FROM webhook_failures WHERE webhook_id = $1 AND state = 'waiting'";

pub(in crate::metadata::postgres) const DUE: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = $1 AND state = 'waiting' AND due_at <= $2 ORDER BY due_at LIMIT $3"
);

pub(in crate::metadata::postgres) const FAILURES: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = $1 AND row_id > $2 AND ($3::text IS NULL OR state = $3) ORDER BY row_id LIMIT $4"
);

pub(in crate::metadata::postgres) const FAILURE_OF: &str = concat!(
    "SELECT ",
    failure_columns!(),
    " FROM webhook_failures WHERE webhook_id = $1 AND event_id = $2"
);

/// A failed event becomes a repeat, and one that waits is due earlier.
const REQUEUE: &str =
    "INSERT INTO webhook_failures (webhook_id, event_id, kind, organization_id, file_id, body,
     state, is_repeat, attempts, due_at, last_status) VALUES ($1, $2, $3, $4, $5, $6, 'waiting', true, 0, $7, NULL)
     ON CONFLICT (webhook_id, event_id) DO UPDATE SET
     is_repeat = CASE webhook_failures.state WHEN 'failed' THEN true ELSE webhook_failures.is_repeat END,
     attempts = CASE webhook_failures.state WHEN 'failed' THEN 0 ELSE webhook_failures.attempts END,
     due_at = CASE webhook_failures.state WHEN 'held' THEN webhook_failures.due_at ELSE excluded.due_at END,
     state = CASE webhook_failures.state WHEN 'failed' THEN 'waiting' ELSE webhook_failures.state END";

/// Looks for a failed event to forget, because most calls find none.
pub(in crate::metadata::postgres) const ANY_OVER: &str =
    "SELECT 1 FROM webhook_failures WHERE state = 'failed' AND due_at < $1 LIMIT 1";

pub(in crate::metadata::postgres) const FORGET: &str = "DELETE FROM webhook_failures WHERE row_id IN
     (SELECT row_id FROM webhook_failures WHERE state = 'failed' AND due_at < $1 ORDER BY due_at LIMIT $2)";

/// Spares what [`BLANK`](crate::metadata::postgres::tables::events::BLANK) spares in the log.
pub(in crate::metadata::postgres) const FORGET_EVENTS_OF: &str =
    "DELETE FROM webhook_failures WHERE organization_id = $1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = webhook_failures.file_id)";

/// Lets held events go whose earlier events are gone in another way, for example by an erasure.
pub(super) async fn let_go_all(sql: &Sql, id: &str, now: Timestamp) -> Result<(), Fault> {
    for file in failing(sql, id).await? {
        next_of_file(sql, id, file, now).await?;
    }
    Ok(())
}

/// Makes the next held event of a file due, unless an earlier one waits. Returns true if there is no such event.
pub(super) async fn next_of_file(
    sql: &Sql,
    id: &str,
    file: FileId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let Some(next) = sql.first(NEXT_OF_FILE, &[&id, &row::id(file)]).await? else {
        return Ok(true);
    };
    if next.try_get::<_, &str>(1)? == FailureState::Held.as_str() {
        let held: i64 = next.try_get(0)?;
        sql.execute(LET_GO, &[&held, &now.as_millis()]).await?;
    }
    Ok(false)
}

pub(super) async fn failing(sql: &Sql, id: &str) -> Result<Vec<FileId>, Fault> {
    let read = |row: &Row| {
        row::parse(row, 0).map_err(|source| damaged("a failed delivery".to_owned(), source))
    };
    sql.collect(FAILING, &[&id], read).await
}

pub(super) async fn live(sql: &Sql, id: &str) -> Result<u64, Fault> {
    sql.first(LIVE, &[&id]).await?.map_or(Ok(0), |row| row::count(&row, 0))
}

pub(super) async fn next_due(sql: &Sql, id: &str) -> Result<Option<Timestamp>, Fault> {
    let Some(row) = sql.first(NEXT_DUE, &[&id]).await? else { return Ok(None) };
    Ok(row.try_get::<_, Option<i64>>(0)?.map(Timestamp::from_millis))
}

pub(super) async fn insert_failure(sql: &Sql, id: &str, failed: &FailureRow) -> Result<(), Fault> {
    let (event, at) = (failed.event.as_bytes().as_slice(), failed.at.as_millis());
    sql.execute(REPLACE_FAILURE, &[&id, &event]).await?;
    let organization = failed.organization.as_ref().map(OrganizationId::as_str);
    let (kind, state) = (failed.kind.as_str(), failed.state.as_str());
    let file = failed.file.map(row::id);
    let status = failed.last_status.map(i64::from);
    let attempts = i64::from(failed.attempts);
    sql.execute(
        INSERT_FAILURE,
        &[
            &id,
            &event,
            &kind,
            &organization,
            &file,
            &failed.body,
            &state,
            &failed.is_repeat,
            &attempts,
            &at,
            &status,
        ],
    )
    .await
    .map(drop)
}

pub(super) async fn end_retry(
    sql: &Sql,
    id: &str,
    retried: &RetriedFailure,
    now: Timestamp,
) -> Result<(), Fault> {
    let (state, at) = match retried.outcome {
        Retried::Delivered => {
            return sql.execute(END_FAILURE, &[&retried.row, &id]).await.map(drop);
        }
        Retried::Postponed(at) => (FailureState::Waiting, at),
        Retried::GivenUp => (FailureState::Failed, now),
    };
    let (attempts, status) = (i64::from(retried.attempts), retried.status.map(i64::from));
    let (state, at) = (state.as_str(), at.as_millis());
    sql.execute(SET_FAILURE, &[&retried.row, &id, &state, &attempts, &at, &status]).await.map(drop)
}

pub(super) async fn requeue(
    sql: &Sql,
    id: &str,
    rows: &[FailureRow],
    (era, now): (Era, Timestamp),
) -> Result<Requeued, Fault> {
    if !sql.exists(TAKE, &[&id]).await? {
        return Ok(Requeued::Unknown);
    }
    if live(sql, id).await? + rows.len() as u64 > MOST_FAILURES {
        return Ok(Requeued::Full);
    }
    let mut queued = 0;
    for again in rows {
        if let Some(organization) = &again.organization
            && erasures::is_since_kept(sql, organization, era).await?
        {
            continue;
        }
        let event = again.event.as_bytes().as_slice();
        let organization = again.organization.as_ref().map(OrganizationId::as_str);
        let (kind, file) = (again.kind.as_str(), again.file.map(row::id));
        let at = now.as_millis();
        sql.execute(REQUEUE, &[&id, &event, &kind, &organization, &file, &again.body, &at]).await?;
        queued += 1;
    }
    Ok(Requeued::Done(queued))
}
