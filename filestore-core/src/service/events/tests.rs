//! Pages, waits and streams.

use std::pin::pin;

use futures_util::StreamExt;

use super::*;
use crate::domain::config::{EventsConfig, StoreConfig};
use crate::domain::error::ErrorKind;
use crate::domain::event::EventId;
use crate::domain::file::record::FileRecord;
use crate::metadata::LogBounds;
use crate::service::NewUpload;
use crate::tasks::HANG;
use crate::worker::NoProgress;

async fn opened(path: &std::path::Path, is_enabled: bool) -> FileStore {
    let events = EventsConfig { enabled: is_enabled, ..EventsConfig::default() };
    let config = StoreConfig { events, purge_grace: Duration::ZERO, ..StoreConfig::default() };
    FileStore::builder(path).config(config).open().await.unwrap()
}

async fn upload(store: &FileStore, organization: &str) -> FileRecord {
    let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
    store.upload(new, &b"bytes"[..]).await.unwrap()
}

fn of(organization: &str) -> Scope {
    Scope::Organizations(vec![organization.parse().unwrap()])
}

async fn page(store: &FileStore, scope: &Scope, after: After, limit: usize) -> EventPage {
    store.events(scope).page(&EventFilter::new(), after, limit).await.unwrap()
}

fn kinds(page: &EventPage) -> Vec<&'static str> {
    page.events.iter().map(|event| event.kind.as_str()).collect()
}

#[tokio::test]
async fn pages_go_on_where_the_page_before_ended() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    let empty = page(&store, &Scope::All, After::End, 9).await;
    assert_eq!((empty.events.len(), empty.next, empty.has_more), (0, After::Start, false));

    let mut files = Vec::new();
    for _ in 0..5 {
        files.push(upload(&store, "a").await.file_id);
    }
    let (mut seen, mut after) = (Vec::new(), After::Start);
    loop {
        let page = page(&store, &Scope::All, after, 2).await;
        assert_eq!(page.next, After::Event(page.events.last().unwrap().id));
        seen.extend(page.events.into_iter().filter_map(|event| event.file_id));
        after = page.next;
        if !page.has_more {
            break;
        }
    }
    assert_eq!(seen, files);
    let end = page(&store, &Scope::All, after, 2).await;
    assert_eq!((end.events.len(), end.next, end.has_more), (0, after, false));
    assert_eq!(page(&store, &Scope::All, After::End, 2).await.next, after);

    let log = store.events(&Scope::All);
    let newest = log.page_back(&EventFilter::new(), After::End, 2).await.unwrap();
    assert_eq!(newest.events[0].file_id, Some(files[4]));
    assert!(newest.has_more);
    let rest = log.page_back(&EventFilter::new(), newest.next, 9).await.unwrap();
    let rest: Vec<_> = rest.events.iter().filter_map(|event| event.file_id).collect();
    assert_eq!(rest, [files[2], files[1], files[0]]);
    for limit in [0, 1001] {
        let refused = log.page(&EventFilter::new(), After::Start, limit).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidField);
    }
}

#[tokio::test]
async fn an_organization_sees_its_files_only_and_no_trace_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    let own = upload(&store, "7").await;
    let number = 7.try_into().unwrap();
    let binding = crate::domain::provider::binding::NewBinding {
        organization: number,
        organization_name: "x".into(),
        provider: "LOCAL".parse().unwrap(),
        sync_enabled: false,
    };
    store.bindings().create(binding).await.unwrap();
    for _ in 0..3 {
        upload(&store, "8").await;
    }

    let first = page(&store, &of("7"), After::Start, 9).await;
    assert_eq!(kinds(&first), ["file.uploaded"], "not the binding");
    assert_eq!(first.events[0].file_id, Some(own.file_id));
    let scope = of("7");
    let log = store.events(&scope);
    let foreign = EventFilter::new().organization("8".parse().unwrap());
    let refused = log.page(&foreign, After::Start, 9).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    let both = Scope::Organizations(vec!["7".parse().unwrap(), "8".parse().unwrap()]);
    assert_eq!(page(&store, &both, After::Start, 9).await.events.len(), 4);
    let all = page(&store, &Scope::All, After::Start, 9).await;
    assert_eq!(all.events.len(), 5);
    let of_eight = store.events(&Scope::All).page(&foreign, After::Start, 9).await.unwrap();
    assert_eq!(of_eight.events.len(), 3);

    // Its cursor stays while others write, as long as it is in the newer half of the log.
    let newest = page(&store, &of("8"), After::Start, 9).await.next;
    assert_eq!(page(&store, &of("8"), newest, 9).await.next, newest);
    upload(&store, "7").await;
    assert_eq!(page(&store, &of("8"), newest, 9).await.next, newest);
    for _ in 0..9 {
        upload(&store, "7").await;
    }
    assert_ne!(page(&store, &of("8"), newest, 9).await.next, newest);
}

#[tokio::test]
async fn a_filter_moves_the_cursor_past_what_it_does_not_let_pass() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    let record = upload(&store, "a").await;
    store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
    store.admin().purge(&NoProgress).await.unwrap();

    let all = page(&store, &Scope::All, After::Start, 9).await;
    assert_eq!(kinds(&all), ["file.uploaded", "file.deleted", "file.purged"]);
    assert_eq!(all.events[1].details.by.as_deref(), Some("library"));
    assert_eq!((all.events[2].version, all.events[2].sub_system.clone()), (None, None));
    let deleted = EventFilter::new().kinds([EventKind::FileDeleted]);
    let page = store.events(&Scope::All).page(&deleted, After::Start, 9).await.unwrap();
    assert_eq!(kinds(&page), ["file.deleted"]);
    assert_eq!(page.next, all.next);
}

#[tokio::test]
async fn a_stream_has_each_event_once_and_waits_for_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    let first = upload(&store, "a").await;
    let scope = of("a");
    let mut stream = pin!(store.events(&scope).follow(EventFilter::new(), After::Start));
    let event = stream.next().await.unwrap().unwrap();
    assert_eq!(event.file_id, Some(first.file_id));

    let (next, second) = tokio::join!(tokio::time::timeout(HANG, stream.next()), async {
        upload(&store, "b").await;
        upload(&store, "a").await
    });
    assert_eq!(next.unwrap().unwrap().unwrap().file_id, Some(second.file_id));
}

#[tokio::test]
async fn a_wait_ends_with_the_first_event_or_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    upload(&store, "a").await;
    let after = page(&store, &Scope::All, After::End, 1).await.next;
    let (log, filter) = (store.events(&Scope::All), EventFilter::new());

    let (waited, record) =
        tokio::join!(log.wait(&filter, after, 9, HANG), async { upload(&store, "a").await });
    assert_eq!(waited.unwrap().events[0].file_id, Some(record.file_id));
    let after = page(&store, &Scope::All, After::End, 1).await.next;
    let nothing = log.wait(&filter, after, 9, Duration::from_millis(1)).await.unwrap();
    assert_eq!((nothing.events.len(), nothing.next), (0, after));
}

#[tokio::test]
async fn a_cursor_that_the_log_does_not_know_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    for _ in 0..3 {
        upload(&store, "a").await;
    }
    let log = page(&store, &Scope::All, After::Start, 9).await;
    let gone = |id: EventId| {
        let store = store.clone();
        async move {
            let log = store.events(&Scope::All);
            log.page(&EventFilter::new(), After::Event(id), 9).await.map_err(|error| error.kind())
        }
    };
    assert_eq!(gone(log.events[0].id).await.unwrap().events.len(), 2);
    // Half of them name a position that no database can store.
    for byte in 0..16 {
        let forged = EventId::from_bytes([byte; 16]);
        assert_eq!(gone(forged).await.unwrap_err(), ErrorKind::EventsGone);
    }

    let mut stream =
        pin!(store.events(&Scope::All).follow(EventFilter::new(), After::Event(log.events[0].id)));
    let bounds = LogBounds { before: store.now().plus(HANG), most: 100 };
    assert_eq!(store.inner().metadata.forget_events(bounds, 9).await.unwrap(), 1);
    assert_eq!(gone(log.events[0].id).await.unwrap_err(), ErrorKind::EventsGone);
    assert_eq!(gone(log.events[2].id).await.unwrap().events.len(), 0, "the newest stays");
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EventsGone);
    assert!(stream.next().await.is_none(), "an error ends the stream");
}

#[tokio::test]
async fn a_log_that_is_off_refuses_and_tells_its_gap_later() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    upload(&store, "a").await;
    let cursor = page(&store, &Scope::All, After::End, 1).await.next;
    store.close().await;
    drop(store);

    let store = opened(dir.path(), false).await;
    upload(&store, "a").await;
    let log = store.events(&Scope::All);
    let refused = log.page(&EventFilter::new(), cursor, 9).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::EventsOff);
    store.close().await;
    drop(store);

    let guest = FileStore::builder(dir.path()).as_guest().open().await.unwrap();
    upload(&guest, "a").await;
    guest.close().await;
    drop(guest);

    let store = opened(dir.path(), true).await;
    upload(&store, "a").await;
    let scopes = [Scope::All, of("a"), of("b")];
    for scope in &scopes {
        let refused = store.events(scope).page(&EventFilter::new(), cursor, 9).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::EventsGone, "{scope:?}");
    }

    let ready = EventFilter::new().kinds([EventKind::FileReady]);
    for scope in &scopes {
        let page = store.events(scope).page(&ready, After::Start, 9).await.unwrap();
        assert_eq!(kinds(&page), ["log.gap"], "{scope:?}");
        assert!(page.events[0].details.off_since.is_some());
    }
    let all = page(&store, &Scope::All, After::Start, 9).await;
    assert_eq!(kinds(&all), ["log.gap", "file.uploaded"]);

    // Events from before the gap are kept, and count.
    let load = store.inner().event_log().await.unwrap();
    let log = store.events(&Scope::All);
    let whole = log.page_back(&EventFilter::new(), After::End, 9).await.unwrap();
    assert_eq!((load.is_on, load.kept), (true, 3));
    assert_eq!(load.oldest_at, whole.events.last().map(|event| event.at));
    assert_eq!(load.gap_at, Some(all.events[0].at));
    assert_eq!((load.held_back, load.held_back_for), (0, Duration::ZERO));
}

/// Another server switched the log off and on again, or the key was not known when the store was opened.
#[tokio::test]
async fn a_read_takes_over_the_key_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path(), true).await;
    upload(&store, "a").await;
    let before = page(&store, &Scope::All, After::Start, 9).await;

    *store.inner().naming.write() = EventNaming::new([1; 32]);
    assert_eq!(page(&store, &Scope::All, before.next, 9).await.events.len(), 0);
    *store.inner().naming.write() = EventNaming::new([1; 32]);
    assert_eq!(page(&store, &Scope::All, After::Start, 9).await, before);
    let position = store.events(&Scope::All).position(&before.events[0]);
    assert_eq!(position, before.looked_at);
}
