//! The progress of transfers.

use std::sync::Arc;

/// The progress of a transfer. A retried upload starts again at zero. A resumed download continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of sent or received file bytes.
    pub done_bytes: u64,
    /// Total number of file bytes, if known.
    pub total_bytes: Option<u64>,
}

/// A callback for a transfer's progress. The transfer calls it often, so it must return
/// quickly.
///
/// ```
/// use std::sync::Arc;
/// use filestore_client::{OnProgress, Progress};
///
/// let print: OnProgress = Arc::new(|progress: Progress| eprintln!("{} bytes", progress.done_bytes));
/// # print(Progress { done_bytes: 1, total_bytes: None });
/// ```
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;
