//! Signals, registers and counters that background work shares with its observers. The workers start in
//! `worker/running/runner.rs`.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::at_work::AtWork;
use super::checks::Checks;
use super::migrations::Migrations;
use super::traffic::Traffic;
use super::wake::Wake;
use crate::domain::time::clock::{Clock, Timestamp};
use crate::domain::time::leap::{LeapGuard, Pace};
use crate::metadata::Metadata;

/// The shared state of a store's background work.
pub(crate) struct Background {
    pub(super) metadata: Arc<dyn Metadata>,
    clock: Clock,
    /// Compares the clocks before the workers remove due files.
    leap_guard: LeapGuard,
    /// Wakes the lanes of the purge.
    pub(crate) purge_wanted: Wake,
    /// The purge runs that may have claimed files.
    pub(crate) purging: AtWork,
    /// Wakes the lanes of the sync.
    pub(crate) sync_wanted: Wake,
    /// Counters of the bytes and files copied to and between providers since the store was opened.
    pub(crate) traffic: Traffic,
    /// The running migrations, by organization.
    pub(crate) migrations: Migrations,
    /// The running checks.
    pub(crate) checks: Checks,
    /// The time up to which removals by other servers are known. `None` before the first look.
    pub(crate) removals_seen: Mutex<Option<Timestamp>>,
}

impl Background {
    /// Creates the state without any running work. `leap_guard` must have compared the clocks once.
    pub(in crate::service) fn new(
        metadata: Arc<dyn Metadata>,
        clock: Clock,
        leap_guard: LeapGuard,
    ) -> Self {
        Self {
            metadata,
            clock,
            leap_guard,
            purge_wanted: Wake::default(),
            purging: AtWork::default(),
            sync_wanted: Wake::default(),
            traffic: Traffic::default(),
            migrations: Migrations::default(),
            checks: Checks::default(),
            removals_seen: Mutex::default(),
        }
    }

    /// Returns true if due files can be removed now. Returns false while the wall clock has jumped forward
    /// and is not trusted yet. Logs each change.
    pub(crate) fn may_remove(&self) -> bool {
        let pace = self.leap_guard.look(&self.clock);
        match pace {
            Pace::Leapt(millis) => tracing::warn!(
                by_secs = millis / 1000,
                settle_secs = self.leap_guard.settle().as_secs(),
                "the clock leapt forward: nothing is expired or removed until it is back or has settled"
            ),
            Pace::Settled => tracing::info!("the clock has settled: due files are removed again"),
            Pace::Steady | Pace::Unsettled => {}
        }
        pace.may_remove()
    }
}
