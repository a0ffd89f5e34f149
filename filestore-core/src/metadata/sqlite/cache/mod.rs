//! Rows of the database in memory: [`records`] by id, and the [active bindings](bindings).
//!
//! Both are exact: what was changed is gone from memory before its COMMIT, and comes back only from a
//! read that began after it.

mod bindings;
mod records;

pub(super) use bindings::BindingCache;
pub(super) use records::RecordCache;

use crate::domain::id::FileId;

/// The two caches of an engine.
#[derive(Debug)]
pub(super) struct Caches {
    pub(super) records: RecordCache,
    pub(super) bindings: BindingCache,
}

/// Changes of a transaction to rows that may be in memory.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) files: Vec<FileId>,
    pub(super) bindings: bool,
}

/// The changes whose COMMIT is under way; nothing of them is kept until this is dropped.
#[derive(Debug)]
pub(super) struct Changing<'c> {
    _records: records::Changing<'c>,
    _bindings: Option<bindings::Changing<'c>>,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self { records: RecordCache::new(), bindings: BindingCache::new() }
    }

    /// Forgets what was touched. Call it before the COMMIT, and drop the result after it.
    pub(super) fn changing(&self, touched: &Touched) -> Changing<'_> {
        Changing {
            _records: self.records.changing(&touched.files),
            _bindings: touched.bindings.then(|| self.bindings.changing()),
        }
    }
}

impl Touched {
    /// Adds what another part of the transaction has touched.
    pub(super) fn add(&mut self, mut other: Self) {
        self.files.append(&mut other.files);
        self.bindings |= other.bindings;
    }
}
