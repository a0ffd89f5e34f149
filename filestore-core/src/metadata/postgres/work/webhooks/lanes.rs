//! The lanes of webhooks: claims, leases and progress.

use tokio_postgres::Row;

use super::disable;
use super::failures::{end_retry, failing, insert_failure, live, next_due, next_of_file};
use super::rows::{damaged, health, place, read_place};
use crate::domain::id::WebhookId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::row;
use crate::metadata::webhook::{event_ids, event_ids_bytes, fault_text};
use crate::metadata::{ClaimedLane, LaneSave, LaneSaved, Retried};

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
pub(super) const END_LEASES: &str = "UPDATE webhook_lanes SET owner = NULL, leased_until = 0";

pub(in crate::metadata::postgres) const SAVE: &str =
    "UPDATE webhook_lanes SET place = $3, ahead = $4, failing_since = $5, paused_until = $6,
     pauses = $7, last_status = $8, last_fault = $9, last_attempt_at = $10, last_success_at = $11, gaps = $12
     WHERE webhook_id = $1 AND owner = $2";

/// Takes the row of a lane, and reads the webhook.
pub(in crate::metadata::postgres) const TAKE: &str =
    "SELECT 1 FROM webhook_lanes WHERE webhook_id = $1 FOR UPDATE";

/// Takes the rows of all lanes. Reads a table with few rows.
pub(super) const TAKE_ALL: &str = "SELECT 1 FROM webhook_lanes ORDER BY webhook_id FOR UPDATE";

/// Takes all lanes from their owners.
pub(in crate::metadata::postgres) async fn end_leases(sql: &Sql) -> Result<(), Fault> {
    sql.execute(END_LEASES, &[]).await.map(drop)
}

pub(super) async fn claimed(sql: &Sql, id: &str) -> Result<Option<ClaimedLane>, Fault> {
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

pub(super) async fn store(sql: &Sql, save: &LaneSave) -> Result<Option<LaneSaved>, Fault> {
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

pub(super) fn renewed(row: &Row) -> Result<WebhookId, Fault> {
    row::parse(row, 0).map_err(|source| damaged("the lane of a webhook".to_owned(), source))
}
