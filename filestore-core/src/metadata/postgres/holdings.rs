//! The holders of an organization's files, and the files that are not where they are to go.

use tokio_postgres::Row;

use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::Holding;

use super::fault::{Fault, Source};
use super::files::records_by_id;
use super::row::{self, columns};
use super::sql::{Param, Sql};

pub(super) const ELSEWHERE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE organization_id = $1 AND NOT is_deleted AND status = 'READY'
     AND storage_provider <> $2 AND file_id > $3 ORDER BY file_id LIMIT $4"
);

/// Reads every file of the organization.
pub(super) const HOLDINGS: &str =
    "SELECT storage_provider, status, count(*), coalesce(sum(size_bytes), 0)::bigint
     FROM files WHERE organization_id = $1 AND NOT is_deleted GROUP BY status, storage_provider";

/// Asked once for each provider, when it is first used: no index is worth it.
const SOME: &str = "SELECT blob_key, size_bytes FROM files WHERE storage_provider = $1 LIMIT $2";

/// Lists up to `limit` READY files above `after` that `target` does not hold.
pub(super) async fn elsewhere(
    sql: &Sql,
    organization: &OrganizationId,
    target: &ProviderCode,
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let params: [Param<'_>; 2] = [&organization.as_str(), &target.as_str()];
    records_by_id(sql, ELSEWHERE, &params, after, limit).await
}

/// Counts the files of `organization` by provider and status.
pub(super) async fn count(sql: &Sql, organization: &OrganizationId) -> Result<Vec<Holding>, Fault> {
    sql.be_patient().await?;
    let rows = sql.rows(HOLDINGS, &[&organization.as_str()]).await?;
    rows.iter().map(holding).collect()
}

/// Lists up to `limit` blobs that `provider` holds, with their sizes.
pub(super) async fn some(
    sql: &Sql,
    provider: &ProviderCode,
    limit: usize,
) -> Result<Vec<(BlobKey, u64)>, Fault> {
    sql.be_patient().await?;
    sql.collect(SOME, &[&provider.as_str(), &row::limit(limit)], |row| {
        Ok((row::parse(row, 0).map_err(inconsistent)?, row::count(row, 1)?))
    })
    .await
}

fn holding(row: &Row) -> Result<Holding, Fault> {
    Ok(Holding {
        provider: row::parse(row, 0).map_err(inconsistent)?,
        status: row::parse(row, 1).map_err(inconsistent)?,
        files: row::count(row, 2)?,
        bytes: row::count(row, 3)?,
    })
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a holding".into(), source }
}
