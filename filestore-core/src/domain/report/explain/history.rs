//! The history of a file, from the log of events.

use crate::domain::event::{Event, EventKind};
use crate::domain::id::FileId;

/// The events of a file among the newest events of its organization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct History {
    /// False if events are switched off in the store. Then there are no events.
    pub is_on: bool,
    /// True if the history reaches the upload of the file without a gap of the log.
    pub is_whole: bool,
    /// Number of events of the organization that were looked through.
    pub looked_at: u64,
    /// The events of the file, oldest first. [`EventKind::LogGap`] marks a time without events.
    pub events: Vec<Event>,
}

impl History {
    /// Number of events of an organization that are looked through.
    pub const MOST_LOOKED_AT: usize = 2000;

    /// Collects the events of a file from events of its organization, newest first. Ends at the upload of the file.
    /// `None` stands for an event that cannot be read.
    pub fn of(file: FileId, newest_first: impl IntoIterator<Item = Option<Event>>) -> Self {
        let mut history = Self { is_on: true, ..Self::default() };
        let mut has_upload = false;
        for event in newest_first {
            history.looked_at += 1;
            let Some(event) = event else { continue };
            let is_gap = event.kind == EventKind::LogGap;
            if is_gap || event.file_id == Some(file) {
                has_upload = event.kind == EventKind::FileUploaded;
                history.events.push(event);
            }
            if has_upload {
                break;
            }
        }

        let has_gap = history.events.iter().any(|event| event.kind == EventKind::LogGap);
        history.is_whole = has_upload && !has_gap;
        history.events.reverse();
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::{EventDetails, EventNaming};
    use crate::domain::time::clock::Timestamp;

    fn file(number: i64) -> FileId {
        FileId::first_at(Timestamp::from_millis(number))
    }

    fn event(position: u64, kind: EventKind, of: Option<FileId>) -> Event {
        let at = Timestamp::from_millis(i64::try_from(position).unwrap());
        Event {
            id: EventNaming::new([7; 32]).id(position, at),
            kind,
            at,
            organization_id: None,
            sub_system: None,
            file_id: of,
            version: None,
            details: EventDetails::default(),
        }
    }

    fn kinds(history: &History) -> Vec<EventKind> {
        history.events.iter().map(|event| event.kind).collect()
    }

    #[test]
    fn a_history_has_the_events_of_one_file_from_its_upload_on() {
        let (one, other) = (Some(file(1)), Some(file(2)));
        let newest_first = [
            Some(event(9, EventKind::FileDeleted, one)),
            Some(event(8, EventKind::FileDeleted, other)),
            None,
            Some(event(6, EventKind::FileReplaced, one)),
            Some(event(5, EventKind::FileUploaded, one)),
            Some(event(4, EventKind::FileUploaded, other)),
        ];
        let history = History::of(file(1), newest_first);
        let expected = [EventKind::FileUploaded, EventKind::FileReplaced, EventKind::FileDeleted];
        assert_eq!(kinds(&history), expected);
        assert_eq!((history.is_on, history.is_whole, history.looked_at), (true, true, 5));
    }

    #[test]
    fn a_history_without_the_upload_is_not_whole() {
        let history = History::of(file(1), [Some(event(9, EventKind::FileDeleted, Some(file(1))))]);
        assert_eq!((history.is_whole, history.looked_at), (false, 1));
        let history = History::of(file(1), []);
        assert_eq!((history.is_on, history.is_whole, history.looked_at), (true, false, 0));
    }

    #[test]
    fn a_time_without_events_makes_a_history_incomplete_if_it_came_after_the_upload() {
        let upload = event(5, EventKind::FileUploaded, Some(file(1)));
        let gap = event(7, EventKind::LogGap, None);
        let history = History::of(file(1), [gap.clone(), upload.clone()].map(Some));
        assert_eq!(kinds(&history), [EventKind::FileUploaded, EventKind::LogGap]);
        assert!(!history.is_whole);
        assert!(History::of(file(1), [upload, gap].map(Some)).is_whole);
    }
}
