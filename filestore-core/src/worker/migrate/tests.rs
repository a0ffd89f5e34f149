//! Stopping, resuming, pacing, damage, crashes.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::config::StoreConfig;
use crate::domain::provider::ProviderConfig;
use crate::domain::provider::binding::{BindingChange, NewBinding};
use crate::domain::time::clock::{Clock, ManualClock, Timestamp};
use crate::service::NewUpload;
use crate::storage::Priority;
use crate::worker::{NoProgress, purge, sync, upkeep};

fn disk() -> ProviderCode {
    "disk".parse().unwrap()
}

fn seven() -> OrganizationNumber {
    7.try_into().unwrap()
}

/// A store whose organization 7 is bound to the directory `disk` beside it.
async fn bound(home: &Path) -> FileStore {
    bound_by(home, Clock::system()).await
}

async fn bound_by(home: &Path, clock: Clock) -> FileStore {
    let root = home.join("disk").to_str().unwrap().to_owned();
    let provider = ProviderConfig::new(disk(), "fs").with_option("root", root);
    let mut config = StoreConfig { providers: vec![provider], ..StoreConfig::default() };
    config.blob_grace = Duration::ZERO;
    config.sync.concurrency = 2;
    let store = FileStore::builder(home.join("data"));
    let store = store.config(config).clock(clock).open().await.unwrap();
    let binding = NewBinding {
        organization: seven(),
        organization_name: "x".into(),
        provider: disk(),
        sync_enabled: true,
    };
    if store.bindings().list(Some(seven())).await.unwrap().is_empty() {
        store.bindings().create(binding).await.unwrap();
    }
    store
}

async fn upload(store: &FileStore, bytes: &[u8]) -> FileId {
    let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
    store.upload(new, bytes).await.unwrap().file_id
}

fn objects(home: &Path) -> usize {
    fn files(dir: &Path) -> usize {
        let entries =
            std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        let marker = Some(std::ffi::OsStr::new(".filestore-store"));
        let entries = entries.filter(|path| path.file_name() != marker);
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }
    files(&home.join("disk"))
}

#[tokio::test]
async fn a_run_that_is_stopped_goes_on_where_it_was() {
    let home = tempfile::tempdir().unwrap();
    let store = bound(home.path()).await;
    for number in 0..10 {
        upload(&store, format!("file {number}").as_bytes()).await;
    }
    let asked = AtomicUsize::new(0);
    let after_four = || asked.fetch_add(1, Ordering::SeqCst) >= 4;
    let options = MigrateOptions::default();
    let disk = disk();
    let run = super::run(&store, seven(), &disk, options, &after_four, Arc::new(NoProgress));
    let report = run.await.unwrap();
    assert!(report.stopped);
    assert_eq!((report.moved_files, report.left_files), (4, 6));
    store.close().await;
    drop(store);

    let store = bound(home.path()).await;
    let report =
        super::run(&store, seven(), &disk, options, &|| false, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.moved_files, report.left_files, report.stopped), (6, 0, false));
    assert_eq!(objects(home.path()), 10);
}

#[tokio::test]
async fn one_organization_has_one_migration_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let store = bound(home.path()).await;
    upload(&store, b"bytes").await;
    let organization = "7".parse().unwrap();
    let now = store.now();
    let entry =
        store.inner().background.begin_migration(&organization, &disk(), now).await.unwrap();
    let options = MigrateOptions::default();
    let second =
        super::run(&store, seven(), &disk(), options, &|| false, Arc::new(NoProgress)).await;
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(status(&store, seven()).await.unwrap().running.is_some());
    drop(entry);
    assert!(status(&store, seven()).await.unwrap().running.is_none());
    super::run(&store, seven(), &disk(), options, &|| false, Arc::new(NoProgress)).await.unwrap();
}

#[tokio::test]
async fn a_rate_holds_copies_back() {
    let home = tempfile::tempdir().unwrap();
    let store = bound(home.path()).await;
    for _ in 0..3 {
        upload(&store, &[7; 10_000]).await;
    }
    let began = Instant::now();
    let options = MigrateOptions { bytes_per_second: Some(100_000) };
    super::run(&store, seven(), &disk(), options, &|| false, Arc::new(NoProgress)).await.unwrap();
    // The third file may only begin when the first two are paid for: no machine is faster.
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn damaged_bytes_are_found_and_not_moved_home() {
    let home = tempfile::tempdir().unwrap();
    let store = bound(home.path()).await;
    let id = upload(&store, b"as it was").await;
    sync::run(&store, Arc::new(NoProgress)).await.unwrap();
    let key = store.scoped(&Scope::All).record(id).await.unwrap().blob.key.clone();
    std::fs::write(home.path().join("disk").join(key.as_str()), b"as it is!").unwrap();

    let report = verify(&store, seven(), &disk(), Arc::new(NoProgress)).await.unwrap();
    assert_eq!(report.failures[0].file_id, id);
    let change = crate::domain::provider::binding::BindingChange {
        provider: Some(ProviderCode::local()),
        ..crate::domain::provider::binding::BindingChange::default()
    };
    store.bindings().update(seven(), change).await.unwrap();
    let options = MigrateOptions::default();
    let local = ProviderCode::local();
    let run = super::run(&store, seven(), &local, options, &|| false, Arc::new(NoProgress));
    let report = run.await.unwrap();
    assert_eq!((report.moved_files, report.left_files, report.failures.len()), (0, 1, 1));
    assert_eq!(store.scoped(&Scope::All).record(id).await.unwrap().blob.key, key);
    assert_eq!(std::fs::read_dir(store.data_dir().path().join("staging")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_crash_left_at_a_provider_is_removed_after_the_next_start() {
    use crate::domain::id::BlobId;
    use crate::metadata::WriteIntent;

    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = bound_by(home.path(), clock.clock()).await;
    let id = upload(&store, b"bytes").await;
    let record = store.scoped(&Scope::All).record(id).await.unwrap();
    let key = record.blob.key.sibling(BlobId::generate(Timestamp::now()));
    let intent = WriteIntent {
        file_id: id,
        provider: disk(),
        key: key.clone(),
        begun_at: Timestamp::now().minus(Duration::from_secs(1)),
        owner: None,
    };
    // As far as a copy gets before its record refers to it.
    store.inner().metadata.begin_writes(vec![intent]).await.unwrap();
    let source = store.inner().blob_bytes(&record.blob).await.unwrap();
    store.inner().put_object(&record, &disk(), &key, source, Priority::Background).await.unwrap();
    store.close().await;
    drop(store);
    assert_eq!(objects(home.path()), 1);

    let store = bound_by(home.path(), clock.clock()).await;
    let early = purge::run_due(&store, &NoProgress).await.unwrap();
    assert_eq!(early.removed_at.get(&disk()), None, "what was sent may still arrive");
    clock.advance(Duration::from_secs(40));
    let report = purge::run_due(&store, &NoProgress).await.unwrap();
    assert_eq!(report.removed_at.get(&disk()), Some(&1));
    assert_eq!(objects(home.path()), 0);
    assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "bytes");
}

#[tokio::test]
async fn a_run_ends_when_the_organization_is_bound_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let store = bound(home.path()).await;
    for number in 0..PAGE + 10 {
        upload(&store, format!("file {number}").as_bytes()).await;
    }
    let asked = AtomicUsize::new(0);
    // Within the first page; the second one finds another binding.
    let runtime = tokio::runtime::Handle::current();
    let rebind = || {
        if asked.fetch_add(1, Ordering::SeqCst) == 5 {
            let home =
                BindingChange { provider: Some(ProviderCode::local()), ..BindingChange::default() };
            let update = store.bindings().update(seven(), home);
            // On another thread: this one is within the runtime, which waits for nothing.
            std::thread::scope(|scope| {
                scope.spawn(|| runtime.block_on(update)).join().unwrap().unwrap();
            });
        }
        false
    };
    let disk = disk();
    let run = super::run(
        &store,
        seven(),
        &disk,
        MigrateOptions::default(),
        &rebind,
        Arc::new(NoProgress),
    );
    let report = run.await.unwrap();
    assert!(report.stopped, "{report:?}");
    assert_eq!((report.moved_files, report.left_files), (PAGE as u64, 10));
}

#[tokio::test]
async fn a_note_stands_for_days_while_its_run_renews_it_and_goes_when_the_run_is_gone() {
    use crate::domain::id::BlobId;
    use crate::metadata::WriteIntent;

    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = bound_by(home.path(), clock.clock()).await;
    let id = upload(&store, b"bytes").await;
    let record = store.scoped(&Scope::All).record(id).await.unwrap();
    for owner in ["alive", "gone"] {
        let key = record.blob.key.sibling(BlobId::generate(clock.clock().now()));
        let intent = WriteIntent {
            file_id: id,
            provider: disk(),
            key: key.clone(),
            begun_at: clock.clock().now(),
            owner: Some(owner.to_owned()),
        };
        store.inner().metadata.begin_writes(vec![intent]).await.unwrap();
        let source = store.inner().blob_bytes(&record.blob).await.unwrap();
        let inner = store.inner();
        inner.put_object(&record, &disk(), &key, source, Priority::Background).await.unwrap();
    }
    assert_eq!(objects(home.path()), 2);

    for _ in 0..6 {
        clock.advance(Duration::from_hours(20));
        renew_notes(&store, "alive").await;
        upkeep::run(&store).await.unwrap();
    }
    let report = purge::run_due(&store, &NoProgress).await.unwrap();
    assert_eq!(report.removed_at.get(&disk()), Some(&1));
    assert_eq!(objects(home.path()), 1, "five days later, the copy under way is there");
}
