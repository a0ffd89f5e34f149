//! The storage usage of organizations: files and bytes. Triggers update the totals.

use rusqlite::{Connection, Params};

use crate::domain::file::status::Location;
use crate::domain::file::usage::{Stored, Usage};
use crate::domain::id::OrganizationId;

use super::row;
use crate::metadata::sqlite::session::fault::Fault;

pub(in crate::metadata::sqlite) const STORED_BYTES: &str =
    "SELECT coalesce(sum(bytes), 0) FROM organization_usage WHERE organization_id = ?1";

pub(in crate::metadata::sqlite) const USAGE: &str =
    "SELECT storage_location, files, bytes FROM organization_usage WHERE organization_id = ?1";

/// In one row: a sort by standing would cost more than the sums.
pub(in crate::metadata::sqlite) const STANDINGS: &str =
    "SELECT coalesce(sum(files) FILTER (WHERE standing = 'TEMP'), 0),
     coalesce(sum(bytes) FILTER (WHERE standing = 'TEMP'), 0),
     coalesce(sum(files) FILTER (WHERE standing = 'DELETED'), 0),
     coalesce(sum(bytes) FILTER (WHERE standing = 'DELETED'), 0)
     FROM sub_system_usage WHERE organization_id = ?1";

/// Reads a row for each organization and location.
const TOTAL: &str = "SELECT storage_location, sum(files), sum(bytes) FROM organization_usage
     GROUP BY storage_location";

/// Reads a row for each sub-system and standing.
const TOTAL_STANDINGS: &str = "SELECT coalesce(sum(files) FILTER (WHERE standing = 'TEMP'), 0),
     coalesce(sum(bytes) FILTER (WHERE standing = 'TEMP'), 0),
     coalesce(sum(files) FILTER (WHERE standing = 'DELETED'), 0),
     coalesce(sum(bytes) FILTER (WHERE standing = 'DELETED'), 0)
     FROM sub_system_usage";

/// Returns the bytes that an organization stores.
pub(super) fn stored_bytes(sql: &Connection, organization: &OrganizationId) -> Result<u64, Fault> {
    let total = row::first(sql, STORED_BYTES, [organization.as_str()], |row| row::count(row, 0))?;
    Ok(total.unwrap_or(0))
}

/// Returns the files and bytes of an organization, by location.
pub(super) fn by_location(sql: &Connection, organization: &OrganizationId) -> Result<Usage, Fault> {
    locations(sql, USAGE, [organization.as_str()])
}

/// Returns the files and bytes of an organization, by location and by standing.
pub(super) fn usage(sql: &Connection, organization: &OrganizationId) -> Result<Usage, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut usage = by_location(&snapshot, organization)?;
    (usage.temp, usage.deleted) = standings(&snapshot, STANDINGS, [organization.as_str()])?;
    Ok(usage)
}

/// Returns the files and bytes of the whole store, by location and by standing.
pub(super) fn total(sql: &Connection) -> Result<Usage, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut usage = locations(&snapshot, TOTAL, [])?;
    (usage.temp, usage.deleted) = standings(&snapshot, TOTAL_STANDINGS, [])?;
    Ok(usage)
}

fn locations(sql: &Connection, query: &str, parameters: impl Params) -> Result<Usage, Fault> {
    let rows = row::collect_whole(sql, query, parameters, |row| {
        let location: Location =
            row::parse(row, 0).map_err(|source| Fault::Row { what: "a total".into(), source })?;
        Ok((location, stored(row)?))
    })?;

    let mut usage = Usage::default();
    for (location, stored) in rows {
        match location {
            Location::Local => usage.local = stored,
            Location::Cloud => usage.cloud = stored,
        }
    }
    Ok(usage)
}

/// Reads the TEMP files and the deleted files.
fn standings(
    sql: &Connection,
    query: &str,
    parameters: impl Params,
) -> Result<(Stored, Stored), Fault> {
    let found =
        row::first(sql, query, parameters, |row| Ok((stored_at(row, 0)?, stored_at(row, 2)?)))?;
    Ok(found.unwrap_or_default())
}

/// Reads files and bytes from the second column on.
fn stored(row: &rusqlite::Row<'_>) -> Result<Stored, Fault> {
    stored_at(row, 1)
}

fn stored_at(row: &rusqlite::Row<'_>, column: usize) -> Result<Stored, Fault> {
    Ok(Stored { files: row::count(row, column)?, bytes: row::count(row, column + 1)? })
}
