//! The database operations for checks of the store, in groups.
//!
//! Like in `groups`, a group has one name for its trait and for the file with its SQL in each engine.

mod walk;
mod referrers;
mod mend;
mod totals;
mod runs;

pub use mend::{Mend, MendLocation, MendedRow};
pub use referrers::{Referrer, Referrers};
pub use runs::{CheckName, CheckRun, Runs};
pub(super) use totals::Sums;
pub use totals::{DriftedTotal, Total, Totals};
pub use walk::{NamedBlob, PurgeClaimed, Walk, WalkedFile, WalkedFiles};

/// The operations of a check, page by page. The cost of a page does not depend on the store's size.
/// Totals are an exception: their cost depends on the organization's files.
///
/// No call fails because of a damaged row. Every change verifies the finding again within its transaction.
pub trait Inspection: Walk + Referrers + Mend + Totals + Runs {}

impl<E: Walk + Referrers + Mend + Totals + Runs> Inspection for E {}
