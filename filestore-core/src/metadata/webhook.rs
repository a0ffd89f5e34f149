//! The rows of webhooks.

use crate::domain::event::{EventId, EventKind};
use crate::domain::id::{FileId, OrganizationId, WebhookId};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{
    DeliveryFault, Disabled, DisabledReason, FailureState, Webhook, WebhookEdit, WebhookFailure,
    WebhookHealth, WebhookSecret, WebhookSecrets, WebhookUrl,
};

/// A stored webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRow {
    pub(crate) id: WebhookId,
    pub(crate) url: WebhookUrl,
    pub(crate) name: String,
    pub(crate) organization: Option<OrganizationId>,
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) secrets: WebhookSecrets,
    pub(crate) created_at: Timestamp,
    pub(crate) changed_at: Timestamp,
    pub(crate) disabled: Option<Disabled>,
    /// The last event before which all are done. `None` for the start of the log.
    pub(crate) place: Option<EventId>,
    pub(crate) health: WebhookHealth,
    /// The time from which an event that failed is due. `None` if none waits.
    pub(crate) next_due: Option<Timestamp>,
    /// The owner of the lane. `None` if nobody has it.
    pub(crate) owner: Option<String>,
}

impl WebhookRow {
    /// Returns the webhook without its secrets.
    pub(crate) fn shown(&self) -> Webhook {
        Webhook {
            id: self.id,
            url: self.url.clone(),
            name: self.name.clone(),
            organization: self.organization.clone(),
            kinds: self.kinds.clone(),
            created_at: self.created_at,
            changed_at: self.changed_at,
            former_secret_until: self.secrets.former.as_ref().map(|(_, until)| *until),
            disabled: self.disabled,
            health: self.health,
        }
    }
}

/// The outcome of making a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookMade {
    /// The webhook is stored.
    Done,
    /// There are too many webhooks.
    Full,
}

/// A change of a webhook.
#[derive(Debug, Clone)]
pub enum WebhookChange {
    /// Other settings.
    Edit(WebhookEdit),
    /// Another secret. The former one signs too until the instant.
    Rotate(WebhookSecret, Timestamp),
    /// No more events.
    Disable(DisabledReason),
    /// Events again, from where the webhook stood.
    Enable,
    /// Events again, from behind this event. `None`: from the start of the log.
    EnableFrom(Option<EventId>),
}

/// A lane as its owner finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedLane {
    pub(crate) place: Option<EventId>,
    /// Events behind the place that are done.
    pub(crate) ahead: Vec<EventId>,
    pub(crate) health: WebhookHealth,
    /// The files with events that failed and are not given up.
    pub(crate) failing: Vec<FileId>,
    /// The number of rows that wait or are held.
    pub(crate) rows: u64,
    pub(crate) next_due: Option<Timestamp>,
}

/// An event that was not accepted at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRow {
    /// The number of the row, in the order in which rows were made. 0 before that.
    pub(crate) row: i64,
    pub(crate) event: EventId,
    pub(crate) kind: EventKind,
    pub(crate) organization: Option<OrganizationId>,
    pub(crate) file: Option<FileId>,
    /// The body as sent.
    pub(crate) body: String,
    pub(crate) state: FailureState,
    /// True if the event is sent again by request. It delays no later event of its file.
    pub(crate) is_repeat: bool,
    pub(crate) attempts: u32,
    /// The time of the next attempt, or of the last one.
    pub(crate) at: Timestamp,
    pub(crate) last_status: Option<u16>,
}

impl FailureRow {
    /// Returns the failure without the body.
    pub(crate) fn shown(&self) -> WebhookFailure {
        WebhookFailure {
            event_id: self.event,
            kind: self.kind,
            organization: self.organization.clone(),
            file_id: self.file,
            state: self.state,
            attempts: self.attempts,
            at: self.at,
            last_status: self.last_status,
        }
    }
}

/// The outcome of another attempt of an event that failed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// The endpoint accepted the event.
    Delivered,
    /// The attempt failed, and the next one is at the instant.
    Postponed(Timestamp),
    /// The last attempt failed.
    GivenUp,
}

/// A retried failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetriedFailure {
    pub(crate) row: i64,
    pub(crate) file: Option<FileId>,
    pub(crate) outcome: Retried,
    pub(crate) attempts: u32,
    pub(crate) status: Option<u16>,
}

/// The progress of a lane, saved at once.
#[derive(Debug, Clone)]
pub struct LaneSave {
    pub(crate) id: WebhookId,
    /// The owner of the lane. If another one owns it by now, nothing changes.
    pub(crate) owner: String,
    pub(crate) now: Timestamp,
    pub(crate) place: Option<EventId>,
    pub(crate) ahead: Vec<EventId>,
    pub(crate) health: WebhookHealth,
    /// Events that failed, and later events of their files, in their order. They replace rows of the same events that
    /// are given up or are repeats.
    pub(crate) failed: Vec<FailureRow>,
    pub(crate) retried: Vec<RetriedFailure>,
    /// Disables the webhook.
    pub(crate) disable: Option<DisabledReason>,
}

/// The state of a lane after a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSaved {
    /// The files of retried events without further events that wait.
    pub(crate) freed: Vec<FileId>,
    /// The number of rows that wait or are held.
    pub(crate) rows: u64,
    pub(crate) next_due: Option<Timestamp>,
}

/// The outcome of queueing events again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeued {
    /// This number of events is due now.
    Done(u64),
    /// So many events wait already that these would exceed the limit.
    Full,
    /// The webhook does not exist.
    Unknown,
}

/// The maximum number of waiting and held events of one webhook.
pub(crate) const MOST_FAILURES: u64 = 10_000;

/// Encodes the fault of a lane's last attempt.
pub(super) fn fault_text(fault: Option<DeliveryFault>) -> Option<&'static str> {
    fault.map(DeliveryFault::as_str)
}

/// Encodes the kinds of a webhook.
pub(super) fn kinds_text(kinds: &[EventKind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ")
}

/// Encodes the events behind a lane's place.
pub(super) fn event_ids_bytes(ids: &[EventId]) -> Vec<u8> {
    ids.iter().flat_map(|id| *id.as_bytes()).collect()
}

/// Reads the events behind a lane's place.
pub(super) fn event_ids(bytes: &[u8]) -> Vec<EventId> {
    let (ids, _) = bytes.as_chunks::<16>();
    ids.iter().copied().map(EventId::from_bytes).collect()
}
