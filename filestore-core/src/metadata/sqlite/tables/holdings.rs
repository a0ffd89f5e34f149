//! The holders of an organization's files, and the files that must be moved.

use async_trait::async_trait;
use rusqlite::{Row, params};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::{Holding, Holdings};

use super::row::{self, columns, id};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

pub(in crate::metadata::sqlite) const ELSEWHERE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     AND status = 'READY' AND file_id > ?3 AND storage_provider <> ?2 ORDER BY file_id"
);

/// Groups the rows of one index range, so it sorts no more rows than there are groups.
pub(super) const HOLDINGS: &str = "SELECT storage_provider, status, count(*), sum(size_bytes)
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     GROUP BY status, storage_provider";

/// Used once for each provider, at its first use, so it needs no index.
pub(super) const SOME: &str =
    "SELECT blob_key, size_bytes FROM files WHERE storage_provider = ?1 LIMIT ?2";

#[async_trait]
impl Holdings for SqliteMetadata {
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let (organization, target) = (organization.clone(), target.clone());
        self.readers
            .run("listing files elsewhere", move |sql| {
                let after = after.map(id).unwrap_or_default();
                let params = params![organization.as_str(), target.as_str(), after];
                row::collect_up_to(limit, sql, ELSEWHERE, params, row::record)
            })
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        let organization = organization.clone();
        self.readers
            .run("counting holdings", move |sql| {
                row::collect_whole(sql, HOLDINGS, [organization.as_str()], holding)
            })
            .await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        let provider = provider.clone();
        self.readers
            .run("looking for blobs", move |sql| {
                row::collect(sql, SOME, params![provider.as_str(), row::limit(limit)], |row| {
                    Ok((row::parse(row, 0).map_err(inconsistent)?, row::count(row, 1)?))
                })
            })
            .await
    }
}

fn holding(row: &Row<'_>) -> Result<Holding, Fault> {
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
