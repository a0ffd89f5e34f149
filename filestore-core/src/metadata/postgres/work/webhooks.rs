//! Webhooks, their lanes and failures.
//!
//! # Locking
//! Each change of a lane or of its failures first takes the row of the lane, by an update or `FOR UPDATE`.

use async_trait::async_trait;
use tokio_postgres::Row;

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

use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Lock, OwnedLease, Sql};
use crate::metadata::postgres::tables::{erasures, events, row};

macro_rules! columns {
    () => {
        "w.webhook_id, url, name, organization_id, kinds, secret, former_secret, former_until, created_at, changed_at, \
         disabled_reason, disabled_at, place, failing_since, paused_until, pauses, last_status, last_fault, \
         last_attempt_at, last_success_at, gaps, \
         (SELECT min(due_at) FROM webhook_failures f WHERE f.webhook_id = w.webhook_id AND state = 'waiting'), owner"
    };
}

/// Reads a table with few rows.
pub(in crate::metadata::postgres) const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM webhooks w JOIN webhook_lanes l ON l.webhook_id = w.webhook_id ORDER BY w.webhook_id"
);

pub(in crate::metadata::postgres) const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM webhooks w JOIN webhook_lanes l ON l.webhook_id = w.webhook_id WHERE w.webhook_id = $1"
);

/// Reads a table with few rows.
const COUNT: &str = "SELECT count(*) FROM webhooks";

const INSERT: &str = "INSERT INTO webhooks (webhook_id, url, name, organization_id, kinds, secret,
     former_secret, former_until, created_at, changed_at, disabled_reason, disabled_at)
     VALUES ($1, $2, $3, $4, $5, $6, NULL, NULL, $7, $7, NULL, NULL)";

const INSERT_LANE: &str =
    "INSERT INTO webhook_lanes (webhook_id, owner, leased_until, place, ahead, failing_since,
     paused_until, pauses, last_status, last_fault, last_attempt_at, last_success_at, gaps)
     VALUES ($1, NULL, 0, $2, ''::bytea, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0)";

pub(in crate::metadata::postgres) const EDIT: &str =
    "UPDATE webhooks SET url = coalesce($2::text, url), name = coalesce($3::text, name),
     kinds = coalesce($4::text, kinds), changed_at = $5 WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const ROTATE: &str =
    "UPDATE webhooks SET former_secret = secret, former_until = $3, secret = $2,
     changed_at = $4 WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const SET_DISABLED: &str =
    "UPDATE webhooks SET disabled_reason = $2, disabled_at = $3 WHERE webhook_id = $1";

/// Ends a pause. Takes the lane from its owner, whose next save would bring the pause and the place back.
pub(in crate::metadata::postgres) const RESUME: &str =
    "UPDATE webhook_lanes SET failing_since = NULL, paused_until = NULL, pauses = 0,
     owner = NULL, leased_until = 0 WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const SET_PLACE: &str =
    "UPDATE webhook_lanes SET place = $2, ahead = ''::bytea WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const DELETE: &str = "DELETE FROM webhooks WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const DELETE_LANE: &str =
    "DELETE FROM webhook_lanes WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const DELETE_FAILURES: &str =
    "DELETE FROM webhook_failures WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const CLAIM: &str =
    "UPDATE webhook_lanes SET owner = $2, leased_until = $4
     WHERE webhook_id = $1 AND (owner IS NULL OR owner = $2 OR leased_until <= $3)
     AND EXISTS (SELECT 1 FROM webhooks w WHERE w.webhook_id = $1 AND disabled_at IS NULL)";

pub(in crate::metadata::postgres) const LANE: &str =
    "SELECT place, ahead, failing_since, paused_until, pauses, last_status, last_fault,
     last_attempt_at, last_success_at, gaps FROM webhook_lanes WHERE webhook_id = $1";

pub(in crate::metadata::postgres) const RENEW: &str =
    "UPDATE webhook_lanes SET leased_until = $2 WHERE owner = $1 RETURNING webhook_id";

pub(in crate::metadata::postgres) const RELEASE: &str =
    "UPDATE webhook_lanes SET owner = NULL, leased_until = 0 WHERE webhook_id = $1 AND owner = $2";

/// Takes all lanes from their owners. Reads a table with few rows.
const END_LEASES: &str = "UPDATE webhook_lanes SET owner = NULL, leased_until = 0";

pub(in crate::metadata::postgres) const SAVE: &str =
    "UPDATE webhook_lanes SET place = $3, ahead = $4, failing_since = $5, paused_until = $6,
     pauses = $7, last_status = $8, last_fault = $9, last_attempt_at = $10, last_success_at = $11, gaps = $12
     WHERE webhook_id = $1 AND owner = $2";

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

/// Reads a table with few rows.
const OF_ORGANIZATION: &str =
    "SELECT webhook_id FROM webhooks WHERE organization_id = $1 ORDER BY webhook_id";

pub(in crate::metadata::postgres) const FORGET_EVENTS_OF: &str =
    "DELETE FROM webhook_failures WHERE organization_id = $1";

/// Takes the row of a lane, and reads the webhook.
pub(in crate::metadata::postgres) const TAKE: &str =
    "SELECT 1 FROM webhook_lanes WHERE webhook_id = $1 FOR UPDATE";

/// Takes the rows of all lanes. Reads a table with few rows.
const TAKE_ALL: &str = "SELECT 1 FROM webhook_lanes ORDER BY webhook_id FOR UPDATE";

#[async_trait]
impl Webhooks for PostgresMetadata {
    async fn insert_webhook(&self, new: WebhookRow, most: usize) -> Result<WebhookMade> {
        self.engine
            .write("making a webhook", (new, most), |sql, (new, most)| {
                Box::pin(insert(sql, new, *most))
            })
            .await
    }

    async fn webhooks(&self, only: Option<WebhookId>) -> Result<Vec<WebhookRow>> {
        let only = only.map(|id| id.to_string());
        self.engine
            .read("reading webhooks", &only, |sql, only| {
                Box::pin(async move {
                    match only {
                        Some(id) => sql.collect(ONE, &[id], webhook).await,
                        None => sql.collect(LIST, &[], webhook).await,
                    }
                })
            })
            .await
    }

    async fn change_webhook(
        &self,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<WebhookRow>> {
        self.engine
            .write("changing a webhook", (id, change, now), |sql, (webhook_id, change, now)| {
                Box::pin(async move {
                    let id = webhook_id.to_string();
                    if !sql.exists(TAKE, &[&id]).await? {
                        return Ok(None);
                    }
                    apply(sql, *webhook_id, change, *now).await?;
                    let row = sql.first(ONE, &[&id]).await?;
                    row.map(|row| webhook(&row)).transpose()
                })
            })
            .await
    }

    async fn delete_webhook(&self, id: WebhookId) -> Result<bool> {
        self.engine
            .write("deleting a webhook", id.to_string(), |sql, id| Box::pin(delete(sql, id)))
            .await
    }

    async fn claim_lane(&self, id: WebhookId, lease: Lease<'_>) -> Result<Option<ClaimedLane>> {
        let args = (id.to_string(), OwnedLease::of(lease));
        self.engine
            .write("claiming the lane of a webhook", args, |sql, (id, lease)| {
                Box::pin(async move {
                    let (now, until) = (lease.now.as_millis(), lease.until.as_millis());
                    if sql.execute(CLAIM, &[id, &lease.owner, &now, &until]).await? == 0 {
                        return Ok(None);
                    }
                    let_go_all(sql, id, lease.now).await?;
                    claimed(sql, id).await
                })
            })
            .await
    }

    async fn renew_lanes(&self, lease: Lease<'_>) -> Result<Vec<WebhookId>> {
        self.engine
            .write("renewing the lanes of webhooks", OwnedLease::of(lease), |sql, lease| {
                Box::pin(async move {
                    let until = lease.until.as_millis();
                    sql.collect(RENEW, &[&lease.owner, &until], renewed).await
                })
            })
            .await
    }

    async fn release_lane(&self, id: WebhookId, owner: &str) -> Result<()> {
        let args = (id.to_string(), owner.to_owned());
        self.engine
            .write("releasing the lane of a webhook", args, |sql, (id, owner)| {
                Box::pin(async move { sql.execute(RELEASE, &[id, owner]).await.map(drop) })
            })
            .await
    }

    async fn save_lane(&self, save: LaneSave) -> Result<Option<LaneSaved>> {
        self.engine
            .write("saving the lane of a webhook", save, |sql, save| Box::pin(store(sql, save)))
            .await
    }

    async fn due_failures(
        &self,
        id: WebhookId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<FailureRow>> {
        let args = (id.to_string(), now.as_millis(), row::limit(limit));
        self.engine
            .read("looking for due deliveries", &args, |sql, (id, now, limit)| {
                Box::pin(async move { sql.collect(DUE, &[id, now, limit], failure).await })
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
        let args = (id.to_string(), after, state.map(FailureState::as_str), row::limit(limit));
        self.engine
            .read("listing failed deliveries", &args, |sql, (id, after, state, limit)| {
                Box::pin(
                    async move { sql.collect(FAILURES, &[id, after, state, limit], failure).await },
                )
            })
            .await
    }

    async fn failure_of(&self, id: WebhookId, event: EventId) -> Result<Option<FailureRow>> {
        let args = (id.to_string(), event);
        self.engine
            .read("looking up a failed delivery", &args, |sql, (id, event)| {
                Box::pin(async move {
                    let row = sql.first(FAILURE_OF, &[id, &event.as_bytes().as_slice()]).await?;
                    row.map(|row| failure(&row)).transpose()
                })
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
        let args = (id.to_string(), rows, (era, now));
        self.engine
            .write("queueing deliveries again", args, |sql, (id, rows, at)| {
                Box::pin(requeue(sql, id, rows, *at))
            })
            .await
    }

    async fn forget_failures(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let args = (before.as_millis(), row::limit(limit));
        let looking =
            self.engine.read("looking for failed deliveries to forget", &args.0, |sql, before| {
                Box::pin(async move { sql.exists(ANY_OVER, &[before]).await })
            });
        if !looking.await? {
            return Ok(0);
        }
        self.engine
            .write("forgetting failed deliveries", args, |sql, (before, limit)| {
                Box::pin(async move { sql.execute(FORGET, &[before, limit]).await })
            })
            .await
    }

    async fn forget_webhooks_of(&self, organization: &OrganizationId) -> Result<u64> {
        let organization = organization.as_str().to_owned();
        self.engine
            .write("forgetting the webhooks of an organization", organization, |sql, of| {
                Box::pin(async move {
                    sql.rows(TAKE_ALL, &[]).await?;
                    // A lane can have read events of the organization before they were blanked.
                    end_leases(sql).await?;
                    let rows = sql.rows(OF_ORGANIZATION, &[of]).await?;
                    for row in &rows {
                        delete(sql, &row.try_get::<_, String>(0)?).await?;
                    }
                    sql.execute(FORGET_EVENTS_OF, &[of]).await?;
                    Ok(rows.len() as u64)
                })
            })
            .await
    }
}

/// Takes all lanes from their owners.
pub(super) async fn end_leases(sql: &Sql) -> Result<(), Fault> {
    sql.execute(END_LEASES, &[]).await.map(drop)
}

async fn insert(sql: &Sql, new: &WebhookRow, most: usize) -> Result<WebhookMade, Fault> {
    sql.lock(Lock::Webhooks).await?;
    let organization = new.organization.as_ref().map(OrganizationId::as_str);
    let count = sql.first(COUNT, &[]).await?.map_or(Ok(0), |row| row::count(&row, 0))?;
    if count >= most as u64 {
        return Ok(WebhookMade::Full);
    }

    let (id, secret) = (new.id.to_string(), new.secrets.current.as_bytes().as_slice());
    let (kinds, created_at) = (kinds_text(&new.kinds), new.created_at.as_millis());
    let url = new.url.as_str();
    sql.execute(INSERT, &[&id, &url, &new.name, &organization, &kinds, &secret, &created_at])
        .await?;
    sql.execute(INSERT_LANE, &[&id, &place(new.place.as_ref())]).await?;
    Ok(WebhookMade::Done)
}

fn place(place: Option<&EventId>) -> Option<&[u8]> {
    place.map(|id| id.as_bytes().as_slice())
}

async fn apply(
    sql: &Sql,
    webhook: WebhookId,
    change: &WebhookChange,
    now: Timestamp,
) -> Result<(), Fault> {
    let (id, at) = (webhook.to_string(), now.as_millis());
    match change {
        WebhookChange::Edit(edit) => {
            let url = edit.url.as_ref().map(WebhookUrl::as_str);
            let kinds = edit.kinds.as_deref().map(kinds_text);
            sql.execute(EDIT, &[&id, &url, &edit.name, &kinds, &at]).await?;
            if edit.url.is_some() {
                sql.execute(RESUME, &[&id]).await?;
            }
        }
        WebhookChange::Rotate(secret, until) => {
            let secret = secret.as_bytes().as_slice();
            sql.execute(ROTATE, &[&id, &secret, &until.as_millis(), &at]).await?;
        }
        WebhookChange::Disable(reason) => disable(sql, webhook, *reason, now).await?,
        WebhookChange::Enable => enable(sql, webhook, now).await?,
        WebhookChange::EnableFrom(from) => {
            enable(sql, webhook, now).await?;
            sql.execute(SET_PLACE, &[&id, &place(from.as_ref())]).await?;
        }
    }
    Ok(())
}

/// Enables a webhook, and tells it.
async fn enable(sql: &Sql, webhook: WebhookId, now: Timestamp) -> Result<(), Fault> {
    let id = webhook.to_string();
    sql.execute(SET_DISABLED, &[&id, &None::<&str>, &None::<i64>]).await?;
    events::put(sql, &of_webhook(webhook, None, now)).await?;
    sql.execute(RESUME, &[&id]).await.map(drop)
}

/// Disables a webhook, and tells it.
async fn disable(
    sql: &Sql,
    webhook: WebhookId,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<(), Fault> {
    let at = Some(now.as_millis());
    sql.execute(SET_DISABLED, &[&webhook.to_string(), &Some(reason.as_str()), &at]).await?;
    events::put(sql, &of_webhook(webhook, Some(reason), now)).await
}

async fn delete(sql: &Sql, id: &str) -> Result<bool, Fault> {
    sql.execute(DELETE_LANE, &[&id]).await?;
    sql.execute(DELETE_FAILURES, &[&id]).await?;
    Ok(sql.execute(DELETE, &[&id]).await? > 0)
}

/// Lets held events go whose earlier events are gone in another way, for example by an erasure.
async fn let_go_all(sql: &Sql, id: &str, now: Timestamp) -> Result<(), Fault> {
    for file in failing(sql, id).await? {
        next_of_file(sql, id, file, now).await?;
    }
    Ok(())
}

/// Makes the next held event of a file due, unless an earlier one waits. Returns true if there is no such event.
async fn next_of_file(sql: &Sql, id: &str, file: FileId, now: Timestamp) -> Result<bool, Fault> {
    let Some(next) = sql.first(NEXT_OF_FILE, &[&id, &row::id(file)]).await? else {
        return Ok(true);
    };
    if next.try_get::<_, &str>(1)? == FailureState::Held.as_str() {
        let held: i64 = next.try_get(0)?;
        sql.execute(LET_GO, &[&held, &now.as_millis()]).await?;
    }
    Ok(false)
}

async fn failing(sql: &Sql, id: &str) -> Result<Vec<FileId>, Fault> {
    let read = |row: &Row| {
        row::parse(row, 0).map_err(|source| damaged("a failed delivery".to_owned(), source))
    };
    sql.collect(FAILING, &[&id], read).await
}

async fn claimed(sql: &Sql, id: &str) -> Result<Option<ClaimedLane>, Fault> {
    let Some(lane) = sql.first(LANE, &[&id]).await? else { return Ok(None) };
    let read = || -> Result<_, Source> {
        Ok((read_place(&lane, 0)?, event_ids(lane.try_get(1)?), health(&lane, 2)?))
    };
    let (place, ahead, health) =
        read().map_err(|source| damaged(format!("the lane of the webhook {id}"), source))?;
    let failing = failing(sql, id).await?;
    let rows = live(sql, id).await?;
    let next_due = next_due(sql, id).await?;
    Ok(Some(ClaimedLane { place, ahead, health, failing, rows, next_due }))
}

async fn live(sql: &Sql, id: &str) -> Result<u64, Fault> {
    sql.first(LIVE, &[&id]).await?.map_or(Ok(0), |row| row::count(&row, 0))
}

async fn next_due(sql: &Sql, id: &str) -> Result<Option<Timestamp>, Fault> {
    let Some(row) = sql.first(NEXT_DUE, &[&id]).await? else { return Ok(None) };
    Ok(row.try_get::<_, Option<i64>>(0)?.map(Timestamp::from_millis))
}

async fn store(sql: &Sql, save: &LaneSave) -> Result<Option<LaneSaved>, Fault> {
    let id = save.id.to_string();
    let health = &save.health;
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let saved = sql
        .execute(
            SAVE,
            &[
                &id,
                &save.owner,
                &place(save.place.as_ref()),
                &event_ids_bytes(&save.ahead),
                &millis(health.failing_since),
                &millis(health.paused_until),
                &i64::from(health.pauses),
                &health.last_status.map(i64::from),
                &fault_text(health.last_fault),
                &millis(health.last_attempt_at),
                &millis(health.last_success_at),
                &row::integer(health.gaps)?,
            ],
        )
        .await?;
    if saved == 0 {
        return Ok(None);
    }

    for failed in &save.failed {
        insert_failure(sql, &id, failed).await?;
    }
    let mut freed = Vec::new();
    for retried in &save.retried {
        end_retry(sql, &id, retried, save.now).await?;
        if let Some(file) = retried.file
            && !matches!(retried.outcome, Retried::Postponed(_))
            && next_of_file(sql, &id, file, save.now).await?
        {
            freed.push(file);
        }
    }
    if let Some(reason) = save.disable {
        disable(sql, save.id, reason, save.now).await?;
    }
    let (rows, next_due) = (live(sql, &id).await?, next_due(sql, &id).await?);
    Ok(Some(LaneSaved { freed, rows, next_due }))
}

async fn insert_failure(sql: &Sql, id: &str, failed: &FailureRow) -> Result<(), Fault> {
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

async fn end_retry(
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

async fn requeue(
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

fn renewed(row: &Row) -> Result<WebhookId, Fault> {
    row::parse(row, 0).map_err(|source| damaged("the lane of a webhook".to_owned(), source))
}

fn damaged(what: String, source: Source) -> Fault {
    Fault::Row { what, source }
}

fn webhook(row: &Row) -> Result<WebhookRow, Fault> {
    read_webhook(row).map_err(|source| damaged(format!("the webhook {}", row::raw_id(row)), source))
}

fn read_webhook(row: &Row) -> Result<WebhookRow, Source> {
    let former = row.try_get::<_, Option<&[u8]>>(6)?.map(secret).transpose()?;
    let reason: Option<&str> = row.try_get(10)?;
    let reason = reason.map(str::parse).transpose()?;
    let disabled_at = row::instant_or_none(row, 11)?;
    let organization: Option<&str> = row.try_get(3)?;
    Ok(WebhookRow {
        id: row::parse(row, 0)?,
        url: row::parse(row, 1)?,
        name: row.try_get(2)?,
        organization: organization.map(str::parse).transpose()?,
        kinds: words(row.try_get(4)?)?,
        secrets: WebhookSecrets {
            current: secret(row.try_get(5)?)?,
            former: former.zip(row::instant_or_none(row, 7)?),
        },
        created_at: row::instant(row, 8)?,
        changed_at: row::instant(row, 9)?,
        disabled: reason.zip(disabled_at).map(|(reason, at)| Disabled::new(reason, at)),
        place: read_place(row, 12)?,
        health: health(row, 13)?,
        next_due: row::instant_or_none(row, 21)?,
        owner: row.try_get(22)?,
    })
}

fn secret(bytes: &[u8]) -> Result<WebhookSecret, Source> {
    Ok(WebhookSecret::from_bytes(bytes.try_into()?))
}

fn read_place(row: &Row, column: usize) -> Result<Option<EventId>, Source> {
    row.try_get::<_, Option<&[u8]>>(column)?.map(event_id).transpose()
}

fn event_id(bytes: &[u8]) -> Result<EventId, Source> {
    Ok(EventId::from_bytes(bytes.try_into()?))
}

/// Reads how the deliveries go, in the columns from `first` on.
fn health(row: &Row, first: usize) -> Result<WebhookHealth, Source> {
    let fault: Option<&str> = row.try_get(first + 4)?;
    Ok(WebhookHealth {
        failing_since: row::instant_or_none(row, first)?,
        paused_until: row::instant_or_none(row, first + 1)?,
        pauses: row::unsigned(row, first + 2)?.try_into()?,
        last_status: status(row, first + 3)?,
        last_fault: fault.map(str::parse).transpose()?,
        last_attempt_at: row::instant_or_none(row, first + 5)?,
        last_success_at: row::instant_or_none(row, first + 6)?,
        gaps: row::unsigned(row, first + 7)?,
    })
}

fn status(row: &Row, column: usize) -> Result<Option<u16>, Source> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(u16::try_from).transpose()?)
}

fn failure(row: &Row) -> Result<FailureRow, Fault> {
    read_failure(row).map_err(|source| damaged("a failed delivery".to_owned(), source))
}

fn read_failure(row: &Row) -> Result<FailureRow, Source> {
    let organization: Option<&str> = row.try_get(3)?;
    let file: Option<&str> = row.try_get(4)?;
    Ok(FailureRow {
        row: row.try_get(0)?,
        event: event_id(row.try_get(1)?)?,
        kind: row::parse(row, 2)?,
        organization: organization.map(str::parse).transpose()?,
        file: file.map(str::parse).transpose()?,
        body: row.try_get(5)?,
        state: row::parse(row, 6)?,
        is_repeat: row.try_get(7)?,
        attempts: row::unsigned(row, 8)?.try_into()?,
        at: row::instant(row, 9)?,
        last_status: status(row, 10)?,
    })
}
