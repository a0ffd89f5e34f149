//! Stored totals, compared with the sums of their files.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::metadata::inspection::Sums;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Param, Sql};
use crate::metadata::{DriftedTotal, Total, Totals};

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

const STORED_PARTS: &str =
    "SELECT sub_system || ' ' || standing, sum(files)::bigint, sum(bytes)::bigint
     FROM sub_system_usage WHERE organization_id = $1 GROUP BY 1";

pub(super) const COUNTED_PARTS: &str =
    "SELECT sub_system || ' ' || standing_of(purge_status, status), count(*), coalesce(sum(size_bytes), 0)::bigint
     FROM files WHERE organization_id = $1 GROUP BY 1";

const STORED_SYNCS: &str =
    "SELECT sync_status, sum(files)::bigint, 0::bigint FROM sync_totals GROUP BY sync_status";

/// Reads the whole table, because no index contains the sync status.
const COUNTED_SYNCS: &str = "SELECT sync_status, count(*), 0::bigint FROM files
     WHERE purge_status IS NULL GROUP BY sync_status";

/// Only the sum of the rows counts, so any of them can be changed.
const ADD_TO_USAGE: &str =
    "INSERT INTO organization_usage AS t (organization_id, storage_location, slot, files, bytes)
     VALUES ($1, $2, 0, $3, $4) ON CONFLICT (organization_id, storage_location, slot)
     DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes";

const ADD_TO_PART: &str =
    "INSERT INTO sub_system_usage AS t (organization_id, sub_system, standing, slot, files, bytes)
     VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (organization_id, sub_system, standing, slot)
     DO UPDATE SET files = t.files + excluded.files, bytes = t.bytes + excluded.bytes";

const ADD_TO_SYNCS: &str =
    "INSERT INTO sync_totals AS t (sync_status, slot, files) VALUES ($1, 0, $2)
     ON CONFLICT (sync_status, slot) DO UPDATE SET files = t.files + excluded.files";

#[async_trait]
impl Totals for PostgresMetadata {
    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>> {
        self.engine
            .read("listing organizations", &(after, limit), |sql, (after, limit)| {
                Box::pin(async move {
                    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
                    let rows = sql.rows(ORGANIZATIONS, &[after, &limit]).await?;
                    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
                })
            })
            .await
    }

    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>> {
        self.engine
            .read_snapshot("adding totals up", &organization, |sql, organization| {
                Box::pin(async move {
                    match organization {
                        Some(organization) => drift_of_usage(sql, organization).await,
                        None => drift_of_syncs(sql).await,
                    }
                })
            })
            .await
    }

    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()> {
        self.engine
            .write("correcting totals", drifted.to_vec(), |sql, drifted| {
                Box::pin(async move {
                    // The triggers that keep a total change it and its files alike, so the difference of the two
                    // is now what it was when it was found.
                    for DriftedTotal { total, stored, counted } in drifted {
                        let (files, bytes) = (counted.0 - stored.0, counted.1 - stored.1);
                        match total {
                            Total::Syncs { status } => {
                                sql.execute(ADD_TO_SYNCS, &[status, &files]).await?
                            }
                            Total::Usage { organization, location } => {
                                sql.execute(ADD_TO_USAGE, &[organization, location, &files, &bytes])
                                    .await?
                            }
                            Total::SubSystem { organization, sub_system, standing } => {
                                let part: [Param<'_>; 5] =
                                    [organization, sub_system, standing, &files, &bytes];
                                sql.execute(ADD_TO_PART, &part).await?
                            }
                        };
                    }
                    Ok(())
                })
            })
            .await
    }
}

async fn drift_of_usage(sql: &Sql, organization: &str) -> Result<Vec<DriftedTotal>, Fault> {
    sql.be_patient().await?;
    let stored = sums(sql, STORED, &[&organization]).await?;
    let counted = sums(sql, COUNTED, &[&organization]).await?;
    let mut drifted = Sums::compare(&stored, &counted, |location| Total::Usage {
        organization: organization.to_owned(),
        location: location.to_owned(),
    });

    let stored = sums(sql, STORED_PARTS, &[&organization]).await?;
    let counted = sums(sql, COUNTED_PARTS, &[&organization]).await?;
    drifted.extend(Sums::compare(&stored, &counted, |part| Total::of_part(organization, part)));
    Ok(drifted)
}

async fn drift_of_syncs(sql: &Sql) -> Result<Vec<DriftedTotal>, Fault> {
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
