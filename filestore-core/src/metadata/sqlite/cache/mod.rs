//! Caches of database rows: [`records`] by id, the [active bindings](bindings), and the last era.
//!
//! Records and bindings are exact. A changed row leaves memory before its COMMIT, and returns only through a
//! read that began after it.

mod bindings;
mod records;

pub(super) use bindings::BindingCache;
pub(super) use records::RecordCache;

use std::sync::atomic::{AtomicI64, Ordering};

use crate::domain::id::FileId;
use crate::domain::report::erasure::Era;

/// The caches of an engine.
#[derive(Debug)]
pub(super) struct Caches {
    pub(super) records: RecordCache,
    pub(super) bindings: BindingCache,
    /// The last committed era. Work that begins before this is raised belongs to the time before the erasure.
    era: AtomicI64,
}

/// The changes of a transaction to rows that can be in memory.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) files: Vec<FileId>,
    pub(super) bindings: bool,
    /// The era that the transaction begins, if any.
    pub(super) era: Era,
}

/// Changes during their COMMIT. The changed rows are not cached until this value is dropped.
#[derive(Debug)]
pub(super) struct Changing<'c> {
    _records: records::Changing<'c>,
    _bindings: Option<bindings::Changing<'c>>,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self {
            records: RecordCache::new(),
            bindings: BindingCache::new(),
            era: AtomicI64::default(),
        }
    }

    /// Returns the last era.
    pub(super) fn era(&self) -> Era {
        Era::from_number(self.era.load(Ordering::Acquire))
    }

    /// Accepts an era that was committed.
    pub(super) fn learn(&self, era: Era) {
        self.era.fetch_max(era.number(), Ordering::AcqRel);
    }

    /// Removes the changed rows from memory. Call it before the COMMIT, and drop the result after it.
    pub(super) fn changing(&self, touched: &Touched) -> Changing<'_> {
        Changing {
            _records: self.records.changing(&touched.files),
            _bindings: touched.bindings.then(|| self.bindings.changing()),
        }
    }
}

impl Touched {
    /// Adds the changes from another part of the transaction.
    pub(super) fn add(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.bindings |= other.bindings;
        self.era = self.era.max(other.era);
    }
}
