//! Events: the query, and a page of the log.

use serde::{Deserialize, Serialize};

use super::vocabulary::{EventOrder, EventType, Status};

/// The query of GET `/events`. By default, a page begins with the oldest event that is kept.
///
/// ```
/// use filestore_core::api::{EventQuery, EventType};
///
/// let query = EventQuery::new().after("end").types([EventType::FileReady, EventType::FileReplaced]);
/// assert_eq!(query.types.as_deref(), Some("file.ready,file.replaced"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct EventQuery {
    /// Only events after this one: an id, `start` (default), or `end` for events that are not there yet.
    pub after: Option<String>,
    /// With `order=desc`: only events before this one, an id or `end` (default).
    pub before: Option<String>,
    /// Oldest first (default), or newest first.
    pub order: Option<EventOrder>,
    /// Only these types, separated by commas. `file.*` stands for all types that begin with `file.`.
    pub types: Option<String>,
    /// Only events of this organization.
    pub organization_id: Option<String>,
    /// Events in a page, 1 to 1000 (default 100).
    pub limit: Option<u32>,
    /// Seconds to wait for the first event if there is none, 0 (default) to 30.
    pub wait: Option<u32>,
}

impl EventQuery {
    /// Creates a query for all events that the caller can see.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins after this event: an id, `start` or `end`.
    #[must_use]
    pub fn after(mut self, place: impl Into<String>) -> Self {
        self.after = Some(place.into());
        self
    }

    /// Goes backwards, newest first, from before this event: an id or `end`.
    #[must_use]
    pub fn before(mut self, place: impl Into<String>) -> Self {
        self.before = Some(place.into());
        self.order = Some(EventOrder::Desc);
        self
    }

    /// Keeps only events of these types. `"file.*"` stands for all types that begin with `file.`.
    #[must_use]
    pub fn types<T: Into<EventType>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        let words: Vec<_> = types.into_iter().map(|word| word.into().to_string()).collect();
        self.types = (!words.is_empty()).then(|| words.join(","));
        self
    }

    /// Keeps only events of one organization.
    #[must_use]
    pub fn organization_id(mut self, id: impl Into<String>) -> Self {
        self.organization_id = Some(id.into());
        self
    }

    /// Sets the number of events in a page, 1 to 1000 (default 100).
    #[must_use]
    pub fn limit(mut self, events: u32) -> Self {
        self.limit = Some(events);
        self
    }

    /// Waits so many seconds for the first event if there is none, 0 to 30.
    #[must_use]
    pub fn wait(mut self, secs: u32) -> Self {
        self.wait = Some(secs);
        self
    }
}

/// One page of the log of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EventPage {
    /// The events, oldest first, or newest first with `order=desc`.
    pub events: Vec<Event>,
    /// The place behind this page: pass this value as `after` (with `order=desc` as `before`). Never null, also
    /// if the page has no events.
    pub next: String,
    /// True if more events follow at once. The page can be empty nevertheless.
    pub more: bool,
}

/// One change. An event has no name, metadata, digest or caller: ask for the file's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Event {
    /// Event id: 22 characters. Pass it as `after` to read on.
    pub id: String,
    /// Type of the change.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Time of the change, in RFC 3339 (UTC, milliseconds).
    pub timestamp: String,
    /// The ids and facts. The type decides which members are there.
    #[serde(default)]
    pub data: EventData,
}

/// The ids and facts of an event. The type decides which members are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct EventData {
    /// Organization id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Sub-system of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_system: Option<String>,
    /// File id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Content version of the file after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Status of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Edited parts of the record: `name`, `type`, `metadata`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The kind of caller that deleted the file, for example `key`. Never the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Code of the provider that stored the file before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Code of the provider that stores the file now, or of the binding's provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Number of failed attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// File count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Byte count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Id of the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Id of the webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// A word for the result or the reason, for example the kind of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if a run ended well, a finding was repaired, or a binding is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Time since which the log was off, in RFC 3339 (UTC, milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_since: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_later_server_is_read_with_what_is_known() {
        let json =
            r#"{"id":"x","type":"file.moon","timestamp":"t","data":{"file_id":"f","moon":1}}"#;
        let event: Event = serde_json::from_str(json).unwrap();
        assert_eq!(event.kind, EventType::Unknown("file.moon".to_owned()));
        assert_eq!(event.data.file_id.as_deref(), Some("f"));
    }

    #[test]
    fn an_event_shows_only_the_members_that_it_has() {
        let data =
            EventData { file_id: Some("f".into()), version: Some(2), ..EventData::default() };
        let (id, timestamp) = ("x".to_owned(), "t".to_owned());
        let event = Event { id, kind: EventType::FileReplaced, timestamp, data };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"id":"x","type":"file.replaced","timestamp":"t","data":{"file_id":"f","version":2}}"#
        );
    }

    #[test]
    fn a_query_names_types_by_their_words() {
        let query = EventQuery::new().types(["file.*", "key.created"]);
        assert_eq!(query.types.as_deref(), Some("file.*,key.created"));
        assert_eq!(EventQuery::new().types(Vec::<EventType>::new()).types, None);
        assert_eq!(EventQuery::new().before("end").order, Some(EventOrder::Desc));
    }
}
