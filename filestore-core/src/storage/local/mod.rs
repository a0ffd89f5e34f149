//! The LOCAL blob store: blobs as files of the data directory.
//!
//! # Purpose
//! A blob is received into `staging/<blob id>` and made durable there. Then the caller commits a
//! record that names the blob, and the file is renamed to `blobs/<key>`. Reads look under both
//! names, so the blob is found at every instant from the commit on.
//!
//! # Locking
//! None between operations on different blobs. Uploads share the fsync of the staging directory
//! (`group_sync`); making and removing day directories excludes each other (`directories`). The
//! data directory stays locked as long as a clone of the store, or work that it began, lives.
//!
//! # Crash safety
//! Names are made exclusively and renamed without replacing: nothing is ever overwritten. `Ok` of
//! [`StagingWriter::finish`] means bytes and staged name are durable; `Ok` of
//! [`BlobStore::remove`](super::BlobStore::remove) means both names are durably gone. With
//! [`Durability::Process`] both hold for the end of the process only, until
//! `LocalStore::flush_all`.
//!
//! # Runtime
//! All file operations run on tokio's blocking pool. The runtime needs its timer.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use self::cached_read::CachedReads;
use self::directories::Directories;
use self::group_sync::GroupSync;
use self::in_memory::InMemory;
use self::open_files::OpenFiles;
use self::space::Space;
use self::staged::StagedName;
use self::turn::Turns;
use super::data_dir::DataDir;
use crate::domain::clock::Clock;
use crate::domain::config::{Durability, StoreConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::overview::DiskSpace;
use crate::domain::path::BlobKey;
use crate::tasks::step::{Step, reached};

mod pool;
mod space;
mod group_sync;
mod ledger;
mod turn;
mod staged;
mod staging;
mod durable;
mod directories;
mod rename;
mod publish;
mod aside;
mod blocks;
mod in_memory;
mod open_files;
mod cached_read;
mod read;
mod send_file;
mod store;
mod walk;
mod inspect;
mod quarantine;
#[cfg(test)]
mod tests;

pub use inspect::{BlobDigest, DigestStep};
pub(crate) use ledger::{StagedLedger, StagedLimits};
pub use read::{LocalBlob, READ_BLOCK_BYTES};
pub use send_file::SendFile;
pub use staged::StagedBlob;
pub use staging::StagingWriter;
pub use walk::{BlobWalk, StagedWalk, WalkedName, WalkedPage};

const OPENING: &str = "opening the data directory";

/// Settings of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalOptions {
    /// Extent to which an acknowledged write is on the disk.
    pub durability: Durability,
    /// Free space below which uploads are refused, and size of the reserve file kept for deletes on
    /// a full disk. 0 for neither.
    pub reserve_bytes: u64,
    /// Number of uploads that may be received in large blocks at once; each holds at most 1 MiB and
    /// one open file. Those beyond, and slow ones, are received in small blocks.
    pub concurrent_uploads: usize,
    /// Bytes of small blobs kept in memory for reads; 0 for none.
    pub memory_bytes: u64,
    /// Number of files kept open to be sent; 0 for none.
    pub open_files: usize,
}

impl From<&StoreConfig> for LocalOptions {
    fn from(config: &StoreConfig) -> Self {
        Self {
            durability: config.durability,
            reserve_bytes: config.reserve_bytes,
            concurrent_uploads: config.limits.concurrent_uploads,
            memory_bytes: config.limits.blob_cache_bytes,
            open_files: config.limits.open_files,
        }
    }
}

/// The blobs of one data directory. Clones are cheap and are the same store.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let home = tempfile::tempdir().unwrap();
/// use filestore_core::domain::{clock::Timestamp, config::StoreConfig, id::BlobId, path::BlobKey};
/// use filestore_core::storage::{DataDir, LocalOptions, LocalStore};
///
/// let dir = DataDir::open(&home.path().join("data"))?;
/// let store = LocalStore::open(&dir, LocalOptions::from(&StoreConfig::default()))?;
///
/// let now = Timestamp::now();
/// let key = BlobKey::new(&"42".parse()?, &"gallery".parse()?, now, BlobId::generate(now));
/// let mut writer = store.stage(key.blob_id(), 1 << 20).await?;
/// writer.write("hello".into()).await?;
/// let staged = writer.finish().await?;
/// let size_bytes = staged.size_bytes;
/// staged.keep();
/// // Here a record that names `key` is committed; if that fails, `discard_staged`.
/// store.publish(&key).await?;
///
/// let blob = store.open_blob(&key, size_bytes).await?.expect("just published");
/// assert_eq!(blob.read().await?, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LocalStore {
    shared: Arc<Shared>,
}

struct Shared {
    dir: DataDir,
    durability: Durability,
    blobs: File,
    staging: File,
    staging_sync: GroupSync,
    directories: Directories,
    space: Space,
    turns: Turns,
    in_memory: InMemory,
    open_files: OpenFiles,
    cached_reads: CachedReads,
}

impl LocalStore {
    /// Opens the store in `dir`. A disk too full for the reserve file does not keep it from
    /// opening: reads and deletes work, uploads are refused.
    ///
    /// [`ErrorKind::Unusable`] if `staging` and `blobs` are on different file systems. Blocks.
    pub fn open(dir: &DataDir, options: LocalOptions) -> Result<Self> {
        Self::open_with(dir, options, &Clock::system())
    }

    /// Opens the store as [`open`](Self::open) does. Whether an upload is slow is told by `clock`.
    pub fn open_with(dir: &DataDir, options: LocalOptions, clock: &Clock) -> Result<Self> {
        let synced = open(dir.staging())?;

        Self::assemble(dir, options, clock, GroupSync::new(move || sync_staging(&synced)))
    }

    fn assemble(
        dir: &DataDir,
        options: LocalOptions,
        clock: &Clock,
        staging_sync: GroupSync,
    ) -> Result<Self> {
        let (blobs, staging) = (open(dir.blobs())?, open(dir.staging())?);
        check_same_file_system(&blobs, &staging)?;

        let shared = Shared {
            directories: Directories::new(open(dir.blobs())?, options.durability),
            space: Space::new(open(dir.path().to_owned())?, options.reserve_bytes),
            turns: Turns::new(options.concurrent_uploads, clock.clone()),
            in_memory: InMemory::new(options.memory_bytes),
            open_files: OpenFiles::new(options.open_files),
            cached_reads: CachedReads::default(),
            dir: dir.clone(),
            durability: options.durability,
            blobs,
            staging,
            staging_sync,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Begins to receive a blob of at most `max_bytes`. Waits for no other upload.
    ///
    /// [`ErrorKind::StorageFull`] if less than the reserve is free. A second upload under one id fails
    /// at its first write to disk and leaves the other alone.
    pub async fn stage(&self, blob_id: BlobId, max_bytes: u64) -> Result<StagingWriter> {
        self.check_space().await?;
        Ok(StagingWriter::new(Arc::clone(&self.shared), blob_id, max_bytes))
    }

    async fn check_space(&self) -> Result<()> {
        match self.shared.space.recent() {
            Some(verdict) => verdict,
            None => self.on_pool("looking at the free space", |shared| shared.space.look()).await,
        }
    }

    /// Gives a staged blob its final name, in a directory that is made for it if need be.
    ///
    /// A second call, or a concurrent one, changes nothing. The rename becomes durable soon after;
    /// until then a crash leaves the staged name. [`ErrorKind::NotFound`] if the blob has neither
    /// name, because it was removed meanwhile.
    pub async fn publish(&self, key: &BlobKey) -> Result<()> {
        let key = key.clone();
        self.on_pool("publishing a blob", move |shared| shared.publish(&key)).await
    }

    /// Publishes several blobs in order, each as [`publish`](Self::publish) does. The outcomes are
    /// in that order too; a failure does not keep the rest from being published.
    pub async fn publish_all(&self, keys: Vec<BlobKey>) -> Vec<Result<()>> {
        self.each_on_pool(keys, |shared, keys| keys.iter().map(|key| shared.publish(key)).collect())
            .await
    }

    /// Lists the blobs that have a staged name. Foreign names are logged and left alone.
    pub async fn staged(&self) -> Result<Vec<BlobId>> {
        const SCANNING: &str = "scanning the staging directory";
        self.on_pool(SCANNING, |shared| shared.staged().map_err(|error| Error::io(SCANNING, error)))
            .await
    }

    /// Unlinks staged names durably; an absent one counts as unlinked.
    pub async fn discard_staged(&self, ids: Vec<BlobId>) -> Result<()> {
        self.on_pool("discarding staged blobs", move |shared| shared.discard_staged(&ids)).await
    }

    /// Deletes the reserve file, so that a delete can commit on a full disk. False if there was no
    /// such file. Blocks.
    pub fn free_reserve(&self) -> bool {
        self.shared.space.free_reserve()
    }

    /// Describes the disk of the data directory.
    pub(crate) async fn disk_space(&self) -> Result<DiskSpace> {
        self.on_pool("looking at the free space", |shared| shared.space.disk()).await
    }

    /// Tells whether more is free than what is kept back: a cache has to stop growing where uploads
    /// are refused. Blocks.
    pub fn has_room(&self) -> bool {
        self.shared.space.look().is_ok()
    }

    /// Makes the reserve file again if the file is missing and there is room for it. Uploads are
    /// refused until then.
    pub async fn refill_reserve(&self) {
        let refilled = self.on_pool("making the reserve file", |shared| {
            shared.space.refill_reserve();
            Ok(())
        });
        refilled.await.ok();
    }

    /// Makes, writes and unlinks a file in staging, to see that the store can take one just now.
    pub async fn check(&self) -> Result<()> {
        self.on_pool("checking the storage", |shared| {
            let (_name, mut file) =
                StagedName::create(shared, BlobId::generate(Clock::system().now()))?;
            std::io::Write::write_all(&mut file, b"probe")
                .map_err(|error| Error::io("checking the storage", error))
        })
        .await
    }

    async fn on_pool<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Arc<Shared>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        pool::run(doing, move || work(&shared)).await
    }

    async fn each_on_pool(
        &self,
        keys: Vec<BlobKey>,
        work: impl FnOnce(&Arc<Shared>, &[BlobKey]) -> Vec<Result<()>> + Send + 'static,
    ) -> Vec<Result<()>> {
        const CHANGING: &str = "changing blobs";

        let count = keys.len();
        let outcomes = self.on_pool(CHANGING, move |shared| Ok(work(shared, &keys))).await;
        outcomes.unwrap_or_else(|lost| {
            (0..count).map(|_| Err(Error::internal(CHANGING, lost.chain()))).collect()
        })
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore").field("dir", &self.shared.dir.path()).finish_non_exhaustive()
    }
}

/// Syncs the names in the staging directory.
fn sync_staging(directory: &File) -> io::Result<()> {
    durable::sync(directory)?;
    reached(Step::StagingSynced);
    Ok(())
}

fn open(path: PathBuf) -> Result<File> {
    File::open(path).map_err(|error| Error::io(OPENING, error))
}

/// Refuses directories on two file systems: a rename needs both names on one, and a mount over one
/// of them is better found here than after a commit.
fn check_same_file_system(blobs: &File, staging: &File) -> Result<()> {
    if device(blobs)? == device(staging)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unusable, "blobs and staging are on different file systems"))
}

fn device(dir: &File) -> Result<u64> {
    dir.metadata().map(|metadata| metadata.dev()).map_err(|error| Error::io(OPENING, error))
}
