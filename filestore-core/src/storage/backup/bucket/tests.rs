//! Runs of several processes at one provider, and what is left of those that were killed.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::lease::{LATE_REMOVALS, LEASE};
use super::names::BeatName;
use super::*;
use crate::domain::id::StoreId;
use crate::storage::backup::contract::{Place, bucket, bytes_of, content, fresh_id, take};

const STORE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// More than the times of files are inexact by.
const SECOND: Duration = Duration::from_secs(1);

/// Leaves the beat of a run, as a process does that was killed so long ago.
fn leave_beat(
    place: &Place,
    run: SnapshotId,
    kind: RunKind,
    store: Option<StoreId>,
    ago: Duration,
) {
    let name = BeatName { run, kind, store, number: 3 }.object();
    let path = place.root.join(name.strip_prefix(".filestore-backup/").unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "a run is under way\n").unwrap();
    #[expect(clippy::disallowed_methods, reason = "the time of a file is the system's")]
    let at = SystemTime::now() - ago;
    File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

fn beats(place: &Place) -> usize {
    std::fs::read_dir(place.root.join("runs")).map_or(0, Iterator::count)
}

fn revoked(place: &Place, run: SnapshotId) -> PathBuf {
    place.root.join("snapshots").join(format!("{run}.revoked"))
}

#[tokio::test]
async fn a_run_leaves_no_beat_behind_also_if_it_is_cancelled() {
    let place = Place::provider().await;
    let claimed = place.claim(RunKind::Create).await.unwrap();
    assert_eq!(beats(&place), 1);
    drop(claimed);
    while beats(&place) > 0 {
        tokio::task::yield_now().await;
    }
    place.claim(RunKind::Prune).await.unwrap().release().await;
    assert_eq!(beats(&place), 0);
}

#[tokio::test]
async fn a_run_of_a_killed_process_keeps_a_prune_out_for_the_length_of_its_lease() {
    let place = Place::provider().await;
    let dead = fresh_id();
    leave_beat(&place, dead, RunKind::Create, None, Duration::from_mins(1));
    let refused = place.claim(RunKind::Prune).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked);
    assert!(refused.message().ends_with("try again in 9 minutes"), "{refused}");
    place.claim(RunKind::Create).await.expect("snapshots go on").release().await;

    leave_beat(&place, dead, RunKind::Create, None, LEASE + SECOND);
    let claimed = place.claim(RunKind::Prune).await.unwrap();
    assert!(revoked(&place, dead).exists());
    claimed.release().await;
    assert_eq!(beats(&place), 0);
}

#[tokio::test]
async fn who_has_the_data_directory_need_not_wait_for_the_run_that_was_killed_there() {
    let place = Place::provider().await;
    let (store, other) =
        (Some(STORE.parse().unwrap()), Some("01ARZ3NDEKTSV4RRFFQ69G5FAW".parse().unwrap()));
    let prune = async |store| place.claim_as(fresh_id(), RunKind::Prune, store).await;
    leave_beat(&place, fresh_id(), RunKind::Create, store, Duration::ZERO);
    assert_eq!(prune(other).await.unwrap_err().kind(), ErrorKind::Locked);
    prune(store).await.unwrap().release().await;

    // One of this process goes on.
    let claimed = place.claim_as(fresh_id(), RunKind::Create, store).await.unwrap();
    assert_eq!(prune(store).await.unwrap_err().kind(), ErrorKind::Locked);
    claimed.release().await;
}

#[tokio::test]
async fn a_snapshot_that_was_taken_for_dead_does_not_count_when_its_manifest_comes_late() {
    let place = Place::provider().await;
    let id = fresh_id();
    let asleep = place.claim_as(id, RunKind::Create, None).await.unwrap();
    take(&*asleep, "one", None).await.unwrap();
    for path in std::fs::read_dir(place.root.join("runs")).unwrap() {
        let file = File::options().write(true).open(path.unwrap().path()).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    let prune = place.claim(RunKind::Prune).await.unwrap();
    prune.sweep(Arc::new(|_| ())).await.unwrap();
    prune.release().await;
    assert!(place.files_of("one").is_empty());
    assert_eq!(asleep.confirm().await.unwrap_err().kind(), ErrorKind::Conflict);

    // As one that fell asleep right before its manifest.
    let late = BackupBucket { run: None, ..bucket(place.root.parent().unwrap()).await };
    let manifest = Part::Manifest.object(id);
    late.cloud.put_text(&manifest, "late\n".to_owned()).await.unwrap();
    assert!(place.destination.snapshots().await.unwrap().is_empty());

    let prune = place.claim(RunKind::Prune).await.unwrap();
    prune.clear().await.unwrap();
    prune.release().await;
    assert_eq!(late.cloud.object_size(&manifest).await.unwrap(), None);
    assert!(revoked(&place, id).exists(), "it may come later still");
}

#[tokio::test]
async fn a_finished_snapshot_is_not_revoked_for_a_beat_that_was_left() {
    let place = Place::provider().await;
    let id = place.snapshot(&["one"]).await;
    leave_beat(&place, id, RunKind::Create, None, 2 * LEASE);
    place.claim(RunKind::Prune).await.unwrap().release().await;
    assert_eq!(place.destination.snapshots().await.unwrap(), [id]);
}

#[tokio::test]
async fn after_a_prune_that_was_killed_no_run_counts_on_what_it_may_still_remove() {
    let place = Place::provider().await;
    let claimed = place.claim(RunKind::Create).await.unwrap();
    let left = take(&*claimed, "left", None).await.unwrap();
    claimed.release().await;

    let dead = fresh_id();
    leave_beat(&place, dead, RunKind::Prune, None, 2 * LEASE);
    let claimed = place.claim(RunKind::Create).await.unwrap();
    let anew = take(&*claimed, "left", None).await.unwrap();
    assert_ne!(anew.by, left.by, "stored anew, under another name");
    let vouched = take(&*claimed, "left", Some(left)).await.unwrap();
    assert_eq!(vouched, left, "what the newest snapshot names is on no list");
    claimed.release().await;

    place.claim(RunKind::Prune).await.unwrap().release().await;
    assert_eq!(beats(&place), 1, "for a day");
    leave_beat(&place, dead, RunKind::Prune, None, LATE_REMOVALS + SECOND);
    place.claim(RunKind::Prune).await.unwrap().release().await;
    assert_eq!(beats(&place), 0);
    let claimed = place.claim(RunKind::Create).await.unwrap();
    let found = take(&*claimed, "left", None).await.unwrap();
    assert!([left, anew].contains(&found));
}

#[tokio::test]
async fn two_snapshots_that_are_made_at_once_harm_each_other_in_nothing() {
    let place = Place::provider().await;
    let [one, other] = [fresh_id(), fresh_id()];
    let first = place.claim_as(one, RunKind::Create, None).await.unwrap();
    let second = place.claim_as(other, RunKind::Create, None).await.unwrap();
    first.receive(content("same"), bytes_of("same")).await.unwrap().unwrap();
    second.receive(content("same"), bytes_of("same")).await.unwrap().unwrap();
    place.finish(&*first, one, &["same", "one"]).await.unwrap();
    place.finish(&*second, other, &["same", "other"]).await.unwrap();
    first.release().await;
    second.release().await;

    let mut made = vec![one, other];
    made.sort_unstable();
    assert_eq!(place.destination.snapshots().await.unwrap(), made);
    let prune = place.claim(RunKind::Prune).await.unwrap();
    prune.sweep(Arc::new(|_| ())).await.unwrap();
    prune.release().await;
    let claimed = place.claim(RunKind::Restore).await.unwrap();
    for id in made {
        let mut manifest = place.destination.manifest(id).await.unwrap();
        let first = blocking("reading", move || manifest.next_entry()).await.unwrap().unwrap();
        let stored = first.stored().unwrap();
        assert_eq!(claimed.digest(vec![stored]).await.remove(0).unwrap(), Some(stored.expected));
    }
}

#[tokio::test]
async fn a_marker_of_another_version_is_refused() {
    let place = Place::provider().await;
    std::fs::write(place.root.join("marker"), "format 2\nid x\n").unwrap();
    let refused = place.destination.identify(Timestamp::from_millis(0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    std::fs::remove_file(place.root.join("marker")).unwrap();
    std::fs::create_dir_all(place.root.join("snapshots")).unwrap();
    std::fs::write(place.root.join("snapshots/x.jsonl"), "").unwrap();
    let bucket = BackupBucket { run: None, ..place_bucket(&place) };
    let refused = BackupBucket::prepare(&bucket.cloud, Timestamp::now()).await.unwrap_err();
    assert!(refused.message().contains("put that object back"), "{refused}");
}

fn place_bucket(place: &Place) -> BackupBucket {
    use crate::domain::provider::ProviderConfig;
    use crate::storage::ProviderRegistry;

    let code: crate::domain::provider::ProviderCode = "bucket".parse().unwrap();
    let root = place.root.parent().unwrap().to_str().unwrap();
    let config = ProviderConfig::new(code.clone(), "fs").with_option("root", root);
    let cloud = ProviderRegistry::open(&[config]).unwrap().cloud(&code).unwrap().clone();
    BackupBucket { cloud, run: None }
}
