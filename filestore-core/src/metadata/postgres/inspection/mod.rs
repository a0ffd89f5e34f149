//! Operations for checks of the store. Each group of methods is next to its SQL.

mod walk;
mod referrers;
mod mend;
mod totals;
mod runs;

#[cfg(test)]
pub(super) const QUERIES: &[&str] = &[
    walk::WALK,
    walk::NAMED,
    walk::KNOWN,
    walk::OLD_WRITES,
    referrers::REFERRERS,
    mend::LOCATION,
    totals::ORGANIZATIONS,
    totals::COUNTED,
    runs::RUN,
    runs::FINDINGS,
];
