//! The damaged rows that an engine has found: rows that filestore never writes and cannot read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::domain::file::damage::{Damage, DamagedRow};

/// The maximum number of remembered damaged rows.
const REMEMBERED: usize = 10_000;

/// The maximum number of damaged rows in a report.
const SHOWN: usize = 100;

/// The damaged rows that an engine has found.
#[derive(Debug, Default)]
pub(super) struct DamagedRows {
    /// A fast flag: true while there are damaged rows.
    are_any: AtomicBool,
    reasons: Mutex<BTreeMap<String, String>>,
}

impl DamagedRows {
    /// Remembers rows, and logs new ones.
    pub(super) fn report(&self, rows: Vec<DamagedRow>) {
        if rows.is_empty() {
            return;
        }

        let mut reasons = self.reasons.lock();
        for DamagedRow { row, reason } in rows {
            if reasons.len() >= REMEMBERED || reasons.contains_key(&row) {
                continue;
            }
            tracing::error!(
                row,
                reason,
                "a stored row cannot be read: it is passed over until it is repaired"
            );
            reasons.insert(row, reason);
        }
        self.are_any.store(true, Ordering::Release);
    }

    /// Forgets a row that could be read.
    pub(super) fn forget(&self, row: impl FnOnce() -> String) {
        if self.are_any.load(Ordering::Acquire) {
            self.reasons.lock().remove(&row());
        }
    }

    /// Returns the number of rows, and some of them.
    pub(super) fn damage(&self) -> Damage {
        let reasons = self.reasons.lock();
        let shown = reasons.iter().take(SHOWN);
        Damage {
            damaged_rows: reasons.len() as u64,
            rows: shown.map(|(row, reason)| DamagedRow::new(row, &reason)).collect(),
            ..Damage::default()
        }
    }
}
