//! Reading: fills the window with events.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{Lane, SAVE_PLACE};
use crate::domain::access::scope::Scope;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::event::{After, Event, EventPage};
use crate::metadata::MOST_FAILURES;
use crate::service::events::BETWEEN_READS;
use crate::service::webhooks::body_of;
use crate::worker::webhook::window::MOST_EVENTS;

/// The wait of a reader for new events. Afterwards it asks again.
const READ_WAIT: Duration = Duration::from_secs(30);

/// The number of events that are read at once.
const PAGE: usize = MOST_EVENTS / 2;

impl Lane {
    /// Begins to read events if there is room for them.
    pub(super) fn begin_reading(&mut self) {
        let has_room = self.window.len() + PAGE <= MOST_EVENTS
            && self.rows + (MOST_EVENTS as u64) < MOST_FAILURES;
        if !self.reader.is_empty() || !has_room || self.rests() {
            return;
        }
        let (store, filter, after) =
            (self.shared.store.clone(), self.row.shown().filter(), self.reading);
        let wait = if self.has_more { Duration::ZERO } else { READ_WAIT };
        let reads = Arc::clone(&self.shared.reads);
        // At the end of the log, a read after each event would occupy the database.
        let not_before = self.read_at.filter(|_| !self.has_more).map(|at| at + BETWEEN_READS);
        self.reader.spawn(async move {
            if let Some(at) = not_before {
                sleep_until(at).await;
            }
            store.events(&Scope::All).wait_in_turn(&filter, after, PAGE, wait, &reads).await
        });
    }

    pub(super) fn take(&mut self, page: Result<EventPage>) {
        self.read_at = Some(Instant::now());
        match page {
            Ok(page) => {
                self.has_more = page.has_more;
                self.reading = page.next;
                for event in page.events {
                    self.push(event);
                }
                let place = match page.next {
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
                self.reading = After::Start;
                self.window.pass(None);
                self.unsaved.is_answered = true;
            }
            // Somebody chose it.
            Err(error) if error.kind() == ErrorKind::EventsOff => {
                self.rests_until = Some(Instant::now() + READ_WAIT);
            }
            Err(error) => self.rest(&error, "reading events"),
        }
    }

    fn push(&mut self, event: Event) {
        match body_of(&event) {
            Ok(body) => {
                self.unsaved.failed.extend(self.window.push(event, body));
            }
            Err(error) => self.rest(&error, "writing an event"),
        }
    }
}
