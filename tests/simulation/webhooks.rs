//! A receiver of webhooks, and its oracle: each event arrives, in the order of its file, and no other one does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use filestore_core::api;
use filestore_core::events::{After, Event, EventKind};
use filestore_core::internals::service::{Endpoints, Posted};
use filestore_core::internals::tasks::simulation;
use filestore_core::webhooks::{FailureState, NewWebhook, Redeliver, WebhookId};
use filestore_core::{FileId, FileStore, OrganizationId};
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::client::{pause, pause_for};
use super::events;

/// The webhook that gets every event, and the one that gets some kinds.
const URLS: [&str; 2] = ["https://receiver.example/all", "https://receiver.example/some"];

/// The kinds of the second webhook.
const SOME: [EventKind; 2] = [EventKind::FileUploaded, EventKind::FilePurged];

/// The longest time until every event has arrived, once the receiver is well.
const PATIENCE: Duration = Duration::from_hours(3);

/// The events that a lane can send at the same time, so that a kill can repeat them.
const CONCURRENCY: usize = 8;

/// The behaviour of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// Takes up to 20 s for an answer.
    Slow,
    /// Refuses some events.
    Picky,
    /// Has no time for any event.
    Busy,
    /// The connection breaks before the answer, although some events have arrived.
    Broken,
}

/// One delivery.
#[derive(Debug, Clone)]
struct Received {
    url: String,
    id: String,
    body: String,
    /// The number of arrivals and acceptances before the delivery was accepted. `None` if the receiver did not accept
    /// the event, or was asked by a process that was killed before the answer.
    accepted: Option<u64>,
    /// The number of arrivals and acceptances before this arrival.
    arrived: u64,
}

#[derive(Debug)]
struct Desk {
    mood: Mood,
    received: Vec<Received>,
    moment: u64,
}

/// The receiver, which outlives the process.
#[derive(Clone)]
pub(crate) struct Receiver {
    desk: Arc<Mutex<Desk>>,
    /// True if it refuses some events at all times, so that some wait at each kill.
    is_picky: bool,
}

impl Desk {
    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }
}

impl Endpoints for Receiver {
    fn receive(&self, posted: Posted) -> BoxFuture<'static, Option<u16>> {
        let receiver = self.clone();
        Box::pin(async move { receiver.take(posted).await })
    }
}

impl Receiver {
    /// Creates a receiver whose mood changes, or one that is always picky.
    pub(crate) fn new(is_picky: bool) -> Self {
        let mood = if is_picky { Mood::Picky } else { Mood::Well };
        let desk = Desk { mood, received: Vec::new(), moment: 0 };
        Self { desk: Arc::new(Mutex::new(desk)), is_picky }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap()
    }

    /// Connects a process, and makes the webhooks if there are none.
    pub(crate) async fn connect(&self, store: &FileStore) {
        store.webhooks().deliver_to(Arc::new(self.clone()));
        if !store.webhooks().list().await.unwrap().is_empty() {
            return;
        }
        for url in URLS {
            let mut new = NewWebhook::new(url.parse().unwrap());
            new.from = After::Start;
            if url == URLS[1] {
                new.kinds = SOME.to_vec();
            }
            store.webhooks().create(new).await.unwrap();
        }
    }

    /// Changes the behaviour, for ever. The receiver is well about half of the time.
    pub(crate) async fn change(&self) {
        let bad = [Mood::Slow, Mood::Picky, Mood::Busy, Mood::Broken];
        loop {
            pause(30, 900).await;
            let index = usize::try_from(simulation::below(8)).unwrap();
            let mood = bad.get(index).copied().unwrap_or(Mood::Well);
            let mood = if self.is_picky { Mood::Picky } else { mood };
            simulation::note(|| format!("mood of the receiver: {mood:?}"));
            self.desk().mood = mood;
        }
    }

    async fn take(&self, Posted { url, id, body }: Posted) -> Option<u16> {
        let body = String::from_utf8(body.to_vec()).unwrap();
        let (mood, number) = {
            let mut desk = self.desk();
            let arrived = desk.next_moment();
            desk.received.push(Received { url, id: id.clone(), body, accepted: None, arrived });
            (desk.mood, desk.received.len() - 1)
        };
        pause_for(simulation::below(if mood == Mood::Slow { 20_000 } else { 50 })).await;

        let status = match mood {
            Mood::Well | Mood::Slow => Some(204),
            Mood::Picky => Some(if simulation::below(4) == 0 { 500 } else { 200 }),
            Mood::Busy => Some(503),
            Mood::Broken => None,
        };
        simulation::note(|| format!("the receiver answers {status:?} to {id}"));
        let mut desk = self.desk();
        if status.is_some_and(|status| status < 300) {
            let accepted = Some(desk.next_moment());
            desk.received[number].accepted = accepted;
        }
        status
    }

    /// Returns the number of accepted deliveries.
    pub(crate) fn accepted(&self) -> u64 {
        self.desk().received.iter().filter(|one| one.accepted.is_some()).count() as u64
    }

    /// Checks what has arrived in all lives of the process.
    pub(crate) async fn expect_every_event(
        &self,
        store: &FileStore,
        lives: u64,
        is_erased: impl Fn(&OrganizationId) -> bool,
    ) {
        self.desk().mood = Mood::Well;
        let log = events::all(store).await;
        for (url, wanted) in URLS.iter().zip([None, Some(SOME)]) {
            let is_wanted = |event: &&Event| wanted.is_none_or(|kinds| kinds.contains(&event.kind));
            let log: Vec<_> = log.iter().filter(is_wanted).collect();
            self.until_all_arrived(store, url, &log).await;
            self.expect_order(url, &log);
        }
        // Newer events can have arrived meanwhile.
        self.expect_no_other(&events::all(store).await, is_erased);
        self.expect_few_repeats(lives);
    }

    /// Waits until each event was accepted. Events that wait for their next attempt are sent now.
    async fn until_all_arrived(&self, store: &FileStore, url: &str, log: &[&Event]) {
        let webhooks = store.webhooks().list().await.unwrap();
        let webhook = webhooks.iter().find(|one| one.url.as_str() == url).unwrap();
        assert_eq!(webhook.disabled, None, "no receiver was away for days");

        let pause = Duration::from_secs(30);
        let mut passed = Duration::ZERO;
        loop {
            let accepted = self.accepted_ids(url);
            let mut missing = log.iter().filter(|event| !accepted.contains(&event.id.to_string()));
            let Some(first) = missing.next() else { return };
            assert!(passed < PATIENCE, "{first:?} and {} more never arrived", missing.count());
            send_now(store, webhook.id).await;
            sleep(pause).await;
            passed += pause;
        }
    }

    fn accepted_ids(&self, url: &str) -> BTreeSet<String> {
        let desk = self.desk();
        let accepted = desk.received.iter().filter(|one| one.url == url && one.accepted.is_some());
        accepted.map(|one| one.id.clone()).collect()
    }

    /// Expects that no event of a file was sent before the receiver had accepted the one before.
    fn expect_order(&self, url: &str, log: &[&Event]) {
        let (mut arrived, mut accepted) = (BTreeMap::new(), BTreeMap::new());
        for one in self.desk().received.iter().filter(|one| one.url == url) {
            arrived.entry(one.id.clone()).or_insert(one.arrived);
            if let Some(moment) = one.accepted {
                accepted.entry(one.id.clone()).or_insert(moment);
            }
        }
        let mut last: BTreeMap<FileId, &Event> = BTreeMap::new();
        for event in log {
            let Some(file) = event.file_id else { continue };
            if let Some(before) = last.insert(file, event) {
                let is_in_order = accepted[&before.id.to_string()] < arrived[&event.id.to_string()];
                assert!(is_in_order, "{event:?} was sent before {before:?} was accepted");
            }
        }
    }

    /// Expects that all that arrived is in the log, word by word, or was erased from it.
    fn expect_no_other(&self, log: &[Event], is_erased: impl Fn(&OrganizationId) -> bool) {
        let bodies: BTreeMap<_, _> = log
            .iter()
            .map(|event| (event.id.to_string(), serde_json::to_string(&api::Event::from(event))))
            .collect();
        for one in &self.desk().received {
            if let Some(body) = bodies.get(&one.id) {
                assert_eq!(one.body, *body.as_ref().unwrap());
                continue;
            }
            let event: api::Event = serde_json::from_str(&one.body).unwrap();
            let organization = event.data.organization_id.map(|text| text.parse().unwrap());
            assert!(organization.is_some_and(|one| is_erased(&one)), "invented: {one:?}");
        }
    }

    /// Expects that only kills repeat events that were accepted, and each of them only what was under way.
    fn expect_few_repeats(&self, lives: u64) {
        for url in URLS {
            let desk = self.desk();
            let all = desk.received.iter().filter(|one| one.url == url && one.accepted.is_some());
            let all = all.count();
            drop(desk);
            let repeats = all - self.accepted_ids(url).len();
            let most = usize::try_from(lives).unwrap() * CONCURRENCY;
            assert!(repeats <= most, "{repeats} of {all} were repeats, in {lives} lives");
        }
    }
}

/// Lets events that wait for another attempt be sent now.
async fn send_now(store: &FileStore, webhook: WebhookId) {
    let waiting = Some(FailureState::Waiting);
    let page = store.webhooks().failures(webhook, waiting, 0, 1000).await.unwrap();
    for failure in page.failures {
        let again = Redeliver::Event(failure.event_id);
        store.webhooks().redeliver(webhook, again).await.unwrap();
    }
}
