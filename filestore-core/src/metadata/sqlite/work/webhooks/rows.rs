//! Reads the rows of webhooks, and writes their values.

use rusqlite::Row;

use crate::domain::event::EventId;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{Disabled, WebhookHealth, WebhookSecret, WebhookSecrets};
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row;
use crate::metadata::stored::words;
use crate::metadata::{FailureRow, WebhookRow};

pub(super) fn place(place: Option<EventId>) -> Option<[u8; 16]> {
    place.map(|id| *id.as_bytes())
}

pub(super) fn damaged(what: &str, source: Source) -> Fault {
    Fault::Row { what: what.to_owned(), source }
}

pub(super) fn webhook(row: &Row<'_>) -> Result<WebhookRow, Fault> {
    read_webhook(row).map_err(|source| {
        let id: String = row.get(0).unwrap_or_default();
        damaged(&format!("the webhook {id}"), source)
    })
}

pub(super) fn read_webhook(row: &Row<'_>) -> Result<WebhookRow, Source> {
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

pub(super) fn instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Source> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

/// Reads how the deliveries go, in the columns from `first` on.
pub(super) fn health(row: &Row<'_>, first: usize) -> Result<WebhookHealth, Source> {
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

pub(super) fn failure(row: &Row<'_>) -> Result<FailureRow, Fault> {
    read_failure(row).map_err(|source| damaged("a failed delivery", source))
}

pub(super) fn read_failure(row: &Row<'_>) -> Result<FailureRow, Source> {
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
