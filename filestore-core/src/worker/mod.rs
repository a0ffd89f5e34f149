//! Background work: purge, expiry, sync, migration, upkeep, scrub; the check of the whole store; snapshots.
//!
//! Each worker is a function that does what is due and reports: the server runs them from one
//! [`Workers`] task, the CLI and tests call the same functions on a store. Leases in the database
//! make concurrent runs safe. Work that fails is postponed with growing pauses, never dropped.
//!
//! Work that needs a provider is done in lanes (`lane`), one for each provider and kind, so that no
//! provider delays another, the service's own disk least of all.

pub mod progress;
pub mod backup;
pub mod purge;
pub mod sync;
pub mod migrate;
pub mod fsck;
mod erase;
pub mod removed_elsewhere;
mod upkeep;
mod admin;
mod backlog;
mod expiry;
mod lane;
mod outage;
mod part_uploads;
mod failures;
mod overview;
mod run;
mod runner;
mod scrub;
mod records_copy;
mod files_copy;

pub use admin::Admin;
pub use backup::Backups;
pub use files_copy::{CopiedFiles, copy_files};
pub use progress::{NoProgress, Progress};
pub use records_copy::{CopiedRecords, are_records_copied, copy_records};
pub use runner::Workers;

use std::time::Duration;

/// Returns the pause before attempt number `attempts` + 1: `first`, then twice as long each time, up to
/// an hour, each shortened by up to a quarter at random so that failures that began together do not
/// come back together.
pub(crate) fn back_off_from(first: Duration, attempts: u32) -> Duration {
    let full = first.saturating_mul(1 << attempts.min(20)).min(Duration::from_hours(1));
    full.mul_f64(fastrand::f64().mul_add(-0.25, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        for attempts in 0..40 {
            let full = Duration::from_secs(1 << attempts.min(12)).min(Duration::from_hours(1));
            let pause = back_off_from(Duration::from_secs(1), attempts);
            assert!(pause <= full && pause >= full * 3 / 4, "{attempts}: {pause:?}");
        }
    }
}
