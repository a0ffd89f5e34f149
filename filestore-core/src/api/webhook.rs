//! Webhooks in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The body for POST `/webhooks`.
///
/// ```
/// use filestore_core::api::CreateWebhook;
///
/// let search = CreateWebhook::new("https://search.example.org/hook").types(["file.ready", "file.purged"]);
/// assert_eq!(search.types.unwrap().len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CreateWebhook {
    /// The URL that gets the events, at most 2048 bytes. By default, only `https://` and public addresses are
    /// allowed.
    pub url: String,
    /// Display name, at most 200 bytes (default empty).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The organization whose events are sent. Without this field, events of all organizations and of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Types of events, for example `file.ready` or `file.*`. Without this field, all types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// The place in the log from which events are sent: `end` (default), `start`, or the id of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl CreateWebhook {
    /// Describes a webhook that gets all events from now on.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Sets the display name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Keeps only events of this organization.
    #[must_use]
    pub fn organization_id(mut self, organization: impl Into<String>) -> Self {
        self.organization_id = Some(organization.into());
        self
    }

    /// Keeps only events of these types.
    #[must_use]
    pub fn types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Sends the events after this one, or all events from `start`.
    #[must_use]
    pub fn starting_at(mut self, place: impl Into<String>) -> Self {
        self.from = Some(place.into());
        self
    }
}

/// The body for PATCH `/webhooks/{webhook_id}`. A missing field leaves a setting unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EditWebhook {
    /// The URL that gets the events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Types of events. An empty list means all types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
}

/// The body for POST `/webhooks/{webhook_id}/rotate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RotateWebhook {
    /// Seconds for which the former secret signs too, 0 to 2592000 (default 86400).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_s: Option<u64>,
}

/// The body for POST `/webhooks/{webhook_id}/enable`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EnableWebhook {
    /// The place in the log from which events are sent: `end`, `start`, or the id of an event. Without this field,
    /// where the webhook stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The body for POST `/webhooks/{webhook_id}/redeliver`: one event, a range, or all that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RedeliverWebhook {
    /// One event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The place before the range: `start`, or the id of an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The last event of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// If true, all failed events: the server has made all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
}

impl RedeliverWebhook {
    /// Names one event.
    pub fn event(id: impl Into<String>) -> Self {
        Self { event_id: Some(id.into()), ..Self::default() }
    }

    /// Names a range: behind the first place, up to and including the event.
    pub fn range(after: impl Into<String>, until: impl Into<String>) -> Self {
        Self { after: Some(after.into()), until: Some(until.into()), ..Self::default() }
    }

    /// Names all failed events: the server has made all attempts.
    pub fn failed() -> Self {
        Self { failed: Some(true), ..Self::default() }
    }
}

/// A webhook, without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct WebhookReply {
    /// Webhook id.
    pub id: String,
    /// The URL that gets the events.
    pub url: String,
    /// Display name.
    pub name: String,
    /// The organization whose events are sent. Null for all.
    pub organization_id: Option<String>,
    /// Types of events. Empty for all.
    pub types: Vec<String>,
    /// Creation time, in RFC 3339 (UTC, milliseconds).
    pub created_at: String,
    /// Time of the last change of the settings.
    pub changed_at: String,
    /// Time until which the former secret signs too. Null if it does not.
    pub former_secret_until: Option<String>,
    /// `ok`, `failing` or `disabled`.
    pub state: String,
    /// Why the webhook is disabled: `requested`, `gone`, `no_success` or `copied`.
    pub disabled_reason: Option<String>,
    /// Since when the webhook is disabled.
    pub disabled_at: Option<String>,
    /// Since when the endpoint has accepted no event, although some wait.
    pub failing_since: Option<String>,
    /// Time of the next trial, if the endpoint cannot take events now.
    pub paused_until: Option<String>,
    /// Status of the last reply.
    pub last_status: Option<u16>,
    /// Why there was no reply: `dns`, `address_refused`, `url_refused`, `connect`, `timeout` or `broken`.
    pub last_error: Option<String>,
    /// Time of the last attempt.
    pub last_attempt_at: Option<String>,
    /// Time of the last accepted event.
    pub last_success_at: Option<String>,
    /// Number of times that the endpoint might have missed events, because the log no longer had them, or has a gap.
    pub gaps: u64,
    /// Time of the oldest undelivered event. Null if all events were delivered, and in lists.
    pub oldest_waiting_at: Option<String>,
}

/// A webhook with its secret. No other reply shows the secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct NewWebhookReply {
    /// The secret for the receiver, `whsec_` with base64.
    pub secret: String,
    /// All other fields of the webhook.
    #[serde(flatten)]
    pub about: WebhookReply,
}

/// Hides the secret.
impl fmt::Debug for NewWebhookReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewWebhookReply").field("about", &self.about).finish_non_exhaustive()
    }
}

impl NewWebhookReply {
    /// Creates the reply with the secret.
    pub fn new(secret: impl Into<String>, about: WebhookReply) -> Self {
        Self { secret: secret.into(), about }
    }
}

/// The result of a ping.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WebhookPingReply {
    /// True if the endpoint answered with 2xx.
    pub delivered: bool,
    /// Status of the reply.
    pub status: Option<u16>,
    /// Why there was no reply: `dns`, `address_refused`, `url_refused`, `connect`, `timeout` or `broken`.
    pub error: Option<String>,
    /// Time that the endpoint took, in milliseconds.
    pub took_ms: u64,
}

/// An event that an endpoint did not accept at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct WebhookFailure {
    /// Event id.
    pub event_id: String,
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// Organization of the event.
    pub organization_id: Option<String>,
    /// File of the event.
    pub file_id: Option<String>,
    /// `waiting` for its next attempt, `held` behind an earlier event of the same file, or `failed`.
    pub state: String,
    /// Number of attempts that count.
    pub attempts: u32,
    /// Time of the next attempt. For `failed`, of the last one.
    pub at: String,
    /// Status of the last reply.
    pub last_status: Option<u16>,
}

/// The reply to GET `/webhooks/{webhook_id}/failures`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WebhookFailures {
    /// The failures, oldest first.
    pub failures: Vec<WebhookFailure>,
    /// The parameter `after` of the next page. Null at the end.
    pub next: Option<String>,
}

/// The query of GET `/webhooks/{webhook_id}/failures`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct WebhookFailuresQuery {
    /// Only this state: `waiting`, `held` or `failed`.
    pub state: Option<String>,
    /// `next` of the page before.
    pub after: Option<String>,
    /// Failures in a page, 1 to 1000 (default 100).
    pub limit: Option<u32>,
}

/// The reply to POST `/webhooks/{webhook_id}/redeliver`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RedeliverReply {
    /// Number of events that are sent again.
    pub queued: u64,
    /// If the range is too long for one request: the `after` of the next request. Otherwise null.
    pub next: Option<String>,
}

/// The reply to DELETE `/webhooks/{webhook_id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeletedWebhookReply {
    /// Id of the deleted webhook.
    pub id: String,
}

impl DeletedWebhookReply {
    /// Names the webhook.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_webhook_is_not_printed_with_its_secret() {
        let about = WebhookReply { name: "shop".to_owned(), ..WebhookReply::default() };
        let shown = format!("{:?}", NewWebhookReply::new("whsec_secret", about));
        assert!(shown.contains("shop") && !shown.contains("whsec_secret"), "{shown}");
    }
}
