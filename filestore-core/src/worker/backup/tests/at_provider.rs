//! Snapshots at a provider, from the store's side.

use super::*;
use crate::domain::report::receipt::PurgeReceipt;

/// A store with the provider `bucket` as its destination `offsite`.
struct Far {
    home: tempfile::TempDir,
    store: FileStore,
}

impl Far {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = open_far(home.path()).await;
        Self { home, store }
    }

    async fn backups(&self) -> Backups {
        self.store.admin().backups("offsite").await.unwrap()
    }

    async fn back_up(&self) -> BackupReport {
        let backups = self.backups().await;
        let options = BackupOptions::default();
        self.store.admin().backup(&backups, options, Arc::new(NoProgress)).await.unwrap()
    }

    async fn verify(&self) -> VerifyReport {
        self.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap()
    }

    fn objects(&self) -> PathBuf {
        self.home.path().join("bucket/.filestore-backup")
    }

    /// Finds the objects that have these bytes.
    fn contents_of(&self, text: &str) -> Vec<PathBuf> {
        let mut found = blobs(&self.objects());
        found.retain(|path| std::fs::read(path).unwrap() == text.as_bytes());
        found
    }

    async fn purge(&self, file: &FileRecord) {
        self.store.scoped(&Scope::All).delete(file.file_id).await.unwrap();
        assert_eq!(self.store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    }

    async fn receipt(&self, id: FileId) -> PurgeReceipt {
        self.store.scoped(&Scope::All).receipt(id).await.unwrap().receipt
    }

    async fn close(self) {
        self.store.close().await;
    }
}

fn bucket(home: &Path) -> ProviderConfig {
    let root = home.join("bucket").to_str().unwrap().to_owned();
    ProviderConfig::new("bucket".parse().unwrap(), "fs").with_option("root", root)
}

async fn open_far(home: &Path) -> FileStore {
    let code: crate::domain::provider::ProviderCode = "bucket".parse().unwrap();
    let config = StoreConfig {
        providers: providers(home).into_iter().chain([bucket(home)]).collect(),
        backup_destinations: vec![BackupDestination::new("offsite", code)],
        purge_grace: Duration::ZERO,
        ..StoreConfig::default()
    };
    FileStore::builder(home.join("data")).config(config).open().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_restored_from_a_provider_byte_for_byte() {
    let far = Far::new().await;
    let large = "many pieces ".repeat(1 << 20);
    let mut files = Vec::new();
    for text in ["one", "", "two", "one"] {
        files.push((upload(&far.store, "42", text).await, text));
    }
    let new = new("43").with_name("large");
    let record = far.store.upload(new, large.as_bytes()).await.unwrap();
    files.push((record, large.as_str()));

    let made = far.back_up().await;
    assert_eq!((made.snapshot.files, made.snapshot.blobs, made.copied), (5, 4, 4));
    assert!(far.verify().await.is_good());
    assert!(!far.store.data_dir().scratch().join(made.snapshot.id.to_string()).exists());

    // After a disaster there is the configuration of the provider, and nothing else.
    let home = far.home.path().to_owned();
    far.store.close().await;
    let backups = Backups::at_provider(&bucket(&home)).await.unwrap();
    assert_eq!(backups.list().await.unwrap(), [made.snapshot]);
    for (name, restored_as) in [("copy", RestoredAs::Copy), ("original", RestoredAs::Original)] {
        let into = home.join(name);
        let progress = Arc::new(NoProgress);
        let report = backups.restore(None, &into, restored_as, &[], progress).await.unwrap();
        assert_eq!((report.restored, report.failed), (5, 0));
        let restored = FileStore::open(&into).await.unwrap();
        for (record, text) in &files {
            assert_eq!(text_of(&restored, record.file_id).await.unwrap(), *text);
        }
        restored.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_snapshot_sends_only_what_is_new_and_a_prune_keeps_what_it_names() {
    let far = Far::new().await;
    let first = upload(&far.store, "42", "first").await;
    upload(&far.store, "42", "kept").await;
    let old = far.back_up().await;
    far.purge(&first).await;
    upload(&far.store, "42", "second").await;
    let new = far.back_up().await;
    assert_eq!((new.copied, new.reused), (1, 1));

    let backups = far.backups().await;
    let keep = NonZeroUsize::new(1).unwrap();
    let pruned = backups.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((pruned.removed, pruned.kept), (vec![old.snapshot.id], vec![new.snapshot.id]));
    assert_eq!((pruned.blobs_removed, pruned.bytes_removed), (1, 5));
    assert!(far.contents_of("first").is_empty());
    assert!(far.verify().await.is_good());
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_broke_off_at_a_provider_is_taken_up_and_what_it_left_is_swept() {
    let far = Far::new().await;
    let lost = upload(&far.store, "42", "lost").await;
    upload(&far.store, "42", "whole").await;
    upload(&far.store, "42", "zeros").await;
    let broken_off = far.back_up().await.snapshot.id;
    let manifest = far.objects().join(format!("snapshots/{broken_off}.jsonl"));
    std::fs::remove_file(manifest).unwrap();
    std::fs::write(&far.contents_of("zeros")[0], [0; 5]).unwrap();
    assert!(far.backups().await.list().await.unwrap().is_empty());
    far.purge(&lost).await;

    let report = far.back_up().await;
    assert_eq!((report.copied, report.reused), (1, 1));
    assert!(far.verify().await.is_good());
    let keep = NonZeroUsize::new(1).unwrap();
    let pruned = far.backups().await.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!(pruned.blobs_removed, 2, "what was lost, and the zeros");
    assert!(!far.objects().join(format!("snapshots/{broken_off}.sqlite3")).exists());
    assert!(far.verify().await.is_good());
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_file_or_one_organization_comes_back_from_a_provider() {
    let far = Far::new().await;
    let lost = upload(&far.store, "42", "lost").await;
    let other = upload(&far.store, "43", "other").await;
    far.back_up().await;
    far.purge(&lost).await;
    far.purge(&other).await;

    let backups = far.backups().await;
    let restore = async |selection| {
        far.store.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await.unwrap()
    };
    assert_eq!(restore(Selection::File(lost.file_id)).await.restored, 1);
    let organization = restore(Selection::Organization("43".parse().unwrap())).await;
    assert_eq!((organization.restored, organization.failed), (1, 0));
    assert_eq!(text_of(&far.store, lost.file_id).await.unwrap(), "lost");
    assert_eq!(text_of(&far.store, other.file_id).await.unwrap(), "other");
    let scratch = std::fs::read_dir(far.store.data_dir().scratch()).unwrap();
    assert_eq!(scratch.count(), 0);
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_at_a_provider_is_set_aside_and_taken_anew() {
    let far = Far::new().await;
    upload(&far.store, "42", "whole").await;
    upload(&far.store, "42", "flipped").await;
    upload(&far.store, "42", "cut").await;
    far.back_up().await;
    std::fs::write(&far.contents_of("flipped")[0], "flippEd").unwrap();
    std::fs::write(&far.contents_of("cut")[0], "c").unwrap();

    let verified = far.verify().await;
    assert_eq!((verified.wrong, verified.set_aside, verified.missing), (2, 2, 0));
    let verified = far.verify().await;
    assert_eq!((verified.wrong, verified.missing), (0, 2));
    let again = far.back_up().await;
    assert_eq!((again.copied, again.reused), (2, 1));
    let backups = far.backups().await;
    for snapshot in backups.list().await.unwrap() {
        let healed = backups.verify(Some(snapshot.id), Arc::new(NoProgress)).await.unwrap();
        assert!(healed.is_good(), "{healed:?}");
    }
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_looks_at_a_provider_as_at_a_directory() {
    let far = Far::new().await;
    let file = upload(&far.store, "42", "seen").await;
    let snapshot = far.back_up().await.snapshot.id;
    far.purge(&file).await;

    let found = far.receipt(file.file_id).await;
    let [at] = &found.backups[..] else { panic!("{found:?}") };
    assert_eq!((&*at.destination, at.problem, at.snapshots[0].id), ("offsite", None, snapshot));
    assert!(!found.is_absent_everywhere());

    far.back_up().await;
    let keep = NonZeroUsize::new(1).unwrap();
    far.backups().await.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert!(far.receipt(file.file_id).await.is_absent_everywhere());

    // Another bucket, under the same code.
    let (here, away) = (far.home.path().join("bucket"), far.home.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    std::fs::create_dir(&here).unwrap();
    let refused = far.store.admin().backups("offsite").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert!(refused.message().contains("check its bucket and root"), "{refused}");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "nothing is written there");
    assert!(!far.receipt(file.file_id).await.is_absent_everywhere());

    let place = far.store.admin().backup_place("offsite").unwrap();
    assert_eq!(far.store.admin().forget_backups(place.clone(), None).await.unwrap(), 1);
    assert!(far.receipt(file.file_id).await.is_absent_everywhere());
    far.back_up().await;
    std::fs::remove_dir_all(&here).unwrap();
    std::fs::rename(&away, &here).unwrap();
    let found = far.receipt(file.file_id).await;
    assert_eq!(found.backups.len(), 2, "the first is there, the second away: {found:?}");
    let none = far.store.admin().forget_backups(place, found.backups[0].destination_id).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Conflict);
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_may_hold_files_and_snapshots_side_by_side() {
    let far = Far::new().await;
    let binding = NewBinding {
        organization: 7.try_into().unwrap(),
        organization_name: "seven".into(),
        provider: "bucket".parse().unwrap(),
        sync_enabled: false,
    };
    far.store.bindings().create(binding).await.unwrap();
    let file = upload(&far.store, "7", "both").await;
    assert_eq!(far.back_up().await.copied, 1);

    let options = crate::domain::report::fsck::FsckOptions::default();
    let report = far.store.admin().fsck(options, &|| false, &NoProgress).await.unwrap();
    assert!(report.found_by_kind.is_empty(), "a check leaves snapshots alone: {report:?}");
    far.purge(&file).await;
    assert!(far.verify().await.is_good());
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hard_links_and_unknown_providers_are_refused() {
    let far = Far::new().await;
    upload(&far.store, "42", "one").await;
    let backups = far.backups().await;
    let options = BackupOptions { bytes: SnapshotBytes::HardLinked, ..BackupOptions::default() };
    let refused = far.store.admin().backup(&backups, options, Arc::new(NoProgress)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("hard_links"));

    let empty = Backups::at_provider(&providers(far.home.path())[0]).await.unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::Unusable);
    far.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_left_of_a_snapshot_goes_at_the_next_start() {
    let far = Far::new().await;
    let left = far.store.data_dir().scratch().join("01ARZ3NDEKTSV4RRFFQ69G5FAZ");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("metadata.sqlite3"), "half").unwrap();
    far.store.close().await;
    let home = far.home;
    drop(far.store);
    let store = open_far(home.path()).await;
    assert!(!store.data_dir().scratch().exists());
    store.close().await;
}
