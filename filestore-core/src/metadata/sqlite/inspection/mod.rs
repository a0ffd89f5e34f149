//! Operations for checks of the store. Each group of methods is next to its SQL.

mod walk;
mod referrers;
mod mend;
mod totals;
mod runs;

use rusqlite::{Connection, Params};

use super::session::fault::Fault;
use super::tables::row;

#[cfg(test)]
pub(super) const QUERIES: &[&str] = &[
    walk::WALK,
    walk::NAMED,
    walk::KNOWN,
    walk::OLD_WRITES,
    referrers::BY_BLOB,
    referrers::DROPPED,
    mend::LOCATION,
    totals::NEXT_OF_FILES,
    totals::NEXT_OF_USAGE,
    totals::COUNTED,
    totals::STORED,
    runs::RUN,
    runs::FINDINGS,
];

/// Returns true if a query finds a row.
fn exists(sql: &Connection, query: &str, params: impl Params) -> Result<bool, Fault> {
    Ok(row::first(sql, query, params, |_| Ok(()))?.is_some())
}
