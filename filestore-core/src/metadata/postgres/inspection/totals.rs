//! Totals, and what their files add up to.

use crate::metadata::inspection::Sums;
use crate::metadata::postgres::fault::Fault;
use crate::metadata::postgres::sql::{Param, Sql};
use crate::metadata::{DriftedTotal, Total};

/// Jumps from organization to organization.
pub(super) const ORGANIZATIONS: &str = "WITH RECURSIVE known AS (
     SELECT $1::text COLLATE \"C\" AS name
     UNION ALL
     SELECT next.name FROM known CROSS JOIN LATERAL (
      SELECT min(found.name) AS name FROM (
       (SELECT organization_id AS name FROM files WHERE organization_id > known.name
        ORDER BY organization_id LIMIT 1)
       UNION ALL
       (SELECT organization_id FROM organization_usage WHERE organization_id > known.name
        ORDER BY organization_id LIMIT 1)) AS found) AS next
     WHERE next.name IS NOT NULL)
     SELECT name FROM known OFFSET 1 LIMIT $2";

const STORED: &str = "SELECT storage_location, sum(files)::bigint, sum(bytes)::bigint
     FROM organization_usage WHERE organization_id = $1 GROUP BY storage_location";

pub(super) const COUNTED: &str =
    "SELECT storage_location, count(*), coalesce(sum(size_bytes), 0)::bigint
     FROM files WHERE organization_id = $1 GROUP BY storage_location";

const STORED_SYNCS: &str =
    "SELECT sync_status, sum(files)::bigint, 0::bigint FROM sync_totals GROUP BY sync_status";

/// Reads the whole table: no index has the sync status.
const COUNTED_SYNCS: &str = "SELECT sync_status, count(*), 0::bigint FROM files
     WHERE purge_status IS NULL GROUP BY sync_status";

/// The sum of the slots counts, whichever of them is changed.
const ADD_TO_USAGE: &str =
    "INSERT INTO organization_usage AS t (organization_id, storage_location, slot, files, bytes)
     VALUES ($1, $2, 0, $3, $4) ON CONFLICT (organization_id, storage_location, slot)
     DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes";

const ADD_TO_SYNCS: &str =
    "INSERT INTO sync_totals AS t (sync_status, slot, files) VALUES ($1, 0, $2)
     ON CONFLICT (sync_status, slot) DO UPDATE SET files = t.files + excluded.files";

pub(super) async fn organizations(
    sql: &Sql,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sql.rows(ORGANIZATIONS, &[&after, &limit]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub(super) async fn drift_of_usage(
    sql: &Sql,
    organization: &str,
) -> Result<Vec<DriftedTotal>, Fault> {
    sql.be_patient().await?;
    let stored = sums(sql, STORED, &[&organization]).await?;
    let counted = sums(sql, COUNTED, &[&organization]).await?;
    Ok(Sums::compare(&stored, &counted, |location| Total::Usage {
        organization: organization.to_owned(),
        location: location.to_owned(),
    }))
}

pub(super) async fn drift_of_syncs(sql: &Sql) -> Result<Vec<DriftedTotal>, Fault> {
    sql.be_patient().await?;
    let stored = sums(sql, STORED_SYNCS, &[]).await?;
    let counted = sums(sql, COUNTED_SYNCS, &[]).await?;
    Ok(Sums::compare(&stored, &counted, |status| Total::Syncs { status: status.to_owned() }))
}

async fn sums(sql: &Sql, query: &str, params: &[Param<'_>]) -> Result<Sums, Fault> {
    let mut sums = Sums::default();
    for row in sql.rows(query, params).await? {
        sums.add(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    }
    Ok(sums)
}

/// Adds to each total what it lacks. The triggers that keep a total change it and its files alike, so the
/// difference of the two is now what it was when it was found.
pub(super) async fn correct(sql: &Sql, drifted: &[DriftedTotal]) -> Result<(), Fault> {
    for DriftedTotal { total, stored, counted } in drifted {
        let (files, bytes) = (counted.0 - stored.0, counted.1 - stored.1);
        match total {
            Total::Syncs { status } => sql.execute(ADD_TO_SYNCS, &[status, &files]).await?,
            Total::Usage { organization, location } => {
                sql.execute(ADD_TO_USAGE, &[organization, location, &files, &bytes]).await?
            }
        };
    }
    Ok(())
}
