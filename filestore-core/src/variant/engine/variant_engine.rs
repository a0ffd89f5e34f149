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
use crate::domain::report::load::VariantLoad;
use crate::variant::cache::CacheReport;
use crate::variant::key::DigestedKey;
use crate::variant::{Motion, Variant, VariantKey};

/// Makes and caches variants. This is a handle, and all clones share one engine.
///
/// ```
/// # #[cfg(feature = "internals")]
/// # mod example {
/// use std::fs::File;
/// use filestore_core::config::VariantConfig;
/// use filestore_core::{FileId, Sha256, Timestamp};
/// use filestore_core::internals::variant::{Fit, Motion, Source, VariantEngine, VariantKey, VariantSize};
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
/// # }
/// ```
#[derive(Clone)]
pub struct VariantEngine {
    pub(super) shared: Arc<Shared>,
}

impl VariantEngine {
    /// Starts the threads, and opens the cache in `cache_dir`. The directory belongs only to this engine, and
    /// is created if necessary. The cache is counted and reduced to its budget in the background.
    pub fn open(cache_dir: &Path, config: VariantConfig) -> Result<Self> {
        Self::open_beside(cache_dir, config, || true)
    }

    /// Opens an engine like [`open`](Self::open), on a shared disk. While `has_room` returns false, variants
    /// are kept only in memory. `has_room` can block.
    pub fn open_beside(
        cache_dir: &Path,
        config: VariantConfig,
        has_room: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let shared = Shared::open(cache_dir, config, Arc::new(has_room))?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns a variant from memory. Never blocks or waits.
    pub fn cached(&self, key: &VariantKey) -> Option<Variant> {
        let found = self.shared.caches.in_memory(key);
        if found.is_some() {
            self.shared.served.from_memory.bump();
        }
        found
    }

    /// Returns a file with the variant and its length, if it is in memory and requested often. Never waits.
    pub fn cached_file(&self, key: &VariantKey) -> Option<(Arc<File>, u64)> {
        let found = self.shared.caches.file_in_memory(key);
        if found.is_some() {
            self.shared.served.from_memory.bump();
        }
        found
    }

    /// Returns the variant from memory or disk, or makes the variant now.
    ///
    /// `source` is the blob of `key`. The engine opens it only if the variant must be made. The engine asks
    /// if the blob is still current before the work, and around publishing the result. The work can continue
    /// after this future is dropped. Concurrent callers with the same key share one result.
    ///
    /// Returns [`NotAnImage`](crate::ErrorKind::NotAnImage), [`CorruptImage`](crate::ErrorKind::CorruptImage)
    /// or [`ImageTooLarge`](crate::ErrorKind::ImageTooLarge) if the picture is at fault. A picture that
    /// exceeds the deadline is also too large. Returns [`Busy`](crate::ErrorKind::Busy) with a retry time.
    /// Returns [`Conflict`](crate::ErrorKind::Conflict) if the blob is no longer current before the work
    /// begins. In that case, look up the record again. Can also return the error of opening the blob, and
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
    /// Call it after the file's record has changed, so that running work does not restore a variant. `Ok`
    /// means that none is left. An entry that the disk refuses to remove is never served, because no key
    /// refers to it.
    pub async fn remove_file(&self, file_id: FileId) -> Result<()> {
        self.shared.caches.remove_file(file_id).await
    }

    /// Lists the folders of the disk cache, in order.
    pub async fn cached_shards(&self) -> Vec<String> {
        self.shared.caches.shards().await
    }

    /// Lists the files with variants in a folder of the disk cache.
    pub async fn cached_files(&self, shard: String) -> Vec<FileId> {
        self.shared.caches.files_in(shard).await
    }

    /// Returns true if a file has variants on disk.
    pub async fn has_cached(&self, file_id: FileId) -> bool {
        self.shared.caches.has_file(file_id).await
    }

    /// Counts a file's unreadable variants on disk. Such variants are never served.
    pub async fn bad_cached(&self, file_id: FileId) -> u64 {
        self.shared.caches.bad_entries(file_id).await
    }

    /// Returns the known state of queues and caches, without reading the disk.
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

    /// Removes all variants of all files. Later requests make them again.
    pub async fn prune(&self) -> CacheReport {
        let removed = self.shared.caches.clear().await;
        CacheReport { removed, ..self.report().await }
    }
}
