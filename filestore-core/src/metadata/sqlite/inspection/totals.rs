//! Totals, and what their files add up to.

use rusqlite::{Connection, params};

use crate::metadata::inspection::Sums;
use crate::metadata::sqlite::fault::Fault;
use crate::metadata::sqlite::row;
use crate::metadata::{DriftedTotal, Total};

pub(super) const NEXT_OF_FILES: &str = "SELECT min(organization_id) FROM files
     INDEXED BY files_by_organization WHERE organization_id > ?1";

pub(super) const NEXT_OF_USAGE: &str =
    "SELECT min(organization_id) FROM organization_usage WHERE organization_id > ?1";

pub(super) const STORED: &str =
    "SELECT storage_location, files, bytes FROM organization_usage WHERE organization_id = ?1";

pub(super) const COUNTED: &str = "SELECT storage_location, 1, size_bytes
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1";

const STORED_SYNCS: &str = "SELECT sync_status, files, 0 FROM sync_totals";

/// Reads the whole table: no index has the sync status.
const COUNTED_SYNCS: &str =
    "SELECT sync_status, count(*), 0 FROM files WHERE purge_status IS NULL GROUP BY sync_status";

const ADD_TO_USAGE: &str = "UPDATE organization_usage SET files = files + ?3, bytes = bytes + ?4
     WHERE organization_id = ?1 AND storage_location = ?2";

const PUT_USAGE: &str = "INSERT INTO organization_usage VALUES (?1, ?2, ?3, ?4)";

const ADD_TO_SYNCS: &str = "UPDATE sync_totals SET files = files + ?2 WHERE sync_status = ?1";

/// Jumps from organization to organization.
pub(super) fn organizations(
    sql: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let mut all: Vec<String> = Vec::new();
    while all.len() < limit {
        let last = all.last().map_or(after, String::as_str);
        let of_files = next(sql, NEXT_OF_FILES, last)?;
        let of_usage = next(sql, NEXT_OF_USAGE, last)?;
        match of_files.into_iter().chain(of_usage).min() {
            Some(next) => all.push(next),
            None => break,
        }
    }
    Ok(all)
}

fn next(sql: &Connection, query: &str, after: &str) -> Result<Option<String>, Fault> {
    Ok(row::first(sql, query, [after], |row| Ok(row.get::<_, Option<String>>(0)?))?.flatten())
}

pub(super) fn drift_of_usage(
    sql: &Connection,
    organization: &str,
) -> Result<Vec<DriftedTotal>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let stored = sums(&snapshot, STORED, [organization])?;
    let counted = sums(&snapshot, COUNTED, [organization])?;
    Ok(Sums::compare(&stored, &counted, |location| Total::Usage {
        organization: organization.to_owned(),
        location: location.to_owned(),
    }))
}

pub(super) fn drift_of_syncs(sql: &Connection) -> Result<Vec<DriftedTotal>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let stored = sums(&snapshot, STORED_SYNCS, [])?;
    let counted = sums(&snapshot, COUNTED_SYNCS, [])?;
    Ok(Sums::compare(&stored, &counted, |status| Total::Syncs { status: status.to_owned() }))
}

fn sums(sql: &Connection, query: &str, params: impl rusqlite::Params) -> Result<Sums, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    let mut rows = statement.query(params)?;

    let mut sums = Sums::default();
    while let Some(row) = rows.next()? {
        sums.add(row.get(0)?, row.get(1)?, row.get(2)?);
    }
    Ok(sums)
}

/// Adds to each total what it lacks. The triggers that keep a total change it and its files alike, so the
/// difference of the two is now what it was when it was found.
pub(super) fn correct(sql: &Connection, drifted: &[DriftedTotal]) -> Result<(), Fault> {
    for DriftedTotal { total, stored, counted } in drifted {
        let (files, bytes) = (counted.0 - stored.0, counted.1 - stored.1);
        match total {
            Total::Syncs { status } => {
                row::execute(sql, ADD_TO_SYNCS, params![status, files])?;
            }
            Total::Usage { organization, location } => {
                let lacking = params![organization, location, files, bytes];
                if row::execute(sql, ADD_TO_USAGE, lacking)? == 0 {
                    row::execute(sql, PUT_USAGE, lacking)?;
                }
            }
        }
    }
    Ok(())
}
