//! Uploads in parts that nobody finished.

use std::path::Path;
use std::time::Duration;

use filestore_core::admin::{FindingKind, FsckMode, FsckOptions, FsckReport, NoProgress};
use filestore_core::bindings::NewBinding;
use filestore_core::{BlobId, BlobKey, FileStore, ManualClock, NewUpload, StoreConfig, Timestamp};
use filestore_workspace::{Remote, eventually};

pub(crate) const A_DAY_AND_MORE: Duration = Duration::from_hours(25);

/// A store by a clock of the test, whose organization 7 has a file at the provider; and that file's key.
pub(crate) async fn open(
    home: &Path,
    remote: &Remote,
    clock: &ManualClock,
) -> (FileStore, BlobKey) {
    let mut config = StoreConfig::default();
    config.providers = vec![remote.config.clone()];
    let builder = FileStore::builder(home).config(config).clock(clock.clock());
    let store = builder.open().await.unwrap();

    let code = remote.config.code.clone();
    let binding = NewBinding::new(7.try_into().unwrap(), "Acme", code);
    store.bindings().create(binding).await.unwrap();
    let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
    let record = store.upload(new, &b"bytes"[..]).await.unwrap();
    (store, record.blob.key)
}

/// The names of the uploads that the provider holds unfinished.
pub(crate) async fn unfinished(store: &FileStore, remote: &Remote) -> Vec<String> {
    let providers = store.providers();
    let cloud = providers.cloud(&remote.config.code).unwrap();
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = cloud.unfinished_uploads(after).await.unwrap();
        names.extend(page.uploads.into_iter().map(|upload| upload.name));
        if page.next.is_none() {
            return names;
        }
        after = page.next;
    }
}

pub(crate) async fn fsck(store: &FileStore, mode: FsckMode) -> FsckReport {
    let mut options = FsckOptions::default();
    options.mode = mode;
    store.admin().fsck(options, &|| false, &NoProgress).await.unwrap()
}

pub(crate) async fn abort_left(store: &FileStore, remote: &Remote) -> u64 {
    store.admin().abort_left_uploads(&remote.config.code, &|| false).await.unwrap()
}

/// Waits until nothing is listed but the upload of which nobody knows whose it is. A busy cluster may list
/// an aborted one for a moment.
async fn only_the_foreign_one_stays(store: &FileStore, remote: &Remote) {
    eventually("the list of what is unfinished", async || {
        (unfinished(store, remote).await == ["someone/else's.iso"]).then_some(())
    })
    .await;
}

pub(crate) async fn what_a_killed_process_left_is_aborted_after_a_day(one: &Remote, two: &Remote) {
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let (store, stored) = open(home.path(), one, &clock).await;

    // More than a page of the test's own server, and two of one name.
    let mut left: Vec<String> =
        (0..4).map(|_| stored.sibling(BlobId::generate(Timestamp::now())).to_string()).collect();
    left.sort();
    for name in left.iter().chain(&left[..1]) {
        one.begin_upload(name).await;
    }
    one.begin_upload("someone/else's.iso").await;
    two.begin_upload(&left[0]).await;
    assert_eq!(unfinished(&store, one).await.len(), 6, "the other root has its own");

    // A living process may work on them.
    assert_eq!(abort_left(&store, one).await, 0);
    assert!(fsck(&store, FsckMode::Repair).await.is_clean());
    assert_eq!(unfinished(&store, one).await.len(), 6);

    clock.advance(A_DAY_AND_MORE);
    let shown = fsck(&store, FsckMode::DryRun).await;
    assert_eq!(shown.found_by_kind, [(FindingKind::UnfinishedUpload, 4)].into(), "{shown:#?}");
    assert_eq!(unfinished(&store, one).await.len(), 6, "a dry run changes nothing");
    assert!(shown.not_looked_at.is_empty(), "{:?}", shown.not_looked_at);

    let repaired = fsck(&store, FsckMode::Repair).await;
    let mut names: Vec<_> = repaired.findings.iter().map(|found| found.name.clone()).collect();
    names.sort();
    assert_eq!(names, left);
    assert_eq!(repaired.repaired_by_kind, [(FindingKind::UnfinishedUpload, 4)].into());
    only_the_foreign_one_stays(&store, one).await;
    assert!(fsck(&store, FsckMode::DryRun).await.is_clean());

    one.begin_upload(&left[1]).await;
    clock.advance(A_DAY_AND_MORE);
    assert_eq!(abort_left(&store, one).await, 1);
    only_the_foreign_one_stays(&store, one).await;
    assert_eq!(one.objects().await, [stored.to_string()], "objects stay");
}
