use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::files::LOCAL_CLAIMS;
use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::config::{Durability, StoreConfig};
use crate::domain::id::FileId;
use crate::domain::time::clock::ManualClock;
use crate::metadata::{DueFiles, Lease};
use crate::service::NewUpload;
use crate::worker::NoProgress;

/// Counts what advances.
#[derive(Default)]
struct Done(AtomicU64);

impl Progress for Done {
    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, units: u64) {
        self.0.fetch_add(units, Ordering::SeqCst);
    }
}

async fn deleted(store: &FileStore) -> FileId {
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let id = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;
    store.scoped(&Scope::All).delete(id).await.unwrap();
    id
}

#[tokio::test]
async fn a_run_that_is_stopped_leaves_the_rest_to_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig {
        durability: Durability::Process,
        purge_grace: Duration::ZERO,
        ..StoreConfig::default()
    };
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    for _ in 0..=LOCAL_CLAIMS {
        deleted(&store).await;
    }

    let done = Done::default();
    let after_one_claim = || done.0.load(Ordering::SeqCst) > 0;
    let all = PurgeOptions::default();
    let stopped = run(&store, &all, &after_one_claim, &done).await.unwrap();
    assert_eq!((stopped.purged, stopped.waiting), (LOCAL_CLAIMS as u64, 0));
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
}

#[tokio::test]
async fn a_record_stays_until_its_variants_are_gone_too() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let builder = FileStore::builder(dir.path()).clock(clock.clock());
    let store = builder.purge_grace(Duration::ZERO).open().await.unwrap();
    let id = deleted(&store).await;
    // Where the directory of its variants would be: nothing can be listed there.
    let text = id.to_string();
    let in_the_way = store.data_dir().variants().join(&text[24..]).join(&text);
    std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, b"x").unwrap();

    let report = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failed), (0, 1));
    assert_eq!(report.failures[0].file_id, id);
    assert!(store.scoped(&Scope::All).info(id).await.is_ok());

    std::fs::remove_file(&in_the_way).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
}

fn year() -> Duration {
    Duration::from_hours(24 * 365)
}

async fn with_clock(clock: &ManualClock, dir: &std::path::Path) -> FileStore {
    FileStore::builder(dir)
        .clock(clock.clock())
        .durability(Durability::Process)
        .purge_grace(Duration::from_hours(1))
        .open()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_clock_that_leaps_forward_takes_no_file_before_it_has_settled() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = with_clock(&clock, dir.path()).await;
    let temp = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap()).temp();
    let temp = store.upload(temp, &b"bytes"[..]).await.unwrap().file_id;
    let dead = deleted(&store).await;
    let right = clock.clock().now();

    clock.set(right.plus(year()));
    let report = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((report.expired, report.purged, report.is_paused), (0, 0, true));
    assert!(store.scoped(&Scope::All).read(temp).await.is_ok());
    store.scoped(&Scope::All).restore(dead).await.unwrap();

    clock.set(right);
    let report = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((report.expired, report.is_paused), (0, false), "it is back");

    clock.set(right.plus(year()));
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().expired, 0);
    clock.advance(store.config().clock_settle);
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().expired, 1, "it has settled");
}

#[tokio::test]
async fn a_file_touched_while_the_clock_was_ahead_is_purged_when_it_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let right = Timestamp::now();
    let clock = ManualClock::at(right.plus(year()));
    let store = with_clock(&clock, dir.path()).await;
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let touched = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;

    clock.set(right);
    store.scoped(&Scope::All).delete(touched).await.unwrap();
    clock.advance(Duration::from_hours(1));
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
    assert!(store.scoped(&Scope::All).info(touched).await.is_err());
}

const DAY: Duration = Duration::from_hours(24);

/// A store with the default grace period, and its clock.
async fn patient(dir: &std::path::Path) -> (FileStore, ManualClock) {
    let clock = ManualClock::at(Timestamp::now());
    let builder = FileStore::builder(dir).durability(Durability::Process);
    (builder.clock(clock.clock()).open().await.unwrap(), clock)
}

async fn deleted_of(store: &FileStore, organization: &str) -> FileId {
    let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
    let id = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;
    store.scoped(&Scope::All).delete(id).await.unwrap();
    id
}

fn now(organization: Option<&str>) -> PurgeOptions {
    let organization = organization.map(|one| one.parse().unwrap());
    PurgeOptions { when: PurgeWhen::Now, organization }
}

async fn purge(store: &FileStore, options: &PurgeOptions) -> PurgeReport {
    store.admin().purge_with(options, &|| false, &NoProgress).await.unwrap()
}

#[tokio::test]
async fn by_default_a_purge_waits_a_day_and_says_when_the_first_file_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let due = store.now().plus(DAY);
    let id = deleted(&store).await;
    clock.advance(Duration::from_hours(1));
    deleted(&store).await;

    clock.advance(Duration::from_hours(23) - Duration::from_millis(1));
    let early = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((early.purged, early.waiting, early.waiting_bytes), (0, 2, 10));
    assert_eq!(early.next_due_at, Some(due));
    assert_eq!(store.admin().backlog().await.unwrap(), [], "nothing is late");

    clock.advance(Duration::from_millis(1));
    let waiting = store.admin().backlog().await.unwrap();
    assert_eq!((waiting[0].purge.count, waiting[0].purge.oldest), (1, Some(due)));
    let report = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((report.purged, report.waiting), (1, 1));
    assert_eq!(report.next_due_at, Some(due.plus(Duration::from_hours(1))));
    assert!(store.scoped(&Scope::All).restore(id).await.is_err());
}

#[tokio::test]
async fn a_record_has_its_deletion_until_a_restore_takes_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let id = deleted(&store).await;
    let deleted_at = store.now();
    clock.advance(Duration::from_hours(1));
    let again = store.scoped(&Scope::All).delete(id).await.unwrap();
    assert_eq!(again.deletion.map(|deletion| deletion.deleted_at), Some(deleted_at));
    assert_eq!(again.purge_due_at(store.config().purge_grace), Some(deleted_at.plus(DAY)));
    assert_eq!(store.scoped(&Scope::All).info(id).await.unwrap(), again);

    let restored = store.scoped(&Scope::All).restore(id).await.unwrap();
    assert_eq!((restored.deletion, restored.purge_due_at(DAY)), (None, None));
    assert_eq!(store.scoped(&Scope::All).info(id).await.unwrap(), restored);
    let anew = store.scoped(&Scope::All).delete(id).await.unwrap();
    assert_eq!(anew.deletion.map(|deletion| deletion.deleted_at), Some(store.now()));
    store.close().await;
    drop(store);

    let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
    assert_eq!(*store.scoped(&Scope::All).info(id).await.unwrap(), *anew, "read from the disk");
}

#[tokio::test]
async fn a_run_now_waits_for_no_grace_and_takes_one_organization_if_told() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let (own, foreign) = (deleted_of(&store, "7").await, deleted_of(&store, "77").await);
    let live = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
    let live = store.upload(live, &b"live"[..]).await.unwrap().file_id;

    let due = PurgeOptions { organization: Some("7".parse().unwrap()), ..PurgeOptions::default() };
    let report = purge(&store, &due).await;
    assert_eq!((report.purged, report.waiting), (0, 1), "its own one waits");
    let plan = store.admin().purge_plan_of(&now(Some("7"))).await.unwrap();
    assert_eq!((plan.dry_run, plan.purged, plan.purged_bytes, plan.waiting), (true, 1, 5, 0));
    let report = purge(&store, &now(Some("7"))).await;
    assert_eq!((report.purged, report.purged_bytes, report.waiting), (1, 5, 0));
    assert!(store.scoped(&Scope::All).info(own).await.is_err());
    assert!(store.scoped(&Scope::All).read(live).await.is_ok());
    store.scoped(&Scope::All).restore(foreign).await.unwrap();
    store.scoped(&Scope::All).delete(foreign).await.unwrap();

    clock.advance(DAY);
    assert_eq!(purge(&store, &due).await.purged, 0, "the file that is due is another's");
    deleted_of(&store, "7").await;
    assert_eq!(purge(&store, &now(None)).await.purged, 2);
    assert!(store.scoped(&Scope::All).read(live).await.is_ok());
}

#[tokio::test]
async fn an_expired_file_waits_as_a_deleted_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let temp = |name: &str| NewUpload::new(name.parse().unwrap(), "docs".parse().unwrap()).temp();
    let id = store.upload(temp("7"), &b"bytes"[..]).await.unwrap().file_id;
    store.upload(temp("8"), &b"bytes"[..]).await.unwrap();
    clock.advance(store.config().temp_ttl);

    let own = PurgeOptions { organization: Some("7".parse().unwrap()), ..PurgeOptions::default() };
    let report = purge(&store, &own).await;
    assert_eq!((report.expired, report.purged, report.waiting), (1, 0, 1), "one organization");
    assert!(store.scoped(&Scope::All).read(id).await.is_err());
    let restored = store.scoped(&Scope::All).restore(id).await.unwrap();
    assert_eq!(restored.expires_at, Some(store.now().plus(store.config().temp_ttl)));

    clock.advance(store.config().temp_ttl);
    let report = purge(&store, &now(Some("7"))).await;
    assert_eq!((report.expired, report.purged), (1, 1), "in one run");
}

#[tokio::test]
async fn what_a_run_now_could_not_remove_is_tried_again_before_its_grace_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let id = deleted(&store).await;
    let text = id.to_string();
    let in_the_way = store.data_dir().variants().join(&text[24..]).join(&text);
    std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, b"x").unwrap();

    let report = purge(&store, &now(Some("acme"))).await;
    assert_eq!((report.purged, report.failed), (0, 1));
    let error = store.scoped(&Scope::All).restore(id).await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::AlreadyPurging);

    std::fs::remove_file(&in_the_way).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
}

#[tokio::test]
async fn a_run_now_leaves_what_a_snapshot_under_way_may_name() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _clock) = patient(dir.path()).await;
    let id = deleted(&store).await;
    let metadata = &store.inner().metadata;
    metadata.take_hold("a snapshot", store.now(), store.now().plus(DAY)).await.unwrap();
    for organization in [None, Some("acme")] {
        assert_eq!(purge(&store, &now(organization)).await.purged, 0);
    }
    store.scoped(&Scope::All).restore(id).await.unwrap();
    store.scoped(&Scope::All).delete(id).await.unwrap();
    metadata.release_hold("a snapshot").await.unwrap();
    assert_eq!(purge(&store, &now(Some("acme"))).await.purged, 1);
}

#[tokio::test]
async fn a_run_now_takes_a_file_that_was_deleted_while_the_clock_was_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = patient(dir.path()).await;
    let right = store.now();
    clock.set(right.plus(Duration::from_mins(1)));
    deleted(&store).await;
    clock.set(right);
    assert_eq!(purge(&store, &now(None)).await.purged, 1);
}

#[tokio::test]
async fn a_quota_names_the_purge_only_while_deleted_files_of_its_own_count() {
    let dir = tempfile::tempdir().unwrap();
    let builder = FileStore::builder(dir.path()).quota_bytes(9).quota_files(2);
    let store = builder.durability(Durability::Process).open().await.unwrap();
    let upload = async || {
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.map_err(|error| error.to_string())
    };

    deleted_of(&store, "8").await;
    let id = upload().await.unwrap().file_id;
    assert_eq!(upload().await.unwrap_err(), "the organization's quota is 9 bytes");
    store.scoped(&Scope::All).delete(id).await.unwrap();
    let full = upload().await.unwrap_err();
    assert!(full.ends_with("filestore purge run --now --org 7"), "{full}");
    purge(&store, &now(Some("7"))).await;
    upload().await.unwrap();
}

#[tokio::test]
async fn a_purge_that_crashed_after_its_claim_is_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::builder(dir.path()).purge_grace(Duration::ZERO).open().await.unwrap();
    let id = deleted(&store).await;
    let now = store.now();
    let claim = Lease { owner: "the dead", now, until: now.plus(Duration::from_hours(24)) };
    let due = DueFiles::marked_before(now.plus(Duration::from_secs(1)));
    let claimed =
        store.inner().metadata.claim_purges(claim, &ProviderCode::local(), due, 10).await.unwrap();
    assert_eq!(claimed.len(), 1);
    store.close().await;
    drop(store);

    let store = FileStore::builder(dir.path()).purge_grace(Duration::ZERO).open().await.unwrap();
    let refused = store.scoped(&Scope::All).restore(id).await.unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::AlreadyPurging, "a claim outlives its owner");

    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failures.len()), (1, 0));
    let gone = store.scoped(&Scope::All).info(id).await.unwrap_err();
    assert_eq!(gone.kind(), crate::ErrorKind::NotFound);
    store.close().await;
}
