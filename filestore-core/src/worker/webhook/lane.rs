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

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::health::Health;
use super::lease::LaneLease;
use super::window::{MOST_EVENTS, Window};
use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::config::WebhookConfig;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::event::{After, EventId, EventPage};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{Answer, DisabledReason, Verdict, WebhookBacklog, wait_after};
use crate::metadata::{
    ClaimedLane, FailureRow, LaneSave, LaneSaved, MOST_FAILURES, Retried, RetriedFailure,
    WebhookRow,
};
use crate::service::events::BETWEEN_READS;
use crate::service::webhooks::{Delivery, body_of};
use crate::tasks::step::{Step, reached};

/// The wait of a reader for new events. Afterwards it asks again.
const READ_WAIT: Duration = Duration::from_secs(30);

/// The number of events that are read at once.
const PAGE: usize = MOST_EVENTS / 2;

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
    /// The reads of the log at the same time.
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

/// The subject of an attempt.
#[derive(Debug)]
enum Attempt {
    /// An event in the window.
    First(EventId),
    /// An event that failed before.
    Again(FailureRow),
}

impl Attempt {
    fn event(&self) -> EventId {
        match self {
            Self::First(id) => *id,
            Self::Again(row) => row.event,
        }
    }
}

/// A failed event or a held one to store, or the outcome of another attempt.
#[derive(Debug, Default)]
struct Unsaved {
    failed: Vec<FailureRow>,
    retried: Vec<RetriedFailure>,
    disable: Option<DisabledReason>,
    /// True if an answer is not saved.
    is_answered: bool,
}

pub(super) struct Lane {
    shared: Shared,
    row: Arc<WebhookRow>,
    settings: Settings,
    window: Window,
    health: Health,
    /// The place from which events are read.
    reading: After,
    reader: JoinSet<Result<EventPage>>,
    has_more: bool,
    /// When the last page was read.
    read_at: Option<Instant>,
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
    /// Begins with a claimed lane.
    pub(super) fn new(
        shared: Shared,
        row: Arc<WebhookRow>,
        claimed: ClaimedLane,
        settings: Settings,
    ) -> Self {
        let reading = claimed.place.map_or(After::Start, After::Event);
        let health = Health::new(claimed.health, shared.store.now());
        Self {
            shared,
            row,
            settings,
            window: Window::new(claimed.place, claimed.ahead, claimed.failing),
            health,
            reading,
            reader: JoinSet::new(),
            has_more: true,
            read_at: None,
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

    // Reading.

    /// Begins to read events if there is room for them.
    fn begin_reading(&mut self) {
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

    fn take(&mut self, page: Result<EventPage>) {
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

    fn push(&mut self, event: crate::domain::event::Event) {
        match body_of(&event) {
            Ok(body) => {
                self.unsaved.failed.extend(self.window.push(event, body));
            }
            Err(error) => self.rest(&error, "writing an event"),
        }
    }

    fn rest(&mut self, error: &crate::domain::error::Error, doing: &str) {
        let webhook = self.row.id;
        tracing::warn!(%webhook, doing, error = %error.chain(), "the lane of a webhook rests");
        self.rests_until = Some(Instant::now() + ERROR_PAUSE);
    }

    // Sending.

    /// Begins as many attempts as are allowed now.
    async fn begin_sends(&mut self) {
        let config = self.config();
        let most = self.health.at_once(config.concurrency, self.now());
        // A trial is for one kind in turn. Otherwise an event that always fails could be the only trial.
        if most == 1 && self.is_turn_of_first {
            self.begin_first(most);
        }
        // Half of the turns are for events that failed before, so that neither kind waits for the other.
        while self.sending.len() < most && self.retrying.len() < most.div_ceil(2) {
            if !self.begin_again(most).await {
                break;
            }
        }
        self.begin_first(most);
    }

    /// Begins first attempts.
    fn begin_first(&mut self, most: usize) {
        while self.sending.len() < most && self.has_lease() {
            let Some(permit) = self.place() else { return };
            let Some(next) = self.window.next() else { return };
            self.send(Attempt::First(next.id), next.id, next.body, permit);
        }
    }

    /// Begins further attempts of events that are due. Returns false if there is none.
    async fn begin_again(&mut self, most: usize) -> bool {
        let now = self.now();
        if self.next_due.is_none_or(|due| due > now) || !self.has_lease() {
            return false;
        }
        let metadata = &self.shared.store.inner().metadata;
        let limit = most + self.retrying.len();
        let due = match metadata.due_failures(self.row.id, now, limit).await {
            Ok(due) => due,
            Err(error) => {
                self.rest(&error, "looking for due events");
                return false;
            }
        };
        let free = due.into_iter().filter(|row| !self.retrying.contains(&row.row));
        let (mut free, mut has_begun) = (free.collect::<Vec<_>>().into_iter(), false);
        while self.sending.len() < most && self.retrying.len() < most.div_ceil(2) {
            let Some(permit) = self.place() else { break };
            let Some(again) = free.next() else { break };
            self.retrying.insert(again.row);
            let (id, body) = (again.event, Bytes::from(again.body.clone()));
            self.send(Attempt::Again(again), id, body, permit);
            has_begun = true;
        }
        has_begun
    }

    /// Takes a place for a delivery. If slow endpoints have all of them, a lane can still send one event at a time.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        let own = || take(&self.shared.own_places).filter(|_| self.sending.is_empty());
        take(&self.shared.places).or_else(own)
    }

    fn has_lease(&self) -> bool {
        self.shared.lease.is_valid() && !self.is_lost()
    }

    /// Tells whether the lane has another owner, or nobody who looks after it.
    fn is_lost(&self) -> bool {
        self.settings.has_changed().is_err() || matches!(*self.settings.borrow(), Told::Lost)
    }

    fn send(&mut self, attempt: Attempt, id: EventId, body: Bytes, permit: OwnedSemaphorePermit) {
        self.is_turn_of_first = matches!(attempt, Attempt::Again(_));
        let (store, row) = (self.shared.store.clone(), Arc::clone(&self.row));
        self.sending.spawn(async move {
            let state = &store.inner().webhooks;
            let answer = match state.sender(&store.config().webhooks) {
                Ok(sender) => {
                    let at = store.now();
                    let (url, secrets) = (&row.url, &row.secrets);
                    let id = id.to_string();
                    sender.send(&Delivery { url, secrets, id, body, at }).await
                }
                Err(error) => {
                    tracing::warn!(error = %error.chain(), "events cannot be sent");
                    Answer::Fault(crate::domain::webhook::DeliveryFault::Broken)
                }
            };
            state.count(answer.verdict());
            (attempt, answer, permit)
        });
    }

    fn note(&mut self, attempt: Attempt, answer: Answer) {
        reached(Step::DeliveryAnswered);
        let now = self.now();
        let is_trusted = self.shared.store.inner().background.may_remove();
        let patience = is_trusted.then_some(self.config().disable_after);
        let disable = self.health.note(attempt.event(), answer, now, patience, fastrand::f64());
        self.unsaved.disable = self.unsaved.disable.or(disable);
        self.unsaved.is_answered = true;
        match attempt {
            Attempt::First(id) => self.note_first(id, answer, now),
            Attempt::Again(row) => self.note_again(&row, answer, now),
        }
        if self.unsaved.disable.is_some() {
            self.is_stopping = true;
        }
    }

    fn note_first(&mut self, id: EventId, answer: Answer, now: Timestamp) {
        match answer.verdict() {
            Verdict::Delivered => self.window.finish(id),
            Verdict::Gone | Verdict::EndpointFault(_) => self.window.put_back(id),
            Verdict::EventFault => {
                let wait = wait_after(1, fastrand::f64()).unwrap_or_default();
                let rows = self.window.fail(id, now.plus(wait), answer.status());
                self.unsaved.failed.extend(rows);
            }
        }
    }

    fn note_again(&mut self, row: &FailureRow, answer: Answer, now: Timestamp) {
        self.retrying.remove(&row.row);
        let attempts = row.attempts + 1;
        let outcome = match answer.verdict() {
            Verdict::Delivered => Retried::Delivered,
            Verdict::Gone | Verdict::EndpointFault(_) => return,
            Verdict::EventFault => match wait_after(attempts, fastrand::f64()) {
                Some(wait) => Retried::Postponed(now.plus(wait)),
                None => Retried::GivenUp,
            },
        };
        if outcome == Retried::GivenUp {
            let (webhook, event) = (self.row.id, row.event);
            tracing::warn!(%webhook, %event, "all attempts to send an event have failed");
        }
        self.unsaved.retried.push(RetriedFailure {
            row: row.row,
            file: row.file,
            outcome,
            attempts,
            status: answer.status(),
        });
    }

    // Saving.

    fn has_unsaved(&self) -> bool {
        let unsaved = &self.unsaved;
        unsaved.is_answered || !unsaved.failed.is_empty() || !unsaved.retried.is_empty()
    }

    /// Returns the number of rows that will wait or be held, if no request adds any.
    fn rows_after_save(&self) -> u64 {
        let is_over = |one: &&RetriedFailure| !matches!(one.outcome, Retried::Postponed(_));
        let over = self.unsaved.retried.iter().filter(is_over).count() as u64;
        self.rows.saturating_sub(over) + self.unsaved.failed.len() as u64
    }

    /// Saves what was answered. Returns false if the lane has another owner.
    async fn save_if_needed(&mut self) -> bool {
        let moved = self.save_place_at.is_some_and(|at| Instant::now() >= at || self.is_stopping);
        if !(self.has_unsaved() || moved) || self.rests() {
            return true;
        }
        if self.window.is_idle() && self.rows_after_save() == 0 && self.sending.is_empty() {
            self.health.note_idle();
        }
        self.window.settle();
        let save = LaneSave {
            id: self.row.id,
            owner: self.shared.owner.clone(),
            now: self.now(),
            place: self.window.place(),
            ahead: self.window.ahead(),
            health: self.health.stored,
            failed: self.unsaved.failed.clone(),
            retried: self.unsaved.retried.clone(),
            disable: self.unsaved.disable,
        };
        let metadata = Arc::clone(&self.shared.store.inner().metadata);
        match metadata.save_lane(save).await {
            Ok(Some(saved)) => {
                self.note_saved(saved);
                true
            }
            Ok(None) => {
                let webhook = self.row.id;
                tracing::info!(%webhook, "the lane of a webhook was deleted, or has another owner");
                false
            }
            Err(error) => {
                self.rest(&error, "saving the progress");
                true
            }
        }
    }

    fn note_saved(&mut self, saved: LaneSaved) {
        reached(Step::DeliverySaved);
        for file in saved.freed {
            self.window.free(file);
        }
        if let Some(reason) = self.unsaved.disable {
            let webhook = self.row.id;
            tracing::warn!(%webhook, %reason, "a webhook was disabled");
            reached(Step::EndpointDisabled);
        }
        self.unsaved = Unsaved::default();
        self.next_due = saved.next_due;
        self.rows = saved.rows;
        self.save_place_at = None;
    }

    // Waiting.

    /// Waits until something happens: an answer, events, other settings, or a time.
    async fn wait(&mut self) {
        let pause = self.next_look();
        tokio::select! {
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
            _ = self.settings.changed() => {
                let told = self.settings.borrow_and_update().clone();
                self.note_told(told);
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
