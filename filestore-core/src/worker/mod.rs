//! Background work: purge, expiry, sync, migration, upkeep, scrub, checks of the whole store, and snapshots.
//!
//! Each worker is a function that does all due work and returns a report. The server runs the workers from
//! one [`Workers`] task. The CLI and tests call the same functions on a store. Leases in the database make
//! concurrent runs safe. Failed work is postponed with growing pauses, and never dropped.
//!
//! Work that needs a provider runs in lanes (`lane`), one for each provider and kind of work. No provider can
//! therefore delay another provider or the local disk.

pub(crate) mod running;
pub(crate) mod copying;
mod upkeep;
pub mod backup;
pub mod purge;
pub mod sync;
pub mod migrate;
pub mod fsck;
mod erase;
#[cfg(feature = "webhooks")]
mod webhook;
mod admin;
mod backlog;
mod overview;
mod scrub;

pub use admin::Admin;
pub use backup::Backups;
pub use copying::files::{CopiedFiles, copy_files};
pub use copying::records::{CopiedRecords, are_records_copied, copy_records};
pub use running::progress::{NoProgress, Progress};
pub use running::runner::Workers;

use std::time::Duration;

/// Returns the pause before attempt number `attempts` + 1. The first pause is `first`, and each further pause
/// is twice as long, up to an hour. A random part of up to a quarter is subtracted, so that failures that
/// began together do not retry together.
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
