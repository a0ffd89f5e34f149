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

use super::{PostgresMetadata, erasure};

#[cfg(test)]
pub(super) const QUERIES: &[&str] = &[
    walk::WALK,
    walk::NAMED,
    walk::KNOWN,
    walk::OLD_WRITES,
    referrers::REFERRERS,
    mend::LOCATION,
    totals::ORGANIZATIONS,
    totals::COUNTED,
    runs::RUN,
    runs::FINDINGS,
];

#[async_trait]
impl Inspection for PostgresMetadata {
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles> {
        self.engine
            .read("walking over the records", &(after, limit), |sql, (after, limit)| {
                Box::pin(walk::files(sql, after, *limit))
            })
            .await
    }

    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>> {
        self.engine
            .read("looking blobs up", &blobs, |sql, blobs| Box::pin(walk::still_named(sql, blobs)))
            .await
    }

    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>> {
        self.engine.read("looking files up", &ids, |sql, ids| Box::pin(walk::known(sql, ids))).await
    }

    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>> {
        self.engine
            .read("looking for referrers", &(holder, keys), |sql, (holder, keys)| {
                Box::pin(referrers::of_all(sql, holder, keys))
            })
            .await
    }

    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>> {
        let orphans = (holder.clone(), keys.to_vec(), not_before);
        self.engine
            .write("dropping orphans", orphans, |sql, (holder, keys, not_before)| {
                Box::pin(referrers::adopt(sql, holder, keys, *not_before))
            })
            .await
    }

    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>> {
        self.engine
            .read_snapshot("looking for doomed blobs", &limit, |sql, limit| {
                Box::pin(referrers::doomed(sql, *limit))
            })
            .await
    }

    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool> {
        self.engine
            .write("sparing a blob", blob.clone(), |sql, blob| {
                Box::pin(referrers::spare(sql, blob))
            })
            .await
    }

    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>> {
        self.engine
            .read("looking for old writes", &(begun_before, limit), |sql, &(before, limit)| {
                Box::pin(walk::old_writes(sql, before, limit))
            })
            .await
    }

    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool> {
        self.engine
            .write("mending a location", (blob.clone(), location), |sql, (blob, location)| {
                Box::pin(mend::location(sql, blob, *location))
            })
            .await
    }

    async fn mend_file(&self, file_id: &str) -> Result<MendedRow> {
        let mended = self
            .engine
            .write("mending a record", file_id.to_owned(), |sql, file| {
                Box::pin(mend::file(sql, file))
            })
            .await?;

        if mended != MendedRow::SetAside {
            self.engine.damaged.forget(|| format!("file {file_id}"));
        }
        Ok(mended)
    }

    async fn row_text(&self, file_id: &str) -> Result<Option<String>> {
        self.engine
            .read("reading a row", &file_id, |sql, file| Box::pin(mend::row_text(sql, file)))
            .await
    }

    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>> {
        self.engine
            .read("listing organizations", &(after, limit), |sql, (after, limit)| {
                Box::pin(totals::organizations(sql, after, *limit))
            })
            .await
    }

    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>> {
        self.engine
            .read_snapshot("adding totals up", &organization, |sql, organization| {
                Box::pin(async move {
                    match organization {
                        Some(organization) => totals::drift_of_usage(sql, organization).await,
                        None => totals::drift_of_syncs(sql).await,
                    }
                })
            })
            .await
    }

    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()> {
        self.engine
            .write("correcting totals", drifted.to_vec(), |sql, drifted| {
                Box::pin(totals::correct(sql, drifted))
            })
            .await
    }

    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>> {
        self.engine
            .read("reading a check's state", &name, |sql, name| Box::pin(runs::run(sql, *name)))
            .await
    }

    async fn begin_check(&self, run: &CheckRun) -> Result<()> {
        self.engine
            .write("beginning a check", run.clone(), |sql, run| Box::pin(runs::begin(sql, run)))
            .await
    }

    async fn save_check(&self, run: &CheckRun, found: Vec<Finding>) -> Result<(u64, u64)> {
        self.engine
            .write("storing a check's state", (run.clone(), found), |sql, (run, found)| {
                Box::pin(runs::save(sql, run, found))
            })
            .await
    }

    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>> {
        self.engine
            .read("listing findings", &(name, limit), |sql, &(name, limit)| {
                Box::pin(runs::findings(sql, name, limit))
            })
            .await
    }

    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>> {
        self.engine
            .read("counting findings", &name, |sql, name| Box::pin(runs::counts(sql, *name)))
            .await
    }

    async fn hasten_erasure(&self, organization: &OrganizationId, now: Timestamp) -> Result<()> {
        self.engine
            .write("hastening an erasure", (organization.clone(), now), |sql, (one, now)| {
                Box::pin(erasure::hasten(sql, one, *now))
            })
            .await
    }

    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed> {
        self.engine
            .write("forgetting an organization", organization.clone(), |sql, one| {
                Box::pin(erasure::forget(sql, one))
            })
            .await
    }

    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase> {
        self.engine
            .read_snapshot("looking for an organization", organization, |sql, one| {
                Box::pin(erasure::left(sql, one))
            })
            .await
    }
}
