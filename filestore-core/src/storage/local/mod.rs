//! The LOCAL blob store: blobs as files in the data directory.
//!
//! # Purpose
//! The store receives a blob into `staging/<blob id>` and makes it durable there. Then the caller commits a
//! record that names the blob, and the store renames the file to `blobs/<key>`. Reads try both names, so the
//! blob can be read at any time after the commit.
//!
//! # Locking
//! Operations on different blobs do not lock each other. Uploads share the fsync of the staging directory
//! (`group_sync`). Creating and removing day directories exclude each other (`directories`). The data
//! directory stays locked as long as a clone of the store, or its work, exists.
//!
//! # Crash safety
//! No file is ever overwritten: names are created exclusively, and renames never replace. `Ok` from
//! [`StagingWriter::finish`] means that bytes and staged name are durable. `Ok` from
//! [`BlobStore::remove`](super::BlobStore::remove) means that both names are durably removed. With
//! [`Durability::Process`], both survive a crash of the process, and survive a power cut only after
//! `LocalStore::flush_all`.
//!
//! # Runtime
//! All file operations run on tokio's blocking pool. The store needs the timer of the runtime.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use self::names::directories::Directories;
use self::reading::cached_read::CachedReads;
use self::reading::in_memory::InMemory;
use self::reading::open_files::OpenFiles;
use self::space::Space;
use self::staging::group_sync::GroupSync;
use self::staging::staged::StagedName;
use self::staging::turn::Turns;
use super::data_dir::DataDir;
use crate::domain::config::{Durability, StoreConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::domain::report::overview::DiskSpace;
use crate::domain::time::clock::Clock;
use crate::tasks::step::{Step, reached};

mod staging;
mod reading;
mod names;
mod pool;
mod space;
mod durable;
mod store;
mod inspect;
#[cfg(test)]
mod tests;

pub use inspect::{BlobDigest, DigestStep};
pub use names::walk::{BlobWalk, StagedWalk, WalkedName, WalkedPage};
pub use reading::blocks::READ_BLOCK_BYTES;
pub use reading::read::LocalBlob;
pub use reading::send_file::SendFile;
pub use staging::StagingWriter;
pub use staging::digest_state::DigestState;
pub(crate) use staging::ledger::{StagedLedger, StagedLimits, Uploader};
pub use staging::resumed::StagedPoint;
pub use staging::staged::StagedBlob;

const OPENING: &str = "opening the data directory";

/// The store's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalOptions {
    /// How safely an acknowledged write is on the disk.
    pub durability: Durability,
    /// The minimum free space for uploads, in bytes. The minimum is also the size of the reserve file for
    /// deletes on a full disk. 0 disables both.
    pub reserve_bytes: u64,
    /// The maximum number of uploads in large blocks. Each uses at most 1 MiB and one open file. Further
    /// uploads, and slow uploads, use small blocks.
    pub concurrent_uploads: usize,
    /// The maximum bytes of small blobs in memory for reads. 0 disables this cache.
    pub memory_bytes: u64,
    /// The maximum files kept open for sending. 0 disables this cache.
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

/// The blobs of one data directory. Clones are cheap and refer to the same store.
///
/// ```
/// # #[cfg(not(feature = "internals"))]
/// # fn main() {}
/// # #[cfg(feature = "internals")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let home = tempfile::tempdir().unwrap();
/// use filestore_core::{BlobId, BlobKey, StoreConfig, Timestamp};
/// use filestore_core::internals::storage::{DataDir, LocalOptions, LocalStore};
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
    /// Opens the store in `dir`. If the disk is too full for the reserve file, the store still opens. Reads
    /// and deletes then work, and uploads are refused.
    ///
    /// Returns [`ErrorKind::Unusable`] if `staging` and `blobs` are on different file systems. Blocks.
    pub fn open(dir: &DataDir, options: LocalOptions) -> Result<Self> {
        Self::open_with(dir, options, &Clock::system())
    }

    /// Opens the store like [`open`](Self::open). `clock` measures the speed of uploads.
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

    /// Begins to receive a blob of at most `max_bytes`. Does not wait for other uploads.
    ///
    /// Returns [`ErrorKind::StorageFull`] if the free space is below the reserve. A second upload with the
    /// same id fails at its first write to the disk, and does not affect the first upload.
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

    /// Gives a staged blob its final name. Creates the directory if necessary.
    ///
    /// A second or concurrent call changes nothing. The rename becomes durable soon afterwards. After a crash
    /// before that, the blob has its staged name. [`ErrorKind::NotFound`] if the blob has neither name,
    /// because it was removed in the meantime.
    pub async fn publish(&self, key: &BlobKey) -> Result<()> {
        let key = key.clone();
        self.on_pool("publishing a blob", move |shared| shared.publish(&key)).await
    }

    /// Publishes several blobs in order, like [`publish`](Self::publish). The results have the same order. A
    /// failure does not stop the others.
    pub async fn publish_all(&self, keys: Vec<BlobKey>) -> Vec<Result<()>> {
        self.each_on_pool(keys, |shared, keys| keys.iter().map(|key| shared.publish(key)).collect())
            .await
    }

    /// Lists the blobs with a staged name. Foreign names are logged and not touched.
    pub async fn staged(&self) -> Result<Vec<BlobId>> {
        const SCANNING: &str = "scanning the staging directory";
        self.on_pool(SCANNING, |shared| shared.staged().map_err(|error| Error::io(SCANNING, error)))
            .await
    }

    /// Unlinks staged names durably. An absent name counts as unlinked.
    pub async fn discard_staged(&self, ids: Vec<BlobId>) -> Result<()> {
        self.on_pool("discarding staged blobs", move |shared| shared.discard_staged(&ids)).await
    }

    /// Deletes the reserve file, so that a delete can commit on a full disk. Returns false if there is no
    /// such file. Blocks.
    pub fn free_reserve(&self) -> bool {
        self.shared.space.free_reserve()
    }

    /// Returns the space of the data directory's disk.
    pub(crate) async fn disk_space(&self) -> Result<DiskSpace> {
        self.on_pool("looking at the free space", |shared| shared.space.disk()).await
    }

    /// Returns true if the free space exceeds the reserve. Caches must stop growing when uploads are refused.
    /// Blocks.
    pub fn has_room(&self) -> bool {
        self.shared.space.look().is_ok()
    }

    /// Creates the reserve file again if the file is missing and there is enough space. Uploads are refused
    /// until then.
    pub async fn refill_reserve(&self) {
        let refilled = self.on_pool("making the reserve file", |shared| {
            shared.space.refill_reserve();
            Ok(())
        });
        refilled.await.ok();
    }

    /// Creates, writes and unlinks a file in staging, to test if the store can accept a file now.
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

/// Refuses directories on two file systems, because a rename needs both names on one. A check here finds such
/// a mount before a commit.
fn check_same_file_system(blobs: &File, staging: &File) -> Result<()> {
    if device(blobs)? == device(staging)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unusable, "blobs and staging are on different file systems"))
}

fn device(dir: &File) -> Result<u64> {
    dir.metadata().map(|metadata| metadata.dev()).map_err(|error| Error::io(OPENING, error))
}
