//! All caches of an engine, which are queried and filled together.
//!
//! # Purpose
//! The engine reports what happened to a variant. This module knows the order of the layers, and the threads
//! for blocking layers. A failing cache only costs time, so failures are logged.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use quick_cache::sync::Cache;

use super::disk::{DiskCache, Recipe, Stored};
use super::memory::MemoryCache;
use super::retained::RetainedCache;
use super::sheets::{Lasting, SheetCache};
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::report::load::VariantLoad;
use crate::tasks;
use crate::variant::key::{DigestedKey, KeyDigest};
use crate::variant::pictures::{Retained, is_final};
use crate::variant::{Sheet, SheetKey, Variant, VariantKey};

/// The maximum number of remembered refusals (not an image, corrupt, too large). Remembered refusals prevent
/// a page of broken pictures from being decoded on each view.
const REFUSALS: usize = 4096;

/// A function that returns true if the disk can be written to now. It can block.
pub(crate) type HasRoom = Arc<dyn Fn() -> bool + Send + Sync>;

/// The contents of the variant cache, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheReport {
    /// The number of variants on disk.
    pub disk_entries: u64,
    /// The size of the entries on disk, in bytes, as the file system counts.
    pub disk_bytes: u64,
    /// The number of variants in memory.
    pub memory_entries: u64,
    /// The size of the entries in memory, in bytes.
    pub memory_bytes: u64,
    /// The size of decoded pictures retained for further sizes, in bytes.
    pub intermediate_bytes: u64,
    /// The number of files that wait for variants in advance.
    pub eager_waiting: u64,
    /// The number of variants made in advance since the start.
    pub eager_made: u64,
    /// The number of files dropped since the start in favour of requests.
    pub eager_dropped: u64,
    /// The number of entries that this call removed from disk and memory (prune only).
    pub removed: u64,
}

/// The caches of one engine.
pub(crate) struct Caches {
    memory: MemoryCache,
    disk: Arc<DiskCache>,
    retained: RetainedCache,
    sheets: SheetCache,
    refusals: Cache<KeyDigest, Error>,
    has_room: HasRoom,
}

impl Caches {
    /// Opens the disk cache in `directory`, and counts it on a separate thread.
    pub(crate) fn open(
        directory: &Path,
        config: &VariantConfig,
        has_room: HasRoom,
    ) -> Result<Self> {
        let recipe = Recipe { quality: config.quality };
        let disk = Arc::new(DiskCache::open(directory, recipe, config.disk_cache_bytes)?);
        let counted = Arc::clone(&disk);
        thread::Builder::new()
            .name("variant-sweep".to_owned())
            .spawn(move || counted.sweep())
            .map_err(|error| Error::io("starting a variant thread", error))?;

        Ok(Self {
            memory: MemoryCache::new(config.memory_cache_bytes),
            disk,
            retained: RetainedCache::new(config.intermediate_cache_bytes),
            sheets: SheetCache::new(config.sheet_cache_bytes),
            refusals: Cache::new(REFUSALS),
            has_room,
        })
    }

    /// Returns the variant if it is in memory.
    pub(crate) fn in_memory(&self, key: &VariantKey) -> Option<Variant> {
        self.memory.get(key)
    }

    /// Returns a file with the variant and its length, if it is in memory and requested often.
    pub(crate) fn file_in_memory(&self, key: &VariantKey) -> Option<(Arc<File>, u64)> {
        self.memory.file(key)
    }

    /// Keeps a variant in memory only.
    pub(crate) fn insert_in_memory(&self, entry: &DigestedKey, variant: &Variant) {
        self.memory.insert(&entry.key, variant);
    }

    /// Reads the variant if it is on disk.
    pub(crate) async fn on_disk(&self, entry: &DigestedKey) -> Option<Variant> {
        let (disk, file_id, digest) = (Arc::clone(&self.disk), entry.key.file_id, entry.digest);
        let still = entry.key.still().digest();
        let read = tasks::blocking(move || match disk.read(file_id, digest)? {
            Stored::Variant(variant) => Some(variant),
            Stored::Still => match disk.read(file_id, still)? {
                Stored::Variant(variant) => Some(variant),
                Stored::Still => None,
            },
        });
        read.await.ok().flatten()
    }

    /// Returns the earlier error of this variant if a retry would fail in the same way.
    pub(crate) fn refusal(&self, entry: &DigestedKey) -> Option<Error> {
        self.refusals.get(&entry.digest)
    }

    /// Remembers `error` if the picture itself causes it.
    pub(crate) fn remember_refusal(&self, entry: &DigestedKey, error: &Error) {
        if is_final(error) {
            self.refusals.insert(entry.digest, error.clone());
        }
    }

    /// Writes a variant to the disk, if there is space, and keeps it in memory.
    pub(crate) async fn publish(&self, entry: &DigestedKey, variant: &Variant) {
        self.store(entry, variant, Stored::Variant(variant.clone())).await;
    }

    /// Records on the disk, if there is space, that the still `variant` is the answer, and keeps it in
    /// memory.
    pub(crate) async fn publish_still(&self, entry: &DigestedKey, variant: &Variant) {
        self.store(entry, variant, Stored::Still).await;
    }

    async fn store(&self, entry: &DigestedKey, variant: &Variant, written: Stored) {
        let (file_id, digest) = (entry.key.file_id, entry.digest);
        let (disk, has_room) = (Arc::clone(&self.disk), Arc::clone(&self.has_room));
        let written = tasks::blocking(move || {
            if has_room() { disk.write(file_id, digest, &written) } else { Ok(()) }
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot write to the variant cache"),
            Err(error) => tracing::error!(%error, "writing to the variant cache ended early"),
        }

        self.memory.insert(&entry.key, variant);
        if self.disk.is_over_budget() {
            let disk = Arc::clone(&self.disk);
            tasks::blocking(move || disk.sweep());
        }
    }

    /// Removes one variant from memory and disk.
    pub(crate) async fn forget(&self, entry: &DigestedKey) {
        self.memory.remove(&entry.key);
        let (disk, file_id, digest) = (Arc::clone(&self.disk), entry.key.file_id, entry.digest);
        if let Err(error) = tasks::blocking(move || disk.remove(file_id, digest)).await {
            tracing::error!(%error, "forgetting a variant ended early");
        }
    }

    /// Removes all variants and retained pixels of a file. `Ok` means that none are left.
    pub(crate) async fn remove_file(&self, file_id: FileId) -> Result<()> {
        const REMOVING: &str = "removing cached variants";

        self.memory.remove_file(file_id);
        self.retained.remove_file(file_id);
        self.sheets.remove_file(file_id);
        let disk = Arc::clone(&self.disk);
        let removed = tasks::blocking(move || disk.remove_file(file_id)).await;
        removed
            .map_err(|lost| Error::internal(REMOVING, lost))?
            .map_err(|error| Error::io(REMOVING, error))
    }

    /// Returns the sheet if it is in memory.
    pub(crate) fn sheet(&self, key: &SheetKey) -> Option<Arc<Sheet>> {
        self.sheets.get(key)
    }

    /// Keeps a sheet in memory.
    pub(crate) fn keep_sheet(&self, key: Arc<SheetKey>, sheet: Arc<Sheet>, lasting: Lasting) {
        self.sheets.insert(key, sheet, lasting);
    }

    /// Removes all sheets with this file.
    pub(crate) fn forget_sheets(&self, file_id: FileId) {
        self.sheets.remove_file(file_id);
    }

    /// Lists the folders of the disk cache, in order.
    pub(crate) async fn shards(&self) -> Vec<String> {
        let disk = Arc::clone(&self.disk);
        tasks::blocking(move || disk.shards()).await.unwrap_or_default()
    }

    /// Lists the files with variants in a folder of the disk cache.
    pub(crate) async fn files_in(&self, shard: String) -> Vec<FileId> {
        let disk = Arc::clone(&self.disk);
        tasks::blocking(move || disk.files_in(&shard)).await.unwrap_or_default()
    }

    /// Returns true if a file has variants on disk.
    pub(crate) async fn has_file(&self, file_id: FileId) -> bool {
        let disk = Arc::clone(&self.disk);
        tasks::blocking(move || disk.has_file(file_id)).await.unwrap_or_default()
    }

    /// Counts a file's unreadable variants on disk.
    pub(crate) async fn bad_entries(&self, file_id: FileId) -> u64 {
        let disk = Arc::clone(&self.disk);
        tasks::blocking(move || disk.bad_entries(file_id)).await.unwrap_or_default()
    }

    /// Returns the retained pixels of the key's blob.
    pub(crate) fn retained(&self, key: &VariantKey) -> Option<Arc<Retained>> {
        self.retained.get(key)
    }

    /// Retains pixels of the key's blob. The new pixels can displace other pixels.
    pub(crate) fn retain(&self, key: &VariantKey, retained: Retained) {
        self.retained.insert(key, retained);
    }

    /// Removes the retained pixels of a file.
    pub(crate) fn forget_retained(&self, file_id: FileId) {
        self.retained.remove_file(file_id);
    }

    /// Returns the maximum size of one retained picture, in bytes.
    pub(crate) fn max_retained_bytes(&self) -> u64 {
        self.retained.max_bytes()
    }

    /// Returns the known contents of all caches, without reading the disk.
    pub(crate) fn load(&self) -> VariantLoad {
        let on_disk = self.disk.known();
        let (memory_entries, memory_bytes) = self.memory.size();

        VariantLoad {
            disk_entries: on_disk.entries,
            disk_bytes: on_disk.bytes,
            memory_entries,
            memory_bytes,
            retained_bytes: self.retained.bytes(),
            ..VariantLoad::default()
        }
    }

    /// Counts the contents of all caches now.
    pub(crate) async fn report(&self) -> CacheReport {
        let disk = Arc::clone(&self.disk);
        let on_disk = tasks::blocking(move || disk.count()).await.unwrap_or_default();
        let (memory_entries, memory_bytes) = self.memory.size();

        CacheReport {
            disk_entries: on_disk.entries,
            disk_bytes: on_disk.bytes,
            memory_entries,
            memory_bytes,
            intermediate_bytes: self.retained.bytes(),
            ..CacheReport::default()
        }
    }

    /// Removes everything. Returns the number of removed variants.
    pub(crate) async fn clear(&self) -> u64 {
        let from_memory = self.memory.clear();
        self.retained.clear();
        let sheets = self.sheets.clear();
        let disk = Arc::clone(&self.disk);
        let from_disk = tasks::blocking(move || disk.clear()).await.unwrap_or_default();
        from_memory + sheets + from_disk.entries
    }
}
