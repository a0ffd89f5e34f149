//! Webhooks, their lanes and failures.

pub(in crate::metadata::sqlite) mod lanes;
pub(in crate::metadata::sqlite) mod failures;
mod rows;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use self::failures::{
    ANY_OVER, DUE, FAILURE_OF, FAILURES, FORGET, FORGET_EVENTS_OF, let_go_all, requeue,
};
use self::lanes::{CLAIM, OF_OWNER, RELEASE, RENEW, claimed, store};
use self::rows::{damaged, failure, place, webhook};
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
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::{events, row};

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

/// Reads a table with few rows.
const OF_ORGANIZATION: &str = "SELECT webhook_id FROM webhooks WHERE organization_id = ?1";

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
