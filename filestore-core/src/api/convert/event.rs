//! Events of the log.

use crate::api::{Event, EventData, EventPage};
use crate::domain::event;

impl From<&event::Event> for Event {
    fn from(event: &event::Event) -> Self {
        let ids = EventData {
            organization_id: event.organization_id.as_ref().map(ToString::to_string),
            sub_system: event.sub_system.as_ref().map(ToString::to_string),
            file_id: event.file_id.map(|id| id.to_string()),
            version: event.version,
            ..EventData::of(&event.details)
        };
        Self {
            id: event.id.to_string(),
            kind: event.kind.into(),
            timestamp: event.at.to_string(),
            data: ids,
        }
    }
}

impl EventData {
    /// Shows the facts. The ids stay empty.
    fn of(details: &event::EventDetails) -> Self {
        // Each fact by name, so that a new one does not compile without its line here.
        let event::EventDetails {
            status,
            changed,
            by,
            from,
            to,
            attempts,
            files,
            bytes,
            key_id,
            webhook_id,
            reason,
            ok,
            off_since,
        } = details;
        Self {
            status: status.map(Into::into),
            changed: changed.clone(),
            by: by.clone(),
            from: from.as_ref().map(ToString::to_string),
            to: to.as_ref().map(ToString::to_string),
            attempts: *attempts,
            files: *files,
            bytes: *bytes,
            key_id: key_id.map(|id| id.to_string()),
            webhook_id: webhook_id.map(|id| id.to_string()),
            reason: reason.clone(),
            ok: *ok,
            off_since: off_since.map(|at| at.to_string()),
            ..Self::default()
        }
    }
}

impl From<&event::EventPage> for EventPage {
    fn from(page: &event::EventPage) -> Self {
        let events = page.events.iter().map(Event::from).collect();
        Self { events, next: page.next.to_string(), more: page.has_more }
    }
}
