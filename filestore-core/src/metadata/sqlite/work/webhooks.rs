//! Webhooks, their lanes and failures.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::event::EventId;
use crate::domain::id::{FileId, OrganizationId, WebhookId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{
    Disabled, DisabledReason, FailureState, WebhookHealth, WebhookSecret, WebhookSecrets,
    WebhookUrl,
};
use crate::metadata::events::of_webhook;
use crate::metadata::stored::words;
use crate::metadata::webhook::{event_ids, event_ids_bytes, fault_text, kinds_text};
use crate::metadata::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, Lease, MOST_FAILURES, Requeued, Retried,
    RetriedFailure, WebhookChange, WebhookMade, WebhookRow, Webhooks,
};

use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::{erasures, events, row};

macro_rules! columns {
    () => {
        "w.webhook_id, url, name, organization_id, kinds, secret, former_secret, former_until, created_at, changed_at, \
         disabled_reason, disabled_at, place, failing_since, paused_until, pauses, last_status, last_fault, \
         last_attempt_at, last_success_at, gaps, \
         (SELECT min(due_at) FROM webhook_failures f WHERE f.webhook_id = w.webhook_id AND state = 'waiting'), owner"
    };
}

/// Reads a table with few rows.
pub(in crate::metadata::sqlite) const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM webhooks w JOIN webhook_lanes l ON l.webhook_id = w.webhook_id ORDER BY w.webhook_id"
);

pub(in crate::metadata::sqlite) const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM webhooks w JOIN webhook_lanes l ON l.webhook_id = w.webhook_id WHERE w.webhook_id = ?1"
);

/// Reads a table with few rows.
const COUNT: &str = "SELECT count(*) FROM webhooks";

const INSERT: &str = "INSERT INTO webhooks (webhook_id, url, name, organization_id, kinds, secret,
     former_secret, former_until, created_at, changed_at, disabled_reason, disabled_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL, ?7, ?7, NULL, NULL)";

const INSERT_LANE: &str =
    "INSERT INTO webhook_lanes (webhook_id, owner, leased_until, place, ahead, failing_since,
     paused_until, pauses, last_status, last_fault, last_attempt_at, last_success_at, gaps)
     VALUES (?1, NULL, 0, ?2, x'', NULL, NULL, 0, NULL, NULL, NULL, NULL, 0)";

pub(in crate::metadata::sqlite) const EDIT: &str =
    "UPDATE webhooks SET url = coalesce(?2, url), name = coalesce(?3, name),
     kinds = coalesce(?4, kinds), changed_at = ?5 WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const ROTATE: &str =
    "UPDATE webhooks SET former_secret = secret, former_until = ?3, secret = ?2,
     changed_at = ?4 WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const SET_DISABLED: &str =
    "UPDATE webhooks SET disabled_reason = ?2, disabled_at = ?3 WHERE webhook_id = ?1";

/// Ends a pause. Takes the lane from its owner, whose next save would bring the pause and the place back.
pub(in crate::metadata::sqlite) const RESUME: &str =
    "UPDATE webhook_lanes SET failing_since = NULL, paused_until = NULL, pauses = 0,
     owner = NULL, leased_until = 0 WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const SET_PLACE: &str =
    "UPDATE webhook_lanes SET place = ?2, ahead = x'' WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const DELETE: &str = "DELETE FROM webhooks WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const DELETE_LANE: &str =
    "DELETE FROM webhook_lanes WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const DELETE_FAILURES: &str =
    "DELETE FROM webhook_failures WHERE webhook_id = ?1";

pub(in crate::metadata::sqlite) const CLAIM: &str =
    "UPDATE webhook_lanes SET owner = ?2, leased_until = ?4
     WHERE webhook_id = ?1 AND (owner IS NULL OR owner = ?2 OR leased_until <= ?3)
     AND EXISTS (SELECT 1 FROM webhooks w WHERE w.webhook_id = ?1 AND disabled_at IS NULL)";

pub(in crate::metadata::sqlite) const LANE: &str =
    "SELECT place, ahead, failing_since, paused_until, pauses, last_status, last_fault,
     last_attempt_at, last_success_at, gaps FROM webhook_lanes WHERE webhook_id = ?1";

/// Reads a table with few rows.
const RENEW: &str = "UPDATE webhook_lanes SET leased_until = ?2 WHERE owner = ?1";

/// Reads a table with few rows.
const OF_OWNER: &str = "SELECT webhook_id FROM webhook_lanes WHERE owner = ?1";

pub(in crate::metadata::sqlite) const RELEASE: &str =
    "UPDATE webhook_lanes SET owner = NULL, leased_until = 0 WHERE webhook_id = ?1 AND owner = ?2";

/// Takes all lanes from their owners. Reads a table with few rows.
const END_LEASES: &str = "UPDATE webhook_lanes SET owner = NULL, leased_until = 0";

pub(in crate::metadata::sqlite) const SAVE: &str =
    "UPDATE webhook_lanes SET place = ?3, ahead = ?4, failing_since = ?5, paused_until = ?6,
     pauses = ?7, last_status = ?8, last_fault = ?9, last_attempt_at = ?10, last_success_at = ?11, gaps = ?12
     WHERE webhook_id = ?1 AND owner = ?2";

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

/// Reads a table with few rows.
const OF_ORGANIZATION: &str = "SELECT webhook_id FROM webhooks WHERE organization_id = ?1";

pub(in crate::metadata::sqlite) const FORGET_EVENTS_OF: &str =
    "DELETE FROM webhook_failures WHERE organization_id = ?1";

#[async_trait]
impl Webhooks for SqliteMetadata {
    async fn insert_webhook(&self, new: WebhookRow, most: usize) -> Result<WebhookMade> {
        self.writer.run("making a webhook", move |tx| insert(tx.sql, &new, most)).await
    }

    async fn webhooks(&self, only: Option<WebhookId>) -> Result<Vec<WebhookRow>> {
        self.readers
            .run("reading webhooks", move |sql| match only {
                Some(id) => row::collect(sql, ONE, [id.to_string()], webhook),
                None => row::collect(sql, LIST, [], webhook),
            })
            .await
    }

    async fn change_webhook(
        &self,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<WebhookRow>> {
        self.writer
            .run("changing a webhook", move |tx| {
                if row::first(tx.sql, ONE, [id.to_string()], webhook)?.is_none() {
                    return Ok(None);
                }
                apply(tx.sql, id, &change, now)?;
                row::first(tx.sql, ONE, [id.to_string()], webhook)
            })
            .await
    }

    async fn delete_webhook(&self, id: WebhookId) -> Result<bool> {
        self.writer.run("deleting a webhook", move |tx| delete(tx.sql, &id.to_string())).await
    }

    async fn claim_lane(&self, id: WebhookId, lease: Lease<'_>) -> Result<Option<ClaimedLane>> {
        let Lease { owner, now, until } = lease;
        let owner = owner.to_owned();
        self.writer
            .run("claiming the lane of a webhook", move |tx| {
                let id = id.to_string();
                let params = params![id, owner, now.as_millis(), until.as_millis()];
                if row::execute(tx.sql, CLAIM, params)? == 0 {
                    return Ok(None);
                }
                let_go_all(tx.sql, &id, now)?;
                claimed(tx.sql, &id)
            })
            .await
    }

    async fn renew_lanes(&self, lease: Lease<'_>) -> Result<Vec<WebhookId>> {
        let (owner, until) = (lease.owner.to_owned(), lease.until.as_millis());
        self.writer
            .run("renewing the lanes of webhooks", move |tx| {
                row::execute(tx.sql, RENEW, params![owner, until])?;
                row::collect(tx.sql, OF_OWNER, [&owner], |row| {
                    row::parse(row, 0).map_err(|source| damaged("the lane of a webhook", source))
                })
            })
            .await
    }

    async fn release_lane(&self, id: WebhookId, owner: &str) -> Result<()> {
        let owner = owner.to_owned();
        self.writer
            .run("releasing the lane of a webhook", move |tx| {
                row::execute(tx.sql, RELEASE, params![id.to_string(), owner]).map(drop)
            })
            .await
    }

    async fn save_lane(&self, save: LaneSave) -> Result<Option<LaneSaved>> {
        self.writer.run("saving the lane of a webhook", move |tx| store(tx.sql, &save)).await
    }

    async fn due_failures(
        &self,
        id: WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<FailureRow>> {
        self.readers
            .run("looking for due deliveries", move |sql| {
                let params = params![id.to_string(), now.as_millis()];
                row::collect_up_to(limit, sql, DUE, params, failure)
            })
            .await
    }

    async fn failures(
        &self,
        id: WebhookId,
        state: Option<FailureState>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<FailureRow>> {
        self.readers
            .run("listing failed deliveries", move |sql| {
                let params = params![id.to_string(), after, state.map(FailureState::as_str)];
                row::collect_up_to(limit, sql, FAILURES, params, failure)
            })
            .await
    }

    async fn failure_of(&self, id: WebhookId, event: EventId) -> Result<Option<FailureRow>> {
        self.readers
            .run("looking up a failed delivery", move |sql| {
                row::first(sql, FAILURE_OF, params![id.to_string(), event.as_bytes()], failure)
            })
            .await
    }

    async fn requeue(
        &self,
        id: WebhookId,
        rows: Vec<FailureRow>,
        era: Era,
        now: Timestamp,
    ) -> Result<Requeued> {
        self.writer
            .run("queueing deliveries again", move |tx| {
                requeue(tx.sql, &id.to_string(), &rows, (era, now))
            })
            .await
    }

    async fn forget_failures(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let looking = self.readers.run("looking for failed deliveries to forget", move |sql| {
            row::first(sql, ANY_OVER, [before.as_millis()], |_| Ok(()))
        });
        if looking.await?.is_none() {
            return Ok(0);
        }
        self.writer
            .run("forgetting failed deliveries", move |tx| {
                let params = params![before.as_millis(), row::limit(limit)];
                Ok(row::execute(tx.sql, FORGET, params)? as u64)
            })
            .await
    }

    async fn forget_webhooks_of(&self, organization: &OrganizationId) -> Result<u64> {
        let organization = organization.clone();
        self.writer
            .run("forgetting the webhooks of an organization", move |tx| {
                // A lane can have read events of the organization before they were blanked.
                end_leases(tx.sql)?;
                let of = organization.as_str();
                let ids =
                    row::collect(
                        tx.sql,
                        OF_ORGANIZATION,
                        [of],
                        |row| Ok(row.get::<_, String>(0)?),
                    )?;
                for id in &ids {
                    delete(tx.sql, id)?;
                }
                row::execute(tx.sql, FORGET_EVENTS_OF, [of])?;
                Ok(ids.len() as u64)
            })
            .await
    }
}

/// Takes all lanes from their owners.
pub(super) fn end_leases(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, END_LEASES, []).map(drop)
}

fn insert(sql: &Connection, new: &WebhookRow, most: usize) -> Result<WebhookMade, Fault> {
    let organization = new.organization.as_ref().map(OrganizationId::as_str);
    let count = row::first(sql, COUNT, [], |row| row::count(row, 0))?.unwrap_or(0);
    if count >= most as u64 {
        return Ok(WebhookMade::Full);
    }

    let id = new.id.to_string();
    let params = params![
        id,
        new.url.as_str(),
        new.name,
        organization,
        kinds_text(&new.kinds),
        new.secrets.current.as_bytes(),
        new.created_at.as_millis(),
    ];
    row::execute(sql, INSERT, params)?;
    row::execute(sql, INSERT_LANE, params![id, place(new.place)])?;
    Ok(WebhookMade::Done)
}

fn place(place: Option<EventId>) -> Option<[u8; 16]> {
    place.map(|id| *id.as_bytes())
}

fn apply(
    sql: &Connection,
    webhook: WebhookId,
    change: &WebhookChange,
    now: Timestamp,
) -> Result<(), Fault> {
    let id = webhook.to_string();
    match change {
        WebhookChange::Edit(edit) => {
            let url = edit.url.as_ref().map(WebhookUrl::as_str);
            let kinds = edit.kinds.as_deref().map(kinds_text);
            row::execute(sql, EDIT, params![id, url, edit.name, kinds, now.as_millis()])?;
            if edit.url.is_some() {
                row::execute(sql, RESUME, [&id])?;
            }
        }
        WebhookChange::Rotate(secret, until) => {
            let params = params![id, secret.as_bytes(), until.as_millis(), now.as_millis()];
            row::execute(sql, ROTATE, params)?;
        }
        WebhookChange::Disable(reason) => disable(sql, webhook, *reason, now)?,
        WebhookChange::Enable => enable(sql, webhook, now)?,
        WebhookChange::EnableFrom(from) => {
            enable(sql, webhook, now)?;
            row::execute(sql, SET_PLACE, params![id, place(*from)])?;
        }
    }
    Ok(())
}

/// Enables a webhook, and tells it.
fn enable(sql: &Connection, webhook: WebhookId, now: Timestamp) -> Result<(), Fault> {
    let id = webhook.to_string();
    row::execute(sql, SET_DISABLED, params![id, None::<&str>, None::<i64>])?;
    events::put(sql, &of_webhook(webhook, None, now))?;
    row::execute(sql, RESUME, [&id]).map(drop)
}

/// Disables a webhook, and tells it.
fn disable(
    sql: &Connection,
    webhook: WebhookId,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<(), Fault> {
    let params = params![webhook.to_string(), reason.as_str(), now.as_millis()];
    row::execute(sql, SET_DISABLED, params)?;
    events::put(sql, &of_webhook(webhook, Some(reason), now))
}

fn delete(sql: &Connection, id: &str) -> Result<bool, Fault> {
    row::execute(sql, DELETE_FAILURES, [id])?;
    row::execute(sql, DELETE_LANE, [id])?;
    Ok(row::execute(sql, DELETE, [id])? > 0)
}

/// Lets held events go whose earlier events are gone in another way, for example by an erasure.
fn let_go_all(sql: &Connection, id: &str, now: Timestamp) -> Result<(), Fault> {
    for file in failing(sql, id)? {
        next_of_file(sql, id, file, now)?;
    }
    Ok(())
}

/// Makes the next held event of a file due, unless an earlier one waits. Returns true if there is no such event.
fn next_of_file(sql: &Connection, id: &str, file: FileId, now: Timestamp) -> Result<bool, Fault> {
    let next = row::first(sql, NEXT_OF_FILE, params![id, file.to_string()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((next, state)) = next else { return Ok(true) };
    if state == FailureState::Held.as_str() {
        row::execute(sql, LET_GO, params![next, now.as_millis()])?;
    }
    Ok(false)
}

fn failing(sql: &Connection, id: &str) -> Result<Vec<FileId>, Fault> {
    row::collect(sql, FAILING, [id], |row| {
        row::parse(row, 0).map_err(|source| damaged("a failed delivery", source))
    })
}

fn claimed(sql: &Connection, id: &str) -> Result<Option<ClaimedLane>, Fault> {
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

fn live(sql: &Connection, id: &str) -> Result<u64, Fault> {
    Ok(row::first(sql, LIVE, [id], |row| row::count(row, 0))?.unwrap_or(0))
}

fn next_due(sql: &Connection, id: &str) -> Result<Option<Timestamp>, Fault> {
    let due = row::first(sql, NEXT_DUE, [id], |row| Ok(row.get::<_, Option<i64>>(0)?))?;
    Ok(due.flatten().map(Timestamp::from_millis))
}

fn store(sql: &Connection, save: &LaneSave) -> Result<Option<LaneSaved>, Fault> {
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

fn insert_failure(sql: &Connection, id: &str, failed: &FailureRow) -> Result<(), Fault> {
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

fn end_retry(
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

fn requeue(
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

fn damaged(what: &str, source: Source) -> Fault {
    Fault::Row { what: what.to_owned(), source }
}

fn webhook(row: &Row<'_>) -> Result<WebhookRow, Fault> {
    read_webhook(row).map_err(|source| {
        let id: String = row.get(0).unwrap_or_default();
        damaged(&format!("the webhook {id}"), source)
    })
}

fn read_webhook(row: &Row<'_>) -> Result<WebhookRow, Source> {
    let former: Option<[u8; 32]> = row.get(6)?;
    let reason: Option<String> = row.get(10)?;
    let reason = reason.map(|reason| reason.parse()).transpose()?;
    let disabled = reason.zip(instant(row, 11)?).map(|(reason, at)| Disabled::new(reason, at));
    let organization: Option<String> = row.get(3)?;
    Ok(WebhookRow {
        id: row::parse(row, 0)?,
        url: row::parse(row, 1)?,
        name: row.get(2)?,
        organization: organization.map(|id| id.parse()).transpose()?,
        kinds: words(&row.get::<_, String>(4)?)?,
        secrets: WebhookSecrets {
            current: WebhookSecret::from_bytes(row.get(5)?),
            former: former.map(WebhookSecret::from_bytes).zip(instant(row, 7)?),
        },
        created_at: Timestamp::from_millis(row.get(8)?),
        changed_at: Timestamp::from_millis(row.get(9)?),
        disabled,
        place: row.get::<_, Option<[u8; 16]>>(12)?.map(EventId::from_bytes),
        health: health(row, 13)?,
        next_due: instant(row, 21)?,
        owner: row.get(22)?,
    })
}

fn instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Source> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

/// Reads how the deliveries go, in the columns from `first` on.
fn health(row: &Row<'_>, first: usize) -> Result<WebhookHealth, Source> {
    let fault: Option<String> = row.get(first + 4)?;
    Ok(WebhookHealth {
        failing_since: instant(row, first)?,
        paused_until: instant(row, first + 1)?,
        pauses: row.get(first + 2)?,
        last_status: row.get(first + 3)?,
        last_fault: fault.map(|fault| fault.parse()).transpose()?,
        last_attempt_at: instant(row, first + 5)?,
        last_success_at: instant(row, first + 6)?,
        gaps: row::unsigned(row, first + 7)?,
    })
}

fn failure(row: &Row<'_>) -> Result<FailureRow, Fault> {
    read_failure(row).map_err(|source| damaged("a failed delivery", source))
}

fn read_failure(row: &Row<'_>) -> Result<FailureRow, Source> {
    let organization: Option<String> = row.get(3)?;
    let file: Option<String> = row.get(4)?;
    Ok(FailureRow {
        row: row.get(0)?,
        event: EventId::from_bytes(row.get(1)?),
        kind: row::parse(row, 2)?,
        organization: organization.map(|id| id.parse()).transpose()?,
        file: file.map(|id| id.parse()).transpose()?,
        body: row.get(5)?,
        state: row::parse(row, 6)?,
        is_repeat: row.get(7)?,
        attempts: row.get(8)?,
        at: Timestamp::from_millis(row.get(9)?),
        last_status: row.get(10)?,
    })
}
