//! Marks that prove the outcome of a commit (`transaction`).

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use parking_lot::Mutex;

use crate::tasks;

/// Writes the mark of a write. The statement also locks the row, so that a query for the outcome waits for
/// the end of the transaction. Before that, it locks the store, shared with all other writes.
pub(super) const MARK: &str = "INSERT INTO commit_marks AS mark (server, slot, number)
     SELECT $1::text, $2::integer, $3::bigint FROM pg_advisory_xact_lock_shared($4)
     ON CONFLICT (server, slot) DO UPDATE SET number = excluded.number, marked_at = now()";

/// Reads the last mark in a row. The statement also writes, because it must wait for the transaction that
/// creates the row.
pub(super) const FATE: &str =
    "INSERT INTO commit_marks AS mark (server, slot, number) VALUES ($1, $2, 0)
     ON CONFLICT (server, slot) DO UPDATE SET number = mark.number RETURNING number";

/// Removes the marks of servers that are gone.
pub(super) const FORGET_MARKS: &str =
    "DELETE FROM commit_marks WHERE marked_at < now() - interval '7 days'";

/// The mark of one write.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::postgres) struct Mark {
    /// The row. No other write of this engine uses it until the outcome is known.
    pub(super) slot: i32,
    /// The number, unique among the writes of this engine.
    pub(in crate::metadata::postgres) number: i64,
}

/// The marks of an engine.
pub(super) struct Marks {
    /// The engine's unique name.
    pub(super) server: String,
    free: Mutex<Vec<i32>>,
    slots: AtomicI32,
    numbers: AtomicI64,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self {
            server: tasks::random_name(),
            free: Mutex::default(),
            slots: AtomicI32::new(1),
            numbers: AtomicI64::new(1),
        }
    }

    pub(super) fn take(&self) -> Mark {
        let free = self.free.lock().pop();
        let slot = free.unwrap_or_else(|| self.slots.fetch_add(1, Ordering::Relaxed));
        Mark { slot, number: self.numbers.fetch_add(1, Ordering::Relaxed) }
    }

    /// Frees the row of a mark for another write, after the outcome of this write is known.
    pub(super) fn give_back(&self, mark: Mark) {
        self.free.lock().push(mark.slot);
    }
}
