//! The events that a lane has read and not finished, in the order of the log.
//!
//! # Purpose
//! The window decides which event can be sent next. An event waits while an earlier event of its file is under way.
//! If an event of a file has failed, later ones are held: they become rows, so that the window and the lane's place
//! move on.
//!
//! Pure: the lane sends and saves.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::feed::Entry;
use crate::domain::event::EventId;
use crate::domain::id::FileId;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::FailureState;
use crate::metadata::FailureRow;

/// The maximum number of events in a window.
pub(super) const MOST_EVENTS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Sending,
    Done,
}

#[derive(Debug)]
struct Slot {
    entry: Arc<Entry>,
    state: State,
}

impl Slot {
    fn id(&self) -> EventId {
        self.entry.event.id
    }

    fn file(&self) -> Option<FileId> {
        self.entry.event.file_id
    }
}

/// An event that can be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) id: EventId,
    pub(super) body: Bytes,
}

/// The events that a lane has read and not finished.
#[derive(Debug, Default)]
pub(super) struct Window {
    slots: VecDeque<Slot>,
    /// The last event before which all are done. `None` for the start of the log.
    place: Option<EventId>,
    /// The files with events that failed and are not given up.
    failing: HashSet<FileId>,
    /// Events behind the place that an earlier owner of the lane finished.
    ahead: HashSet<EventId>,
}

impl Window {
    /// Begins at a place, with the events behind it that are done.
    pub(super) fn new(
        place: Option<EventId>,
        ahead: impl IntoIterator<Item = EventId>,
        failing: impl IntoIterator<Item = FileId>,
    ) -> Self {
        Self {
            slots: VecDeque::new(),
            place,
            failing: failing.into_iter().collect(),
            ahead: ahead.into_iter().collect(),
        }
    }

    /// Returns the number of events in the window.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if no event waits or is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.state == State::Done)
    }

    /// Returns the number of events that are not done, and the time of the oldest.
    pub(super) fn waiting(&self) -> (u64, Option<Timestamp>) {
        let mut waiting = self.slots.iter().filter(|slot| slot.state != State::Done);
        let oldest = waiting.next();
        (oldest.map_or(0, |_| 1 + waiting.count() as u64), oldest.map(|slot| slot.entry.event.at))
    }

    /// Adds an event that was read. Returns the row of an event that is held at once.
    pub(super) fn push(&mut self, entry: Arc<Entry>) -> Option<FailureRow> {
        let event = &entry.event;
        let is_done = self.ahead.remove(&event.id);
        let is_held = event.file_id.is_some_and(|file| self.failing.contains(&file));
        let state = if is_done || is_held { State::Done } else { State::Waiting };
        self.slots.push_back(Slot { entry, state });
        let slot = self.slots.back().filter(|_| is_held && !is_done)?;
        Some(row(slot, FailureState::Held))
    }

    /// Moves the place past events that the filter left out, if the window is empty. Returns true if it moved.
    pub(super) fn pass(&mut self, place: Option<EventId>) -> bool {
        let moves = self.slots.is_empty() && self.place != place;
        if moves {
            self.place = place;
        }
        moves
    }

    /// Takes the first event that can be sent now.
    pub(super) fn next(&mut self) -> Option<Next> {
        let mut busy = HashSet::new();
        for slot in &mut self.slots {
            let is_free = slot.file().is_none_or(|file| !busy.contains(&file));
            if slot.state == State::Waiting && is_free {
                slot.state = State::Sending;
                return Some(Next { id: slot.id(), body: slot.entry.body.clone().into() });
            }
            if slot.state != State::Done {
                busy.extend(slot.file());
            }
        }
        None
    }

    /// Notes that an event was accepted.
    pub(super) fn finish(&mut self, id: EventId) {
        self.set(id, State::Done);
    }

    /// Lets an event wait again, because the endpoint could not take it.
    pub(super) fn put_back(&mut self, id: EventId) {
        self.set(id, State::Waiting);
    }

    /// Turns an event that was refused, and the later events of its file, into rows.
    pub(super) fn fail(
        &mut self,
        id: EventId,
        next_at: Timestamp,
        status: Option<u16>,
    ) -> Vec<FailureRow> {
        let Some(at) = self.slots.iter().position(|slot| slot.id() == id) else {
            return Vec::new();
        };
        let file = self.slots[at].file();
        let first = FailureRow {
            attempts: 1,
            at: next_at,
            last_status: status,
            ..row(&self.slots[at], FailureState::Waiting)
        };
        self.slots[at].state = State::Done;

        let mut rows = vec![first];
        if let Some(file) = file {
            self.failing.insert(file);
            let later = self.slots.iter_mut().skip(at + 1);
            for slot in later.filter(|slot| slot.file() == Some(file)) {
                if slot.state == State::Waiting {
                    slot.state = State::Done;
                    rows.push(row(slot, FailureState::Held));
                }
            }
        }
        rows
    }

    /// Notes that no event of a file waits for another attempt any more.
    pub(super) fn free(&mut self, file: FileId) {
        self.failing.remove(&file);
    }

    /// Moves the place past the first events that are done. Returns true if it moved.
    pub(super) fn settle(&mut self) -> bool {
        let mut moved = false;
        while self.slots.front().is_some_and(|slot| slot.state == State::Done) {
            self.place = self.slots.pop_front().map(|slot| slot.id());
            moved = true;
        }
        moved
    }

    /// Returns the last event before which all are done. `None` for the start of the log.
    pub(super) fn place(&self) -> Option<EventId> {
        self.place
    }

    /// Lists the events behind the place that are done.
    pub(super) fn ahead(&self) -> Vec<EventId> {
        let done = self.slots.iter().filter(|slot| slot.state == State::Done);
        done.map(Slot::id).chain(self.ahead.iter().copied()).collect()
    }

    fn set(&mut self, id: EventId, state: State) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id() == id) {
            slot.state = state;
        }
    }
}

fn row(slot: &Slot, state: FailureState) -> FailureRow {
    let Entry { event, body } = &*slot.entry;
    FailureRow {
        row: 0,
        event: event.id,
        kind: event.kind,
        organization: event.organization_id.clone(),
        file: event.file_id,
        body: body.clone(),
        state,
        is_repeat: false,
        attempts: 0,
        at: event.at,
        last_status: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::event::{Event, EventDetails, EventKind};

    fn id(number: u8) -> EventId {
        EventId::from_bytes([number; 16])
    }

    fn file(number: u8) -> FileId {
        FileId::first_at(Timestamp::from_millis(i64::from(number)))
    }

    fn entry_at(number: u8, of: Option<u8>, at: Timestamp) -> Arc<Entry> {
        let event = Event {
            id: id(number),
            kind: EventKind::FileReady,
            at,
            organization_id: Some("42".parse().unwrap()),
            sub_system: None,
            file_id: of.map(file),
            version: None,
            details: EventDetails::default(),
        };
        Arc::new(Entry { event, body: format!("body {number}") })
    }

    fn entry(number: u8, of: Option<u8>) -> Arc<Entry> {
        entry_at(number, of, Timestamp::from_millis(7))
    }

    fn window(files: &[Option<u8>]) -> Window {
        let mut window = Window::new(None, [], []);
        for (number, of) in (1..).zip(files) {
            assert_eq!(window.push(entry(number, *of)), None);
        }
        window
    }

    fn sent(window: &mut Window) -> Vec<EventId> {
        std::iter::from_fn(|| window.next()).map(|next| next.id).collect()
    }

    #[test]
    fn events_of_one_file_go_one_after_the_other_and_others_pass() {
        let mut window = window(&[Some(1), Some(1), Some(2), None, None]);
        assert_eq!(sent(&mut window), [id(1), id(3), id(4), id(5)]);
        window.finish(id(1));
        assert_eq!(sent(&mut window), [id(2)]);
    }

    #[test]
    fn the_place_moves_past_what_is_done_without_a_gap() {
        let mut window = window(&[Some(1), Some(2), Some(3)]);
        assert_eq!(sent(&mut window).len(), 3);
        window.finish(id(2));
        assert!(!window.settle());
        assert_eq!((window.place(), window.ahead()), (None, vec![id(2)]));
        window.finish(id(1));
        assert!(window.settle());
        assert_eq!((window.place(), window.ahead()), (Some(id(2)), vec![]));
        window.put_back(id(3));
        assert!(!window.settle());
        assert_eq!(sent(&mut window), [id(3)], "it is sent again");
    }

    #[test]
    fn what_waits_is_counted_with_its_oldest_event() {
        let mut window = Window::new(None, [], []);
        assert_eq!(window.waiting(), (0, None));
        for number in 1..=3 {
            let at = Timestamp::from_millis(i64::from(number));
            window.push(entry_at(number, Some(number), at));
        }
        sent(&mut window);
        assert_eq!(window.waiting(), (3, Some(Timestamp::from_millis(1))));
        window.finish(id(1));
        window.finish(id(3));
        assert_eq!(window.waiting(), (1, Some(Timestamp::from_millis(2))));
    }

    #[test]
    fn later_events_of_a_file_that_fails_are_held() {
        let mut window = window(&[Some(1), Some(2), Some(1)]);
        assert_eq!(sent(&mut window), [id(1), id(2)]);
        let rows = window.fail(id(1), Timestamp::from_millis(9), Some(500));
        let states: Vec<_> = rows.iter().map(|row| (row.event, row.state, row.attempts)).collect();
        assert_eq!(states, [(id(1), FailureState::Waiting, 1), (id(3), FailureState::Held, 0)]);
        assert_eq!(rows[0].last_status, Some(500));

        let held = window.push(entry(4, Some(1))).unwrap();
        assert_eq!((held.event, held.state), (id(4), FailureState::Held));
        window.free(file(1));
        assert_eq!(window.push(entry(5, Some(1))), None);
        assert_eq!(sent(&mut window), [id(5)]);
    }

    #[test]
    fn what_an_earlier_owner_finished_is_not_sent_again() {
        let mut window = Window::new(Some(id(1)), [id(3)], []);
        for number in 2..=4 {
            window.push(entry(number, Some(number)));
        }
        assert_eq!(sent(&mut window), [id(2), id(4)]);
        window.finish(id(2));
        assert!(window.settle());
        assert_eq!(window.place(), Some(id(3)));
    }

    proptest! {
        /// However answers come, no event is sent before an earlier one of its file is finished.
        #[test]
        fn the_order_of_a_file_is_kept(
            files in proptest::collection::vec(0_u8..4, 1..40),
            choices in proptest::collection::vec((any::<bool>(), any::<u8>()), 1..400),
        ) {
            let files: Vec<_> = files.into_iter().map(Some).collect();
            let mut window = window(&files);
            let (mut under_way, mut finished) = (Vec::<EventId>::new(), Vec::<EventId>::new());
            let number = |id: EventId| usize::from(id.as_bytes()[0]);

            for (sends, pick) in choices {
                if sends {
                    let Some(next) = window.next() else { continue };
                    let file = files[number(next.id) - 1];
                    let earlier = (1..number(next.id)).filter(|at| files[at - 1] == file);
                    for at in earlier {
                        prop_assert!(finished.iter().any(|id| number(*id) == at));
                    }
                    under_way.push(next.id);
                } else if !under_way.is_empty() {
                    let id = under_way.swap_remove(usize::from(pick) % under_way.len());
                    if pick % 3 == 0 {
                        window.put_back(id);
                    } else {
                        window.finish(id);
                        finished.push(id);
                    }
                    window.settle();
                    let place = window.place().map_or(0, number);
                    for at in 1..=place {
                        prop_assert!(finished.iter().any(|id| number(*id) == at));
                    }
                }
            }
        }
    }
}
