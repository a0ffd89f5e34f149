//! The contract of [`Destination`], as a test suite for directories and providers.
//!
//! Each function takes a destination without other users, and checks one promise. Both kinds of destinations
//! store their contents in files below a root directory, which the suite damages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sha2::Digest;

use super::{
    BackupBucket, BackupDirectory, Copying, Destination, Entry, EntryKind, FoundHow,
    ManifestWriter, RestoredDirectory, RunClaim, RunKind, Stored, Wanted, blocking,
};
use crate::domain::error::{ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{BlobId, Sha256, SnapshotId, StoreId};
use crate::domain::provider::ProviderConfig;
use crate::domain::report::backup::{BackupOptions, SnapshotBytes, SnapshotInfo};
use crate::domain::time::clock::Timestamp;
use crate::storage::{ByteStream, ProviderRegistry};

/// A destination, and the directory of its files.
pub(super) struct Place {
    pub(super) home: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) destination: Arc<dyn Destination>,
}

impl Place {
    fn directory() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("backup");
        let destination = Arc::new(BackupDirectory::create(&root).unwrap());
        Self { home, root, destination }
    }

    pub(super) async fn provider() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("bucket");
        let destination = Arc::new(bucket(&root).await);
        Self { home, root: root.join(".filestore-backup"), destination }
    }

    pub(super) async fn claim(&self, kind: RunKind) -> Result<Arc<dyn Destination>> {
        self.claim_as(fresh_id(), kind, None).await
    }

    pub(super) async fn claim_as(
        &self,
        id: SnapshotId,
        kind: RunKind,
        store: Option<StoreId>,
    ) -> Result<Arc<dyn Destination>> {
        self.destination.claim(RunClaim { id, kind, store }).await
    }

    fn scratch(&self) -> PathBuf {
        self.home.path().join("scratch")
    }

    /// Takes a snapshot of contents. Each content is found or received.
    pub(super) async fn snapshot(&self, texts: &[&str]) -> SnapshotId {
        let id = fresh_id();
        let claimed = self.claim_as(id, RunKind::Create, None).await.unwrap();
        self.finish(&*claimed, id, texts).await.unwrap();
        claimed.release().await;
        id
    }

    /// Does the work of a run that creates a snapshot.
    pub(super) async fn finish(
        &self,
        claimed: &dyn Destination,
        id: SnapshotId,
        texts: &[&str],
    ) -> Result<()> {
        let draft = claimed.begin(id, &self.scratch()).await?;
        std::fs::write(&draft.database, "database").unwrap();
        let database = draft.digest_database()?;
        let mut manifest =
            ManifestWriter::begin(draft.make_manifest()?, info(id), database.sha256)?;
        let sorted: BTreeMap<_, _> =
            texts.iter().map(|text| (content(text).sha256.0, *text)).collect();
        for (_, text) in sorted {
            let stored = take(claimed, text, None).await?;
            let Copying { size_bytes, sha256 } = stored.expected;
            let entry = Entry { sha256, size_bytes, kind: EntryKind::Held(stored.by) };
            manifest.add(&entry, 1)?;
        }
        claimed.finish(&draft, manifest.finish()?.1).await
    }

    /// Returns the contents of a finished snapshot.
    async fn held(&self, id: SnapshotId) -> Vec<Stored> {
        let mut manifest = self.destination.manifest(id).await.unwrap();
        blocking("reading a manifest", move || {
            let mut held = Vec::new();
            while let Some(entry) = manifest.next_entry()? {
                held.extend(entry.stored());
            }
            Ok(held)
        })
        .await
        .unwrap()
    }

    /// Returns the files with these bytes, under `blobs` or elsewhere.
    pub(super) fn files_of(&self, text: &str) -> Vec<PathBuf> {
        let mut found = files_below(&self.root);
        found.retain(|path| std::fs::read(path).unwrap() == text.as_bytes());
        found
    }

    async fn sweep(&self) -> Result<u64> {
        let claimed = self.claim(RunKind::Prune).await?;
        claimed.clear().await?;
        let removed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&removed);
        let add = move |_| _ = count.fetch_add(1, Ordering::Relaxed);
        let swept = claimed.sweep(Arc::new(add)).await;
        claimed.release().await;
        swept.map(|()| removed.load(Ordering::Relaxed))
    }
}

/// Returns a provider on the file system.
pub(super) async fn bucket(root: &Path) -> BackupBucket {
    let config = ProviderConfig::new("bucket".parse().unwrap(), "fs")
        .with_option("root", root.to_str().unwrap());
    let providers = ProviderRegistry::open(&[config]).unwrap();
    let cloud = providers.cloud(&"bucket".parse().unwrap()).unwrap();
    BackupBucket::prepare(cloud, Timestamp::now()).await.unwrap()
}

pub(super) fn fresh_id() -> SnapshotId {
    SnapshotId::generate(Timestamp::now())
}

pub(super) fn content(text: &str) -> Copying {
    let sha256 = Sha256(sha2::Sha256::digest(text).into());
    Copying { size_bytes: text.len() as u64, sha256 }
}

pub(super) fn files_below(root: &Path) -> Vec<PathBuf> {
    let (mut files, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { left.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Finds a content, or receives it.
pub(super) async fn take(
    claimed: &dyn Destination,
    text: &str,
    vouched: Option<Stored>,
) -> Result<Stored> {
    let expected = content(text);
    let wanted = vec![Wanted { expected, vouched }];
    if let Some(found) = claimed.find(wanted, SnapshotBytes::Copied).await?.remove(0) {
        assert_eq!(found.how, FoundHow::Reused);
        return Ok(found.stored);
    }
    Ok(claimed.receive(expected, bytes_of(text)).await?.expect("these are its bytes"))
}

pub(super) fn bytes_of(text: &str) -> ByteStream {
    let pieces: Vec<_> =
        text.as_bytes().chunks(7).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Box::pin(futures_util::stream::iter(pieces))
}

pub(super) fn info(id: SnapshotId) -> SnapshotInfo {
    let store = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    SnapshotInfo::empty(id, store, Timestamp::from_millis(7), BackupOptions::default())
}

async fn text_of(claimed: &dyn Destination, content: Stored) -> Option<Copying> {
    match claimed.open(content).await.unwrap() {
        Some(opened) => Some(opened.digest().await.unwrap()),
        None => None,
    }
}

macro_rules! on_both {
    ($($name:ident,)*) => {
        mod directory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(super::Place::directory()).await;
                }
            )*
        }

        mod provider {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(super::Place::provider().await).await;
                }
            )*
        }
    };
}

on_both! {
    a_place_keeps_its_id,
    a_snapshot_is_there_once_it_is_finished_and_not_before,
    what_a_snapshot_names_is_read_back,
    bytes_that_are_not_what_was_said_leave_nothing,
    what_nobody_vouches_for_is_read_before_it_counts,
    what_is_set_aside_counts_no_more_and_is_kept,
    blobs_are_restored_whole_or_said_to_be_missing,
    a_sweep_keeps_what_snapshots_hold,
    nothing_is_swept_by_a_damaged_manifest,
    a_prune_goes_on_alone,
}

async fn a_place_keeps_its_id(place: Place) {
    let now = Timestamp::from_millis(9);
    let id = place.destination.identify(now).await.unwrap();
    assert_eq!(place.destination.identify(Timestamp::now()).await.unwrap(), id);
}

async fn a_snapshot_is_there_once_it_is_finished_and_not_before(place: Place) {
    let id = fresh_id();
    let claimed = place.claim_as(id, RunKind::Create, None).await.unwrap();
    let draft = claimed.begin(id, &place.scratch()).await.unwrap();
    std::fs::write(&draft.database, "database").unwrap();
    take(&*claimed, "one", None).await.unwrap();
    assert_eq!(place.destination.snapshots().await.unwrap(), []);
    let none = place.destination.manifest(id).await.err();
    assert_eq!(none.map(|error| error.kind()), Some(ErrorKind::NotFound));
    drop(draft);
    claimed.release().await;
    drop(claimed);

    let first = place.snapshot(&["one"]).await;
    let second = place.snapshot(&["one", "two"]).await;
    assert_eq!(place.destination.snapshots().await.unwrap(), [first, second]);
    let database = place.destination.open_database(first).await.unwrap().unwrap();
    assert_eq!(database.digest().await.unwrap(), content("database"));

    let claimed = place.claim(RunKind::Prune).await.unwrap();
    claimed.remove(first).await.unwrap();
    claimed.clear().await.unwrap();
    claimed.release().await;
    assert_eq!(place.destination.snapshots().await.unwrap(), [second]);
    assert!(place.destination.open_database(first).await.unwrap().is_none());
}

async fn what_a_snapshot_names_is_read_back(place: Place) {
    let long = "a text of more than one piece ".repeat(50_000);
    let id = place.snapshot(&["one", "", &long]).await;
    let held = place.held(id).await;
    assert_eq!(held.len(), 3);

    let claimed = place.claim(RunKind::Restore).await.unwrap();
    for content in &held {
        assert_eq!(text_of(&*claimed, *content).await, Some(content.expected));
    }
    let digests = claimed.digest(held.clone()).await;
    for (content, found) in held.iter().zip(digests) {
        assert_eq!(found.unwrap(), Some(content.expected));
    }
    let file = claimed.database_file(id, &place.scratch()).await.unwrap();
    assert_eq!(std::fs::read(&file.path).unwrap(), b"database");
}

async fn bytes_that_are_not_what_was_said_leave_nothing(place: Place) {
    let claimed = place.claim(RunKind::Create).await.unwrap();
    for bytes in ["other", "o", "longer than it should be"] {
        let refused = claimed.receive(content("thing"), bytes_of(bytes)).await.unwrap();
        assert_eq!(refused, None, "{bytes}");
        assert_eq!(place.files_of(bytes), [] as [PathBuf; 0]);
    }
    let failing: ByteStream = Box::pin(futures_util::stream::iter([
        Ok(Bytes::from_static(b"th")),
        Err(crate::Error::new(ErrorKind::ProviderUnavailable, "the source broke")),
    ]));
    let broken = claimed.receive(content("thing"), failing).await.unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::ProviderUnavailable, "errors of a source are passed on");
    let wanted = vec![Wanted { expected: content("thing"), vouched: None }];
    let found = claimed.find(wanted, SnapshotBytes::Copied).await.unwrap();
    assert_eq!(found, [None]);
}

async fn what_nobody_vouches_for_is_read_before_it_counts(place: Place) {
    let claimed = place.claim(RunKind::Create).await.unwrap();
    let [whole, torn] = ["whole", "zeros"];
    let left = take(&*claimed, whole, None).await.unwrap();
    take(&*claimed, torn, None).await.unwrap();
    claimed.release().await;
    drop(claimed);
    std::fs::write(&place.files_of(torn)[0], [0; 5]).unwrap();

    let claimed = place.claim(RunKind::Create).await.unwrap();
    let wanted =
        [whole, torn].map(|text| Wanted { expected: content(text), vouched: None }).to_vec();
    let found = claimed.find(wanted, SnapshotBytes::Copied).await.unwrap();
    assert_eq!(found[0].map(|found| found.stored), Some(left));
    assert_eq!(found[1], None);
    let anew = take(&*claimed, torn, None).await.unwrap();
    assert_eq!(text_of(&*claimed, anew).await, Some(content(torn)));
}

async fn what_is_set_aside_counts_no_more_and_is_kept(place: Place) {
    let id = place.snapshot(&["whole", "flipped"]).await;
    std::fs::write(&place.files_of("flipped")[0], "flippEd").unwrap();
    let held = place.held(id).await;
    let wrong = *held.iter().find(|held| held.expected == content("flipped")).unwrap();

    let claimed = place.claim(RunKind::Verify).await.unwrap();
    assert_eq!(claimed.digest(vec![wrong]).await.remove(0).unwrap(), Some(content("flippEd")));
    assert!(claimed.set_aside(wrong).await.unwrap());
    assert!(claimed.digest(vec![wrong]).await.remove(0).unwrap().is_none());
    assert!(!claimed.set_aside(wrong).await.unwrap(), "there is no other");
    assert_eq!(place.files_of("flippEd").len(), 1, "nothing is thrown away");
    claimed.release().await;
    drop(claimed);
    assert_eq!(place.sweep().await.unwrap(), 0, "it is the last of its kind");

    let claimed = place.claim(RunKind::Create).await.unwrap();
    let anew = take(&*claimed, "flipped", Some(wrong)).await.unwrap();
    claimed.release().await;
    drop(claimed);
    let claimed = place.claim(RunKind::Restore).await.unwrap();
    for content in [wrong, anew] {
        let found = text_of(&*claimed, content).await;
        assert_eq!(found, Some(content.expected), "the older snapshot has it again");
    }
    claimed.release().await;
    drop(claimed);
    assert_eq!(place.sweep().await.unwrap(), 1);
    assert_eq!(place.files_of("flippEd").len(), 0);
    let claimed = place.claim(RunKind::Restore).await.unwrap();
    assert_eq!(text_of(&*claimed, wrong).await, Some(wrong.expected));
}

async fn blobs_are_restored_whole_or_said_to_be_missing(place: Place) {
    let id = place.snapshot(&["good", "gone", "flipped"]).await;
    std::fs::write(&place.files_of("flipped")[0], "flippEd").unwrap();
    std::fs::remove_file(&place.files_of("gone")[0]).unwrap();
    let held = place.held(id).await;

    let into = place.home.path().join("restored");
    let copy_id = StoreId::generate(Timestamp::now());
    let target = Arc::new(RestoredDirectory::begin(&into, id, copy_id).unwrap());
    let claimed = place.claim(RunKind::Restore).await.unwrap();
    let day = Timestamp::from_millis(1_795_248_930_123);
    let key = || {
        let (organization, sub_system) = ("42".parse().unwrap(), "docs".parse().unwrap());
        BlobKey::new(&organization, &sub_system, day, BlobId::generate(day))
    };
    let blobs: Vec<_> = held.iter().map(|content| (key(), *content)).collect();
    let taken = claimed.restore(&target, blobs.clone()).await.unwrap();
    for ((key, stored), taken) in blobs.iter().zip(taken) {
        let path = into.join("blobs").join(key.as_str());
        let wanted = match stored.expected {
            expected if expected == content("good") => Some(true),
            expected if expected == content("gone") => None,
            _ => Some(false),
        };
        assert_eq!((taken, path.exists()), (wanted, wanted == Some(true)));
    }
}

async fn a_sweep_keeps_what_snapshots_hold(place: Place) {
    let old = place.snapshot(&["first", "kept"]).await;
    let new = place.snapshot(&["second", "kept"]).await;
    let claimed = place.claim(RunKind::Create).await.unwrap();
    take(&*claimed, "left by a run that broke off", None).await.unwrap();
    claimed.release().await;
    drop(claimed);
    assert_eq!(place.sweep().await.unwrap(), 1);

    let claimed = place.claim(RunKind::Prune).await.unwrap();
    claimed.remove(old).await.unwrap();
    claimed.release().await;
    drop(claimed);
    assert_eq!(place.sweep().await.unwrap(), 1);
    assert_eq!(place.sweep().await.unwrap(), 0);

    let held = place.held(new).await;
    let claimed = place.claim(RunKind::Restore).await.unwrap();
    for content in held {
        assert_eq!(text_of(&*claimed, content).await, Some(content.expected));
    }
}

async fn nothing_is_swept_by_a_damaged_manifest(place: Place) {
    let id = place.snapshot(&["one"]).await;
    place.snapshot(&["two"]).await;
    let manifest = files_below(&place.root).into_iter().find(|path| {
        let is_manifest = path.extension().is_some_and(|extension| extension == "jsonl");
        is_manifest && path.to_string_lossy().contains(&id.to_string())
    });
    let manifest = manifest.unwrap();
    let text = std::fs::read_to_string(&manifest).unwrap();
    let changed = text.replacen("\"size_bytes\":3", "\"size_bytes\":4", 1);
    assert_ne!(changed, text);
    std::fs::write(&manifest, changed).unwrap();

    let refused = place.sweep().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert_eq!((place.files_of("one").len(), place.files_of("two").len()), (1, 1));
}

async fn a_prune_goes_on_alone(place: Place) {
    for kind in [RunKind::Create, RunKind::Verify, RunKind::Restore] {
        for (one, other) in [(kind, RunKind::Prune), (RunKind::Prune, kind)] {
            let claimed = place.claim(one).await.unwrap();
            let refused = place.claim(other).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Locked, "{one:?} {other:?}");
            claimed.confirm().await.unwrap();
            claimed.release().await;
        }
    }
    let both = [RunKind::Restore; 2].map(|kind| place.claim(kind));
    for claimed in futures_util::future::join_all(both).await {
        claimed.unwrap().release().await;
    }
}
