//! Settings, secrets, pings, and where they go.

use std::time::Duration;

use super::fixtures::{Endpoint, Reply, Scripted, local_config};
use super::*;
use crate::domain::event::{EventDetails, EventKind, NewEvent};
use crate::domain::time::clock::ManualClock;
use crate::domain::webhook::{DeliveryFault, DisabledReason};

const NOW: Timestamp = Timestamp::from_millis(1_795_248_930_123);

async fn store_in(dir: &tempfile::TempDir) -> FileStore {
    let clock = ManualClock::at(NOW).clock();
    FileStore::builder(dir.path()).config(local_config()).clock(clock).open().await.unwrap()
}

fn new(url: &str) -> NewWebhook {
    let mut new = NewWebhook::new(url.parse().unwrap());
    new.from = After::Start;
    new
}

async fn ping(store: &FileStore, url: &str) -> PingReport {
    let (webhook, _) = store.webhooks().create(new(url)).await.unwrap();
    store.webhooks().ping(webhook.id).await.unwrap()
}

#[tokio::test]
async fn a_ping_is_signed_and_says_what_came_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::accepting().await;
    let (webhook, secret) = store.webhooks().create(new(&endpoint.url())).await.unwrap();

    let report = store.webhooks().ping(webhook.id).await.unwrap();
    assert_eq!((report.delivered, report.status, report.fault), (true, Some(204), None));
    let received = endpoint.received().remove(0);
    assert!(received.is_signed_with(&secret.to_string()));
    assert_eq!(received.text("/type"), "webhook.ping");
    assert_eq!(received.text("/id"), received.id());
    assert_eq!(received.header("content-type"), Some("application/json"));

    let again = store.webhooks().ping(webhook.id).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Busy);
    assert_eq!(endpoint.received().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let target = Endpoint::accepting().await;
    let line: &'static str = format!("location: {}", target.url()).leak();
    let redirecting = Endpoint::start(move |_, _| Reply::With(307, line)).await;

    let report = ping(&store, &redirecting.url()).await;
    assert_eq!((report.delivered, report.status), (false, Some(307)));
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn endpoints_that_do_not_answer_well_have_a_fault_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = local_config();
    config.webhooks.timeout = Duration::from_secs(1);
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();

    let silent = Endpoint::start(|_, _| Reply::Silence).await;
    assert_eq!(ping(&store, &silent.url()).await.fault, Some(DeliveryFault::Timeout));
    let broken = Endpoint::start(|_, _| Reply::Half).await;
    assert_eq!(ping(&store, &broken.url()).await.fault, Some(DeliveryFault::Broken));
    let endless = Endpoint::start(|_, _| Reply::Endless).await;
    let report = ping(&store, &endless.url()).await;
    assert_eq!((report.status, report.fault), (Some(200), None), "the status is the answer");

    let url = endless.url();
    drop(endless);
    let mut fault = ping(&store, &url).await.fault;
    // The port is closed once its task has ended.
    while fault != Some(DeliveryFault::Connect) {
        tokio::task::yield_now().await;
        fault = ping(&store, &url).await.fault;
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_read_up_to_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::start(|_, _| Reply::EndlessHead).await;
    let fault = ping(&store, &endpoint.url()).await.fault;
    assert_eq!(fault, Some(DeliveryFault::Broken), "before the time limit");
}

#[tokio::test]
async fn every_address_of_a_name_must_be_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::accepting().await;
    let url = format!("http://hooks.example:{}/", endpoint.address.port());

    for answers in [
        &["169.254.169.254"][..],
        &["127.0.0.1", "10.0.0.1"],
        &["::1"],
        &["::ffff:10.0.0.1"],
        &["64:ff9b::a00:1"],
    ] {
        store.inner().webhooks.look_up_with(Scripted::new(&[answers]));
        let report = ping(&store, &url).await;
        assert_eq!(report.fault, Some(DeliveryFault::AddressRefused), "{answers:?}");
    }
    store.inner().webhooks.look_up_with(Scripted::new(&[&[]]));
    assert_eq!(ping(&store, &url).await.fault, Some(DeliveryFault::Dns));
    assert!(endpoint.received().is_empty());

    store.inner().webhooks.look_up_with(Scripted::new(&[&["127.0.0.1"]]));
    assert!(ping(&store, &url).await.delivered);
}

/// A name that has a good address when it is checked, and a bad one at the second look-up.
#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::accepting().await;
    let url = format!("http://hooks.example:{}/", endpoint.address.port());

    let answers: [&[&str]; 2] = [&["127.0.0.1"], &["10.0.0.1"]];
    store.inner().webhooks.look_up_with(Scripted::new(&answers));
    assert!(ping(&store, &url).await.delivered, "one look-up for a connection");
    assert_eq!(ping(&store, &url).await.fault, Some(DeliveryFault::AddressRefused));
    assert_eq!(endpoint.received().len(), 1);
}

#[tokio::test]
async fn a_url_that_the_configuration_does_not_allow_any_more_gets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::accepting().await;
    let (webhook, _) = store.webhooks().create(new(&endpoint.url())).await.unwrap();

    store.reload(crate::domain::config::StoreConfig::default()).await.unwrap();
    let report = store.webhooks().ping(webhook.id).await.unwrap();
    assert_eq!(report.fault, Some(DeliveryFault::AddressRefused));
    assert!(endpoint.received().is_empty());
    let refused = store.webhooks().create(new(&endpoint.url())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UrlRefused);
    let edit = WebhookEdit { url: Some(endpoint.url().parse().unwrap()), ..WebhookEdit::default() };
    let refused = store.webhooks().edit(webhook.id, edit).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UrlRefused);
}

#[tokio::test]
async fn a_rotation_signs_with_both_secrets_and_the_settings_change() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let endpoint = Endpoint::accepting().await;
    let (webhook, first) = store.webhooks().create(new(&endpoint.url())).await.unwrap();
    let hour = Duration::from_hours(1);
    let (rotated, second) = store.webhooks().rotate(webhook.id, hour).await.unwrap();
    assert_eq!(rotated.former_secret_until, Some(NOW.plus(hour)));
    store.webhooks().ping(webhook.id).await.unwrap();
    let received = endpoint.received().remove(0);
    assert!(received.is_signed_with(&first.to_string()));
    assert!(received.is_signed_with(&second.to_string()));

    let long = Duration::from_hours(31 * 24);
    let refused = store.webhooks().rotate(webhook.id, long).await.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("overlap_s"));
    let edit = WebhookEdit { name: Some("shop".into()), ..WebhookEdit::default() };
    assert_eq!(store.webhooks().edit(webhook.id, edit).await.unwrap().name, "shop");
    let edit = WebhookEdit { name: Some("a\nb".into()), ..WebhookEdit::default() };
    let refused = store.webhooks().edit(webhook.id, edit).await.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("name"));

    let disabled = store.webhooks().disable(webhook.id).await.unwrap().disabled.unwrap();
    assert_eq!((disabled.reason, disabled.at), (DisabledReason::Requested, NOW));
    assert_eq!(store.webhooks().list().await.unwrap().len(), 1);
    store.webhooks().delete(webhook.id).await.unwrap();
    let unknown = store.webhooks().delete(webhook.id).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert_eq!(store.webhooks().get(webhook.id).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_second_rotation_does_not_cut_an_overlap_short() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(NOW);
    let builder = FileStore::builder(dir.path()).config(local_config()).clock(clock.clock());
    let store = builder.open().await.unwrap();
    let (webhook, _) = store.webhooks().create(new("http://127.0.0.1:2/")).await.unwrap();
    let hour = Duration::from_hours(1);
    store.webhooks().rotate(webhook.id, hour).await.unwrap();

    clock.advance(hour.saturating_sub(Duration::from_millis(1)));
    let refused = store.webhooks().rotate(webhook.id, hour).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(refused.details().field.as_deref(), Some("overlap_s"));
    let shown = store.webhooks().get(webhook.id).await.unwrap();
    assert_eq!(shown.former_secret_until, Some(NOW.plus(hour)));

    clock.advance(Duration::from_millis(1));
    store.webhooks().rotate(webhook.id, hour).await.unwrap();
    let (ended, _) = store.webhooks().rotate(webhook.id, Duration::ZERO).await.unwrap();
    assert_eq!(ended.former_secret_until, Some(store.now()), "no earlier secret signs");
}

#[tokio::test]
async fn a_long_range_is_sent_again_with_several_requests() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(&dir).await;
    let (webhook, _) = store.webhooks().create(new("http://127.0.0.1:2/")).await.unwrap();
    let event = NewEvent::new(EventKind::FsckEnded, NOW, EventDetails::default());
    let metadata = &store.inner().metadata;
    metadata.note_events(vec![event; PAGE * PAGES + 1]).await.unwrap();
    let events = store.events(&Scope::All);
    let newest = events.page_back(&EventFilter::new(), After::End, 1).await.unwrap().events[0].id;

    let range = Redeliver::Range(After::Start, newest);
    let first = store.webhooks().redeliver(webhook.id, range).await.unwrap();
    assert_eq!(first.queued, (PAGE * PAGES) as u64);
    let rest = Redeliver::Range(After::Event(first.next.unwrap()), newest);
    let second = store.webhooks().redeliver(webhook.id, rest).await.unwrap();
    assert_eq!(second.next, None);
    let rows = metadata.failures(webhook.id, None, 0, 2 * PAGE * PAGES).await.unwrap();
    assert_eq!(rows.len() as u64, first.queued + second.queued);
    assert_eq!(rows.last().unwrap().event, newest);

    let nothing = Redeliver::Range(After::Event(newest), newest);
    let refused = store.webhooks().redeliver(webhook.id, nothing).await.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("until"));
}
