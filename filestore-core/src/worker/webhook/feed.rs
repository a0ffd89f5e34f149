//! The newest events of the log, read once for all lanes of a server.
//!
//! # Purpose
//! If each of a thousand lanes read the log for itself, each event would cost a thousand queries. So one follower reads
//! the log, and encodes each event once. A lane at the end of the log takes its events from here, and waits for one
//! shared signal. A lane that is behind reads the log for itself until it has caught up.
//!
//! # No event is missed
//! The feed keeps a part of the log without gaps. A lane knows the last event that it has looked at ([`Spot`]).
//! If that event is here, the lane takes the events behind it. If not, the lane reads the log for itself, which
//! checks that the log still has the event. So a lane also notices a database that failed over and has given a
//! position to another event.
//!
//! # Erasures
//! An erasure blanks the events of an organization in the log, and then takes all lanes from their owners. A lane takes
//! only events whose read began after the lane was claimed. So a lane that is claimed after an erasure gets no event
//! from before it.
//!
//! # Another log
//! If the log is another one, or is switched off, the follower forgets everything, and begins again. No event of a lane
//! is here then, so each lane reads the log for itself, and learns what happened.
//!
//! # Locking
//! Lanes share the lock of the events. The follower takes it alone to add events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::{After, Event, EventFilter};
use crate::service::webhooks::body_of;

/// The number of events that are kept.
const KEPT: usize = 2048;

/// The number of events that are read at once.
const PAGE: usize = 1000;

/// The shortest time between two reads at the end of the log. Events that are committed in between share the next one.
const BETWEEN_READS: Duration = Duration::from_millis(50);

/// The longest wait for an event, before the follower asks again.
const WAIT: Duration = Duration::from_secs(30);

/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// An event with its body. All lanes share it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) event: Event,
    pub(super) body: String,
}

impl Entry {
    /// Encodes events.
    pub(super) fn of_all(events: Vec<Event>) -> Result<Vec<Arc<Self>>> {
        let entry = |event| Ok(Arc::new(Self { body: body_of(&event)?, event }));
        events.into_iter().map(entry).collect()
    }
}

/// The last event that a lane has looked at, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) position: u64,
    pub(super) after: After,
}

/// Events for a lane.
#[derive(Debug)]
pub(super) struct Taken {
    /// The events that pass the filter of the lane.
    pub(super) entries: Vec<Arc<Entry>>,
    /// The last event that was looked at.
    pub(super) spot: Spot,
    /// True if more events follow at once.
    pub(super) has_more: bool,
}

/// The reason why a lane must read the log for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotHere {
    /// The follower has not come to the event yet.
    NotYet,
    /// The event is not here any more, or never was.
    Behind,
}

/// The newest events. Empty until the follower has found the end of the log.
#[derive(Debug, Default)]
pub(super) struct Feed {
    kept: RwLock<Option<Kept>>,
    /// The number of reads that have begun.
    reads: AtomicU64,
    /// Wakes in the order of the lanes, so that a simulation repeats.
    changes: Notify,
}

/// A part of the log without gaps.
#[derive(Debug)]
struct Kept {
    /// The event before the oldest one here.
    origin: Spot,
    /// The last event that the follower has looked at.
    head: Spot,
    events: VecDeque<Told>,
}

impl Kept {
    /// Finds the first event behind a spot.
    fn first_behind(&self, spot: Spot) -> Result<usize, NotHere> {
        if spot == self.head {
            return Ok(self.events.len());
        }
        if spot == self.origin {
            return Ok(0);
        }
        if spot.position > self.head.position {
            return Err(NotHere::NotYet);
        }
        let at = self.events.binary_search_by_key(&spot.position, |told| told.spot.position);
        let at = at.ok().filter(|at| self.events[*at].spot == spot);
        at.map(|at| at + 1).ok_or(NotHere::Behind)
    }
}

#[derive(Debug)]
struct Told {
    spot: Spot,
    /// The number of the read.
    read: u64,
    entry: Arc<Entry>,
}

impl Feed {
    /// Waits for the next change after this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    /// Returns the number of reads that have begun. A lane takes only events of later reads than when it was claimed.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Returns up to `most` events behind a spot that pass a filter. `claimed` is [`reads`](Self::reads) after the
    /// lane was claimed.
    pub(super) fn take(
        &self,
        spot: Spot,
        claimed: u64,
        filter: &EventFilter,
        most: usize,
    ) -> Result<Taken, NotHere> {
        let kept = self.kept.read();
        let Some(kept) = &*kept else { return Err(NotHere::NotYet) };
        let first = kept.first_behind(spot)?;
        // Later events have later reads.
        if kept.events.get(first).is_some_and(|told| told.read <= claimed) {
            return Err(NotHere::Behind);
        }

        let mut taken = Taken { entries: Vec::new(), spot, has_more: false };
        for told in kept.events.range(first..) {
            if taken.entries.len() == most {
                taken.has_more = true;
                return Ok(taken);
            }
            taken.spot = told.spot;
            if filter.passes(&told.entry.event) {
                taken.entries.push(Arc::clone(&told.entry));
            }
        }
        taken.spot = kept.head;
        Ok(taken)
    }

    /// Follows the log from its end, for ever.
    pub(super) async fn follow(&self, store: &FileStore) {
        loop {
            let Err(error) = self.go_on(store).await;
            tracing::debug!(error = %error.chain(), "the log cannot be followed for webhooks, trying again");
            if is_lost(&error) {
                self.forget();
            }
            sleep(AFTER_FAILURE).await;
        }
    }

    /// Follows the log from where it ended, until a call fails.
    async fn go_on(&self, store: &FileStore) -> Result<Infallible> {
        let (all, log) = (EventFilter::new(), store.events(&Scope::All));
        let webhooks = &store.inner().webhooks;
        loop {
            let head = self.kept.read().as_ref().map(|kept| kept.head);
            let read = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
            webhooks.count_shared_read();
            let again_at = Instant::now() + BETWEEN_READS;
            let Some(head) = head else {
                let end = log.page(&all, After::End, 1).await?;
                self.begin(spot_of(store, end.next));
                continue;
            };
            let page = log.page(&all, head.after, PAGE).await?;
            let (looked_at, has_more) = (page.looked_at, page.has_more);
            let entries = Entry::of_all(page.events)?;
            let entries = entries
                .into_iter()
                .map(|entry| (spot_of(store, After::Event(entry.event.id)), entry));
            self.add(spot_of(store, page.next), read, entries);

            if !has_more {
                // Ends too early now and then, and so does the time: then the follower asks in vain.
                let waiting = store.inner().metadata.await_events(looked_at);
                if let Ok(waited) = timeout(WAIT, waiting).await {
                    waited?;
                }
                sleep_until(again_at).await;
            }
        }
    }

    fn begin(&self, end: Spot) {
        let kept = Kept { origin: end, head: end, events: VecDeque::new() };
        *self.kept.write() = Some(kept);
        self.changes.notify_waiters();
    }

    fn add(&self, head: Spot, read: u64, entries: impl IntoIterator<Item = (Spot, Arc<Entry>)>) {
        let mut kept = self.kept.write();
        let Some(known) = &mut *kept else { return };
        let is_new = known.head != head;
        known.head = head;
        for (spot, entry) in entries {
            known.events.push_back(Told { spot, read, entry });
            if known.events.len() > KEPT
                && let Some(oldest) = known.events.pop_front()
            {
                known.origin = oldest.spot;
            }
        }
        drop(kept);
        if is_new {
            self.changes.notify_waiters();
        }
    }

    fn forget(&self) {
        *self.kept.write() = None;
        self.changes.notify_waiters();
    }
}

/// Returns the spot of a place in the log.
pub(super) fn spot_of(store: &FileStore, after: After) -> Spot {
    let position = match &after {
        After::Event(id) => store.inner().naming().position(id),
        After::Start | After::End => 0,
    };
    Spot { position, after }
}

fn is_lost(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::EventsGone | ErrorKind::EventsOff)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::domain::event::{EventDetails, EventKind, EventNaming};
    use crate::domain::time::clock::Timestamp;

    fn entry(position: u64, at: i64) -> (Spot, Arc<Entry>) {
        let at = Timestamp::from_millis(at);
        let event = Event {
            id: EventNaming::new([7; 32]).id(position, at),
            kind: EventKind::FileReady,
            at,
            organization_id: Some("42".parse().unwrap()),
            sub_system: None,
            file_id: None,
            version: None,
            details: EventDetails::default(),
        };
        let spot = Spot { position, after: After::Event(event.id) };
        (spot, Arc::new(Entry { event, body: position.to_string() }))
    }

    fn spot(position: u64) -> Spot {
        entry(position, 7).0
    }

    /// A feed that began at position 10, with an event at each of the given positions, of one read each.
    fn feed(positions: &[u64]) -> Feed {
        let feed = Feed::default();
        feed.begin(spot(10));
        for &position in positions {
            let read = feed.reads.fetch_add(1, Ordering::SeqCst) + 1;
            feed.add(spot(position), read, [entry(position, 7)]);
        }
        feed
    }

    fn all() -> EventFilter {
        EventFilter::new()
    }

    fn bodies(taken: &Taken) -> Vec<&str> {
        taken.entries.iter().map(|entry| entry.body.as_str()).collect()
    }

    #[test]
    fn a_lane_takes_the_events_behind_its_spot_that_it_wants() {
        let feed = feed(&[11, 12, 14]);
        let taken = feed.take(spot(11), 0, &all(), 9).unwrap();
        assert_eq!((bodies(&taken), taken.has_more), (vec!["12", "14"], false));
        assert_eq!(taken.spot, spot(14));

        let one = feed.take(spot(10), 0, &all(), 1).unwrap();
        assert_eq!((bodies(&one), one.spot, one.has_more), (vec!["11"], spot(11), true));
        let rest = feed.take(one.spot, 0, &all(), 9).unwrap();
        assert_eq!(bodies(&rest), ["12", "14"]);

        let none = EventFilter::new().kinds([EventKind::FilePurged]);
        let taken = feed.take(spot(10), 0, &none, 9).unwrap();
        assert_eq!((bodies(&taken).len(), taken.spot), (0, spot(14)), "the place moves on");
        let end = feed.take(spot(14), 0, &all(), 9).unwrap();
        assert_eq!((end.entries.len(), end.spot), (0, spot(14)));
    }

    #[test]
    fn a_lane_that_is_behind_reads_the_log_itself() {
        assert_eq!(Feed::default().take(spot(0), 0, &all(), 9).unwrap_err(), NotHere::NotYet);
        let feed = feed(&[11]);
        assert_eq!(feed.take(spot(9), 0, &all(), 9).unwrap_err(), NotHere::Behind);
        assert_eq!(feed.take(spot(20), 0, &all(), 9).unwrap_err(), NotHere::NotYet);

        for position in 12..12 + KEPT as u64 {
            feed.add(spot(position), 2, [entry(position, 7)]);
        }
        assert_eq!(feed.take(spot(10), 0, &all(), 9).unwrap_err(), NotHere::Behind);
        assert_eq!(bodies(&feed.take(spot(11), 0, &all(), 1).unwrap()), ["12"]);
    }

    #[test]
    fn a_lane_whose_event_is_another_one_here_reads_the_log_itself() {
        let feed = feed(&[11, 12]);
        // The database has failed over, and gave the positions again.
        for position in 10..=12 {
            let (lost, _) = entry(position, 8);
            assert_eq!(feed.take(lost, 0, &all(), 9).unwrap_err(), NotHere::Behind);
        }
    }

    #[test]
    fn a_lane_gets_no_event_that_was_read_before_it_was_claimed() {
        let feed = feed(&[11, 12]);
        assert_eq!(feed.take(spot(10), 1, &all(), 9).unwrap_err(), NotHere::Behind);
        assert_eq!(bodies(&feed.take(spot(11), 1, &all(), 9).unwrap()), ["12"]);
        let claimed = feed.reads();
        assert_eq!(feed.take(spot(11), claimed, &all(), 9).unwrap_err(), NotHere::Behind);
        assert!(feed.take(spot(12), claimed, &all(), 9).unwrap().entries.is_empty());
    }

    #[test]
    fn a_feed_that_has_lost_its_log_wakes_the_lanes_and_has_nothing_for_them() {
        let feed = feed(&[11]);
        let changed = feed.changed();
        feed.forget();
        assert!(changed.now_or_never().is_some());
        assert_eq!(feed.take(spot(11), 0, &all(), 9).unwrap_err(), NotHere::NotYet);
        feed.begin(spot(13));
        assert_eq!(feed.take(spot(11), 0, &all(), 9).unwrap_err(), NotHere::Behind);
        assert!(feed.take(spot(13), 0, &all(), 9).unwrap().entries.is_empty());
    }

    #[test]
    fn lanes_wake_for_news_only() {
        let feed = feed(&[11]);
        let changed = feed.changed();
        feed.add(spot(11), 2, []);
        assert!(changed.now_or_never().is_none());
        let changed = feed.changed();
        feed.add(spot(12), 3, []);
        assert!(changed.now_or_never().is_some());
    }
}
