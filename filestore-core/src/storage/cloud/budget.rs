//! The memory of puts, bounded for all providers of a registry together.
//!
//! The bound is in bytes, not in files: eight large files cost no more than eight hundred small
//! ones.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::storage::Priority;

/// Bytes of memory that puts may hold. Puts that want more than is left wait, in order.
#[derive(Clone)]
pub(in crate::storage) struct PutBudget {
    left: Arc<Semaphore>,
    all: usize,
    /// The half that background work may use, so that a large copy keeps no request waiting.
    background: Arc<Semaphore>,
}

/// Bytes set aside for one put until this is dropped.
pub(super) struct Reserved {
    _all: OwnedSemaphorePermit,
    _background: Option<OwnedSemaphorePermit>,
}

impl PutBudget {
    /// Creates a budget of `bytes`.
    pub(in crate::storage) fn new(bytes: usize) -> Self {
        // A permit is a byte; more than this is no bound anyway.
        let all = bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let background = Arc::new(Semaphore::new(all.div_ceil(2)));

        Self { left: Arc::new(Semaphore::new(all)), all, background }
    }

    /// Waits for `bytes`, or for the whole budget if that is less: a put larger than the budget
    /// runs alone. Background work waits for its share of the half first.
    pub(super) async fn reserve(&self, bytes: u64, priority: Priority) -> Reserved {
        match priority {
            Priority::Request => {
                Reserved { _all: acquire(&self.left, bytes, self.all).await, _background: None }
            }
            Priority::Background => {
                let half = self.all.div_ceil(2);
                let background = acquire(&self.background, bytes, half).await;
                let all = acquire(&self.left, bytes.min(half as u64), self.all).await;
                Reserved { _all: all, _background: Some(background) }
            }
        }
    }
}

async fn acquire(from: &Arc<Semaphore>, bytes: u64, all: usize) -> OwnedSemaphorePermit {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, all);
    let permits = u32::try_from(wanted).expect("the budget is clamped to 32 bits");
    Arc::clone(from).acquire_many_owned(permits).await.expect("the budget is never closed")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::Priority::{Background, Request};
    use super::*;

    #[tokio::test]
    async fn background_work_leaves_half_to_requests() {
        let budget = PutBudget::new(100);
        let copies = (budget.reserve(30, Background).await, budget.reserve(20, Background).await);
        assert!(budget.reserve(1, Background).now_or_never().is_none());
        assert!(budget.reserve(50, Request).now_or_never().is_some());
        drop(copies);
        assert!(budget.reserve(1 << 40, Background).now_or_never().is_some());
    }

    #[tokio::test]
    async fn puts_wait_for_their_bytes_and_one_too_large_runs_alone() {
        let budget = PutBudget::new(100);
        let (small, rest) = (budget.reserve(40, Request).await, budget.reserve(60, Request).await);
        assert!(budget.reserve(1, Request).now_or_never().is_none());
        drop(rest);
        assert!(budget.reserve(60, Request).now_or_never().is_some());
        assert!(budget.reserve(1 << 40, Request).now_or_never().is_none());
        drop(small);
        assert!(budget.reserve(1 << 40, Request).now_or_never().is_some());
    }
}
