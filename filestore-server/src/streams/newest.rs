//! The newest events of the store, encoded once for all readers.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use filestore_core::events::Event;
use parking_lot::RwLock;
use tokio::sync::watch;

use super::block;

/// The number of events that are kept.
const MOST: usize = 4096;

/// An event, and its block in a stream.
#[derive(Debug)]
pub(crate) struct Told {
    /// The position in the log.
    pub(crate) position: u64,
    /// The event.
    pub(crate) event: Event,
    /// The block.
    pub(crate) block: Bytes,
}

/// The newest events. Empty until the follower has found the end of the log.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    kept: RwLock<Option<Kept>>,
    changes: watch::Sender<()>,
}

/// A gapless part of the log.
#[derive(Debug)]
struct Kept {
    /// The position up to which the log was before the oldest event here.
    origin: u64,
    /// The number of the oldest event here. Numbers count the events since the follower began.
    first: u64,
    events: VecDeque<Arc<Told>>,
}

impl Newest {
    /// Returns a receiver that learns of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Returns the number of the first event behind a position of the log. `None` if events in between are not kept.
    pub(crate) fn behind(&self, position: u64) -> Option<u64> {
        let kept = self.kept.read();
        let kept = kept.as_ref().filter(|kept| kept.origin <= position)?;
        let seen = kept.events.partition_point(|told| told.position <= position);
        Some(kept.first + seen as u64)
    }

    /// Returns up to `most` events from this number on. `None` if the number is no longer kept.
    pub(crate) fn from(&self, number: u64, most: usize) -> Option<Vec<Arc<Told>>> {
        let kept = self.kept.read();
        let kept = kept.as_ref()?;
        let skipped = usize::try_from(number.checked_sub(kept.first)?).ok()?;
        Some(kept.events.iter().skip(skipped).take(most).cloned().collect())
    }

    /// Begins anew at a position of the log. Earlier numbers are not valid any more.
    pub(super) fn begin(&self, origin: u64) {
        let mut kept = self.kept.write();
        let first = kept.as_ref().map_or(0, |old| old.first + old.events.len() as u64 + 1);
        *kept = Some(Kept { origin, first, events: VecDeque::new() });
        drop(kept);
        self.changes.send_replace(());
    }

    /// Adds events at the end, each with its position, and wakes the readers.
    pub(super) fn add(&self, events: impl IntoIterator<Item = (u64, Event)>) {
        let told: Vec<_> = events
            .into_iter()
            .map(|(position, event)| {
                Arc::new(Told { position, block: block::of_event(&event), event })
            })
            .collect();
        if let Some(kept) = &mut *self.kept.write() {
            for told in told {
                kept.push(told);
            }
        }
        self.changes.send_replace(());
    }
}

impl Kept {
    fn push(&mut self, told: Arc<Told>) {
        self.events.push_back(told);
        if self.events.len() > MOST
            && let Some(oldest) = self.events.pop_front()
        {
            self.origin = oldest.position;
            self.first += 1;
        }
    }
}
