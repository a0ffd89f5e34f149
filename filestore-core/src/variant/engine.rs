//! The variant engine: caches in front, one flight for each key, a pool behind.
//!
//! Purpose: answer a variant from memory, else from disk, else make it once for all who wait.
//!
//! Locking: look-ups in memory take the cache's own short locks; everything else runs in a task of
//! its own that holds no lock across an await. Work is bounded three times: by the places for
//! requests (`queue` and `threads`), by the memory that all running decoders may hold together,
//! and by the threads. Places and memory are given back when the thread has really ended its job,
//! even if nobody waits for it any more.
//!
//! Staleness: a caller removes a file's variants *after* its record has changed. A result is
//! published first and checked against the record after that: either the check sees the change
//! and withdraws it, or the change comes later and its removal finds it.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::cache::{CacheReport, DiskCache, MemoryCache, Recipe, StockCache};
use super::eager::EagerQueue;
use super::flight::{Flights, copy};
use super::pool::Pool;
use super::render::{Work, assess};
use super::source::{Deadline, corrupt, is_final, too_slow};
use super::stock::{Offer, Stock};
use super::{KeyDigest, Variant, VariantKey, budget};
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::variant::{Fit, VariantSize};

/// How many refusals (not an image, corrupt, too large) are remembered, so that a page full of
/// broken pictures is not decoded again at every look.
const REFUSALS: usize = 4096;
/// More requests than this never wait, whatever is configured: places are made in advance.
const MAX_PLACES: usize = 1 << 16;
/// The unit in which decode memory is handed out.
const MEMORY_UNIT: u64 = 1024;

/// Makes variants and keeps them. A handle: clones share everything.
///
/// ```
/// use std::fs::File;
/// use filestore_core::domain::{clock::Timestamp, config::VariantConfig, id::{FileId, Sha256}};
/// use filestore_core::variant::{Fit, VariantEngine, VariantKey, VariantSize};
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
/// };
/// let open = async { File::open("photo.jpg").map_err(|error| filestore_core::Error::io("opening", error)) };
/// let variant = engine.get(key, open, || async { true }).await?;
/// # drop(variant);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct VariantEngine {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) config: VariantConfig,
    /// Whether the disk has room for a cache.
    has_room: HasRoom,
    pub(super) memory: MemoryCache,
    disk: Arc<DiskCache>,
    /// What further sizes are made of.
    stocks: StockCache,
    refusals: Cache<KeyDigest, Arc<Error>>,
    pub(super) flights: Flights<KeyDigest, Variant>,
    places: Arc<Semaphore>,
    pub(super) decode_memory: Arc<Semaphore>,
    pub(super) pool: Pool,
    pub(super) eager: EagerQueue,
}

/// Says whether something may be written to the cache now. May block.
type HasRoom = Arc<dyn Fn() -> bool + Send + Sync>;

/// The error of a request that finds no place.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, "too many variants are being made").with_retry_after_secs(1)
}

impl VariantEngine {
    /// Starts the threads and opens the cache in `cache_dir`, which belongs to this engine alone
    /// and is made if it is not there. What the cache holds is counted, and cut to its budget, in
    /// the background.
    pub fn open(cache_dir: &Path, config: VariantConfig) -> Result<Self> {
        Self::open_beside(cache_dir, config, || true)
    }

    /// [`open`](Self::open) on a disk that others need more: while `has_room` says no, variants are
    /// made and kept in memory, but not written. It may block.
    pub fn open_beside(
        cache_dir: &Path,
        config: VariantConfig,
        has_room: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let threads = match config.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        let places = threads.saturating_add(config.queue).min(MAX_PLACES);
        let recipe = Recipe { quality: config.quality };
        let disk = Arc::new(DiskCache::open(cache_dir, recipe, config.disk_cache_bytes)?);
        let counted = disk.clone();
        thread::Builder::new()
            .name("variant-sweep".to_owned())
            .spawn(move || counted.sweep())
            .map_err(|error| Error::io("starting a variant thread", error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                memory: MemoryCache::new(config.memory_cache_bytes),
                disk,
                stocks: StockCache::new(config.intermediate_cache_bytes),
                eager: EagerQueue::default(),
                refusals: Cache::new(REFUSALS),
                flights: Flights::default(),
                places: Arc::new(Semaphore::new(places)),
                decode_memory: Arc::new(Semaphore::new(
                    memory_units(config.decode_memory_bytes) as usize
                )),
                pool: Pool::start(threads, places)?,
                has_room: Arc::new(has_room),
                config,
            }),
        })
    }

    /// The variant if it is in memory: never blocks, never waits.
    pub fn cached(&self, key: &VariantKey) -> Option<Variant> {
        self.inner.memory.get(key)
    }

    /// The variant, from memory or disk, else made now.
    ///
    /// `source` opens the blob of `key`; it runs only if something must be made. `still_current`
    /// says whether `key.sha256` is still the file's blob and the file still there; it is asked
    /// before the work and around publishing its result. Both may run, and the work goes on, after
    /// this future is dropped; callers with the same key at the same time share one outcome.
    ///
    /// Errors: [`NotAnImage`](ErrorKind::NotAnImage), [`CorruptImage`](ErrorKind::CorruptImage),
    /// [`ImageTooLarge`](ErrorKind::ImageTooLarge) (also for pictures that take longer than the
    /// deadline), [`Busy`](ErrorKind::Busy) with a retry time, [`Conflict`](ErrorKind::Conflict) if
    /// the blob is no longer current before the work begins (look the record up again), what
    /// `source` fails with, and [`Internal`](ErrorKind::Internal).
    pub async fn get<S, C, F>(
        &self,
        key: VariantKey,
        source: S,
        still_current: C,
    ) -> Result<Variant>
    where
        S: Future<Output = Result<File>> + Send + 'static,
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        if let Some(variant) = self.cached(&key) {
            return Ok(variant);
        }
        let digest = key.digest();
        if let Some(refusal) = self.inner.refusals.get(&digest) {
            return Err(copy(&refusal));
        }
        let inner = self.inner.clone();
        let work = move || async move { inner.obtain(&key, digest, source, still_current).await };
        self.inner.flights.join(digest, work).await
    }

    /// Removes every variant of a file from memory and disk. To be called after the file's record
    /// has changed, so that work under way does not bring one back. `Ok` means that none is left. What
    /// the disk refuses to remove is never served, since no key leads to it.
    pub async fn remove_file(&self, file_id: FileId) -> Result<()> {
        const REMOVING: &str = "removing cached variants";
        self.inner.memory.remove_file(file_id);
        self.inner.stocks.remove_file(file_id);
        let disk = self.inner.disk.clone();
        let removed = spawn_blocking(move || disk.remove_file(file_id)).await;
        removed
            .map_err(|lost| Error::internal(REMOVING, lost))?
            .map_err(|error| Error::io(REMOVING, error))
    }

    /// What the cache holds, counted now.
    pub async fn report(&self) -> CacheReport {
        let disk = self.inner.disk.clone();
        let on_disk = spawn_blocking(move || disk.count()).await.unwrap_or_default();
        let (memory_entries, memory_bytes) = self.inner.memory.size();
        CacheReport {
            disk_entries: on_disk.entries,
            disk_bytes: on_disk.bytes,
            memory_entries,
            memory_bytes,
            intermediate_bytes: self.inner.stocks.bytes(),
            eager_waiting: self.inner.eager.waiting(),
            eager_made: self.inner.eager.made(),
            eager_dropped: self.inner.eager.dropped(),
            removed: 0,
        }
    }

    /// Removes every variant of every file; what is still asked for is made again.
    pub async fn prune(&self) -> CacheReport {
        let from_memory = self.inner.memory.clear();
        self.inner.stocks.clear();
        let disk = self.inner.disk.clone();
        let from_disk = spawn_blocking(move || disk.clear()).await.unwrap_or_default();
        CacheReport { removed: from_memory + from_disk.entries, ..self.report().await }
    }
}

impl Inner {
    async fn obtain<C, F>(
        self: Arc<Self>,
        key: &VariantKey,
        digest: KeyDigest,
        source: impl Future<Output = Result<File>> + Send,
        still_current: C,
    ) -> Result<Variant>
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        // Another flight may have landed between the look-up and this one.
        if let Some(variant) = self.memory.get(key) {
            return Ok(variant);
        }
        if let Some(variant) = self.read_disk(key.file_id, digest).await {
            self.memory.insert(key, &variant);
            self.withdraw_unless(still_current().await, key, digest).await;
            return Ok(variant);
        }
        if !still_current().await {
            return Err(Error::new(ErrorKind::Conflict, "the file was changed at the same moment"));
        }
        let (variant, rest) =
            self.make(key, source).await.inspect_err(|error| self.remember(digest, error))?;
        if !still_current().await {
            return Ok(variant);
        }
        self.publish(key, digest, &variant).await;
        let current = still_current().await;
        self.withdraw_unless(current, key, digest).await;
        if let Some(rest) = rest.filter(|_| current) {
            tokio::spawn(Self::keep(self, key.clone(), rest, still_current));
        }
        Ok(variant)
    }

    pub(super) async fn read_disk(&self, file_id: FileId, digest: KeyDigest) -> Option<Variant> {
        let disk = self.disk.clone();
        spawn_blocking(move || disk.read(file_id, digest)).await.ok().flatten()
    }

    pub(super) fn remember(&self, digest: KeyDigest, error: &Error) {
        if is_final(error) {
            self.refusals.insert(digest, Arc::new(copy(error)));
        }
    }

    async fn make(
        &self,
        key: &VariantKey,
        source: impl Future<Output = Result<File>> + Send,
    ) -> Result<(Variant, Option<Rest>)> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| busy())?;
        let quality = self.config.quality;
        if let Some(stock) = self.stocks.get(key)
            && let Some(offer) = stock.offer(key.size, key.fit)
        {
            let wanted = match offer {
                Offer::PassThrough { mime } => return Ok((Variant::PassThrough { mime }, None)),
                Offer::Render(wanted) => wanted,
            };
            let memory = self.wait_for_memory(budget::render_bytes(wanted)).await?;
            let job = move |_, report: oneshot::Sender<_>| {
                let rendered = stock.render(wanted, quality);
                drop((stock, memory, place));
                let _ = report.send(rendered);
            };
            return Ok((self.run(job).await?, None));
        }
        let file = source.await?;
        let (work, file) = self.assess(file, vec![(key.size, key.fit)]).await?;
        if work.memory_bytes == 0 {
            return Ok((work.pass_through(), None));
        }
        let memory = self.wait_for_memory(work.memory_bytes).await?;
        let (keep, rest) = oneshot::channel();
        let max_bytes = self.stocks.max_bytes();
        let job = move |deadline, report: oneshot::Sender<_>| {
            let mut variant = None;
            let outcome = work.run(&file, quality, deadline, |_, made| {
                variant = Some(made);
                ControlFlow::Break(())
            });
            let (rendered, stock) = match outcome {
                Ok(stock) => (variant.ok_or_else(nothing_made), stock),
                Err(error) => (Err(error), None),
            };
            // Before the report, so that who hears of it finds the place free.
            drop(place);
            let _ = report.send(rendered);
            if let Some(kept) = stock.and_then(|stock| stock.keep(max_bytes)) {
                let _ = keep.send(kept);
            }
            drop(memory);
        };
        Ok((self.run(job).await?, Some(rest)))
    }

    pub(super) async fn assess(
        &self,
        file: File,
        wanted: Vec<(VariantSize, Fit)>,
    ) -> Result<(Work, File)> {
        let config = self.config.clone();
        let assessed =
            spawn_blocking(move || assess(&file, &wanted, &config).map(|work| (work, file)));
        assessed.await.map_err(|error| corrupt(error.to_string()))?
    }

    async fn wait_for_memory(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        let memory = self.decode_memory.clone().acquire_many_owned(memory_units(bytes));
        // Waiting for memory as long as a whole rendering may take is waiting too long.
        let memory = timeout(self.config.deadline, memory).await.map_err(|_| busy())?;
        memory.map_err(|error| Error::internal("waiting for decode memory", error))
    }

    /// Runs `job` on the pool. What it holds is released when it has ended, not when its caller
    /// stops waiting; it may go on after its report.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(Deadline, oneshot::Sender<Result<T>>) + Send + 'static,
    ) -> Result<T> {
        let deadline = self.config.deadline;
        let (start, started) = oneshot::channel();
        let (report, outcome) = oneshot::channel();
        self.pool.submit(move || {
            // Nobody waits any more for a job that was queued for too long.
            if start.send(()).is_ok() {
                job(Deadline::after(deadline), report);
            }
        })?;
        let in_time = timeout(deadline, started).await.map_err(|_| busy())?;
        in_time.map_err(|error| Error::internal("waiting for a variant thread", error))?;
        match timeout(deadline, outcome).await {
            Ok(Ok(rendered)) => rendered,
            // The sender went without a word: the decoder panicked.
            Ok(Err(_)) => Err(corrupt("the decoder panicked")),
            Err(_) => Err(too_slow()),
        }
    }

    /// Keeps what a rendering leaves for other sizes, unless its blob is gone by then.
    pub(super) async fn keep<C, F>(self: Arc<Self>, key: VariantKey, rest: Rest, still_current: C)
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        let Ok(stock) = rest.await else { return };
        self.stocks.insert(&key, stock);
        // After it is there: a removal comes later and finds it, or has come and is seen here.
        if !still_current().await {
            self.stocks.remove_file(key.file_id);
        }
    }

    /// The most that may be kept of one picture.
    pub(super) fn max_kept_bytes(&self) -> u64 {
        self.stocks.max_bytes()
    }

    pub(super) async fn publish(&self, key: &VariantKey, digest: KeyDigest, variant: &Variant) {
        let (disk, file_id, written) = (self.disk.clone(), key.file_id, variant.clone());
        let has_room = Arc::clone(&self.has_room);
        let write = move || if has_room() { disk.write(file_id, digest, &written) } else { Ok(()) };
        match spawn_blocking(write).await {
            Ok(Ok(())) => {}
            // A cache that cannot be written to only costs time.
            Ok(Err(error)) => tracing::warn!(%error, "cannot write to the variant cache"),
            Err(error) => tracing::error!(%error, "writing to the variant cache ended early"),
        }
        self.memory.insert(key, variant);
        if self.disk.is_over_budget() {
            let disk = self.disk.clone();
            spawn_blocking(move || disk.sweep());
        }
    }

    /// Takes a published variant back if its blob was replaced or purged meanwhile.
    pub(super) async fn withdraw_unless(&self, current: bool, key: &VariantKey, digest: KeyDigest) {
        if current {
            return;
        }
        self.memory.remove(key);
        let (disk, file_id) = (self.disk.clone(), key.file_id);
        if let Err(error) = spawn_blocking(move || disk.remove(file_id, digest)).await {
            tracing::error!(%error, "withdrawing a variant ended early");
        }
    }
}

/// What is left of a rendering, once it is there.
pub(super) type Rest = oneshot::Receiver<Stock>;

fn nothing_made() -> Error {
    Error::internal("making a variant", "there is no result")
}

/// Memory in the semaphore's units, at least one and no more than it can count.
pub(super) fn memory_units(bytes: u64) -> u32 {
    let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
    u32::try_from(bytes.div_ceil(MEMORY_UNIT)).unwrap_or(most).clamp(1, most)
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
