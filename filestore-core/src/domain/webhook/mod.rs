//! Webhooks: URLs to which the store sends events.
//!
//! | module | contains |
//! |---|---|
//! | `url`, `address` | where events can go |
//! | `stored_url` | replaces `url` in a build without the feature `webhooks` |
//! | `secret` | signatures by Standard Webhooks 1.0.0 |
//! | `answer`, `schedule` | the meaning of an answer, and the time of the next attempt |
//! | `judge` | the rules of URLs and addresses a second time, for tests |

/// Declares an enum of words, with their texts.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let known = Self::ALL.iter().find(|word| word.as_str() == text);
                known.copied().ok_or_else(|| format!(concat!("not a ", stringify!($name), ": {}"), text))
            }
        }
    };
}

mod address;
mod answer;
mod schedule;
mod secret;
#[cfg(feature = "webhooks")]
mod url;
#[cfg(not(feature = "webhooks"))]
mod stored_url;
#[cfg(all(feature = "webhooks", any(test, feature = "internals")))]
pub mod judge;

pub(crate) use address::AllowedHosts;
pub use answer::DeliveryFault;
pub(crate) use answer::{Answer, Verdict, retry_after};
pub(crate) use schedule::{pause, wait_after};
pub use secret::WebhookSecret;
pub(crate) use secret::WebhookSecrets;
#[cfg(not(feature = "webhooks"))]
pub use stored_url::WebhookUrl;
#[cfg(feature = "webhooks")]
pub(crate) use url::UrlRules;
#[cfg(feature = "webhooks")]
pub use url::WebhookUrl;

use std::fmt;
use std::str::FromStr;

use crate::domain::event::{After, EventFilter, EventId, EventKind};
use crate::domain::id::{FileId, OrganizationId, WebhookId};
use crate::domain::time::clock::Timestamp;

words! {
    /// The reason why a webhook gets no events.
    DisabledReason {
        /// An administrator disabled it.
        Requested = "requested",
        /// The endpoint answered 410.
        Gone = "gone",
        /// The endpoint accepted no event for days.
        NoSuccess = "no_success",
        /// The store is a copy. Only the original sends events.
        Copied = "copied",
    }
}

words! {
    /// The state of an event that an endpoint did not accept at once.
    FailureState {
        /// Waits for its next attempt.
        Waiting = "waiting",
        /// Waits for an earlier event of the same file.
        Held = "held",
        /// All attempts failed. You can send the event again.
        Failed = "failed",
    }
}

/// Since when a webhook gets no events, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disabled {
    /// The reason.
    pub reason: DisabledReason,
    /// The time.
    pub at: Timestamp,
}

impl Disabled {
    /// Makes the state.
    pub(crate) fn new(reason: DisabledReason, at: Timestamp) -> Self {
        Self { reason, at }
    }
}

/// How the deliveries to an endpoint go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookHealth {
    /// Since when the endpoint has accepted no event, although some wait. `None` if all is well.
    pub failing_since: Option<Timestamp>,
    /// The time of the next trial, if the endpoint cannot take events now.
    pub paused_until: Option<Timestamp>,
    /// The number of pauses in a row.
    pub pauses: u32,
    /// The status of the last reply.
    pub last_status: Option<u16>,
    /// The reason why there was no reply to the last attempt.
    pub last_fault: Option<DeliveryFault>,
    /// The time of the last attempt.
    pub last_attempt_at: Option<Timestamp>,
    /// The time of the last accepted event.
    pub last_success_at: Option<Timestamp>,
    /// Number of times that the endpoint can have missed events: the log had forgotten them, or has a gap.
    pub gaps: u64,
}

/// A webhook: its settings, and how its deliveries go. The secret is shown only when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Webhook {
    /// The id.
    pub id: WebhookId,
    /// The URL that gets the events.
    pub url: WebhookUrl,
    /// A name for people. It can be empty.
    pub name: String,
    /// The organization whose events are sent. `None` for events of all organizations and of the store.
    pub organization: Option<OrganizationId>,
    /// The kinds that are sent. All if empty.
    pub kinds: Vec<EventKind>,
    /// When the webhook was made.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub changed_at: Timestamp,
    /// Until when the former secret signs too, after a rotation.
    pub former_secret_until: Option<Timestamp>,
    /// Why the webhook gets no events. `None` if it is enabled.
    pub disabled: Option<Disabled>,
    /// How its deliveries go.
    pub health: WebhookHealth,
}

impl Webhook {
    /// Returns true if the server has disabled the webhook: the endpoint answered 410, or accepted no event for days.
    pub fn is_given_up(&self) -> bool {
        let reason = self.disabled.map(|disabled| disabled.reason);
        matches!(reason, Some(DisabledReason::Gone | DisabledReason::NoSuccess))
    }

    /// Returns the filter of the events that are sent.
    pub fn filter(&self) -> EventFilter {
        let filter = EventFilter::new().kinds(self.kinds.iter().copied());
        match &self.organization {
            Some(organization) => filter.organization(organization.clone()),
            None => filter,
        }
    }
}

/// The longest name of a webhook, in bytes.
pub(crate) const MOST_NAME_BYTES: usize = 200;

/// A webhook to make.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewWebhook {
    /// The URL.
    pub url: WebhookUrl,
    /// A name for people.
    pub name: String,
    /// The organization whose events are sent. `None` for all.
    pub organization: Option<OrganizationId>,
    /// The kinds that are sent. All if empty.
    pub kinds: Vec<EventKind>,
    /// The place in the log from which events are sent.
    pub from: After,
}

impl NewWebhook {
    /// Starts a webhook that gets all events from now on.
    pub fn new(url: WebhookUrl) -> Self {
        Self { url, name: String::new(), organization: None, kinds: Vec::new(), from: After::End }
    }
}

/// A change of a webhook's settings. `None` leaves a setting unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookEdit {
    /// The URL.
    pub url: Option<WebhookUrl>,
    /// The name.
    pub name: Option<String>,
    /// The kinds that are sent.
    pub kinds: Option<Vec<EventKind>>,
}

/// An event that an endpoint did not accept at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookFailure {
    /// The event.
    pub event_id: EventId,
    /// Its kind.
    pub kind: EventKind,
    /// Its organization.
    pub organization: Option<OrganizationId>,
    /// Its file.
    pub file_id: Option<FileId>,
    /// The state.
    pub state: FailureState,
    /// The number of attempts that count.
    pub attempts: u32,
    /// The time of the next attempt, or for a failed event the time of the last one.
    pub at: Timestamp,
    /// The status of the last reply.
    pub last_status: Option<u16>,
}

/// The result of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PingReport {
    /// True if the endpoint answered with a status of success.
    pub delivered: bool,
    /// The status of the reply.
    pub status: Option<u16>,
    /// The reason why there was no reply.
    pub fault: Option<DeliveryFault>,
    /// The time that the endpoint took.
    pub took: std::time::Duration,
}

impl PingReport {
    /// Describes an answer.
    pub(crate) fn of(answer: Answer, took: std::time::Duration) -> Self {
        Self {
            delivered: answer.verdict() == Verdict::Delivered,
            status: answer.status(),
            fault: answer.fault(),
            took,
        }
    }
}

/// The number of attempts since the store was opened by their outcome, and the number of reads of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookCounts {
    /// Accepted events.
    pub delivered: u64,
    /// Events that the endpoint refused.
    pub refused: u64,
    /// Attempts for which the endpoint could take no event.
    pub unreachable: u64,
    /// Reads of the log for all webhooks together.
    pub shared_reads: u64,
    /// Reads of the log for single webhooks, which were behind.
    pub lane_reads: u64,
}

/// The events that the lanes of this process still have to deliver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookBacklog {
    /// Events that were read and wait for their first attempt. A lane reads 256 events ahead at most.
    pub first: u64,
    /// Events that wait for another attempt, or for an earlier event of their file.
    pub again: u64,
    /// Time of the oldest event that waits for its first attempt.
    pub oldest_at: Option<Timestamp>,
}

impl WebhookBacklog {
    /// Adds the events of another lane.
    pub(crate) fn add(&mut self, other: &Self) {
        self.first += other.first;
        self.again += other.again;
        self.oldest_at = self.oldest_at.into_iter().chain(other.oldest_at).min();
    }
}

/// Events to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redeliver {
    /// One event.
    Event(EventId),
    /// All events behind the first place, up to and including the event.
    Range(After, EventId),
    /// All failed events: the server has made all attempts.
    Failed,
}

/// The outcome of a request to send events again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redelivered {
    /// The number of events that are sent again.
    pub queued: u64,
    /// The place from which to go on, if the range is too long for one request.
    pub next: Option<EventId>,
}

impl Redelivered {
    /// Tells what a request did.
    pub(crate) fn new(queued: u64, next: Option<EventId>) -> Self {
        Self { queued, next }
    }
}

/// One page of failures.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailurePage {
    /// The failures, oldest first.
    pub failures: Vec<WebhookFailure>,
    /// The place from which to read on. `None` at the end.
    pub next: Option<i64>,
}
