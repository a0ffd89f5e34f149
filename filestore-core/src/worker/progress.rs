//! Progress of long work: the library reports, whoever runs it draws.

/// Receives progress. Calls come from the thread that works; return quickly.
pub trait Progress: Send + Sync {
    /// Every check has passed: the work is accepted, and a later failure is no refusal. Only work that
    /// can be refused calls this, once and before [`start`](Self::start).
    fn accepted(&self) {}

    /// The work is about `total` units, if that is known.
    fn start(&self, total: Option<u64>);

    /// `units` more are done.
    fn advance(&self, units: u64);

    /// `bytes` more have passed, where the units are files.
    fn add_bytes(&self, bytes: u64) {
        let _ = bytes;
    }
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, _units: u64) {}
}
