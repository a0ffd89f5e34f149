//! Reports the progress of long work to the caller.

/// A receiver of progress. The working thread makes the calls, so return quickly.
pub trait Progress: Send + Sync {
    /// Reports that all checks have passed and the work is accepted. Later failures are not refusals. Only
    /// work that can be refused calls this, once before [`start`](Self::start).
    fn accepted(&self) {}

    /// Begins work of about `total` units. `None` if the number is unknown.
    fn start(&self, total: Option<u64>);

    /// Adds `units` completed units.
    fn advance(&self, units: u64);

    /// Adds `bytes` processed bytes, if the units are files.
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
