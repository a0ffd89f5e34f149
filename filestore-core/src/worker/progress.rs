//! Progress of long work: the library reports, the caller draws.

/// Receives progress. Calls come from the thread that works; return quickly.
pub trait Progress: Send + Sync {
    /// Notes that every check has passed: the work is accepted, and a later failure is no refusal.
    /// Only work that can be refused calls this, once and before [`start`](Self::start).
    fn accepted(&self) {}

    /// Begins work of about `total` units; `None` if their number is not known.
    fn start(&self, total: Option<u64>);

    /// Counts `units` more that are done.
    fn advance(&self, units: u64);

    /// Counts `bytes` more that have passed, where the units are files.
    fn add_bytes(&self, bytes: u64) {
        let _ = bytes;
    }
}

/// A receiver that ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, _units: u64) {}
}
