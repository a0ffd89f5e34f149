//! Reads the rows of webhooks, and writes their values.

use tokio_postgres::Row;

use crate::domain::event::EventId;
use crate::domain::webhook::{Disabled, WebhookHealth, WebhookSecret, WebhookSecrets};
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::tables::row;
use crate::metadata::stored::words;
use crate::metadata::{FailureRow, WebhookRow};

pub(super) fn place(place: Option<&EventId>) -> Option<&[u8]> {
    place.map(|id| id.as_bytes().as_slice())
}

pub(super) fn damaged(what: String, source: Source) -> Fault {
    Fault::Row { what, source }
}

pub(super) fn webhook(row: &Row) -> Result<WebhookRow, Fault> {
    read_webhook(row).map_err(|source| damaged(format!("the webhook {}", row::raw_id(row)), source))
}

pub(super) fn read_webhook(row: &Row) -> Result<WebhookRow, Source> {
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

pub(super) fn secret(bytes: &[u8]) -> Result<WebhookSecret, Source> {
    Ok(WebhookSecret::from_bytes(bytes.try_into()?))
}

pub(super) fn read_place(row: &Row, column: usize) -> Result<Option<EventId>, Source> {
    row.try_get::<_, Option<&[u8]>>(column)?.map(event_id).transpose()
}

pub(super) fn event_id(bytes: &[u8]) -> Result<EventId, Source> {
    Ok(EventId::from_bytes(bytes.try_into()?))
}

/// Reads how the deliveries go, in the columns from `first` on.
pub(super) fn health(row: &Row, first: usize) -> Result<WebhookHealth, Source> {
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

pub(super) fn status(row: &Row, column: usize) -> Result<Option<u16>, Source> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(u16::try_from).transpose()?)
}

pub(super) fn failure(row: &Row) -> Result<FailureRow, Fault> {
    read_failure(row).map_err(|source| damaged("a failed delivery".to_owned(), source))
}

pub(super) fn read_failure(row: &Row) -> Result<FailureRow, Source> {
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
