//! One lane: the deliveries to one endpoint.
//!
//! # Purpose
//! A lane reads the log from its place on, sends events, and saves its progress. Nobody waits for a lane: it has a
//! window of events, its share of the server's deliveries, and rows in the database for events that failed.
//!
//! # Crash safety
//! Before a send begins, everything that was answered is saved. So a crash repeats only events that were under way,
//! with the same ids. Place, failed events and held events are saved in one transaction.
//!
//! # Locking
//! The lane belongs to its owner until the lease ends. A save of a former owner changes nothing. Before each send,
//! the lane compares the lease with the monotonic clock, so that a process that slept sends nothing.

mod reading;
mod sending;
mod saving;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use self::reading::{Page, Place};
use self::saving::Unsaved;
use self::sending::Attempt;
use super::feed::Feed;
use super::health::Health;
use super::lease::LaneLease;
use super::window::Window;
use crate::FileStore;
use crate::domain::config::WebhookConfig;
use crate::domain::error::{Error, Result};
use crate::domain::event::After;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{Answer, WebhookBacklog};
use crate::metadata::{ClaimedLane, WebhookRow};

/// The pause after an error of the database or of the log.
const ERROR_PAUSE: Duration = Duration::from_secs(5);

/// The longest time between two looks at the store's clock, while something waits for it.
const LOOK: Duration = Duration::from_secs(1);

/// The time after which a place is saved that has moved only past events that the webhook does not get.
const SAVE_PLACE: Duration = Duration::from_mins(1);

/// The state that all lanes of a server share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) store: FileStore,
    pub(super) owner: String,
    pub(super) lease: Arc<LaneLease>,
    /// The deliveries of this server at the same time.
    pub(super) places: Arc<Semaphore>,
    /// Places for lanes that have nothing under way, one for each.
    pub(super) own_places: Arc<Semaphore>,
    /// The newest events, for all lanes.
    pub(super) feed: Arc<Feed>,
    /// The reads of the log by lanes at the same time.
    pub(super) reads: Arc<Semaphore>,
}

/// What a lane is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// The settings of its webhook.
    Settings(Arc<WebhookRow>),
    /// It must stop after its deliveries under way.
    Stop,
    /// It has another owner, or none: it must end at once. Nothing that it knows counts any more.
    Lost,
}

/// What a lane is told, as the lane receives it.
pub(super) type Settings = watch::Receiver<Told>;

/// One lane.
pub(super) struct Lane {
    shared: Shared,
    row: Arc<WebhookRow>,
    settings: Settings,
    window: Window,
    health: Health,
    /// The place from which events are read.
    reading: Place,
    reader: JoinSet<Result<Page>>,
    /// The number of reads of the feed that had begun when the lane was claimed.
    claimed: u64,
    sending: JoinSet<(Attempt, Answer, OwnedSemaphorePermit)>,
    /// The rows of [`Attempt::Again`] under way.
    retrying: HashSet<i64>,
    /// True if the next trial is for an event that was not sent yet.
    is_turn_of_first: bool,
    /// The number of rows that wait or are held.
    rows: u64,
    next_due: Option<Timestamp>,
    unsaved: Unsaved,
    /// The time from which a place that moved only past other events is saved.
    save_place_at: Option<Instant>,
    /// After an error, the time from which the lane reads or saves again.
    rests_until: Option<Instant>,
    is_stopping: bool,
}

impl Lane {
    /// Begins with a claimed lane. `reads` is the number of reads of the feed that had begun when the claim was done.
    pub(super) fn new(
        shared: Shared,
        row: Arc<WebhookRow>,
        (claimed, reads): (ClaimedLane, u64),
        settings: Settings,
    ) -> Self {
        let after = claimed.place.map_or(After::Start, After::Event);
        let reading = Place::unread(&shared, after);
        let health = Health::new(claimed.health, shared.store.now());
        Self {
            shared,
            row,
            settings,
            window: Window::new(claimed.place, claimed.ahead, claimed.failing),
            health,
            reading,
            reader: JoinSet::new(),
            claimed: reads,
            sending: JoinSet::new(),
            retrying: HashSet::new(),
            is_turn_of_first: true,
            rows: claimed.rows,
            next_due: claimed.next_due,
            unsaved: Unsaved::default(),
            save_place_at: None,
            rests_until: None,
            is_stopping: false,
        }
    }

    /// Sends events until the webhook is disabled, deleted or changed, or the owner stops or loses the lane. Then
    /// gives the lane back.
    pub(super) async fn run(mut self) {
        loop {
            if self.is_lost() || !self.save_if_needed().await {
                return;
            }
            self.show_backlog();
            if self.is_stopping && self.sending.is_empty() && !self.has_unsaved() {
                return self.release().await;
            }
            if !self.has_unsaved() && !self.is_stopping {
                self.begin_reading();
                self.begin_sends().await;
            }
            self.wait().await;
        }
    }

    async fn release(self) {
        let metadata = &self.shared.store.inner().metadata;
        if let Err(error) = metadata.release_lane(self.row.id, &self.shared.owner).await {
            let webhook = self.row.id;
            tracing::warn!(%webhook, error = %error.chain(), "the lane of a webhook was not released");
        }
    }

    fn show_backlog(&self) {
        let (first, oldest_at) = self.window.waiting();
        let backlog = WebhookBacklog { first, again: self.rows, oldest_at };
        self.shared.store.inner().webhooks.set_backlog(self.row.id, Some(backlog));
    }

    fn now(&self) -> Timestamp {
        self.shared.store.now()
    }

    fn config(&self) -> WebhookConfig {
        self.shared.store.config().webhooks.clone()
    }

    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    fn rest(&mut self, error: &Error, doing: &str) {
        let webhook = self.row.id;
        tracing::warn!(%webhook, doing, error = %error.chain(), "the lane of a webhook rests");
        self.rests_until = Some(Instant::now() + ERROR_PAUSE);
    }

    fn has_lease(&self) -> bool {
        self.shared.lease.is_valid() && !self.is_lost()
    }

    /// Tells whether the lane has another owner, or nobody who looks after it.
    fn is_lost(&self) -> bool {
        self.settings.has_changed().is_err() || matches!(*self.settings.borrow(), Told::Lost)
    }

    /// Waits until something happens: an answer, events, other settings, or a time.
    async fn wait(&mut self) {
        let pause = self.next_look();
        // In this order, so that a simulation repeats. What a lane is told is rare, and comes first.
        tokio::select! {
            biased;
            _ = self.settings.changed() => {
                let told = self.settings.borrow_and_update().clone();
                self.note_told(told);
            }
            Some(sent) = self.sending.join_next() => {
                self.note_sent(sent);
                while let Some(sent) = self.sending.try_join_next() {
                    self.note_sent(sent);
                }
            }
            Some(page) = self.reader.join_next() => {
                if let Ok(page) = page {
                    self.take(page);
                }
            }
            () = sleep(pause) => {}
        }
    }

    fn note_sent(
        &mut self,
        sent: Result<(Attempt, Answer, OwnedSemaphorePermit), tokio::task::JoinError>,
    ) {
        match sent {
            Ok((attempt, answer, permit)) => {
                self.note(attempt, answer);
                drop(permit);
            }
            // The lane begins again with what is saved: the event is sent once more.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }

    fn note_told(&mut self, told: Told) {
        let row = match told {
            Told::Settings(row) => row,
            Told::Stop => {
                self.is_stopping = true;
                return;
            }
            Told::Lost => return,
        };
        // Events that were read for other settings are read again, by the next owner.
        self.is_stopping |= row.kinds != self.row.kinds;
        self.next_due = row.next_due.or(self.next_due);
        self.row = row;
    }

    /// Returns the time after which the lane looks again at the clock.
    fn next_look(&self) -> Duration {
        let waits = self.next_due.is_some()
            || self.health.stored.paused_until.is_some()
            || self.rests_until.is_some()
            || !self.window.is_idle()
            || self.is_stopping;
        if waits { LOOK } else { SAVE_PLACE }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.store.inner().webhooks.set_backlog(self.row.id, None);
    }
}
