//! Single flight: all callers with the same key wait for the same run.
//!
//! # Purpose
//! There is one run for each key, even if callers come and go.
//!
//! # Locking
//! One mutex protects a map of the running keys. It is held only for look-ups, and never across an await. The
//! work runs in its own task, so a caller that disconnects does not affect the other callers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::domain::error::{Error, Result};
use crate::tasks;

/// The running work, by key.
pub(crate) struct Flights<K, V> {
    under_way: Arc<Mutex<UnderWay<K, V>>>,
}

type UnderWay<K, V> = HashMap<K, Flight<V>>;

#[derive(Clone)]
struct Flight<V> {
    outcome: watch::Receiver<Option<Result<V>>>,
    on_loss: OnLoss,
}

/// The next step of waiting callers if the work ends without an outcome.
#[derive(Clone, Copy)]
enum OnLoss {
    /// They fail. The work was requested, and panicked or was stopped by the runtime's shutdown.
    Fail,
    /// The callers start the work themselves. The work was optional, and can be cancelled at any time.
    StartAnew,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self { under_way: Arc::default() }
    }
}

impl<K, V> Flights<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Waits for the outcome of the running work for `key`. If there is none, starts `work`. All waiting
    /// callers get the same outcome. A later caller starts the work again.
    pub(crate) async fn join<W>(&self, key: K, work: impl FnOnce() -> W) -> Result<V>
    where
        W: Future<Output = Result<V>> + Send + 'static,
    {
        let mut work = Some(work);
        loop {
            let mut flight = match self.under_way.lock().entry(key.clone()) {
                Entry::Occupied(entry) => entry.get().clone(),
                Entry::Vacant(entry) => {
                    let (report, outcome) = watch::channel(None);
                    let flight = Flight { outcome, on_loss: OnLoss::Fail };
                    entry.insert(flight.clone());

                    let claim = Claim { guard: self.guard(key.clone()), report };
                    let work = work.take().expect("own work is waited for to its end")();
                    tasks::spawn(async move { claim.report(work.await) });
                    flight
                }
            };

            let reported = flight.outcome.wait_for(Option::is_some).await;
            match (reported.as_deref(), flight.on_loss) {
                (Ok(Some(outcome)), _) => return outcome.clone(),
                (Ok(None) | Err(_), OnLoss::StartAnew) => {}
                (Ok(None) | Err(_), OnLoss::Fail) => {
                    return Err(Error::internal("making a variant", "the work ended early"));
                }
            }
        }
    }

    /// Claims `key` for work that no caller requested. `None` if it is already running.
    pub(crate) fn claim(&self, key: K) -> Option<Claim<K, V>> {
        match self.under_way.lock().entry(key.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                let (report, outcome) = watch::channel(None);
                entry.insert(Flight { outcome, on_loss: OnLoss::StartAnew });
                Some(Claim { guard: self.guard(key), report })
            }
        }
    }

    /// Returns true if work for `key` is running.
    #[cfg(test)]
    pub(crate) fn is_under_way(&self, key: &K) -> bool {
        self.under_way.lock().contains_key(key)
    }

    fn guard(&self, key: K) -> KeyGuard<K, V> {
        KeyGuard { under_way: self.under_way.clone(), key }
    }
}

/// The duty to report the outcome for a key. Dropping it frees the key.
pub(crate) struct Claim<K: Hash + Eq, V> {
    // Dropped first: nobody who has seen the outcome, or its loss, meets the flight again.
    guard: KeyGuard<K, V>,
    report: watch::Sender<Option<Result<V>>>,
}

impl<K: Hash + Eq, V> Claim<K, V> {
    /// Reports the outcome to all waiting callers.
    pub(crate) fn report(self, outcome: Result<V>) {
        let Self { guard, report } = self;
        drop(guard);
        let _ = report.send(Some(outcome));
    }
}

/// Removes the key from the map when the work ends in any way.
struct KeyGuard<K: Hash + Eq, V> {
    under_way: Arc<Mutex<UnderWay<K, V>>>,
    key: K,
}

impl<K: Hash + Eq, V> Drop for KeyGuard<K, V> {
    fn drop(&mut self) {
        self.under_way.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use tokio::sync::Notify;

    use super::*;
    use crate::domain::error::ErrorKind;

    #[tokio::test]
    async fn an_error_reaches_everyone_with_its_details_and_is_not_kept() {
        let flights = Flights::<u8, u8>::default();
        let fail =
            || async { Err(Error::new(ErrorKind::ImageTooLarge, "too large").with_limit(9)) };
        let (one, two) = tokio::join!(flights.join(1, fail), flights.join(1, fail));
        for error in [one.unwrap_err(), two.unwrap_err()] {
            assert_eq!((error.kind(), error.details().limit), (ErrorKind::ImageTooLarge, Some(9)));
        }
        assert_eq!(flights.join(1, || async { Ok(5) }).await.unwrap(), 5);
    }

    #[tokio::test]
    async fn work_that_panics_fails_its_callers_and_frees_the_key() {
        let flights = Flights::<u8, u8>::default();
        let error =
            flights.join(1, || async { panic!("expected by this test") }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        while !flights.under_way.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(flights.join(1, || async { Ok(5) }).await.unwrap(), 5);
    }

    #[tokio::test]
    async fn a_claim_serves_those_who_ask_and_given_up_it_leaves_the_work_to_them() {
        let flights = Arc::new(Flights::<u8, u8>::default());
        for (outcome, expected) in [(Some(Ok(5)), 5), (None, 7)] {
            let claim = flights.claim(1).unwrap();
            assert!(flights.claim(1).is_none());
            let mut asked = Box::pin(flights.join(1, || async { Ok(7) }));
            let waits =
                poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_pending())).await;
            assert!(waits);
            match outcome {
                Some(outcome) => claim.report(outcome),
                None => drop(claim),
            }
            assert_eq!(asked.await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn the_first_caller_may_go_away() {
        let flights = Arc::new(Flights::<u8, u8>::default());
        let (runs, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let ask = || {
            let (flights, runs, gate) = (flights.clone(), runs.clone(), gate.clone());
            tasks::spawn(async move {
                flights
                    .join(1, || async move {
                        runs.fetch_add(1, Ordering::SeqCst);
                        gate.notified().await;
                        Ok(5)
                    })
                    .await
            })
        };
        let first = ask();
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let second = ask();
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        gate.notify_one();
        assert_eq!(second.await.unwrap().unwrap(), 5);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
