//! Events: one for each change of a file, written in the transaction of the change.
//!
//! An event is thin: ids, organization, sub-system, version, and which parts changed. It has no name, custom
//! metadata, digest or caller. A reader who may know more reads the record.

mod id;
mod kind;
mod naming;
mod words;
#[cfg(any(test, feature = "internals"))]
pub mod rules;

pub use id::EventId;
pub use kind::EventKind;
pub use naming::EventNaming;

use crate::domain::file::status::Status;
use crate::domain::id::{FileId, KeyId, OrganizationId, SubSystem, WebhookId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// One change, as readers get it.
///
/// For example, `event.kind.as_str()` is `"file.ready"`, and `event.file_id` is the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The id. It is also the cursor to read on behind this event.
    pub id: EventId,
    /// Type of the change.
    pub kind: EventKind,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
    /// The organization. `None` for events of the whole store.
    pub organization_id: Option<OrganizationId>,
    /// The file's sub-system. `None` for events without a file, and for a purged file.
    pub sub_system: Option<SubSystem>,
    /// The file. `None` for events without a file.
    pub file_id: Option<FileId>,
    /// The file's content version after the change. `None` for events without a file, and for a purged file.
    pub version: Option<u64>,
    /// Facts beside the ids. Most kinds have one or two.
    pub details: EventDetails,
}

/// The facts of an event beside its ids. [`EventKind`] says which kind has which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventDetails {
    /// The file's status.
    pub status: Option<Status>,
    /// The edited parts of a record: `name`, `type`, `metadata`.
    pub changed: Vec<String>,
    /// Who deleted a file, by kind: for example `key` or `expiry`. Never the key.
    pub by: Option<String>,
    /// The provider that stored the file before.
    pub from: Option<ProviderCode>,
    /// The provider that stores the file now, or the provider of a binding.
    pub to: Option<ProviderCode>,
    /// The number of failed attempts.
    pub attempts: Option<u64>,
    /// A number of files.
    pub files: Option<u64>,
    /// A number of bytes.
    pub bytes: Option<u64>,
    /// The API key.
    pub key_id: Option<KeyId>,
    /// The webhook.
    pub webhook_id: Option<WebhookId>,
    /// A word for the result or the reason, for example the kind of a finding.
    pub reason: Option<String>,
    /// `true` if a run ended well, a finding was repaired, or a binding is active.
    pub ok: Option<bool>,
    /// Since when the log was off.
    pub off_since: Option<Timestamp>,
}

/// An event that the log does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Type of the change.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// The organization, if any.
    pub organization_id: Option<OrganizationId>,
    /// The file, with its sub-system and content version.
    pub file: Option<(FileId, SubSystem, u64)>,
    /// Facts beside the ids.
    pub details: EventDetails,
}

impl NewEvent {
    /// Makes an event of the whole store.
    pub fn new(kind: EventKind, at: Timestamp, details: EventDetails) -> Self {
        Self { kind, at, organization_id: None, file: None, details }
    }

    /// Makes it an event of one organization.
    #[must_use]
    pub fn of(mut self, organization: OrganizationId) -> Self {
        self.organization_id = Some(organization);
        self
    }
}

/// The place in the log from which a reader goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum After {
    /// Before the oldest event that is kept. If events were switched off for a time, before the event
    /// that reports this.
    #[default]
    Start,
    /// After the newest event: only future events.
    End,
    /// After this event.
    Event(EventId),
}

/// The events that a reader wants. [`EventKind::LogGap`] passes every filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventFilter {
    /// The kinds. All if empty.
    pub kinds: Vec<EventKind>,
    /// One organization. `None` for all that the scope allows.
    pub organization: Option<OrganizationId>,
}

impl EventFilter {
    /// Creates a filter that lets every event pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only events of these kinds.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = EventKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Keeps only events of this organization.
    #[must_use]
    pub fn organization(mut self, organization: OrganizationId) -> Self {
        self.organization = Some(organization);
        self
    }

    /// Returns true if the filter lets this event pass.
    pub fn passes(&self, event: &Event) -> bool {
        if event.kind.is_for_all() {
            return true;
        }
        let kind = self.kinds.is_empty() || self.kinds.contains(&event.kind);
        let wanted = self.organization.as_ref();
        kind && wanted.is_none_or(|wanted| event.organization_id.as_ref() == Some(wanted))
    }
}

/// One page of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPage {
    /// The events that pass the filter, oldest first, or newest first if the page goes backwards.
    pub events: Vec<Event>,
    /// The last event that was looked at, shown or not: read on behind it. [`After::Start`] only while the log
    /// has never had an event.
    pub next: After,
    /// True if more events follow at once. The page can be empty nevertheless.
    pub has_more: bool,
    /// The position of the log up to which a page that goes forwards has looked. A program that joins pages with
    /// other events compares it with [`Events::position`](crate::events::Events::position). Do not show it
    /// to callers, because it counts the events of all organizations.
    pub looked_at: u64,
}
