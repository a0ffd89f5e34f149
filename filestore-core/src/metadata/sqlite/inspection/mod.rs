//! The questions of checks of the store.

mod walk;
mod referrers;
mod mend;
mod totals;
mod runs;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::erasure::{LeftInDatabase, Removed};
use crate::domain::error::Result;
use crate::domain::fsck::{Finding, FindingKind};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::{
    CheckName, CheckRun, DriftedTotal, Inspection, MendLocation, MendedRow, NamedBlob, Referrer,
    WalkedFiles,
};

use super::{SqliteMetadata, erasure, row};

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

#[async_trait]
impl Inspection for SqliteMetadata {
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles> {
        let after = after.to_owned();
        self.readers
            .run("walking over the records", move |sql| walk::files(sql, &after, limit))
            .await
    }

    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>> {
        let blobs = blobs.to_vec();
        self.readers.run("looking blobs up", move |sql| walk::still_named(sql, &blobs)).await
    }

    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>> {
        let ids = ids.to_vec();
        self.readers.run("looking files up", move |sql| walk::known(sql, &ids)).await
    }

    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>> {
        let (holder, keys) = (holder.clone(), keys.to_vec());
        self.readers
            .run("looking for referrers", move |sql| referrers::of_all(sql, &holder, &keys))
            .await
    }

    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>> {
        let (holder, keys) = (holder.clone(), keys.to_vec());
        self.writer
            .run("dropping orphans", move |tx| referrers::adopt(tx.sql, &holder, &keys, not_before))
            .await
    }

    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>> {
        self.readers.run("looking for doomed blobs", move |sql| referrers::doomed(sql, limit)).await
    }

    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool> {
        let blob = blob.clone();
        self.writer.run("sparing a blob", move |tx| referrers::spare(tx.sql, &blob)).await
    }

    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>> {
        self.readers
            .run("looking for old writes", move |sql| walk::old_writes(sql, begun_before, limit))
            .await
    }

    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool> {
        let blob = blob.clone();
        self.writer.run("mending a location", move |tx| mend::location(tx, &blob, location)).await
    }

    async fn mend_file(&self, file_id: &str) -> Result<MendedRow> {
        let file = file_id.to_owned();
        let mended = self.writer.run("mending a record", move |tx| mend::file(tx, &file)).await?;

        if mended != MendedRow::SetAside {
            self.health.damaged.forget(|| format!("file {file_id}"));
        }
        Ok(mended)
    }

    async fn row_text(&self, file_id: &str) -> Result<Option<String>> {
        let file = file_id.to_owned();
        self.readers.run("reading a row", move |sql| mend::row_text(sql, &file)).await
    }

    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>> {
        let after = after.to_owned();
        self.readers
            .run("listing organizations", move |sql| totals::organizations(sql, &after, limit))
            .await
    }

    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>> {
        let organization = organization.map(str::to_owned);
        self.readers
            .run("adding totals up", move |sql| match &organization {
                Some(organization) => totals::drift_of_usage(sql, organization),
                None => totals::drift_of_syncs(sql),
            })
            .await
    }

    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()> {
        let drifted = drifted.to_vec();
        self.writer.run("correcting totals", move |tx| totals::correct(tx.sql, &drifted)).await
    }

    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>> {
        self.readers.run("reading a check's state", move |sql| runs::run(sql, name)).await
    }

    async fn begin_check(&self, run: &CheckRun) -> Result<()> {
        let run = run.clone();
        self.writer.run("beginning a check", move |tx| runs::begin(tx.sql, &run)).await
    }

    async fn save_check(&self, run: &CheckRun, found: Vec<Finding>) -> Result<(u64, u64)> {
        let run = run.clone();
        self.writer.run("storing a check's state", move |tx| runs::save(tx.sql, &run, &found)).await
    }

    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>> {
        self.readers.run("listing findings", move |sql| runs::findings(sql, name, limit)).await
    }

    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>> {
        self.readers.run("counting findings", move |sql| runs::counts(sql, name)).await
    }

    async fn hasten_erasure(&self, organization: &OrganizationId, now: Timestamp) -> Result<()> {
        let organization = organization.clone();
        self.writer
            .run("hastening an erasure", move |tx| erasure::hasten(tx.sql, &organization, now))
            .await
    }

    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed> {
        let organization = organization.clone();
        self.writer
            .run("forgetting an organization", move |tx| erasure::forget(tx, &organization))
            .await
    }

    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase> {
        let organization = organization.clone();
        self.readers
            .run("looking for an organization", move |sql| erasure::left(sql, &organization))
            .await
    }
}

/// Tells whether a query finds a row.
fn exists(
    sql: &rusqlite::Connection,
    query: &str,
    params: impl rusqlite::Params,
) -> Result<bool, super::fault::Fault> {
    Ok(row::first(sql, query, params, |_| Ok(()))?.is_some())
}
