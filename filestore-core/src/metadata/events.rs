//! The rows of the log of events, as every engine reads and writes them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::inspection::CheckRun;
use super::stored::Source;
use crate::domain::event::{EventDetails, EventKind, NewEvent};
use crate::domain::id::{FileId, KeyId, OrganizationId, SubSystem, WebhookId};
use crate::domain::provider::binding::Binding;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::DisabledReason;

/// The columns of an event, in the order in which an engine reads them.
macro_rules! event_columns {
    () => {
        "position, at, kind, organization_id, sub_system, file_id, version, details"
    };
}
pub(super) use event_columns;

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// The number of the event in its log.
    pub position: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The event. `None` for an event that an erasure has blanked, that a newer program wrote, or whose row is
    /// damaged.
    pub body: Option<EventBody>,
}

/// All of an event but its place and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventBody {
    /// Type of the change.
    pub kind: EventKind,
    /// The organization.
    pub organization_id: Option<OrganizationId>,
    /// The file's sub-system.
    pub sub_system: Option<SubSystem>,
    /// The file.
    pub file_id: Option<FileId>,
    /// The file's content version.
    pub version: Option<u64>,
    /// Facts beside the ids.
    pub details: EventDetails,
}

/// The part of the log that a reader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRange {
    /// The event at the edge of the range, which is not part of it. `None` for the end of the log. 0 for its start:
    /// forward, that is the newest event `log.gap`, or else the oldest event.
    pub from: Option<u64>,
    /// The order of the events.
    pub order: LogOrder,
    /// The organizations. The newest event `log.gap` is in the range of all of them. `None` for all events, those of
    /// the store included.
    pub organizations: Option<Vec<OrganizationId>>,
    /// The maximum number of rows.
    pub limit: usize,
}

impl LogRange {
    /// Returns true if an event at `position` is in the range behind `edge`.
    pub(super) fn reaches(&self, edge: i64, position: i64) -> bool {
        match self.order {
            LogOrder::Forward => position > edge,
            LogOrder::Backward => position < edge,
        }
    }
}

/// The order in which a reader gets events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOrder {
    /// Oldest first.
    Forward,
    /// Newest first.
    Backward,
}

/// A part of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPart {
    /// True if the log is switched on.
    pub is_on: bool,
    /// The key of the ids. `None` until a store opens the log.
    pub key: Option<[u8; 32]>,
    /// The time of the event at the edge of the range, if the log still has the event.
    pub edge_at: Option<Timestamp>,
    /// Position and time of the oldest event that is kept.
    pub oldest: Option<(u64, Timestamp)>,
    /// Position and time of the newest event that readers may see.
    pub newest: Option<(u64, Timestamp)>,
    /// Every event up to this position is visible, or never will be. Give it to
    /// [`await_events`](super::EventLog::await_events).
    pub settled: u64,
    /// The number of later positions, and the time for which an open write has held them back. 0 if there is no such
    /// write.
    pub held_back: (u64, Duration),
    /// The rows, at most as many as asked for. Fewer mean the end of the log.
    pub rows: Vec<LoggedEvent>,
}

impl LogPart {
    /// Puts the rows of several organizations into one order, and cuts them at the limit.
    pub(super) fn merge(&mut self, range: &LogRange) {
        match range.order {
            LogOrder::Forward => self.rows.sort_by_key(|row| row.position),
            LogOrder::Backward => self.rows.sort_by_key(|row| std::cmp::Reverse(row.position)),
        }
        self.rows.truncate(range.limit);
    }
}

/// The wish of a program that opens a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSwitch {
    /// Events are written.
    On,
    /// No events are written.
    Off,
    /// As the last owner wished. A new log is switched on.
    Unchanged,
}

impl LogSwitch {
    /// Returns the state of the switch after this wish.
    pub(super) fn applied_to(self, is_on: bool, off_since: Option<i64>) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Unchanged => is_on || off_since.is_none(),
        }
    }
}

/// The switch, the time since which the log is off, and the key.
pub(super) type LogRow = (bool, Option<i64>, Option<[u8; 32]>);

/// The change of a log by a wish.
#[derive(Debug, Clone, Copy)]
pub(super) struct Switched {
    pub(super) is_on: bool,
    pub(super) off_since: Option<i64>,
    pub(super) key: [u8; 32],
    /// The time since which there was no event, if a gap ends.
    pub(super) gap: Option<Timestamp>,
}

impl Switched {
    /// Applies a wish. A log that was off gets another key when it is switched on: readers that know earlier events
    /// must learn that they missed some.
    pub(super) fn of(log: LogRow, switch: LogSwitch, fresh_key: [u8; 32], now: Timestamp) -> Self {
        let (was_on, off_since, key) = log;
        let is_on = switch.applied_to(was_on, off_since);
        let gap = off_since.filter(|_| is_on && !was_on).map(Timestamp::from_millis);
        let since = if was_on { now.as_millis() } else { off_since.unwrap_or(now.as_millis()) };
        Self {
            is_on,
            off_since: (!is_on).then_some(since),
            key: key.filter(|_| gap.is_none()).unwrap_or(fresh_key),
            gap,
        }
    }

    /// Returns the event of the gap, if there is one.
    pub(super) fn gap_event(&self, now: Timestamp) -> Option<NewEvent> {
        let off_since = Some(self.gap?);
        let details = EventDetails { off_since, ..EventDetails::default() };
        Some(NewEvent::new(EventKind::LogGap, now, details))
    }
}

/// The bounds of the log. Older events are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// Events from before this time are forgotten.
    pub before: Timestamp,
    /// The maximum number of events.
    pub most: u64,
}

impl LogBounds {
    /// Returns the first and the last position to forget, if any, of the oldest events of a log: position and time
    /// of each, in their order. An event that stays protects all events behind it, so that what is kept has no holes.
    ///
    /// The newest event stays, and so does the last event outside the bounds: a reader that has read all but the
    /// events within the bounds goes on behind it.
    pub(super) fn to_forget(self, oldest: &[(u64, i64)], newest: u64) -> Option<(u64, u64)> {
        let before = self.before.as_millis();
        let is_over = |position: u64| newest - position >= self.most;
        let outside = oldest
            .iter()
            .take_while(|&&(position, at)| position < newest && (at < before || is_over(position)));
        let last = outside.count().checked_sub(2)?;
        Some((oldest.first()?.0, oldest.get(last)?.0))
    }
}

/// Returns the event of a new or changed binding.
pub(super) fn of_binding(kind: EventKind, binding: &Binding, now: Timestamp) -> NewEvent {
    let details = EventDetails {
        to: Some(binding.provider.clone()),
        ok: (kind == EventKind::BindingChanged).then_some(binding.is_active),
        ..EventDetails::default()
    };
    NewEvent::new(kind, now, details).of(binding.organization.into())
}

/// Returns the event of a new or changed key.
pub(super) fn of_key(kind: EventKind, key_id: KeyId, now: Timestamp) -> NewEvent {
    NewEvent::new(kind, now, EventDetails { key_id: Some(key_id), ..EventDetails::default() })
}

/// Returns the event of a webhook that was disabled for a reason, or enabled.
pub(super) fn of_webhook(
    webhook_id: WebhookId,
    disabled: Option<DisabledReason>,
    now: Timestamp,
) -> NewEvent {
    let kind = match disabled {
        Some(_) => EventKind::WebhookDisabled,
        None => EventKind::WebhookEnabled,
    };
    let details = EventDetails {
        webhook_id: Some(webhook_id),
        reason: disabled.map(|reason| reason.as_str().to_owned()),
        ..EventDetails::default()
    };
    NewEvent::new(kind, now, details)
}

/// Returns the event of a check that has ended.
pub(super) fn of_check(run: &CheckRun, now: Timestamp) -> NewEvent {
    let details = EventDetails {
        files: Some(run.files),
        ok: Some(run.found == 0),
        reason: Some(run.name.as_str().to_owned()),
        ..EventDetails::default()
    };
    NewEvent::new(EventKind::FsckEnded, now, details)
}

/// Returns the stored details of the event of a finding. `None` if the finding is not about the bytes of a file.
pub(super) fn of_finding(finding: &Finding) -> Option<(FileId, String)> {
    let is_about_bytes = matches!(
        finding.kind,
        FindingKind::MissingBytes
            | FindingKind::WrongSize
            | FindingKind::WrongDigest
            | FindingKind::UnreadableBytes
    );
    let details = EventDetails {
        reason: Some(finding.kind.as_str().to_owned()),
        ok: Some(matches!(finding.outcome, FindingOutcome::Repaired(_))),
        ..EventDetails::default()
    };
    Some((finding.file_id.filter(|_| is_about_bytes)?, details_text(&details)?))
}

/// The stored text of details. `None` if there are none.
pub(super) fn details_text(details: &EventDetails) -> Option<String> {
    let EventDetails {
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
    let mut all = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    put("status", status.map(|status| status.as_str().into()));
    put("changed", (!changed.is_empty()).then(|| json!(changed)));
    put("by", by.as_deref().map(Into::into));
    put("from", from.as_ref().map(|code| code.as_str().into()));
    put("to", to.as_ref().map(|code| code.as_str().into()));
    put("attempts", attempts.map(Into::into));
    put("files", files.map(Into::into));
    put("bytes", bytes.map(Into::into));
    put("key_id", key_id.map(|id| id.to_string().into()));
    put("webhook_id", webhook_id.map(|id| id.to_string().into()));
    put("reason", reason.as_deref().map(Into::into));
    put("ok", ok.map(Into::into));
    put("off_since", off_since.map(|at| at.as_millis().into()));
    (!all.is_empty()).then(|| Value::Object(all).to_string())
}

/// Reads the stored text of details.
pub(super) fn details(text: Option<&str>) -> Result<EventDetails, Source> {
    let Some(text) = text else { return Ok(EventDetails::default()) };
    let all: Map<String, Value> = serde_json::from_str(text)?;
    let text = |name: &str| all.get(name).and_then(Value::as_str);
    let owned = |name: &str| text(name).map(str::to_owned);
    let number = |name: &str| all.get(name).and_then(Value::as_u64);
    let changed = all.get("changed").and_then(Value::as_array);
    let changed = changed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);

    Ok(EventDetails {
        status: text("status").map(str::parse).transpose()?,
        changed: changed.collect(),
        by: owned("by"),
        from: text("from").map(str::parse).transpose()?,
        to: text("to").map(str::parse).transpose()?,
        attempts: number("attempts"),
        files: number("files"),
        bytes: number("bytes"),
        key_id: text("key_id").map(str::parse).transpose()?,
        webhook_id: text("webhook_id").map(str::parse).transpose()?,
        reason: owned("reason"),
        ok: all.get("ok").and_then(Value::as_bool),
        off_since: all.get("off_since").and_then(Value::as_i64).map(Timestamp::from_millis),
    })
}

/// The stored values of an event, without position and time.
pub(super) struct BodyRow<'r> {
    pub(super) kind: Option<&'r str>,
    pub(super) organization_id: Option<&'r str>,
    pub(super) sub_system: Option<&'r str>,
    pub(super) file_id: Option<&'r str>,
    pub(super) version: Option<i64>,
    pub(super) details: Option<&'r str>,
}

impl BodyRow<'_> {
    /// Reads the event. `None` if it is blank, or of a kind that this program does not know.
    pub(super) fn body(&self) -> Result<Option<EventBody>, Source> {
        let Some(kind) = self.kind.and_then(|kind| kind.parse().ok()) else { return Ok(None) };
        Ok(Some(EventBody {
            kind,
            organization_id: self.organization_id.map(str::parse).transpose()?,
            sub_system: self.sub_system.map(str::parse).transpose()?,
            file_id: self.file_id.map(str::parse).transpose()?,
            version: self.version.map(u64::try_from).transpose()?,
            details: details(self.details)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_survive_their_text() {
        let all = EventDetails {
            status: Some("READY".parse().unwrap()),
            changed: vec!["name".into(), "metadata".into()],
            by: Some("key".into()),
            from: Some("LOCAL".parse().unwrap()),
            to: Some("s3-eu".parse().unwrap()),
            attempts: Some(12),
            files: Some(1),
            bytes: Some(u64::MAX),
            key_id: Some("01M80BSWR5FYA2ZH99HBXNYRHQ".parse().unwrap()),
            webhook_id: Some("01M80BSYQD968W759B8Z4A5VK6".parse().unwrap()),
            reason: Some("missing".into()),
            ok: Some(false),
            off_since: Some(Timestamp::from_millis(7)),
        };
        assert_eq!(details(details_text(&all).as_deref()).unwrap(), all);
        assert_eq!(details_text(&EventDetails::default()), None);
        assert_eq!(details(None).unwrap(), EventDetails::default());
        assert!(details(Some("{")).is_err());
        assert!(details(Some(r#"{"status":"GONE"}"#)).is_err());
    }

    #[test]
    fn what_is_forgotten_is_the_beginning_and_never_the_newest() {
        let log = [(1, 10), (2, 12), (3, 20), (4, 15), (5, 40)];
        let bounds = |before, most| LogBounds { before: Timestamp::from_millis(before), most };

        assert_eq!(bounds(0, 10).to_forget(&log, 5), None);
        assert_eq!(bounds(13, 10).to_forget(&log, 5), Some((1, 1)));
        assert_eq!(bounds(16, 10).to_forget(&log, 5), Some((1, 1)), "3 protects 4");
        assert_eq!(bounds(21, 10).to_forget(&log, 5), Some((1, 3)));
        assert_eq!(bounds(0, 3).to_forget(&log, 5), Some((1, 1)));
        assert_eq!(bounds(99, 10).to_forget(&log, 5), Some((1, 3)));
        assert_eq!(bounds(99, 0).to_forget(&log, 5), Some((1, 3)));
        assert_eq!(bounds(99, 0).to_forget(&log, 9), Some((1, 4)));
        assert_eq!(bounds(99, 0).to_forget(&[], 9), None);
    }

    #[test]
    fn the_place_of_a_reader_that_missed_nothing_stays() {
        let bounds = LogBounds { before: Timestamp::from_millis(50), most: 1 };
        assert_eq!(bounds.to_forget(&[(1, 10)], 1), None);
        assert_eq!(bounds.to_forget(&[(1, 10), (2, 60)], 2), None, "readers go on behind 1");
        assert_eq!(bounds.to_forget(&[(1, 10), (2, 20), (3, 60)], 3), Some((1, 1)));
    }
}
