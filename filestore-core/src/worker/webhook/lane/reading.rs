//! Reading: fills the window with events, from the server's feed or from the log.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::{LOOK, Lane, SAVE_PLACE, Shared};
use crate::domain::access::scope::Scope;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::event::{After, EventFilter};
use crate::metadata::MOST_FAILURES;
use crate::worker::webhook::feed::{Entry, NotHere, Spot, spot_of};
use crate::worker::webhook::window::MOST_EVENTS;

/// The wait of a reader for new events. Afterwards the lane takes note of the place.
const READ_WAIT: Duration = Duration::from_secs(30);

/// The number of events that are read at once.
const PAGE: usize = MOST_EVENTS / 2;

/// The place up to which a lane has looked at the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The last event that the lane has looked at.
    pub(super) spot: Spot,
    /// False until the lane has found that event in the log.
    pub(super) is_found: bool,
    /// False if the lane has seen the end of the log.
    pub(super) has_more: bool,
}

impl Place {
    /// A place at which the log has not been read yet.
    pub(super) fn unread(shared: &Shared, after: After) -> Self {
        Self { spot: spot_of(&shared.store, after), is_found: false, has_more: true }
    }
}

/// Events, and the place behind them.
pub(super) struct Page {
    entries: Vec<Arc<Entry>>,
    place: Place,
}

impl Lane {
    /// Begins to read events if there is room for them.
    pub(super) fn begin_reading(&mut self) {
        let has_room = self.window.len() + PAGE <= MOST_EVENTS
            && self.rows + (MOST_EVENTS as u64) < MOST_FAILURES;
        if !self.reader.is_empty() || !has_room || self.rests() {
            return;
        }
        let (shared, filter) = (self.shared.clone(), self.row.shown().filter());
        let (place, claimed) = (self.reading, self.claimed);
        self.reader.spawn(async move { read(&shared, &filter, place, claimed).await });
    }

    pub(super) fn take(&mut self, page: Result<Page>) {
        match page {
            Ok(page) => {
                self.reading = page.place;
                for entry in page.entries {
                    self.unsaved.failed.extend(self.window.push(entry));
                }
                let place = match page.place.spot.after {
                    After::Event(id) => Some(id),
                    After::Start | After::End => None,
                };
                if self.window.settle() || self.window.pass(place) {
                    self.save_place_at.get_or_insert_with(|| Instant::now() + SAVE_PLACE);
                }
            }
            Err(error) if error.kind() == ErrorKind::EventsGone => {
                let webhook = self.row.id;
                tracing::warn!(%webhook, "the log has forgotten events before a webhook got them");
                self.health.stored.gaps += 1;
                self.reading = Place::unread(&self.shared, After::Start);
                self.window.pass(None);
                self.unsaved.is_answered = true;
            }
            // Somebody chose it.
            Err(error) if error.kind() == ErrorKind::EventsOff => {
                self.reading.is_found = false;
                self.rests_until = Some(Instant::now() + READ_WAIT);
            }
            Err(error) => self.rest(&error, "reading events"),
        }
    }
}

/// Reads the events behind a place: from the feed at the end of the log, otherwise from the log. Waits for events, but
/// not for ever.
async fn read(
    shared: &Shared,
    filter: &EventFilter,
    mut place: Place,
    claimed: u64,
) -> Result<Page> {
    let until = Instant::now() + READ_WAIT;
    // At the end of the log, a lane gives the feed a moment, and does not ask again and again.
    let mut can_wait = !place.has_more;
    loop {
        // Before the look, so that no change is missed.
        let changed = shared.feed.changed();
        if !place.is_found {
            return read_log(shared, filter, place.spot.after).await;
        }
        match shared.feed.take(place.spot, claimed, filter, PAGE) {
            Ok(taken) => {
                place = Place { spot: taken.spot, is_found: true, has_more: taken.has_more };
                if !taken.entries.is_empty() || taken.has_more || Instant::now() >= until {
                    return Ok(Page { entries: taken.entries, place });
                }
                // Too late is as good as nothing new.
                let _ = timeout_at(until, changed).await;
            }
            Err(NotHere::NotYet) if can_wait => {
                can_wait = false;
                let _ = timeout(LOOK, changed).await;
            }
            Err(NotHere::NotYet | NotHere::Behind) => {
                return read_log(shared, filter, place.spot.after).await;
            }
        }
    }
}

/// Reads events from the log, in turn with other lanes.
async fn read_log(shared: &Shared, filter: &EventFilter, after: After) -> Result<Page> {
    let _turn = shared.reads.acquire().await;
    shared.store.inner().webhooks.count_lane_read();
    let page = shared.store.events(&Scope::All).page(filter, after, PAGE).await?;
    let spot = spot_of(&shared.store, page.next);
    let place = Place { spot, is_found: true, has_more: page.has_more };
    Ok(Page { entries: Entry::of_all(page.events)?, place })
}
