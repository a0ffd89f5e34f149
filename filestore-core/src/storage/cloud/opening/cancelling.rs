//! Cancelling the requests of an operation that no caller waits for.

use tokio::sync::watch;

tokio::task_local! {
    /// Closed when the requests of this task are no longer wanted.
    static WANTED: watch::Receiver<()>;
}

pub(super) const CANCELLED: &str = "cancelled: the caller is gone";

/// Runs `work`, and cancels its requests when the sender of `wanted` is dropped. OpenDAL sees a permanent
/// error, so the sender of the request stays usable.
pub(in crate::storage::cloud) async fn cancelled_with<T>(
    wanted: watch::Receiver<()>,
    work: impl Future<Output = T>,
) -> T {
    WANTED.scope(wanted, work).await
}

/// Returns true for the error of a cancelled request. It does not count against the provider.
pub(in crate::storage::cloud) fn is_cancelled(error: &opendal::Error) -> bool {
    error.message() == CANCELLED
}

/// Resolves when the request of this task should be cancelled.
#[cfg(feature = "transport")]
pub(super) async fn cancelled() {
    match WANTED.try_with(Clone::clone) {
        Ok(mut wanted) => while wanted.changed().await.is_ok() {},
        Err(_) => std::future::pending().await,
    }
}
