//! The holders of an organization's files, and the files that are not where they are to go.

use rusqlite::{Connection, Row, params};

use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::Holding;

use super::fault::{Fault, Source};
use super::row::{self, columns, id};

pub(super) const ELSEWHERE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     AND status = 'READY' AND file_id > ?3 AND storage_provider <> ?2 ORDER BY file_id"
);

/// Groups what one range of the index gives, so it sorts no more rows than there are groups.
pub(super) const HOLDINGS: &str = "SELECT storage_provider, status, count(*), sum(size_bytes)
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     GROUP BY status, storage_provider";

/// Asked once for each provider, when it is first used: no index is worth it.
pub(super) const SOME: &str =
    "SELECT blob_key, size_bytes FROM files WHERE storage_provider = ?1 LIMIT ?2";

/// Lists up to `limit` READY files above `after` that `target` does not hold.
pub(super) fn elsewhere(
    sql: &Connection,
    organization: &OrganizationId,
    target: &ProviderCode,
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let after = after.map(id).unwrap_or_default();
    let params = params![organization.as_str(), target.as_str(), after];
    row::collect_up_to(limit, sql, ELSEWHERE, params, row::record)
}

/// Counts the files of `organization` by provider and status.
pub(super) fn count(
    sql: &Connection,
    organization: &OrganizationId,
) -> Result<Vec<Holding>, Fault> {
    row::collect_whole(sql, HOLDINGS, [organization.as_str()], holding)
}

/// Lists up to `limit` blobs that `provider` holds, with their sizes.
pub(super) fn some(
    sql: &Connection,
    provider: &ProviderCode,
    limit: usize,
) -> Result<Vec<(BlobKey, u64)>, Fault> {
    row::collect(sql, SOME, params![provider.as_str(), row::limit(limit)], |row| {
        Ok((row::parse(row, 0).map_err(inconsistent)?, row::count(row, 1)?))
    })
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
