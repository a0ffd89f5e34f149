//! The storage usage of organizations: files and bytes. Triggers update the totals.

use tokio_postgres::Row;

use crate::domain::file::status::Location;
use crate::domain::file::usage::{Standing, Stored, Usage};
use crate::domain::id::OrganizationId;

use super::row;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;

pub(in crate::metadata::postgres) const STORED_BYTES: &str =
    "SELECT coalesce(sum(bytes), 0)::bigint FROM organization_usage WHERE organization_id = $1";

pub(in crate::metadata::postgres) const USAGE: &str =
    "SELECT storage_location, sum(files)::bigint, sum(bytes)::bigint
     FROM organization_usage WHERE organization_id = $1 GROUP BY storage_location";

pub(in crate::metadata::postgres) const STANDINGS: &str =
    "SELECT standing, sum(files)::bigint, sum(bytes)::bigint FROM sub_system_usage
     WHERE organization_id = $1 AND standing <> 'LIVE' GROUP BY standing";

/// Reads the slots of each organization and location.
const TOTAL: &str = "SELECT storage_location, sum(files)::bigint, sum(bytes)::bigint
     FROM organization_usage GROUP BY storage_location";

/// Reads the slots of each sub-system and standing.
const TOTAL_STANDINGS: &str = "SELECT standing, sum(files)::bigint, sum(bytes)::bigint
     FROM sub_system_usage WHERE standing <> 'LIVE' GROUP BY standing";

/// Returns the bytes that an organization stores.
pub(super) async fn stored_bytes(sql: &Sql, organization: &OrganizationId) -> Result<u64, Fault> {
    let total = sql.first(STORED_BYTES, &[&organization.as_str()]).await?;
    total.map_or(Ok(0), |row| row::count(&row, 0))
}

/// Returns the files and bytes of an organization, by location.
pub(super) async fn by_location(sql: &Sql, organization: &OrganizationId) -> Result<Usage, Fault> {
    locations(&sql.rows(USAGE, &[&organization.as_str()]).await?)
}

/// Returns the files and bytes of an organization, by location and by standing.
pub(super) async fn usage(sql: &Sql, organization: &OrganizationId) -> Result<Usage, Fault> {
    let mut usage = by_location(sql, organization).await?;
    add_standings(&mut usage, &sql.rows(STANDINGS, &[&organization.as_str()]).await?)?;
    Ok(usage)
}

/// Returns the files and bytes of the whole store, by location and by standing.
pub(super) async fn total(sql: &Sql) -> Result<Usage, Fault> {
    let mut usage = locations(&sql.rows(TOTAL, &[]).await?)?;
    add_standings(&mut usage, &sql.rows(TOTAL_STANDINGS, &[]).await?)?;
    Ok(usage)
}

fn locations(rows: &[Row]) -> Result<Usage, Fault> {
    let mut usage = Usage::default();
    for row in rows {
        let location = row::parse(row, 0);
        let location = location.map_err(|source| Fault::Row { what: "a total".into(), source })?;
        match location {
            Location::Local => usage.local = stored(row)?,
            Location::Cloud => usage.cloud = stored(row)?,
        }
    }
    Ok(usage)
}

fn add_standings(usage: &mut Usage, rows: &[Row]) -> Result<(), Fault> {
    for row in rows {
        let standing: Standing =
            row::parse(row, 0).map_err(|source| Fault::Row { what: "a total".into(), source })?;
        usage.set(standing, stored(row)?);
    }
    Ok(())
}

/// Reads files and bytes from the second column on.
pub(super) fn stored(row: &Row) -> Result<Stored, Fault> {
    Ok(Stored { files: row::count(row, 1)?, bytes: row::count(row, 2)? })
}
