//! The public handle of the engine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::caller::Source;
use super::pool::PoolLoad;
use super::shared::Shared;
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::load::VariantLoad;
use crate::variant::cache::CacheReport;
use crate::variant::key::DigestedKey;
use crate::variant::{Motion, Variant, VariantKey};

/// Makes variants and keeps them. A handle: clones share everything.
///
/// ```
/// use std::fs::File;
/// use filestore_core::domain::{clock::Timestamp, config::VariantConfig, id::{FileId, Sha256}};
/// use filestore_core::variant::{Fit, Motion, Source, VariantEngine, VariantKey, VariantSize};
/// # use filestore_core::Result;
///
/// # async fn example(cache: &std::path::Path) -> Result<()> {
/// let engine = VariantEngine::open(cache, VariantConfig::default())?;
/// let key = VariantKey {
///     organization_id: "7".parse()?,
///     file_id: FileId::generate(Timestamp::now()),
///     sha256: Sha256([0; 32]), // the blob's, from its record
///     size: VariantSize::from_path("400", "400")?,
///     fit: Fit::Cover,
///     motion: Motion::Still,
/// };
/// let open = || async {
///     File::open("photo.jpg").map_err(|error| filestore_core::Error::io("opening", error))
/// };
/// let variant = engine.get(key, Source::new(open, || async { true })).await?;
/// # drop(variant);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct VariantEngine {
    pub(super) shared: Arc<Shared>,
}

impl VariantEngine {
    /// Starts the threads and opens the cache in `cache_dir`, which belongs to this engine alone
    /// and is made if it is not there. The cache is counted, and cut to its budget, in the
    /// background.
    pub fn open(cache_dir: &Path, config: VariantConfig) -> Result<Self> {
        Self::open_beside(cache_dir, config, || true)
    }

    /// Opens an engine, as [`open`](Self::open) does, on a disk that others need more: while
    /// `has_room` says no, variants are made and kept in memory, but not written. `has_room` may
    /// block.
    pub fn open_beside(
        cache_dir: &Path,
        config: VariantConfig,
        has_room: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared = Shared::open(cache_dir, config, Arc::new(has_room))?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the variant if it is in memory: never blocks, never waits.
    pub fn cached(&self, key: &VariantKey) -> Option<Variant> {
        let found = self.shared.caches.in_memory(key);
        if found.is_some() {
            self.shared.served.from_memory.bump();
        }
        found
    }

    /// Returns a file of the variant and its length, if it is in memory and asked for often: never waits.
    pub fn cached_file(&self, key: &VariantKey) -> Option<(Arc<File>, u64)> {
        let found = self.shared.caches.file_in_memory(key);
        if found.is_some() {
            self.shared.served.from_memory.bump();
        }
        found
    }

    /// Returns the variant, from memory or disk, else made now.
    ///
    /// `source` is the blob of `key`. It is opened only if something must be made, and asked if it is
    /// current before the work and around publishing its result. Both may happen, and the work goes
    /// on, after this future is dropped; callers with the same key at the same time share one outcome.
    ///
    /// Errors: [`NotAnImage`](crate::ErrorKind::NotAnImage),
    /// [`CorruptImage`](crate::ErrorKind::CorruptImage),
    /// [`ImageTooLarge`](crate::ErrorKind::ImageTooLarge) (also for pictures that take longer than
    /// the deadline), [`Busy`](crate::ErrorKind::Busy) with a retry time,
    /// [`Conflict`](crate::ErrorKind::Conflict) if the blob is no longer current before the work
    /// begins (look the record up again), the error of opening the blob, and
    /// [`Internal`](crate::ErrorKind::Internal).
    pub async fn get(&self, key: VariantKey, source: Source) -> Result<Variant> {
        if let Some(variant) = self.cached(&key) {
            return Ok(variant);
        }
        let entry = DigestedKey::from(key);
        if let Some(refusal) = self.shared.caches.refusal(&entry) {
            self.shared.served.failed.bump();
            return Err(refusal);
        }

        let (shared, digest) = (Arc::clone(&self.shared), entry.digest);
        match entry.key.motion {
            Motion::Still => {
                self.shared.flights.join(digest, move || shared.obtain(entry, source)).await
            }
            Motion::Animated => {
                let work = move || shared.obtain_animated(entry, source);
                self.shared.flights.join(digest, work).await
            }
        }
    }

    /// Removes every variant of a file from memory and disk.
    ///
    /// To be called after the file's record has changed, so that work under way does not bring one
    /// back. `Ok` means that none is left. An entry that the disk refuses to remove is never
    /// served, since no key leads to it.
    pub async fn remove_file(&self, file_id: FileId) -> Result<()> {
        self.shared.caches.remove_file(file_id).await
    }

    /// Lists the parts of the cache on the disk, in their order.
    pub async fn cached_shards(&self) -> Vec<String> {
        self.shared.caches.shards().await
    }

    /// Lists the files that have variants in a part of the cache on the disk.
    pub async fn cached_files(&self, shard: String) -> Vec<FileId> {
        self.shared.caches.files_in(shard).await
    }

    /// Tells whether a file has variants on the disk.
    pub async fn has_cached(&self, file_id: FileId) -> bool {
        self.shared.caches.has_file(file_id).await
    }

    /// Counts a file's variants on the disk that cannot be read, which are never served.
    pub async fn bad_cached(&self, file_id: FileId) -> u64 {
        self.shared.caches.bad_entries(file_id).await
    }

    /// Returns what is known of queues and caches without looking at the disk.
    pub fn load(&self) -> VariantLoad {
        let PoolLoad { tasks, busy_threads, threads } = self.shared.pool.load();
        let served = &self.shared.served;

        VariantLoad {
            tasks,
            busy_threads,
            threads,
            from_memory: served.from_memory.get(),
            from_disk: served.from_disk.get(),
            made: served.made.get(),
            failed: served.failed.get(),
            eager_waiting: self.shared.eager.waiting(),
            ..self.shared.caches.load()
        }
    }

    /// Counts the cache now.
    pub async fn report(&self) -> CacheReport {
        let eager = &self.shared.eager;
        CacheReport {
            eager_waiting: eager.waiting(),
            eager_made: eager.made(),
            eager_dropped: eager.dropped(),
            ..self.shared.caches.report().await
        }
    }

    /// Removes every variant of every file; a later request makes its variant again.
    pub async fn prune(&self) -> CacheReport {
        let removed = self.shared.caches.clear().await;
        CacheReport { removed, ..self.report().await }
    }
}
