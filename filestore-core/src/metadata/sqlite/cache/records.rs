//! Records by id, in memory, never stale.
//!
//! # Purpose
//! A download asks for its record first. From memory the answer costs no thread switch.
//!
//! # Locking
//! Look-ups touch the cache's own shard only. The hazard: a reader misses, reads the old
//! row, the writer commits and removes the entry, and then the reader inserts the old row. So every
//! id has an epoch (shared by all ids of its shard). A reader notes it *before* it reads the database,
//! and inserts, under the epoch's lock, only if it is still the same. The writer makes the epoch odd
//! and removes the entries *before* COMMIT, and makes it even again after it; nothing is inserted
//! under an odd epoch. So a read after a commit, from memory or from the database, never sees
//! the state before it, not even in the moment between COMMIT and the reply.
//!
//! There is one writer, so at most one change is open at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::domain::id::FileId;
use crate::domain::record::FileRecord;

/// Bytes of all records.
const CAPACITY_BYTES: u64 = 64 << 20;

/// Records at most; each weighs at least its share of the bytes.
const CAPACITY_RECORDS: u64 = 100_000;

/// Epochs: enough that a change rarely spoils the insert of an unrelated record.
const SHARDS: usize = 256;

/// The records in memory, and the epochs that keep them from being stale.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct RecordCache {
    records: Cache<FileId, Arc<FileRecord>, ByBytes>,
    epochs: Box<[Mutex<u64>]>,
}

/// The epoch an id had before its row was read.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::sqlite) struct Ticket(u64);

/// Ids whose rows are being changed; nothing is inserted for them until this is dropped.
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

    /// Returns the record, if it is in memory.
    pub(in crate::metadata::sqlite) fn get(&self, id: FileId) -> Option<Arc<FileRecord>> {
        self.records.get(&id)
    }

    /// Returns the number of records in memory.
    #[cfg(test)]
    pub(in crate::metadata::sqlite) fn len(&self) -> usize {
        self.records.len()
    }

    /// Notes the epoch of `id`; to be called before its row is read.
    pub(in crate::metadata::sqlite) fn ticket(&self, id: FileId) -> Ticket {
        Ticket(*self.epochs[shard(id)].lock())
    }

    /// Keeps `record`, unless its row may have changed since `ticket` was taken.
    pub(in crate::metadata::sqlite) fn insert(&self, ticket: Ticket, record: &Arc<FileRecord>) {
        let epoch = self.epochs[shard(record.file_id)].lock();
        if *epoch == ticket.0 && epoch.is_multiple_of(2) {
            self.records.insert(record.file_id, Arc::clone(record));
        }
    }

    /// Removes the records of `ids` and keeps them out until the result is dropped. Call it before
    /// the COMMIT that changes their rows, and drop the result after it.
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

/// Weighs a record by the bytes it takes in memory, roughly.
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
