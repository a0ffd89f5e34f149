//! The holders of an organization's files, and the files that must be moved.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::{Holding, Holdings};

use super::row::{self, columns};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Param;

pub(in crate::metadata::postgres) const ELSEWHERE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE organization_id = $1 AND NOT is_deleted AND status = 'READY'
     AND storage_provider <> $2 AND file_id > $3 ORDER BY file_id LIMIT $4"
);

/// Reads every file of the organization.
pub(in crate::metadata::postgres) const HOLDINGS: &str =
    "SELECT storage_provider, status, count(*), coalesce(sum(size_bytes), 0)::bigint
     FROM files WHERE organization_id = $1 AND NOT is_deleted GROUP BY status, storage_provider";

/// Used once for each provider, at its first use, so it needs no index.
const SOME: &str = "SELECT blob_key, size_bytes FROM files WHERE storage_provider = $1 LIMIT $2";

#[async_trait]
impl Holdings for PostgresMetadata {
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let wanted = (organization, target, after, limit);
        self.engine
            .read(
                "listing files elsewhere",
                &wanted,
                |sql, (organization, target, after, limit)| {
                    Box::pin(async move {
                        let params: [Param<'_>; 2] = [&organization.as_str(), &target.as_str()];
                        row::records_by_id(sql, ELSEWHERE, &params, *after, *limit).await
                    })
                },
            )
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        self.engine
            .read_snapshot("counting holdings", organization, |sql, organization| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    let rows = sql.rows(HOLDINGS, &[&organization.as_str()]).await?;
                    rows.iter().map(holding).collect()
                })
            })
            .await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        self.engine
            .read_snapshot("looking for blobs", &(provider, limit), |sql, (provider, limit)| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    sql.collect(SOME, &[&provider.as_str(), &row::limit(*limit)], |row| {
                        Ok((row::parse(row, 0).map_err(inconsistent)?, row::count(row, 1)?))
                    })
                    .await
                })
            })
            .await
    }
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
