//! Crash states, made by hand on the disk, and their repair by the next start.
//!
//! Nothing here knows the layout of the data directory: the place of staged blobs is found by staging
//! one, and that of a stored blob by its generated part.

use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::admin::NoProgress;
use filestore_core::uploads::GivenName;
use filestore_core::variants::{Variant, VariantSize};
use filestore_core::{ErrorKind, FileId, FileStore, Fit, NewBatch, NewUpload, Scope, StoreConfig};
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
        let mut config = StoreConfig::default();
        config.purge_grace = Duration::ZERO;
        self.open_with(config).await
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
        let mut probe = store.uploads().begin_unclaimed();
        let bytes = format!("a probe for {generated}");
        probe.write(bytes.clone().into()).await.unwrap();
        probe.finish_files().await.unwrap();
        self.file_of(bytes.as_bytes()).with_file_name(generated)
    }

    /// Finds the one file that has these bytes.
    fn file_of(&self, bytes: &[u8]) -> PathBuf {
        let has_them = |file: &PathBuf| std::fs::read(file).is_ok_and(|read| read == bytes);
        let found: Vec<_> = files_under(self.path()).into_iter().filter(has_them).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
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
    let mut session = store.uploads().begin_unclaimed();
    session.write("nobody had a 2xx for this".into()).await.unwrap();
    session.finish_files().await.unwrap();
    let staged = disk.file_of(b"nobody had a 2xx for this");
    let bytes = std::fs::read(&staged).unwrap();
    drop(session);
    eventually("the end of a dropped upload", async || (!staged.exists()).then_some(())).await;
    end(store).await;
    // A crash leaves it.
    std::fs::write(&staged, bytes).unwrap();
    let store = disk.open().await;
    assert!(!staged.exists());
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
    assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "committed, not yet renamed");
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
        assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "still here");
        end(store).await;
    }

    assert_eq!(disk.named(&generated), [stored]);
}

#[tokio::test]
async fn a_batch_caught_between_its_renames_is_whole_after_the_next_start() {
    let disk = Disk::new();
    let store = disk.open().await;

    let items = (0..4).map(|index| (GivenName::default(), format!("item {index}").into()));
    let batch = NewBatch::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let records = store.batch(batch, items).await.unwrap();
    for record in &records[2..] {
        let generated = record.blob.key.blob_id().to_string();
        let staged = disk.staged_path(&store, &generated).await;
        std::fs::rename(disk.published(&generated, &staged).await, staged).unwrap();
    }

    end(store).await;
    let store = disk.open().await;
    for (index, record) in records.iter().enumerate() {
        assert_eq!(
            store.scoped(&Scope::All).read(record.file_id).await.unwrap(),
            format!("item {index}")
        );
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
    assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "looked for in both places");
    end(store).await;
}

#[tokio::test]
async fn a_purge_that_crashed_between_bytes_and_record_finds_the_bytes_gone() {
    let disk = Disk::new();
    let store = disk.open().await;
    let (id, generated) = upload(&store, b"half purged").await;
    store.scoped(&Scope::All).delete(id).await.unwrap();
    end(store).await;
    std::fs::remove_file(disk.named(&generated).pop().unwrap()).unwrap();
    let store = disk.open().await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    assert_eq!(store.scoped(&Scope::All).info(id).await.unwrap_err().kind(), ErrorKind::NotFound);
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
    let newer = store.scoped(&Scope::All).info(id).await.unwrap().blob.key.blob_id().to_string();

    replace(&store, id, "newest").await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().blobs_removed, 1);
    assert!(disk.named(&newer).is_empty());
    assert_eq!(disk.named(&old).len(), 1, "its own grace still runs");
    assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "newest");

    end(store).await;
}

async fn replace(store: &FileStore, id: FileId, bytes: &'static str) {
    store.scoped(&Scope::All).replace(id, bytes.as_bytes()).await.unwrap();
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
        let made = store
            .scoped(&Scope::All)
            .variant(record.file_id, size)
            .fit(Fit::Cover)
            .await
            .unwrap()
            .1;
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
