//! The time of the newest complete snapshot, for monitoring.

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::event::{After, EventFilter, EventKind};
use crate::domain::time::clock::{ManualClock, Timestamp};

async fn back_up(store: &FileStore) -> BackupReport {
    let backups = store.admin().backups("nightly").await.unwrap();
    store.admin().backup(&backups, BackupOptions::default(), Arc::new(NoProgress)).await.unwrap()
}

async fn last(store: &FileStore) -> Vec<(String, Option<Timestamp>)> {
    let last = store.admin().last_backups().await.unwrap();
    last.into_iter().map(|last| (last.destination, last.taken_at)).collect()
}

/// Returns whether the backups that the log tells of were good. All of them name their destination, and no path.
async fn ended(store: &FileStore) -> Vec<bool> {
    let filter = EventFilter::new();
    let page = store.events(&Scope::All).page(&filter, After::Start, 100).await.unwrap();
    let ended = page.events.into_iter().filter(|event| event.kind == EventKind::BackupEnded);
    ended
        .map(|event| {
            assert_eq!(event.details.reason.as_deref(), Some("nightly"));
            event.details.ok.unwrap()
        })
        .collect()
}

#[tokio::test]
async fn the_newest_complete_snapshot_of_each_destination_is_known_by_its_time() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("kept")).unwrap();
    let config = StoreConfig {
        backup_destinations: vec![
            BackupDestination::new("nightly", home.path().join("kept").as_path()),
            BackupDestination::new("never", "/nowhere"),
        ],
        ..StoreConfig::default()
    };
    let clock = ManualClock::at(Timestamp::now());
    let builder = FileStore::builder(home.path().join("data")).config(config).clock(clock.clock());
    let store = builder.clone().open().await.unwrap();
    let at =
        |nightly: Option<Timestamp>| [("nightly".to_owned(), nightly), ("never".to_owned(), None)];
    upload(&store, "42", "whole").await;
    assert_eq!(last(&store).await, at(None));

    let whole = back_up(&store).await;
    assert!(whole.is_good());
    assert_eq!(last(&store).await, at(Some(whole.snapshot.created_at)));

    clock.advance(Duration::from_hours(1));
    let lost = upload(&store, "42", "lost").await;
    store.inner().uploads.publishing.idle().await;
    let blob = home.path().join("data/blobs").join(lost.blob.key.as_str());
    std::fs::remove_file(&blob).unwrap();
    assert!(!back_up(&store).await.is_good());
    assert_eq!(last(&store).await, at(Some(whole.snapshot.created_at)), "it lacks a file");

    std::fs::write(&blob, "lost").unwrap();
    clock.advance(Duration::from_hours(1));
    let newest = back_up(&store).await;
    assert!(newest.is_good() && newest.snapshot.created_at > whole.snapshot.created_at);
    assert_eq!(ended(&store).await, [true, false, true]);

    // A file stands in the way of the snapshot.
    let kept = home.path().join("kept");
    let backups = store.admin().backups("nightly").await.unwrap();
    std::fs::rename(&kept, home.path().join("away")).unwrap();
    std::fs::write(&kept, "").unwrap();
    let options = BackupOptions::default();
    store.admin().backup(&backups, options, Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(ended(&store).await, [true, false, true, false]);
    store.close().await;
    drop(store);

    let store = builder.open().await.unwrap();
    assert_eq!(last(&store).await, at(Some(newest.snapshot.created_at)), "also after a restart");
    store.close().await;
}
