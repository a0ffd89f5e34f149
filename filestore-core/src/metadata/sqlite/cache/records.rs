//! A cache of records by id. Never stale.
//!
//! # Purpose
//! A download first asks for its record. An answer from memory costs no thread switch.
//!
//! # Locking
//! Look-ups use only the cache's own shard. There is one hazard: a reader misses the cache and reads the old
//! row. The writer then commits and removes the entry. The reader then inserts the old row.
//!
//! To prevent this, every id has an epoch, shared by all ids of its shard. A reader notes it *before* it
//! reads the database. The reader inserts only if the epoch is unchanged, under the epoch's lock. The writer
//! makes the epoch odd and removes the entries *before* COMMIT, and makes it even again afterwards. No row is
//! inserted under an odd epoch. A read after a commit, from memory or from the database, therefore never sees
//! the state before it, even between COMMIT and the reply.
//!
//! The engine has one writer, so at most one change is open at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::domain::file::record::FileRecord;
use crate::domain::id::FileId;

/// The maximum size of all records, in bytes.
const CAPACITY_BYTES: u64 = 64 << 20;

/// The maximum number of records. Each weighs at least its share of the bytes.
const CAPACITY_RECORDS: u64 = 100_000;

/// The number of epochs. The number is so large that a change rarely prevents the insert of an unrelated
/// record.
const SHARDS: usize = 256;

/// The cached records, and the epochs that prevent stale records.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct RecordCache {
    records: Cache<FileId, Arc<FileRecord>, ByBytes>,
    epochs: Box<[Mutex<u64>]>,
}

/// The epoch of an id before its row was read.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::sqlite) struct Ticket(u64);

/// Ids of rows in a running change. The records of these ids are not cached until this value is dropped.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct Changing<'c> {
    cache: &'c RecordCache,
    shards: BTreeSet<usize>,
}

impl RecordCache {
    pub(in crate::metadata::sqlite) fn new() -> Self {
        let estimate = usize::try_from(CAPACITY_RECORDS).expect("fits into any usize");
        Self {
            records: Cache::with_weighter(estimate, CAPACITY_BYTES, ByBytes),
            epochs: (0..SHARDS).map(|_| Mutex::new(0)).collect(),
        }
    }

    /// Returns the record if it is cached.
    pub(in crate::metadata::sqlite) fn get(&self, id: FileId) -> Option<Arc<FileRecord>> {
        self.records.get(&id)
    }

    /// Returns the number of cached records.
    #[cfg(test)]
    pub(in crate::metadata::sqlite) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the epoch of `id`. Call it before its row is read.
    pub(in crate::metadata::sqlite) fn ticket(&self, id: FileId) -> Ticket {
        Ticket(*self.epochs[shard(id)].lock())
    }

    /// Caches `record`, unless its row may have changed since `ticket` was taken.
    pub(in crate::metadata::sqlite) fn insert(&self, ticket: Ticket, record: &Arc<FileRecord>) {
        let epoch = self.epochs[shard(record.file_id)].lock();
        if *epoch == ticket.0 && epoch.is_multiple_of(2) {
            self.records.insert(record.file_id, Arc::clone(record));
        }
    }

    /// Removes the records of `ids` and does not cache them until the result is dropped. Call it before the
    /// COMMIT that changes their rows, and drop the result after it.
    pub(in crate::metadata::sqlite) fn changing(&self, ids: &[FileId]) -> Changing<'_> {
        let shards: BTreeSet<usize> = ids.iter().copied().map(shard).collect();
        for &shard in &shards {
            *self.epochs[shard].lock() += 1;
        }
        for id in ids {
            self.records.remove(id);
        }
        Changing { cache: self, shards }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        for &shard in &self.shards {
            *self.cache.epochs[shard].lock() += 1;
        }
    }
}

fn shard(id: FileId) -> usize {
    let random = id.to_bits() % SHARDS as u128;
    usize::try_from(random).expect("less than SHARDS")
}

/// Weighs a record by its approximate size in memory.
#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<FileId, Arc<FileRecord>> for ByBytes {
    fn weight(&self, _: &FileId, record: &Arc<FileRecord>) -> u64 {
        let texts = record.organization_id.as_str().len()
            + record.sub_system.as_str().len()
            + record.original_name.len()
            + record.mime_type.len()
            + record.ext.len()
            + record.metadata.len_bytes()
            + record.blob.provider.as_str().len()
            + record.blob.key.as_str().len()
            + record.blob.sniffed_type.as_ref().map_or(0, String::len);
        let bytes = (texts + size_of::<FileRecord>() + size_of::<FileId>()) as u64;
        bytes.max(CAPACITY_BYTES / CAPACITY_RECORDS)
    }
}
