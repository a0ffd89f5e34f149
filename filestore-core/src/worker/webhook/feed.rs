//! The newest events of the log, read once for all lanes of a server.
//!
//! # Purpose
//! If each of a thousand lanes read the log for itself, each event would cost a thousand queries. So one follower reads
//! the log, and encodes each event once. A lane at the end of the log takes its events from here, and waits for one
//! shared signal. A lane that is behind reads the log for itself until it has caught up.
//!
//! # No event is missed
//! What is kept here is a part of the log without gaps. A lane knows the position up to which it has looked
//! ([`Spot`]), and takes the events behind it, or learns that they are not all here.
//!
//! # Erasures
//! An erasure blanks the events of an organization in the log, and then takes all lanes from their owners. A lane takes
//! only events whose read began after the lane was claimed. So a lane that is claimed after an erasure gets no event
//! from before it.
//!
//! # Another log
//! If the log is another one, or is switched off, the follower forgets everything, and begins again under another
//! number. Each lane then reads the log for itself, and learns what happened.
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

/// The position of the log up to which a lane has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// The number under which the follower ran.
    pub(super) generation: u64,
    pub(super) position: u64,
}

/// Events for a lane.
#[derive(Debug)]
pub(super) struct Taken {
    /// The events that pass the filter of the lane.
    pub(super) entries: Vec<Arc<Entry>>,
    /// The place behind all events that were looked at. `None` if the lane is there already.
    pub(super) next: Option<After>,
    pub(super) spot: Spot,
    /// True if more events follow at once.
    pub(super) has_more: bool,
}

/// The reason why a lane must read the log for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotHere {
    /// The follower has not found the end of the log yet.
    NotRunning,
    /// The lane is behind the events that are kept here, or the log is another one.
    Behind,
}

/// The newest events. Empty until the follower has found the end of the log.
#[derive(Debug, Default)]
pub(super) struct Feed {
    kept: RwLock<Option<Kept>>,
    /// The number of reads that have begun.
    reads: AtomicU64,
    generation: AtomicU64,
    /// Wakes in the order of the lanes, so that a simulation repeats.
    changes: Notify,
}

/// A part of the log without gaps.
#[derive(Debug)]
struct Kept {
    /// The position up to which the log was before the oldest event here.
    origin: u64,
    /// The position up to which the follower has looked, and the place there.
    head: (u64, After),
    events: VecDeque<Told>,
}

#[derive(Debug)]
struct Told {
    position: u64,
    /// The number of the read.
    read: u64,
    entry: Arc<Entry>,
}

impl Feed {
    /// Waits for the next change after this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    /// Returns the number under which the follower runs. Ask before you read the log.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Returns the number of reads that have begun. A lane takes only events of later reads than when it was claimed.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Returns up to `most` events behind a spot that pass a filter. `claimed` is [`reads`](Self::reads) before the
    /// lane was claimed.
    pub(super) fn take(
        &self,
        spot: Spot,
        claimed: u64,
        filter: &EventFilter,
        most: usize,
    ) -> Result<Taken, NotHere> {
        let kept = self.kept.read();
        let Some(kept) = &*kept else { return Err(NotHere::NotRunning) };
        if spot.generation != self.generation() || spot.position < kept.origin {
            return Err(NotHere::Behind);
        }
        let first = kept.events.partition_point(|told| told.position <= spot.position);
        // Later events have later reads.
        if kept.events.get(first).is_some_and(|told| told.read <= claimed) {
            return Err(NotHere::Behind);
        }

        let mut taken = Taken { entries: Vec::new(), next: None, spot, has_more: false };
        for told in kept.events.range(first..) {
            if taken.entries.len() == most {
                taken.has_more = true;
                return Ok(taken);
            }
            taken.spot.position = told.position;
            taken.next = Some(After::Event(told.entry.event.id));
            if filter.passes(&told.entry.event) {
                taken.entries.push(Arc::clone(&told.entry));
            }
        }
        let (head, place) = kept.head;
        if head > taken.spot.position {
            taken.spot.position = head;
            taken.next = Some(place);
        }
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
            let Some((_, after)) = head else {
                let end = log.page(&all, After::End, 1).await?;
                self.begin(end.looked_at, end.next);
                continue;
            };
            let page = log.page(&all, after, PAGE).await?;
            let (looked_at, has_more) = (page.looked_at, page.has_more);
            let positions: Vec<_> = page.events.iter().map(|one| log.position(one)).collect();
            let entries = Entry::of_all(page.events)?;
            self.add((looked_at, page.next), read, positions.into_iter().zip(entries));

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

    fn begin(&self, position: u64, place: After) {
        let events = VecDeque::new();
        let kept = Kept { origin: position, head: (position, place), events };
        *self.kept.write() = Some(kept);
        self.changes.notify_waiters();
    }

    fn add(
        &self,
        head: (u64, After),
        read: u64,
        entries: impl IntoIterator<Item = (u64, Arc<Entry>)>,
    ) {
        let mut kept = self.kept.write();
        let Some(known) = &mut *kept else { return };
        let is_new = known.head != head;
        known.head = head;
        for (position, entry) in entries {
            known.events.push_back(Told { position, read, entry });
            if known.events.len() > KEPT
                && let Some(oldest) = known.events.pop_front()
            {
                known.origin = oldest.position;
            }
        }
        drop(kept);
        if is_new {
            self.changes.notify_waiters();
        }
    }

    fn forget(&self) {
        let mut kept = self.kept.write();
        *kept = None;
        self.generation.fetch_add(1, Ordering::SeqCst);
        drop(kept);
        self.changes.notify_waiters();
    }
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

    fn entry(position: u64, kind: EventKind) -> (u64, Arc<Entry>) {
        let at = Timestamp::from_millis(7);
        let event = Event {
            id: EventNaming::new([7; 32]).id(position, at),
            kind,
            at,
            organization_id: Some("42".parse().unwrap()),
            sub_system: None,
            file_id: None,
            version: None,
            details: EventDetails::default(),
        };
        (position, Arc::new(Entry { event, body: position.to_string() }))
    }

    fn place(position: u64) -> After {
        After::Event(entry(position, EventKind::FileReady).1.event.id)
    }

    /// A feed that began at position 10, with an event at each of the given positions, of one read each.
    fn feed(positions: &[u64]) -> Feed {
        let feed = Feed::default();
        feed.begin(10, place(10));
        for &position in positions {
            let read = feed.reads.fetch_add(1, Ordering::SeqCst) + 1;
            feed.add((position, place(position)), read, [entry(position, EventKind::FileReady)]);
        }
        feed
    }

    fn spot(position: u64) -> Spot {
        Spot { generation: 0, position }
    }

    fn bodies(taken: &Taken) -> Vec<&str> {
        taken.entries.iter().map(|entry| entry.body.as_str()).collect()
    }

    #[test]
    fn a_lane_takes_the_events_behind_its_spot_that_it_wants() {
        let feed = feed(&[11, 12, 14]);
        let all = EventFilter::new();
        let taken = feed.take(spot(11), 0, &all, 9).unwrap();
        assert_eq!(
            (bodies(&taken), taken.next, taken.has_more),
            (vec!["12", "14"], Some(place(14)), false)
        );
        assert_eq!(taken.spot, spot(14));

        let one = feed.take(spot(10), 0, &all, 1).unwrap();
        assert_eq!((bodies(&one), one.next, one.has_more), (vec!["11"], Some(place(11)), true));
        let rest = feed.take(one.spot, 0, &all, 9).unwrap();
        assert_eq!(bodies(&rest), ["12", "14"]);

        let none = EventFilter::new().kinds([EventKind::FilePurged]);
        let taken = feed.take(spot(10), 0, &none, 9).unwrap();
        assert_eq!((bodies(&taken).len(), taken.next), (0, Some(place(14))), "the place moves on");
        let end = feed.take(spot(14), 0, &all, 9).unwrap();
        assert_eq!((end.entries.len(), end.next, end.spot), (0, None, spot(14)));
        let ahead = feed.take(spot(20), 0, &all, 9).unwrap();
        assert_eq!((ahead.entries.len(), ahead.next, ahead.spot), (0, None, spot(20)));
    }

    #[test]
    fn a_lane_that_is_behind_reads_the_log_itself() {
        let all = EventFilter::new();
        assert_eq!(Feed::default().take(spot(0), 0, &all, 9).unwrap_err(), NotHere::NotRunning);
        let feed = feed(&[11]);
        assert_eq!(feed.take(spot(9), 0, &all, 9).unwrap_err(), NotHere::Behind);

        let many: Vec<u64> = (12..12 + KEPT as u64).collect();
        for position in many {
            feed.add((position, place(position)), 2, [entry(position, EventKind::FileReady)]);
        }
        assert_eq!(feed.take(spot(10), 0, &all, 9).unwrap_err(), NotHere::Behind);
        assert_eq!(bodies(&feed.take(spot(11), 0, &all, 1).unwrap()), ["12"]);
    }

    #[test]
    fn a_lane_gets_no_event_that_was_read_before_it_was_claimed() {
        let feed = feed(&[11, 12]);
        let all = EventFilter::new();
        assert_eq!(feed.take(spot(10), 1, &all, 9).unwrap_err(), NotHere::Behind);
        assert_eq!(bodies(&feed.take(spot(11), 1, &all, 9).unwrap()), ["12"]);
        let claimed = feed.reads();
        assert_eq!(feed.take(spot(11), claimed, &all, 9).unwrap_err(), NotHere::Behind);
        assert!(feed.take(spot(12), claimed, &all, 9).unwrap().entries.is_empty());
    }

    #[test]
    fn another_log_has_nothing_for_a_lane_of_the_former_one() {
        let feed = feed(&[11]);
        let changed = feed.changed();
        feed.forget();
        assert!(changed.now_or_never().is_some());
        feed.begin(3, place(3));
        let all = EventFilter::new();
        assert_eq!(feed.take(spot(11), 0, &all, 9).unwrap_err(), NotHere::Behind);
        let spot = Spot { generation: feed.generation(), position: 3 };
        assert!(feed.take(spot, 0, &all, 9).unwrap().entries.is_empty());
    }

    #[test]
    fn lanes_wake_for_news_only() {
        let feed = feed(&[11]);
        let changed = feed.changed();
        feed.add((11, place(11)), 2, []);
        assert!(changed.now_or_never().is_none());
        let changed = feed.changed();
        feed.add((12, place(12)), 3, []);
        assert!(changed.now_or_never().is_some());
    }
}
