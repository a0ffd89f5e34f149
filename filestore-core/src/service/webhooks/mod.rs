//! Webhooks: creation, changes, pings, and events to send again.
//!
//! # Purpose
//! A webhook is a row. Background work (`worker/webhook`) reads the log of events and sends them. This module
//! changes the rows, and wakes that work.
//!
//! # Secrets
//! Each webhook has its own secret. With a shared one, a receiver could pass a delivery on to another receiver. The
//! secret is in the database, next to the secrets of signed URLs, because it signs.

mod sender;
mod body;
#[cfg(any(test, feature = "internals"))]
mod simulated;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use body::body_of;
#[cfg(test)]
pub(crate) use sender::Lookup;
use sender::SystemLookup;
pub(crate) use sender::{Delivery, Sender};
#[cfg(any(test, feature = "internals"))]
pub use simulated::{Endpoints, Posted};

use super::FileStore;
use super::work::wake::Wake;
use crate::domain::access::scope::Scope;
use crate::domain::config::WebhookConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::{After, Event, EventFilter, EventId};
use crate::domain::id::WebhookId;
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{
    Answer, DeliveryFault, DisabledReason, FailurePage, FailureState, MOST_NAME_BYTES, NewWebhook,
    PingReport, Redeliver, Redelivered, Verdict, Webhook, WebhookBacklog, WebhookCounts,
    WebhookEdit, WebhookHealth, WebhookSecret, WebhookSecrets,
};
use crate::metadata::{
    FailureRow, MOST_FAILURES, Metadata, Requeued, WebhookChange, WebhookMade, WebhookRow,
};
use crate::tasks;

/// The longest time for which the former secret signs too after a rotation.
const LONGEST_OVERLAP: Duration = Duration::from_hours(30 * 24);

/// The shortest time between two pings of a webhook.
const BETWEEN_PINGS: Duration = Duration::from_secs(5);

/// The number of events that one transaction queues again.
const PAGE: usize = 200;

/// The number of pages that one request reads. A page looks at 5,000 events at most.
const PAGES: usize = 20;

/// The state of webhooks in memory.
pub(crate) struct WebhookState {
    /// Wakes the background work after a change.
    pub(crate) wanted: Wake,
    sender: Mutex<Option<Arc<Sender>>>,
    lookup: Mutex<Arc<dyn sender::Lookup>>,
    /// Simulated endpoints, which get the deliveries in place of the network.
    #[cfg(any(test, feature = "internals"))]
    endpoints: Mutex<Option<Arc<dyn Endpoints>>>,
    /// The last ping of each webhook.
    pinged: Mutex<HashMap<WebhookId, Instant>>,
    /// Attempts since the store was opened, by their verdict.
    delivered: AtomicU64,
    refused: AtomicU64,
    unreachable: AtomicU64,
    /// Reads of the log since the store was opened: for all lanes together, and by lanes that were behind.
    shared_reads: AtomicU64,
    lane_reads: AtomicU64,
    /// The events that each lane of this process still has to deliver.
    backlogs: Mutex<HashMap<WebhookId, WebhookBacklog>>,
}

impl Default for WebhookState {
    fn default() -> Self {
        Self {
            wanted: Wake::default(),
            sender: Mutex::default(),
            lookup: Mutex::new(Arc::new(SystemLookup)),
            #[cfg(any(test, feature = "internals"))]
            endpoints: Mutex::default(),
            pinged: Mutex::default(),
            delivered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unreachable: AtomicU64::new(0),
            shared_reads: AtomicU64::new(0),
            lane_reads: AtomicU64::new(0),
            backlogs: Mutex::default(),
        }
    }
}

impl WebhookState {
    /// Returns the sender for a configuration. A changed configuration gets a new one.
    pub(crate) fn sender(&self, config: &WebhookConfig) -> Result<Arc<Sender>> {
        let mut sender = self.sender.lock();
        if let Some(sender) = &*sender
            && sender.is_of(config)
        {
            return Ok(Arc::clone(sender));
        }
        let fresh = Arc::new(Sender::new(config, Arc::clone(&self.lookup.lock()))?);
        *sender = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Sends one attempt, and waits for the answer.
    pub(crate) async fn deliver(&self, config: &WebhookConfig, delivery: &Delivery<'_>) -> Answer {
        #[cfg(any(test, feature = "internals"))]
        let simulated = self.endpoints.lock().clone();
        #[cfg(any(test, feature = "internals"))]
        if let Some(endpoints) = simulated {
            return simulated::deliver(&*endpoints, delivery).await;
        }
        match self.sender(config) {
            Ok(sender) => sender.send(delivery).await,
            Err(error) => {
                tracing::warn!(error = %error.chain(), "events cannot be sent");
                Answer::Fault(DeliveryFault::Broken)
            }
        }
    }

    /// Replaces the look-up of names.
    #[cfg(test)]
    pub(crate) fn look_up_with(&self, lookup: Arc<dyn Lookup>) {
        *self.lookup.lock() = lookup;
        *self.sender.lock() = None;
    }

    /// Counts a read of the log for all lanes.
    pub(crate) fn count_shared_read(&self) {
        self.shared_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read of the log by a lane that is behind.
    pub(crate) fn count_lane_read(&self) {
        self.lane_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the events that a lane still has to deliver. `None` if the lane has ended.
    pub(crate) fn set_backlog(&self, webhook: WebhookId, backlog: Option<WebhookBacklog>) {
        let mut backlogs = self.backlogs.lock();
        match backlog {
            Some(backlog) => backlogs.insert(webhook, backlog),
            None => backlogs.remove(&webhook),
        };
    }

    /// Counts an attempt.
    pub(crate) fn count(&self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Delivered => &self.delivered,
            Verdict::EventFault | Verdict::Gone => &self.refused,
            Verdict::EndpointFault(_) => &self.unreachable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The webhooks of a store. Made by [`FileStore::webhooks`].
///
/// ```no_run
/// use filestore_core::webhooks::NewWebhook;
///
/// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
/// let new = NewWebhook::new("https://example.org/hook".parse()?);
/// let (webhook, secret) = store.webhooks().create(new).await?;
/// println!("{} signs with {secret}", webhook.id);
/// assert!(store.webhooks().ping(webhook.id).await?.delivered);
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Clone, Copy)]
pub struct Webhooks<'a> {
    store: &'a FileStore,
}

impl FileStore {
    /// Returns the webhooks: URLs to which the store sends events.
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { store: self }
    }
}

impl Webhooks<'_> {
    /// Delivers to `endpoints` from now on, and not over the network.
    #[cfg(any(test, feature = "internals"))]
    #[doc(hidden)]
    pub fn deliver_to(self, endpoints: Arc<dyn Endpoints>) {
        *self.state().endpoints.lock() = Some(endpoints);
    }

    /// Makes a webhook. This is the only time that the store shows the secret. Sends nothing.
    ///
    /// `UrlRefused` if the configuration does not allow the URL. `Conflict` if there are too many webhooks.
    pub async fn create(self, new: NewWebhook) -> Result<(Webhook, WebhookSecret)> {
        let (config, now) = (self.store.config(), self.store.now());
        check_name(&new.name)?;
        new.url.check(&config.webhooks.rules())?;
        let place = self.place(new.from).await?;

        let secret = WebhookSecret::generate();
        let row = WebhookRow {
            id: WebhookId::generate(now),
            url: new.url,
            name: new.name,
            organization: new.organization,
            kinds: new.kinds,
            secrets: WebhookSecrets { current: secret.clone(), former: None },
            created_at: now,
            changed_at: now,
            disabled: None,
            place,
            health: WebhookHealth::default(),
            next_due: None,
            owner: None,
        };
        let shown = row.shown();
        let most = config.webhooks.max;
        match self.metadata().insert_webhook(row, most).await? {
            WebhookMade::Done => {
                self.wake();
                Ok((shown, secret))
            }
            WebhookMade::Full => {
                let message = format!("there are already {most} webhooks (webhooks.max)");
                Err(Error::new(ErrorKind::Conflict, message).with_limit(most as u64))
            }
        }
    }

    /// Lists all webhooks, oldest first.
    pub async fn list(self) -> Result<Vec<Webhook>> {
        let rows = self.metadata().webhooks(None).await?;
        Ok(rows.iter().map(WebhookRow::shown).collect())
    }

    /// Returns a webhook.
    pub async fn get(self, id: WebhookId) -> Result<Webhook> {
        Ok(self.row(id).await?.shown())
    }

    /// Returns the time of the oldest event that the webhook has not got yet. `None` if it has all.
    pub async fn oldest_waiting(self, id: WebhookId) -> Result<Option<Timestamp>> {
        let row = self.row(id).await?;
        let after = row.place.map_or(After::Start, After::Event);
        let page = self.events().page(&row.shown().filter(), after, 1).await;
        match page {
            Ok(page) => Ok(page.events.first().map(|event| event.at)),
            Err(error) if error.kind() == ErrorKind::EventsGone => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes the settings of a webhook. A new URL gets the same secret, goes on at the same place, and ends a
    /// pause.
    pub async fn edit(self, id: WebhookId, edit: WebhookEdit) -> Result<Webhook> {
        if let Some(name) = &edit.name {
            check_name(name)?;
        }
        if let Some(url) = &edit.url {
            url.check(&self.store.config().webhooks.rules())?;
        }
        self.change(id, WebhookChange::Edit(edit)).await
    }

    /// Replaces the secret. Until the end of `overlap`, at most 30 days, both secrets sign.
    ///
    /// `Conflict` while the secret before the present one still signs. With an overlap of zero, all earlier secrets
    /// end at once.
    pub async fn rotate(
        self,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<(Webhook, WebhookSecret)> {
        if overlap > LONGEST_OVERLAP {
            let message = "the former secret signs for 30 days at most";
            let error = Error::invalid("overlap_s", message);
            return Err(error.with_limit(LONGEST_OVERLAP.as_secs()));
        }
        if !overlap.is_zero() {
            self.check_rotated(id).await?;
        }
        let secret = WebhookSecret::generate();
        let until = self.store.now().plus(overlap);
        let shown = self.change(id, WebhookChange::Rotate(secret.clone(), until)).await?;
        Ok((shown, secret))
    }

    /// Checks that no former secret signs. A rotation would end it before the time that was promised.
    async fn check_rotated(self, id: WebhookId) -> Result<()> {
        let former = self.row(id).await?.secrets.former;
        if former.is_none_or(|(_, until)| until <= self.store.now()) {
            return Ok(());
        }
        let message = "the former secret still signs (former_secret_until): wait, or end it now with overlap_s 0";
        Err(Error::new(ErrorKind::Conflict, message).with_field("overlap_s"))
    }

    /// Stops sending events. The webhook keeps its place in the log.
    pub async fn disable(self, id: WebhookId) -> Result<Webhook> {
        self.change(id, WebhookChange::Disable(DisabledReason::Requested)).await
    }

    /// Sends events again, from where the webhook stood, or from another place. `EventsGone` if the log has
    /// forgotten the place.
    pub async fn enable(self, id: WebhookId, from: Option<After>) -> Result<Webhook> {
        let change = if let Some(from) = from {
            WebhookChange::EnableFrom(self.place(from).await?)
        } else {
            let stood = self.row(id).await?.place.map_or(After::Start, After::Event);
            self.place(stood).await?;
            WebhookChange::Enable
        };
        self.change(id, change).await
    }

    /// Deletes a webhook with its secrets and failures.
    pub async fn delete(self, id: WebhookId) -> Result<()> {
        if !self.metadata().delete_webhook(id).await? {
            return Err(unknown());
        }
        self.wake();
        Ok(())
    }

    /// Sends an event of the type `webhook.ping`, which is not in the log, and waits for the answer. `Busy` within
    /// 5 s after another ping.
    pub async fn ping(self, id: WebhookId) -> Result<PingReport> {
        let row = self.row(id).await?;
        self.note_ping(id)?;
        let sender = self.state().sender(&self.store.config().webhooks)?;

        let at = self.store.now();
        let ping = URL_SAFE_NO_PAD.encode(&tasks::random_secret()[..16]);
        let body = body::of_ping(&ping, at);
        let delivery =
            Delivery { url: &row.url, secrets: &row.secrets, id: ping, body: body.into(), at };
        let began = Instant::now();
        let answer = sender.send(&delivery).await;
        Ok(PingReport::of(answer, began.elapsed()))
    }

    fn note_ping(self, id: WebhookId) -> Result<()> {
        let mut pinged = self.state().pinged.lock();
        let now = Instant::now();
        pinged.retain(|_, at| now.saturating_duration_since(*at) < BETWEEN_PINGS);
        if pinged.contains_key(&id) {
            let message = "a webhook can be pinged once in 5 seconds";
            let error = Error::new(ErrorKind::Busy, message);
            return Err(error.with_retry_after_secs(BETWEEN_PINGS.as_secs()));
        }
        pinged.insert(id, now);
        Ok(())
    }

    /// Lists up to `limit` (1 to 1000) failures behind the place `after`, 0 at first.
    pub async fn failures(
        self,
        id: WebhookId,
        state: Option<FailureState>,
        after: i64,
        limit: usize,
    ) -> Result<FailurePage> {
        self.row(id).await?;
        let limit = limit.clamp(1, 1000);
        let rows = self.metadata().failures(id, state, after, limit).await?;
        let next = rows.last().filter(|_| rows.len() == limit).map(|row| row.row);
        Ok(FailurePage { failures: rows.iter().map(FailureRow::shown).collect(), next })
    }

    /// Queues events to be sent again. The webhook gets them with their old ids, at once, and without regard to the
    /// order of other events. A long range needs several requests, each from the place that the one before returned.
    ///
    /// `EventsGone` if the log has forgotten an event. `Busy` if more than 10,000 events would wait, and none was
    /// queued.
    pub async fn redeliver(self, id: WebhookId, what: Redeliver) -> Result<Redelivered> {
        let era = self.metadata().era();
        let filter = self.row(id).await?.shown().filter();
        let again = match what {
            Redeliver::Event(event) => {
                Redelivered::new(self.again_one((id, era), event, &filter).await?, None)
            }
            Redeliver::Range(after, until) => {
                self.again_range((id, era), &filter, after, until).await?
            }
            Redeliver::Failed => Redelivered::new(self.again_failed((id, era)).await?, None),
        };
        self.wake();
        Ok(again)
    }

    async fn again_one(
        self,
        (id, era): (WebhookId, Era),
        event: EventId,
        filter: &EventFilter,
    ) -> Result<u64> {
        if let Some(failed) = self.metadata().failure_of(id, event).await? {
            return self.requeue(id, vec![failed], era).await;
        }
        let found = self.event(event).await?;
        if !filter.passes(&found) {
            let message = "the webhook does not get events of this type or organization";
            return Err(Error::invalid("event_id", message));
        }
        self.requeue(id, vec![repeat_of(&found)?], era).await
    }

    async fn again_range(
        self,
        (id, era): (WebhookId, Era),
        filter: &EventFilter,
        after: After,
        until: EventId,
    ) -> Result<Redelivered> {
        let naming = self.store.inner().naming.read().clone();
        let end = naming.position(&self.event(until).await?.id);
        let is_behind = match &after {
            After::Start => true,
            After::Event(id) => naming.position(id) < end,
            After::End => false,
        };
        if !is_behind {
            return Err(Error::invalid("until", "the event is not behind the first place"));
        }

        let (mut after, mut queued) = (after, 0);
        for _ in 0..PAGES {
            let page = self.events().page(filter, after, PAGE).await?;
            let within = page.events.iter().filter(|event| naming.position(&event.id) <= end);
            let rows: Vec<_> = within.map(repeat_of).collect::<Result<_>>()?;
            if !rows.is_empty() {
                match self.requeue(id, rows, era).await {
                    Ok(more) => queued += more,
                    Err(error) if error.kind() == ErrorKind::Busy && queued > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            if !page.has_more || page.looked_at >= end {
                return Ok(Redelivered::new(queued, None));
            }
            after = page.next;
        }
        Ok(Redelivered::new(queued, event_of(after)))
    }

    async fn again_failed(self, (id, era): (WebhookId, Era)) -> Result<u64> {
        let (mut after, mut queued) = (0, 0);
        loop {
            let failed = Some(FailureState::Failed);
            let rows = self.metadata().failures(id, failed, after, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(queued) };
            after = last.row;
            queued += self.requeue(id, rows, era).await?;
        }
    }

    async fn requeue(self, id: WebhookId, rows: Vec<FailureRow>, era: Era) -> Result<u64> {
        match self.metadata().requeue(id, rows, era, self.store.now()).await? {
            Requeued::Done(queued) => Ok(queued),
            Requeued::Unknown => Err(unknown()),
            Requeued::Full => {
                let message =
                    format!("too many events wait for the webhook, limit: {MOST_FAILURES}");
                Err(Error::new(ErrorKind::Busy, message).with_limit(MOST_FAILURES))
            }
        }
    }

    /// Reads one event of the log.
    async fn event(self, id: EventId) -> Result<Event> {
        let gone = || Error::new(ErrorKind::EventsGone, format!("the log has no event {id}"));
        let all = EventFilter::new();
        let before = self.events().page_back(&all, After::Event(id), 1).await?;
        let after = match before.events.first() {
            Some(event) => After::Event(event.id),
            None => After::Start,
        };
        let page = self.events().page(&all, after, 1).await?;
        page.events.into_iter().next().filter(|event| event.id == id).ok_or_else(gone)
    }

    /// Finds the event before a place, and checks that the log has it. `None` for the start of the log.
    async fn place(self, from: After) -> Result<Option<EventId>> {
        if from == After::Start {
            return Ok(None);
        }
        let page = self.events().page(&EventFilter::new(), from, 1).await?;
        Ok(event_of(if from == After::End { page.next } else { from }))
    }

    /// Returns the attempts and the reads of the log since the store was opened.
    pub fn counts(self) -> WebhookCounts {
        let state = self.state();
        WebhookCounts {
            delivered: state.delivered.load(Ordering::Relaxed),
            refused: state.refused.load(Ordering::Relaxed),
            unreachable: state.unreachable.load(Ordering::Relaxed),
            shared_reads: state.shared_reads.load(Ordering::Relaxed),
            lane_reads: state.lane_reads.load(Ordering::Relaxed),
        }
    }

    /// Returns the events that the lanes of this process still have to deliver. Other servers have other lanes.
    pub fn backlog(self) -> WebhookBacklog {
        let mut all = WebhookBacklog::default();
        for backlog in self.state().backlogs.lock().values() {
            all.add(backlog);
        }
        all
    }

    async fn change(self, id: WebhookId, change: WebhookChange) -> Result<Webhook> {
        let changed = self.metadata().change_webhook(id, change, self.store.now()).await?;
        let row = changed.ok_or_else(unknown)?;
        self.wake();
        Ok(row.shown())
    }

    async fn row(self, id: WebhookId) -> Result<WebhookRow> {
        let found = self.metadata().webhooks(Some(id)).await?;
        found.into_iter().next().ok_or_else(unknown)
    }

    fn wake(self) {
        self.state().wanted.notify();
    }

    fn state(&self) -> &WebhookState {
        &self.store.inner().webhooks
    }

    fn metadata(&self) -> &dyn Metadata {
        &*self.store.inner().metadata
    }

    fn events(&self) -> super::Events<'_> {
        self.store.events(&Scope::All)
    }
}

fn event_of(place: After) -> Option<EventId> {
    match place {
        After::Event(id) => Some(id),
        After::Start | After::End => None,
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.len() > MOST_NAME_BYTES || name.chars().any(char::is_control) {
        let message = "a webhook's name has at most 200 bytes and no control characters";
        return Err(Error::invalid("name", message).with_limit(MOST_NAME_BYTES as u64));
    }
    Ok(())
}

/// Makes the row of an event that is sent again.
fn repeat_of(event: &Event) -> Result<FailureRow> {
    Ok(FailureRow {
        row: 0,
        event: event.id,
        kind: event.kind,
        organization: event.organization_id.clone(),
        file: event.file_id,
        body: body_of(event)?,
        state: FailureState::Waiting,
        is_repeat: true,
        attempts: 0,
        at: event.at,
        last_status: None,
    })
}

fn unknown() -> Error {
    Error::not_found("webhook").with_field("webhook_id")
}
