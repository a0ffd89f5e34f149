//! Crash states, made by hand on the disk, and their repair by the next start.
//!
//! Nothing here knows the layout of the data directory: the place of staged blobs is found by staging
//! one, and that of a stored blob by its generated part.

use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::domain::clock::Timestamp;
use filestore_core::domain::config::{Durability, StoreConfig};
use filestore_core::domain::id::FileId;
use filestore_core::domain::scope::Scope;
use filestore_core::metadata::sqlite::SqliteMetadata;
use filestore_core::metadata::{Lease, Purges as _, Upkeep as _};
use filestore_core::service::{BatchItem, NewBatch, NewUpload, Uploaded};
use filestore_core::variant::{Fit, Variant, VariantSize};
use filestore_core::worker::NoProgress;
use filestore_core::{ErrorKind, FileStore, ProviderCode};
use filestore_workspace::{eventually, files_under, fixtures};
use tempfile::TempDir;

/// A data directory that is opened and closed again and again.
struct Disk {
    dir: TempDir,
}

impl Disk {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    async fn open(&self) -> FileStore {
        self.open_with(StoreConfig::default()).await
    }

    async fn open_with(&self, config: StoreConfig) -> FileStore {
        FileStore::builder(self.path()).config(config).open().await.unwrap()
    }

    /// The files on the disk whose name holds `generated`.
    fn named(&self, generated: &str) -> Vec<PathBuf> {
        let holds = |file: &PathBuf| {
            file.file_name().is_some_and(|n| n.to_string_lossy().contains(generated))
        };
        files_under(self.path()).into_iter().filter(holds).collect()
    }

    /// Finds the place of a stored blob, once it has left `staged`: that happens beside the reply.
    async fn published(&self, generated: &str, staged: &Path) -> PathBuf {
        eventually("the blob under its final name", async || {
            self.named(generated).into_iter().find(|file| file != staged)
        })
        .await
    }

    /// Finds the place where a blob with this generated part would lie while it is staged.
    async fn staged_path(&self, store: &FileStore, generated: &str) -> PathBuf {
        let probe = store.uploads().stage_bytes("probe".into()).await.unwrap();
        let probe_id = probe.blob_id.to_string();
        let found = self.named(&probe_id);
        assert_eq!(found.len(), 1, "a staged blob is one file that bears its id: {found:?}");
        let name = found[0].file_name().unwrap().to_string_lossy().replace(&probe_id, generated);
        found[0].with_file_name(name)
    }
}

async fn upload(store: &FileStore, bytes: &'static [u8]) -> (FileId, String) {
    let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let record = store.upload(new, bytes).await.unwrap();
    (record.file_id, record.blob.key.blob_id().to_string())
}

/// Ends a store as a crash would leave it as far as its directory goes.
async fn end(store: FileStore) {
    store.close().await;
    drop(store);
}

#[tokio::test]
async fn a_staged_file_without_a_record_is_removed() {
    let disk = Disk::new();
    let store = disk.open().await;
    let staged = store.uploads().stage_bytes("nobody had a 2xx for this".into()).await.unwrap();
    let generated = staged.keep().to_string();
    assert_eq!(disk.named(&generated).len(), 1, "a crash leaves it");
    end(store).await;
    let store = disk.open().await;
    assert!(disk.named(&generated).is_empty());
    end(store).await;
}

#[tokio::test]
async fn a_half_received_file_is_removed() {
    let disk = Disk::new();
    let store = disk.open().await;
    let staged = disk.staged_path(&store, "01ARZ3NDEKTSV4RRFFQ69G5FAV").await;
    end(store).await;
    std::fs::write(&staged, b"the first half of").unwrap();
    end(disk.open().await).await;
    assert!(!staged.exists());
}

#[tokio::test]
async fn a_staged_file_with_a_record_is_renamed_forward() {
    let disk = Disk::new();
    let store = disk.open().await;
    let (id, generated) = upload(&store, b"committed, not yet renamed").await;
    let staged = disk.staged_path(&store, &generated).await;

    end(store).await;
    let stored = disk.named(&generated).pop().unwrap();
    std::fs::rename(&stored, &staged).unwrap();

    let store = disk.open().await;
    assert_eq!(store.read(id, &Scope::All).await.unwrap(), "committed, not yet renamed");
    assert_eq!(disk.named(&generated), std::slice::from_ref(&stored));

    end(store).await;
}

#[tokio::test]
async fn recovery_twice_is_recovery_once() {
    let disk = Disk::new();
    let store = disk.open().await;
    let (id, generated) = upload(&store, b"still here").await;
    let staged = disk.staged_path(&store, &generated).await;

    end(store).await;
    let stored = disk.named(&generated).pop().unwrap();
    std::fs::rename(&stored, &staged).unwrap();

    for _ in 0..3 {
        let store = disk.open().await;
        assert_eq!(store.read(id, &Scope::All).await.unwrap(), "still here");
        end(store).await;
    }

    assert_eq!(disk.named(&generated), [stored]);
}

#[tokio::test]
async fn a_batch_caught_between_its_renames_is_whole_after_the_next_start() {
    let disk = Disk::new();
    let store = disk.open().await;

    let mut items = Vec::new();
    for index in 0..4 {
        let staged = store.uploads().stage_bytes(format!("item {index}").into()).await.unwrap();
        items.push((BatchItem::new(index), staged));
    }

    let batch = NewBatch::new("acme".parse().unwrap(), "gallery".parse().unwrap());

    let Uploaded::New(records) = store.uploads().commit_batch(batch, items).await.unwrap() else {
        panic!("a batch without a key is never replayed");
    };
    for record in &records[2..] {
        let generated = record.blob.key.blob_id().to_string();
        let staged = disk.staged_path(&store, &generated).await;
        std::fs::rename(disk.published(&generated, &staged).await, staged).unwrap();
    }

    end(store).await;
    let store = disk.open().await;
    for (index, record) in records.iter().enumerate() {
        assert_eq!(store.read(record.file_id, &Scope::All).await.unwrap(), format!("item {index}"));
    }
    end(store).await;
}

#[tokio::test]
async fn readers_are_served_from_staging_until_the_rename() {
    let disk = Disk::new();
    let store = disk.open().await;
    let (id, generated) = upload(&store, b"looked for in both places").await;
    let staged = disk.staged_path(&store, &generated).await;
    std::fs::rename(disk.published(&generated, &staged).await, staged).unwrap();
    assert_eq!(store.read(id, &Scope::All).await.unwrap(), "looked for in both places");
    end(store).await;
}

#[tokio::test]
async fn a_purge_that_crashed_after_its_claim_is_taken_up_again() {
    let disk = Disk::new();
    let store = disk.open().await;

    let (id, generated) = upload(&store, b"to be purged").await;
    store.delete(id, &Scope::All).await.unwrap();
    let database = store.data_dir().database();

    end(store).await;

    let metadata = SqliteMetadata::open(&database, Durability::Full, None).unwrap();
    let now = Timestamp::now();
    let claim = Lease { owner: "the dead", now, until: now.plus(Duration::from_hours(24)) };
    assert_eq!(
        metadata.claim_purges(claim, &ProviderCode::local(), now, 10).await.unwrap().len(),
        1
    );

    metadata.close().await;
    drop(metadata);

    let store = disk.open().await;
    let refused = store.restore(id, &Scope::All).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyPurging, "a claim outlives its owner");

    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failures.len()), (1, 0));
    assert_eq!(store.info(id, &Scope::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(disk.named(&generated).is_empty());

    end(store).await;
}

#[tokio::test]
async fn a_purge_that_crashed_between_bytes_and_record_finds_the_bytes_gone() {
    let disk = Disk::new();
    let store = disk.open().await;
    let (id, generated) = upload(&store, b"half purged").await;
    store.delete(id, &Scope::All).await.unwrap();
    end(store).await;
    std::fs::remove_file(disk.named(&generated).pop().unwrap()).unwrap();
    let store = disk.open().await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    assert_eq!(store.info(id, &Scope::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    end(store).await;
}

#[tokio::test]
async fn a_dropped_blob_is_removed_after_its_grace_and_not_before() {
    let disk = Disk::new();
    let store = disk.open().await;

    let (id, old) = upload(&store, b"old").await;
    replace(&store, id, "new").await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().blobs_removed, 0);

    disk.published(&old, &disk.staged_path(&store, &old).await).await;
    assert_eq!(disk.named(&old).len(), 1, "who read the old record can still open its blob");

    end(store).await;

    let mut no_grace = StoreConfig::default();
    no_grace.blob_grace = Duration::ZERO;
    let store = disk.open_with(no_grace).await;
    let newer = store.info(id, &Scope::All).await.unwrap().blob.key.blob_id().to_string();

    replace(&store, id, "newest").await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().blobs_removed, 1);
    assert!(disk.named(&newer).is_empty());
    assert_eq!(disk.named(&old).len(), 1, "its own grace still runs");
    assert_eq!(store.read(id, &Scope::All).await.unwrap(), "newest");

    end(store).await;
}

async fn replace(store: &FileStore, id: FileId, bytes: &'static str) {
    use filestore_core::service::{Change, Replacement};
    let staged = store.uploads().stage_bytes(bytes.into()).await.unwrap();
    let new = Change::Replace(Replacement::new(staged));
    store.change(id, &Scope::All, new, None).await.unwrap();
}

#[tokio::test]
async fn a_corrupt_variant_on_disk_is_made_again() {
    let disk = Disk::new();
    let store = disk.open().await;
    let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let bytes = fixtures::jpeg(600, 400);

    let record = store.upload(new, &bytes[..]).await.unwrap();
    let variant = async |store: &FileStore| {
        let size = VariantSize::from_path("200", "200").unwrap();
        let made = store.variant(record.file_id, size).fit(Fit::Cover).await.unwrap().1;
        match made {
            Variant::WebP(bytes) => bytes,
            Variant::PassThrough { .. } => panic!("too large to pass through"),
        }
    };

    let good = variant(&store).await;
    let cached = files_under(&store.data_dir().variants());
    assert_eq!(cached.len(), 1, "{cached:?}");

    end(store).await;
    let mut damaged = std::fs::read(&cached[0]).unwrap();

    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xFF;
    std::fs::write(&cached[0], damaged).unwrap();
    let store = disk.open().await;
    assert_eq!(variant(&store).await, good);

    end(store).await;
    std::fs::write(&cached[0], b"").unwrap();
    let store = disk.open().await;
    assert_eq!(variant(&store).await, good);

    end(store).await;
}

#[tokio::test]
async fn one_process_per_directory() {
    let disk = Disk::new();
    let first = disk.open().await;
    let second = FileStore::open(disk.path()).await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked);
    end(first).await;
    end(disk.open().await).await;
}
