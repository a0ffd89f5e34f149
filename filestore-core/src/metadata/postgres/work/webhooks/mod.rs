//! Webhooks, their lanes and failures.
//!
//! # Locking
//! Each change of a lane or of its failures first takes the row of the lane, by an update or `FOR UPDATE`.

pub(in crate::metadata::postgres) mod lanes;
pub(in crate::metadata::postgres) mod failures;
mod rows;

use async_trait::async_trait;

use self::failures::{
    ANY_OVER, DUE, FAILURE_OF, FAILURES, FORGET, FORGET_EVENTS_OF, let_go_all, requeue,
};
use self::lanes::{CLAIM, RELEASE, RENEW, TAKE, TAKE_ALL, claimed, renewed, store};
use self::rows::{failure, place, webhook};
use crate::domain::error::Result;
use crate::domain::event::EventId;
use crate::domain::id::{OrganizationId, WebhookId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{DisabledReason, FailureState, WebhookUrl};
use crate::metadata::events::of_webhook;
use crate::metadata::webhook::kinds_text;
use crate::metadata::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, Lease, Requeued, WebhookChange, WebhookMade,
    WebhookRow, Webhooks,
};

pub(super) use self::lanes::end_leases;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, OwnedLease, Sql};
use crate::metadata::postgres::tables::{events, row};

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

/// Reads a table with few rows.
const OF_ORGANIZATION: &str =
    "SELECT webhook_id FROM webhooks WHERE organization_id = $1 ORDER BY webhook_id";

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
