//! A check that all concurrent callers share.
//!
//! A readiness check queries the database and writes to the disk, and anyone can request it. Therefore one
//! check runs at a time, and serves all callers that asked before it began.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use tokio::sync::Mutex;

/// The latest result of a check.
#[derive(Debug)]
pub(crate) struct SharedCheck<T> {
    /// The number of checks that have begun.
    begun: AtomicU64,
    /// The result of the last completed check, with its number.
    latest: Mutex<Option<(u64, Arc<T>)>>,
}

impl<T> Default for SharedCheck<T> {
    fn default() -> Self {
        Self { begun: AtomicU64::new(0), latest: Mutex::new(None) }
    }
}

impl<T> SharedCheck<T> {
    /// Returns the result of a check that began after this call. This is another caller's check, or `check`.
    /// Only one check runs at a time.
    pub(crate) async fn run<F>(&self, check: impl FnOnce() -> F) -> Arc<T>
    where
        F: Future<Output = T>,
    {
        let before = self.begun.load(SeqCst);
        let mut latest = self.latest.lock().await;
        if let Some((number, result)) = &*latest
            && *number > before
        {
            return Arc::clone(result);
        }

        let number = self.begun.fetch_add(1, SeqCst) + 1;
        let result = Arc::new(check().await);
        *latest = Some((number, Arc::clone(&result)));
        result
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;
    use futures_util::future::{join, join_all};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn all_who_ask_during_a_check_share_the_next_one() {
        let check = SharedCheck::default();
        let (finish, finished) = oneshot::channel();
        let first = check.run(|| async { finished.await.unwrap() });
        let mut first = Box::pin(first);
        assert!((&mut first).now_or_never().is_none());

        // Each would give another result.
        let others = (1..=9).map(|number| check.run(move || ready(number)));
        let mut others = Box::pin(join_all(others));
        assert!((&mut others).now_or_never().is_none());
        finish.send(0).unwrap();

        let (first, others) = join(first, others).await;
        assert_eq!((*first, others.iter().all(|other| **other == 1)), (0, true), "{others:?}");
        assert_eq!(*check.run(|| ready(10)).await, 10, "a later caller has a check of its own");
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_holds_nobody_back() {
        let check = SharedCheck::default();
        let mut gone = Box::pin(check.run(pending));
        assert!((&mut gone).now_or_never().is_none());
        let mut other = Box::pin(check.run(|| ready(1)));
        assert!((&mut other).now_or_never().is_none());

        drop(gone);
        assert_eq!(*other.await, 1);
    }
}
