//! Deliveries to real endpoints on the loopback interface.

mod faults;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::config::StoreConfig;
use crate::domain::error::ErrorKind;
use crate::domain::event::After;
use crate::domain::id::FileId;
use crate::domain::time::clock::{ManualClock, Timestamp};
use crate::domain::webhook::{
    DisabledReason, FailureState, NewWebhook, Redeliver, Webhook, WebhookBacklog, WebhookFailure,
    wait_after,
};
use crate::service::NewUpload;
use crate::service::webhooks::fixtures::{Endpoint, Received, Reply, local_config};
use crate::tasks::{self, HANG};

const NOW: Timestamp = Timestamp::from_millis(1_795_248_930_123);

/// A store, with the work of one server.
struct Bench {
    store: FileStore,
    clock: ManualClock,
    running: Option<(JoinHandle<()>, Arc<AtomicBool>)>,
    _dir: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        Self::with(local_config()).await
    }

    async fn with(config: StoreConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = FileStore::builder(dir.path()).config(config).clock(clock.clock());
        Self { store: store.open().await.unwrap(), clock, running: None, _dir: dir }
    }

    async fn webhook(&self, url: &str) -> Webhook {
        let mut new = NewWebhook::new(url.parse().unwrap());
        new.from = After::Start;
        self.store.webhooks().create(new).await.unwrap().0
    }

    async fn upload(&self) -> FileId {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        self.store.upload(new, &b"bytes"[..]).await.unwrap().file_id
    }

    async fn uploads(&self, count: usize) -> Vec<FileId> {
        let mut files = Vec::new();
        for _ in 0..count {
            files.push(self.upload().await);
        }
        files
    }

    async fn delete(&self, file: FileId) {
        self.store.scoped(&Scope::All).delete(file).await.unwrap();
    }

    fn start(&mut self) {
        let (task, stop) = started(&self.store);
        self.running = Some((task, stop));
    }

    async fn stop(&mut self) {
        let (task, stop) = self.running.take().unwrap();
        stop.store(true, Ordering::SeqCst);
        tokio::time::timeout(HANG, task).await.expect("it stops").unwrap();
    }

    async fn kill(&mut self) {
        let (task, _) = self.running.take().unwrap();
        task.abort();
        assert!(task.await.is_err());
    }

    async fn shown(&self, webhook: &Webhook) -> Webhook {
        self.store.webhooks().get(webhook.id).await.unwrap()
    }

    /// Waits until a webhook is as wanted.
    async fn until(&self, webhook: &Webhook, is_so: impl Fn(&Webhook) -> bool) -> Webhook {
        let wait = async {
            loop {
                let shown = self.shown(webhook).await;
                if is_so(&shown) {
                    return shown;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HANG, wait).await.expect("the state comes")
    }

    async fn failures(&self, webhook: &Webhook) -> Vec<WebhookFailure> {
        let page = self.store.webhooks().failures(webhook.id, None, 0, 1000).await.unwrap();
        page.failures
    }

    /// Waits until this number of failures is listed.
    async fn until_failures(&self, webhook: &Webhook, count: usize) -> Vec<WebhookFailure> {
        let wait = async {
            loop {
                let failures = self.failures(webhook).await;
                if failures.len() == count {
                    return failures;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HANG, wait).await.expect("the failures come")
    }
}

fn started(store: &FileStore) -> (JoinHandle<()>, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (store, stopping) = (store.clone(), Arc::clone(&stop));
    let task = tasks::spawn(async move {
        run(&store, &|| stopping.load(Ordering::SeqCst)).await.unwrap();
    });
    (task, stop)
}

/// The type and the file of each request.
fn told(received: &[Received]) -> Vec<(String, String)> {
    received.iter().map(|one| (one.text("/type"), one.text("/data/file_id"))).collect()
}

fn ids(received: &[Received]) -> Vec<String> {
    received.iter().map(|one| one.id().to_owned()).collect()
}

fn without_repeats(received: &[Received]) -> Vec<String> {
    let mut ids = ids(received);
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[tokio::test]
async fn events_arrive_once_signed_and_in_the_order_of_their_files() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let mut new = NewWebhook::new(endpoint.url().parse().unwrap());
    new.from = After::Start;
    let (webhook, secret) = bench.store.webhooks().create(new).await.unwrap();
    let before = bench.uploads(3).await;
    bench.start();
    let after = bench.uploads(3).await;
    for file in &before {
        bench.delete(*file).await;
    }

    let received = endpoint.until_count(9).await;
    assert!(received.iter().all(|one| one.is_signed_with(&secret.to_string())));
    assert_eq!(without_repeats(&received).len(), 9);
    let told = told(&received);
    for file in before.iter().chain(&after).map(FileId::to_string) {
        let of_file: Vec<_> =
            told.iter().filter(|(_, of)| *of == file).map(|(kind, _)| kind.as_str()).collect();
        let is_deleted = before.iter().any(|one| one.to_string() == file);
        let expected: &[&str] =
            if is_deleted { &["file.uploaded", "file.deleted"] } else { &["file.uploaded"] };
        assert_eq!(of_file, expected);
    }
    bench.until(&webhook, |shown| shown.health.last_success_at.is_some()).await;
    bench.stop().await;
    assert!(bench.failures(&webhook).await.is_empty());
    assert_eq!(bench.store.webhooks().oldest_waiting(webhook.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_clean_stop_repeats_nothing() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let _webhook = bench.webhook(&endpoint.url()).await;
    for round in 1..=3 {
        bench.start();
        bench.uploads(5).await;
        endpoint.until_count(5 * round).await;
        bench.stop().await;
    }
    let received = endpoint.received();
    assert_eq!((received.len(), without_repeats(&received).len()), (15, 15));
}

#[tokio::test]
async fn a_webhook_gets_only_its_types_and_its_organization() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let mut new = NewWebhook::new(endpoint.url().parse().unwrap());
    new.from = After::Start;
    new.kinds = vec!["file.deleted".parse().unwrap()];
    new.organization = Some("acme".parse().unwrap());
    bench.store.webhooks().create(new).await.unwrap();
    let other = NewUpload::new("other".parse().unwrap(), "docs".parse().unwrap());
    let other = bench.store.upload(other, &b"bytes"[..]).await.unwrap().file_id;
    bench.delete(other).await;
    let file = bench.upload().await;
    bench.delete(file).await;

    bench.start();
    let received = endpoint.until_count(1).await;
    bench.stop().await;
    assert_eq!(told(&received), [("file.deleted".to_owned(), file.to_string())]);
    assert_eq!(endpoint.received().len(), 1);
}

#[tokio::test]
async fn later_events_of_a_file_wait_while_one_fails_and_other_files_pass() {
    let mut bench = Bench::new().await;
    let (first, second) = (bench.upload().await, bench.upload().await);
    bench.delete(first).await;
    let failing = first.to_string();
    let endpoint = Endpoint::start(move |request, before| {
        let is_first = !before.iter().any(|one| one.id() == request.id());
        let is_upload = request.text("/type") == "file.uploaded";
        if is_first && is_upload && request.text("/data/file_id") == failing {
            return Reply::Status(500);
        }
        Reply::Status(200)
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.start();

    let failures = bench.until_failures(&webhook, 2).await;
    let states: Vec<_> = failures.iter().map(|one| (one.file_id, one.state)).collect();
    let file = Some(first);
    assert_eq!(states, [(file, FailureState::Waiting), (file, FailureState::Held)]);
    assert_eq!(failures[0].last_status, Some(500));
    endpoint.until_count(2).await;

    bench.clock.advance(Duration::from_secs(6));
    let received = endpoint.until_count(4).await;
    let upload = ("file.uploaded".to_owned(), first.to_string());
    let deleted = ("file.deleted".to_owned(), first.to_string());
    let passed = ("file.uploaded".to_owned(), second.to_string());
    assert_eq!(told(&received), [upload.clone(), passed, upload, deleted]);
    assert_eq!(received[0].id(), received[2].id(), "the same id");
    assert_eq!(received[0].body, received[2].body);
    bench.until_failures(&webhook, 0).await;
    bench.stop().await;
}

#[tokio::test]
async fn an_event_that_always_fails_is_given_up_and_can_be_sent_again() {
    let mut bench = Bench::new().await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let endpoint = Endpoint::start(move |_, _| {
        Reply::Status(if well.load(Ordering::SeqCst) { 200 } else { 404 })
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.upload().await;
    bench.start();
    for attempts in 1..=10 {
        endpoint.until_count(attempts as usize).await;
        // The attempt is saved before the clock goes on.
        let wait = async {
            while bench.failures(&webhook).await.iter().all(|one| one.attempts < attempts) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HANG, wait).await.expect("the attempt is saved");
        bench.clock.advance(wait_after(attempts, 1.0).unwrap_or_default());
    }
    let failures = bench.failures(&webhook).await;
    assert_eq!((failures[0].state, failures[0].attempts), (FailureState::Failed, 10));

    is_well.store(true, Ordering::SeqCst);
    let again = bench.store.webhooks().redeliver(webhook.id, Redeliver::Failed).await.unwrap();
    assert_eq!(again.queued, 1);
    let received = endpoint.until_count(11).await;
    assert_eq!(received[0].id(), received[10].id());
    bench.until_failures(&webhook, 0).await;
    bench.stop().await;
}

#[tokio::test]
async fn delivered_events_are_sent_again_one_or_a_range() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(4).await;
    bench.start();
    let sent = ids(&endpoint.until_count(4).await);
    bench.until_failures(&webhook, 0).await;

    let events = bench.store.events(&Scope::All);
    let page = events.page(&crate::domain::event::EventFilter::new(), After::Start, 9).await;
    let events: Vec<_> = page.unwrap().events.iter().map(|event| event.id).collect();
    let webhooks = bench.store.webhooks();
    let one = Redeliver::Event(events[0]);
    assert_eq!(webhooks.redeliver(webhook.id, one).await.unwrap().queued, 1);
    let received = endpoint.until_count(5).await;
    assert_eq!(received[4].id(), events[0].to_string());

    let range = Redeliver::Range(After::Event(events[0]), events[2]);
    assert_eq!(webhooks.redeliver(webhook.id, range).await.unwrap().queued, 2);
    let received = endpoint.until_count(7).await;
    let mut again = ids(&received[5..]);
    again.sort_unstable();
    let mut expected = vec![events[1].to_string(), events[2].to_string()];
    expected.sort_unstable();
    assert_eq!(again, expected);
    assert_eq!(without_repeats(&received).len(), sent.len());

    let backwards = Redeliver::Range(After::Event(events[2]), events[0]);
    let refused = webhooks.redeliver(webhook.id, backwards).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidField);
    bench.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_at_once() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, _| Reply::Status(410)).await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(5).await;
    bench.start();
    let shown = bench.until(&webhook, |shown| shown.disabled.is_some()).await;
    assert_eq!(shown.disabled.unwrap().reason, DisabledReason::Gone);
    assert_eq!(endpoint.received().len(), 1, "the first event was the trial");
    let (task, _) = bench.running.take().unwrap();
    tokio::time::timeout(HANG, task).await.expect("no webhook is enabled").unwrap();
}

#[tokio::test]
async fn a_pause_that_the_endpoint_asks_for_makes_no_failure() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, before| match before.len() {
        0 => Reply::With(429, "retry-after: 120"),
        _ => Reply::Status(200),
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(3).await;
    bench.start();
    let shown = bench.until(&webhook, |shown| shown.health.paused_until.is_some()).await;
    assert_eq!(shown.health.paused_until, Some(NOW.plus(Duration::from_mins(2))));
    assert_eq!((shown.health.last_status, shown.health.failing_since), (Some(429), Some(NOW)));
    assert!(bench.failures(&webhook).await.is_empty());

    bench.clock.advance(Duration::from_secs(119));
    assert_eq!(endpoint.received().len(), 1);
    bench.clock.advance(Duration::from_secs(1));
    let received = endpoint.until_count(4).await;
    assert_eq!(received[0].id(), received[1].id(), "the event is the trial");
    let shown = bench.until(&webhook, |shown| shown.health.paused_until.is_none()).await;
    assert_eq!((shown.health.failing_since, shown.health.pauses), (None, 0));
    bench.stop().await;
}

#[tokio::test]
async fn days_without_success_disable() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, _| Reply::Status(503)).await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(2).await;
    bench.start();
    for attempt in 1..=6 {
        endpoint.until_count(attempt).await;
        bench
            .until(&webhook, |shown| {
                shown.health.pauses as usize >= attempt || shown.disabled.is_some()
            })
            .await;
        bench.clock.advance(Duration::from_hours(25));
    }
    let shown = bench.until(&webhook, |shown| shown.disabled.is_some()).await;
    assert_eq!(shown.disabled.unwrap().reason, DisabledReason::NoSuccess);
    assert!(bench.failures(&webhook).await.is_empty(), "no attempt counts");
}

#[tokio::test]
async fn endpoints_that_are_dead_silent_endless_or_redirecting_harm_no_other() {
    let mut bench = Bench::new().await;
    let good = Endpoint::accepting().await;
    let silent = Endpoint::start(|_, _| Reply::Silence).await;
    let endless = Endpoint::start(|_, _| Reply::Endless).await;
    let broken = Endpoint::start(|_, _| Reply::Half).await;
    let redirecting = Endpoint::start(|_, _| Reply::With(302, "location: http://127.0.0.1/")).await;
    let dead = {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", closed.local_addr().unwrap())
    };
    let dead = bench.webhook(&dead).await;
    for endpoint in [&silent, &endless, &broken, &redirecting] {
        bench.webhook(&endpoint.url()).await;
    }
    bench.webhook(&good.url()).await;
    bench.start();

    let files = bench.uploads(40).await;
    let received = good.until_count(40).await;
    let backlog = bench.store.webhooks().backlog();
    assert!(backlog.first >= 80 && backlog.oldest_at.is_some(), "{backlog:?}");
    let mut told: Vec<_> = told(&received).into_iter().map(|(_, file)| file).collect();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), files.len());
    assert_eq!(silent.until_count(1).await.len(), 1, "one trial");
    assert_eq!(broken.until_count(1).await.len(), 1, "one trial");
    let shown = bench.until(&dead, |shown| shown.health.paused_until.is_some()).await;
    assert!(shown.health.last_fault.is_some() && bench.failures(&dead).await.is_empty());
    bench.kill().await;
    let no_lane_runs = async {
        while bench.store.webhooks().backlog() != WebhookBacklog::default() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, no_lane_runs).await.expect("nothing waits here any more");
}

#[tokio::test]
async fn a_kill_repeats_only_what_was_under_way_with_the_same_ids() {
    let mut bench = Bench::new().await;
    let is_held = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&is_held);
    let endpoint = Endpoint::start(move |_, _| {
        if held.load(Ordering::SeqCst) { Reply::Silence } else { Reply::Status(200) }
    })
    .await;
    let _webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(10).await;
    bench.start();
    endpoint.until_count(10).await;

    is_held.store(true, Ordering::SeqCst);
    bench.uploads(40).await;
    let concurrency = local_config().webhooks.concurrency;
    endpoint.until_count(10 + concurrency).await;
    bench.kill().await;
    is_held.store(false, Ordering::SeqCst);
    // The lane is claimed again when the lease of the killed process has ended.
    bench.clock.advance(lease::LEASE);
    bench.start();

    let received = endpoint.until(|received| without_repeats(received).len() == 50).await;
    assert!(received.len() <= 50 + concurrency, "{}", received.len());
    bench.stop().await;
    let repeats = endpoint.received().len() - 50;
    assert!((1..=concurrency).contains(&repeats), "{repeats}");
}

#[tokio::test]
async fn a_lane_is_one_servers_at_a_time() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let _webhook = bench.webhook(&endpoint.url()).await;
    let servers = [started(&bench.store), started(&bench.store), started(&bench.store)];
    bench.uploads(30).await;
    endpoint.until_count(30).await;
    for (task, stop) in servers {
        stop.store(true, Ordering::SeqCst);
        tokio::time::timeout(HANG, task).await.expect("it stops").unwrap();
    }
    let received = endpoint.received();
    assert_eq!((received.len(), without_repeats(&received).len()), (30, 30));
}

#[tokio::test]
async fn a_disabled_webhook_goes_on_where_it_stood() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    // Without the events that tell of the webhook itself.
    let mut new = NewWebhook::new(endpoint.url().parse().unwrap());
    new.from = After::Start;
    new.kinds = vec!["file.uploaded".parse().unwrap()];
    let (webhook, _) = bench.store.webhooks().create(new).await.unwrap();
    bench.start();
    bench.uploads(2).await;
    endpoint.until_count(2).await;
    bench.store.webhooks().disable(webhook.id).await.unwrap();
    let (task, _) = bench.running.take().unwrap();
    tokio::time::timeout(HANG, task).await.expect("no webhook is enabled").unwrap();

    bench.uploads(3).await;
    assert_eq!(endpoint.received().len(), 2);
    bench.store.webhooks().enable(webhook.id, None).await.unwrap();
    bench.start();
    let received = endpoint.until_count(5).await;
    bench.stop().await;
    assert_eq!(without_repeats(&received).len(), 5);
}

#[tokio::test]
async fn many_webhooks_at_the_end_of_the_log_share_its_reads() {
    const WEBHOOKS: usize = 20;
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    for number in 0..WEBHOOKS {
        bench.webhook(&format!("{}{number}", endpoint.url())).await;
    }
    bench.start();
    bench.upload().await;
    endpoint.until_count(WEBHOOKS).await;
    // Until each lane has read itself to the end, and waits there with the others.
    let mut before = bench.store.webhooks().counts();
    for uploads in 2.. {
        bench.upload().await;
        endpoint.until_count(uploads * WEBHOOKS).await;
        let now = bench.store.webhooks().counts();
        if now.lane_reads == before.lane_reads {
            break;
        }
        before = now;
    }

    let received = endpoint.received().len();
    for uploads in 1..=5 {
        bench.upload().await;
        endpoint.until_count(received + uploads * WEBHOOKS).await;
    }
    bench.stop().await;
    let counts = bench.store.webhooks().counts();
    assert_eq!(counts.lane_reads, before.lane_reads, "{counts:?}");
    assert!(counts.shared_reads < before.shared_reads + 30, "{counts:?}");
    let received = endpoint.received();
    assert_eq!(without_repeats(&received).len() * WEBHOOKS, received.len());
}
