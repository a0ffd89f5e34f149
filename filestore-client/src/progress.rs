//! The progress of transfers.

use std::sync::Arc;

/// The progress of a transfer. A repeated upload starts again at zero; a resumed download does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// File bytes handed to the network, or received, so far.
    pub done_bytes: u64,
    /// File bytes in all, where known.
    pub total_bytes: Option<u64>,
}

/// A callback for the progress of a transfer. It is called often, from the transferring task, and must be quick.
///
/// ```
/// use std::sync::Arc;
/// use filestore_client::{OnProgress, Progress};
///
/// let print: OnProgress = Arc::new(|progress: Progress| eprintln!("{} bytes", progress.done_bytes));
/// # print(Progress { done_bytes: 1, total_bytes: None });
/// ```
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;
