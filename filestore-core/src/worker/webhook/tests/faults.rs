//! One test for each fault that was found in the deliveries.

use super::lease::RENEW_AFTER;
use super::*;
use crate::domain::event::{EventFilter, EventId};
use crate::metadata::{FailureRow, LaneSave};
use crate::worker::NoProgress;

/// Waits until each of these events was received at least twice.
async fn until_repeated(endpoint: &Endpoint, ids: &[String]) {
    let count = |received: &[Received], id: &String| {
        received.iter().filter(|one| one.id() == id.as_str()).count()
    };
    endpoint.until(|received| ids.iter().all(|id| count(received, id) >= 2)).await;
}

#[tokio::test]
async fn enabling_from_an_earlier_place_counts_although_a_lane_runs() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(3).await;
    bench.start();
    let sent = ids(&endpoint.until_count(3).await);

    bench.store.webhooks().enable(webhook.id, Some(After::Start)).await.unwrap();
    until_repeated(&endpoint, &sent).await;
    bench.stop().await;
}

/// Gives an event up, as if its attempts had all failed.
async fn give_up(bench: &Bench, webhook: &Webhook, event: EventId, file: FileId) {
    let metadata = &bench.store.inner().metadata;
    let (owner, now) = ("an earlier owner", bench.store.now());
    let lease = Lease { owner, now, until: now.plus(LEASE) };
    let claimed = metadata.claim_lane(webhook.id, lease).await.unwrap().unwrap();
    let failed = FailureRow {
        row: 0,
        event,
        kind: "file.uploaded".parse().unwrap(),
        organization: Some("acme".parse().unwrap()),
        file: Some(file),
        body: "{}".to_owned(),
        state: FailureState::Failed,
        is_repeat: false,
        attempts: 10,
        at: now,
        last_status: Some(500),
    };
    let save = LaneSave {
        id: webhook.id,
        owner: owner.to_owned(),
        now,
        place: claimed.place,
        ahead: Vec::new(),
        health: claimed.health,
        failed: vec![failed],
        retried: Vec::new(),
        disable: None,
    };
    metadata.save_lane(save).await.unwrap().unwrap();
    metadata.release_lane(webhook.id, owner).await.unwrap();
}

async fn first_event(bench: &Bench) -> EventId {
    let events = bench.store.events(&Scope::All);
    let page = events.page(&EventFilter::new(), After::Start, 1).await.unwrap();
    page.events[0].id
}

#[tokio::test]
async fn a_replayed_event_that_was_given_up_and_fails_again_is_tried_again() {
    let mut bench = Bench::new().await;
    let file = bench.upload().await;
    bench.delete(file).await;
    let endpoint = Endpoint::start(|_, before| match before.len() {
        0 => Reply::Status(500),
        _ => Reply::Status(200),
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    let event = first_event(&bench).await;
    give_up(&bench, &webhook, event, file).await;
    bench.start();

    let failures = bench.until_failures(&webhook, 2).await;
    let states: Vec<_> = failures.iter().map(|one| (one.state, one.attempts)).collect();
    assert_eq!(states, [(FailureState::Waiting, 1), (FailureState::Held, 0)]);
    bench.clock.advance(Duration::from_secs(6));
    bench.until_failures(&webhook, 0).await;
    let received = endpoint.until_count(3).await;
    let kinds: Vec<_> = told(&received).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["file.uploaded", "file.uploaded", "file.deleted"]);

    bench.store.scoped(&Scope::All).restore(file).await.unwrap();
    endpoint.until_count(4).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_range_that_is_sent_again_ahead_of_the_place_does_not_stall_its_files() {
    let mut bench = Bench::new().await;
    let file = bench.upload().await;
    bench.delete(file).await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let endpoint = Endpoint::start(move |_, _| {
        Reply::Status(if well.load(Ordering::SeqCst) { 200 } else { 500 })
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    let event = first_event(&bench).await;
    let again = Redeliver::Range(After::Start, event);
    assert_eq!(bench.store.webhooks().redeliver(webhook.id, again).await.unwrap().queued, 1);
    bench.start();

    bench.until_failures(&webhook, 2).await;
    is_well.store(true, Ordering::SeqCst);
    bench.clock.advance(Duration::from_mins(6));
    endpoint.until(|received| told(received).iter().any(|(kind, _)| kind == "file.deleted")).await;
    bench.until_failures(&webhook, 0).await;
    bench.stop().await;
}

#[tokio::test]
async fn an_erasure_takes_events_out_of_the_memory_of_lanes() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, before| match before.len() {
        0 => Reply::Silence,
        _ => Reply::Status(200),
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(5).await;
    bench.store.inner().uploads.publishing.idle().await;
    bench.start();
    endpoint.until_count(1).await;

    let organization = "acme".parse().unwrap();
    let admin = bench.store.admin();
    let receipt = admin.erase_organization(&organization, &|| false, &NoProgress).await.unwrap();
    assert!(receipt.is_complete, "{receipt:?}");
    let received = endpoint
        .until(|received| told(received).iter().any(|(kind, _)| kind == "organization.erased"))
        .await;
    let uploads = told(&received).into_iter().filter(|(kind, _)| kind == "file.uploaded");
    assert_eq!(uploads.count(), 1, "the event that was under way");
    bench.stop().await;
    assert!(bench.failures(&webhook).await.is_empty());
}

#[tokio::test]
async fn upkeep_forgets_events_that_were_given_up_long_ago() {
    let bench = Bench::new().await;
    let file = bench.upload().await;
    let webhook = bench.webhook("http://127.0.0.1:2/").await;
    let event = first_event(&bench).await;
    give_up(&bench, &webhook, event, file).await;
    let admin = bench.store.admin();

    bench.clock.advance(Duration::from_hours(14 * 24));
    admin.upkeep().await.unwrap();
    assert_eq!(bench.failures(&webhook).await.len(), 1);
    bench.clock.advance(Duration::from_millis(1));
    admin.upkeep().await.unwrap();
    assert!(bench.failures(&webhook).await.is_empty());
}

#[tokio::test]
async fn slow_endpoints_leave_every_other_one_a_place() {
    let mut config = local_config();
    config.webhooks.in_flight = 1;
    config.webhooks.timeout = Duration::from_mins(1);
    let mut bench = Bench::with(config).await;
    let slow = Endpoint::start(|_, _| Reply::Silence).await;
    for _ in 0..40 {
        bench.webhook(&slow.url()).await;
    }
    let fast = Endpoint::accepting().await;
    bench.webhook(&fast.url()).await;
    bench.uploads(3).await;
    bench.start();
    slow.until_count(40).await;
    fast.until_count(3).await;
    bench.kill().await;
}

#[tokio::test]
async fn a_server_that_slept_ends_the_lanes_that_it_lost() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let webhooks = [bench.webhook(&endpoint.url()).await, bench.webhook(&endpoint.url()).await];
    let metadata = &bench.store.inner().metadata;
    let mut lanes = Lanes::new(&bench.store, 8);
    lanes.adjust(metadata.webhooks(None).await.unwrap()).await.unwrap();

    let then = bench.store.now().plus(LEASE);
    let lease = Lease { owner: "another server", now: then, until: then.plus(LEASE) };
    metadata.claim_lane(webhooks[0].id, lease).await.unwrap().expect("the lease is over");
    lanes.shared.lease.renewed(Instant::now().checked_sub(RENEW_AFTER).unwrap());
    lanes.renew_if_old().await.unwrap();

    let lost = webhooks[0].id;
    let told = webhooks.map(|one| lanes.running[&one.id].settings.borrow().clone());
    assert_eq!(told[0], Told::Lost);
    assert!(matches!(told[1], Told::Settings(_)));
    let ended = tokio::time::timeout(HANG, lanes.tasks.join_next_with_id()).await;
    lanes.note_ended(ended.expect("the lane ends").unwrap());
    assert!(!lanes.running.contains_key(&lost));
    lanes.stop().await;
}

#[tokio::test]
async fn healthy_types_pass_events_that_are_always_refused() {
    let mut bench = Bench::new().await;
    let files = bench.uploads(30).await;
    let endpoint = Endpoint::start(|request, _| {
        Reply::Status(if request.text("/type") == "file.uploaded" { 500 } else { 200 })
    })
    .await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.start();
    bench.until(&webhook, |shown| shown.health.paused_until.is_some()).await;
    let other = bench.webhook("http://127.0.0.1:2/").await;
    bench.store.webhooks().disable(other.id).await.unwrap();

    // Each time that a pause is over, one event is a trial.
    let healthy =
        |received: &[Received]| told(received).iter().any(|(kind, _)| kind == "webhook.disabled");
    for _ in 0..2 * files.len() {
        let before = endpoint.received().len();
        bench.clock.advance(Duration::from_mins(11));
        endpoint.until(|received| received.len() > before || healthy(received)).await;
        if healthy(&endpoint.received()) {
            break;
        }
        let attempts = endpoint.received().len();
        bench
            .until(&webhook, |shown| shown.health.last_attempt_at == Some(bench.store.now()))
            .await;
        assert_eq!(endpoint.received().len(), attempts, "one trial");
    }
    assert!(healthy(&endpoint.received()));
    bench.stop().await;
}

#[tokio::test]
async fn a_leap_of_the_clock_disables_no_webhook() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, _| Reply::Status(503)).await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.upload().await;
    bench.start();
    bench.until(&webhook, |shown| shown.health.pauses == 1).await;

    let then = NOW.plus(Duration::from_hours(6 * 24));
    bench.clock.set(then);
    let shown = bench.until(&webhook, |shown| shown.health.pauses == 2).await;
    assert_eq!((shown.disabled, shown.health.failing_since), (None, Some(then)));
    bench.stop().await;
}

#[tokio::test]
async fn days_without_a_server_disable_no_webhook() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start(|_, _| Reply::Status(503)).await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.upload().await;
    bench.start();
    bench.until(&webhook, |shown| shown.health.pauses == 1).await;
    bench.stop().await;

    bench.clock.advance(Duration::from_hours(6 * 24));
    bench.start();
    let shown = bench.until(&webhook, |shown| shown.health.pauses == 2).await;
    let now = Some(bench.store.now());
    assert_eq!((shown.disabled, shown.health.failing_since), (None, now));
    bench.stop().await;
}
