//! Gates: limited shares of a provider, for example memory and turns.
//!
//! Each wait has a limit, so that work for a stuck provider fails with an error instead of queueing up. Every
//! gate belongs to one provider, so that a fault there does not affect the shares of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// The time after narrowing during which a gate keeps its width.
const SETTLING: Duration = Duration::from_secs(5);

/// A limited number of units. Units are given out in the order of the requests.
pub(in crate::storage::cloud) struct Gate {
    left: Arc<Semaphore>,
    all: usize,
    width: Mutex<Width>,
    /// The numbers of returned passes and of steps taken with a pass. While it grows, holders make progress.
    moved: AtomicU64,
}

/// The current width of a gate: all units, or fewer after a timeout.
struct Width {
    units: usize,
    /// The units to remove when they are returned.
    owed: usize,
    narrowed_at: Option<Instant>,
}

/// Units of a gate. Dropping the value returns them.
pub(in crate::storage::cloud) struct Pass {
    gate: Arc<Gate>,
    units: Option<OwnedSemaphorePermit>,
}

/// The time limit of a wait at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::cloud) enum Patience {
    /// A fixed time, because a client waits for the reply.
    Within(Duration),
    /// As long as the holders make progress, with at most this time between two steps. No client waits, and
    /// slow connections are fine.
    WhileMoving(Duration),
    /// Without a limit. The holders are slowed down by their own rate or source, and no other work uses the
    /// gate.
    Forever,
}

/// The error for a wait that took too long.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage::cloud) struct Waited(pub(in crate::storage::cloud) Duration);

impl Gate {
    /// Creates a gate with `units` units.
    pub(in crate::storage::cloud) fn new(units: usize) -> Arc<Self> {
        // A permit is a unit; more than this is no bound anyway.
        let all = units.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let left = Arc::new(Semaphore::new(all));
        let width = Mutex::new(Width { units: all, owed: 0, narrowed_at: None });
        Arc::new(Self { left, all, width, moved: AtomicU64::new(0) })
    }

    /// Halves the width, once for all concurrent failures. At least one unit remains.
    pub(in crate::storage::cloud) fn narrow(&self) {
        let mut width = self.width.lock();
        if width.narrowed_at.is_some_and(|at| at.elapsed() < SETTLING) {
            return;
        }

        let units = (width.units / 2).max(1);
        let less = width.units - units;
        width.owed += less - self.left.forget_permits(less);
        width.units = units;
        width.narrowed_at = Some(Instant::now());
    }

    /// Returns one unit after a success, some time after the gate was narrowed.
    pub(in crate::storage::cloud) fn widen(&self) {
        let mut width = self.width.lock();
        let is_settled = width.narrowed_at.is_some_and(|at| at.elapsed() >= SETTLING);
        if width.units == self.all || !is_settled {
            return;
        }

        width.units += 1;
        match width.owed.checked_sub(1) {
            Some(owed) => width.owed = owed,
            None => self.left.add_permits(1),
        }
    }

    /// Waits for `units`, or for all units if there are fewer. Work larger than the gate passes alone.
    pub(in crate::storage::cloud) async fn pass(
        self: &Arc<Self>,
        units: u64,
        patience: Patience,
    ) -> Result<Pass, Waited> {
        let wanted = usize::try_from(units).unwrap_or(usize::MAX).clamp(1, self.all);
        let wanted = u32::try_from(wanted).expect("a gate is clamped to 32 bits");
        let mut waiting = std::pin::pin!(Arc::clone(&self.left).acquire_many_owned(wanted));

        let taken = loop {
            let seen = self.moved.load(Ordering::Relaxed);
            let (limit, goes_on) = match patience {
                Patience::Within(limit) => (limit, false),
                Patience::WhileMoving(limit) => (limit, true),
                Patience::Forever => break waiting.await,
            };

            match timeout(limit, &mut waiting).await {
                Ok(taken) => break taken,
                Err(_) if goes_on && seen != self.moved.load(Ordering::Relaxed) => {}
                Err(_) => return Err(Waited(limit)),
            }
        };

        let units = taken.expect("a gate is never closed");
        Ok(Pass { gate: Arc::clone(self), units: Some(units) })
    }
}

impl Pass {
    /// Tells waiting work that the holder makes progress.
    pub(in crate::storage::cloud) fn gets_on(&self) {
        self.gate.moved.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gets_on();

        let mut width = self.gate.width.lock();
        let Some(mut units) = self.units.take() else { return };
        let owed = width.owed.min(units.num_permits());
        if let Some(gone) = units.split(owed) {
            gone.forget();
            width.owed -= owed;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::advance;

    use super::*;

    const SHORT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn what_is_too_large_passes_alone() {
        let gate = Gate::new(100);
        let pass = async |units| gate.pass(units, Patience::Within(SHORT)).await.unwrap();

        let (small, rest) = (pass(40).await, pass(60).await);
        assert!(pass(1).now_or_never().is_none());
        drop(rest);
        assert!(pass(60).now_or_never().is_some());
        assert!(pass(1 << 40).now_or_never().is_none());
        drop(small);
        assert!(pass(1 << 40).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_pass_after_silence_and_more_again_after_successes() {
        let gate = Gate::new(8);
        let fits = async |count| {
            let mut held = Vec::new();
            while let Some(pass) = gate.pass(1, Patience::Within(SHORT)).now_or_never() {
                held.push(pass.unwrap());
            }
            assert_eq!(held.len(), count);
        };

        let busy = gate.pass(8, Patience::Within(SHORT)).await.unwrap();
        gate.narrow();
        gate.narrow();
        drop(busy);
        fits(4).await;

        gate.widen();
        fits(4).await;
        for width in 5..=8 {
            advance(SETTLING).await;
            gate.widen();
            fits(width).await;
        }
        for _ in 0..10 {
            gate.narrow();
            advance(SETTLING).await;
        }
        fits(1).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends() {
        let gate = Gate::new(1);
        let _held = gate.pass(1, Patience::Within(SHORT)).await.unwrap();

        for patience in [Patience::Within(SHORT), Patience::WhileMoving(SHORT)] {
            assert_eq!(gate.pass(1, patience).await.err(), Some(Waited(SHORT)), "{patience:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn background_work_waits_as_long_as_those_ahead_get_on() {
        let gate = Gate::new(2);
        let slow = gate.pass(2, Patience::Within(SHORT)).await.unwrap();
        let behind = Arc::clone(&gate);
        let waiting =
            tokio::spawn(async move { behind.pass(1, Patience::WhileMoving(SHORT)).await.is_ok() });
        tokio::task::yield_now().await;

        for _ in 0..5 {
            advance(SHORT / 2).await;
            slow.gets_on();
            advance(SHORT / 2).await;
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
        }

        drop(slow);
        assert!(waiting.await.unwrap());
    }
}
