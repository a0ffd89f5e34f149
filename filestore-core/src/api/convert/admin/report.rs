//! Reports of background work.

use std::collections::BTreeMap;

use crate::api;
use crate::domain::error::{Error, Result};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{
    MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus, MigrateVerifyReport,
    OrganizationSyncStatus, ProviderInfo, PurgeOptions, PurgeReport, PurgeWhen, SyncReport,
    SyncStatusReport, WorkFailure,
};

impl From<WorkFailure> for api::WorkFailure {
    fn from(failure: WorkFailure) -> Self {
        let WorkFailure { file_id, error } = failure;
        Self { file_id: file_id.to_string(), error }
    }
}

fn failures(failures: Vec<WorkFailure>) -> Vec<api::WorkFailure> {
    failures.into_iter().map(Into::into).collect()
}

fn by_code(counts: BTreeMap<ProviderCode, u64>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(provider, count)| (provider.to_string(), count)).collect()
}

impl TryFrom<&api::PurgeRunRequest> for PurgeOptions {
    type Error = Error;

    /// Reads the files that a run covers. `InvalidField` for an invalid organization.
    fn try_from(request: &api::PurgeRunRequest) -> Result<Self> {
        let organization = request.organization_id.as_deref().map(str::parse).transpose()?;
        let when = if request.now { PurgeWhen::Now } else { PurgeWhen::Due };
        Ok(Self { when, organization })
    }
}

impl From<PurgeReport> for api::PurgeReport {
    fn from(report: PurgeReport) -> Self {
        Self {
            dry_run: report.dry_run,
            expired: report.expired,
            purged: report.purged,
            purged_bytes: report.purged_bytes,
            blobs_removed: report.blobs_removed,
            removed_at: by_code(report.removed_at),
            waiting: report.waiting,
            waiting_bytes: report.waiting_bytes,
            next_due_at: report.next_due_at.map(|at| at.to_string()),
            postponed: by_code(report.postponed),
            is_paused: report.is_paused,
            failed: report.failed,
            failures: failures(report.failures),
        }
    }
}

impl From<SyncReport> for api::SyncReport {
    fn from(report: SyncReport) -> Self {
        Self {
            settled: report.settled,
            synced: report.synced,
            synced_bytes: report.synced_bytes,
            waiting: report.waiting,
            postponed: by_code(report.postponed),
            failed: report.failed,
            failures: failures(report.failures),
        }
    }
}

impl From<OrganizationSyncStatus> for api::OrganizationSyncStatus {
    fn from(status: OrganizationSyncStatus) -> Self {
        let OrganizationSyncStatus { organization, pending, syncing, failed, done } = status;
        Self { organization_id: organization.into(), pending, syncing, failed, done }
    }
}

impl From<SyncStatusReport> for api::SyncStatusReport {
    fn from(report: SyncStatusReport) -> Self {
        let SyncStatusReport { none, pending, syncing, synced, failed, files_moved, bytes_copied } =
            report;
        Self { none, pending, syncing, synced, failed, files_moved, bytes_copied }
    }
}

impl From<MigrateHolding> for api::MigrateHolding {
    fn from(holding: MigrateHolding) -> Self {
        Self {
            provider_code: holding.provider.to_string(),
            status: holding.status.into(),
            files: holding.files,
            bytes: holding.bytes,
            available: holding.available,
        }
    }
}

impl From<MigratePlan> for api::MigratePlan {
    fn from(plan: MigratePlan) -> Self {
        Self {
            to: plan.to.to_string(),
            move_files: plan.move_files,
            move_bytes: plan.move_bytes,
            from: plan.from.into_iter().map(Into::into).collect(),
            there_files: plan.there_files,
            there_bytes: plan.there_bytes,
            stay_files: plan.stay_files,
            stay_bytes: plan.stay_bytes,
            refused: plan.refused,
        }
    }
}

impl From<MigrateReport> for api::MigrateReport {
    fn from(report: MigrateReport) -> Self {
        Self {
            moved_files: report.moved_files,
            moved_bytes: report.moved_bytes,
            left_files: report.left_files,
            left_bytes: report.left_bytes,
            stopped: report.stopped,
            failed: report.failed,
            failures: failures(report.failures),
        }
    }
}

impl From<MigrateRunning> for api::MigrateRunning {
    fn from(running: MigrateRunning) -> Self {
        Self {
            to: running.to.to_string(),
            files: running.files,
            bytes: running.bytes,
            planned_files: running.planned.map(|planned| planned.files),
            planned_bytes: running.planned.map(|planned| planned.bytes),
            started_at: running.started_at.map(|at| at.to_string()),
        }
    }
}

impl From<MigrateStatus> for api::MigrateStatus {
    fn from(status: MigrateStatus) -> Self {
        Self {
            organization_id: status.organization.into(),
            bound_to: status.bound_to.map(|provider| provider.to_string()),
            holdings: status.holdings.into_iter().map(Into::into).collect(),
            running: status.running.map(Into::into),
        }
    }
}

impl From<MigrateVerifyReport> for api::MigrateVerifyReport {
    fn from(report: MigrateVerifyReport) -> Self {
        Self {
            checked_files: report.checked_files,
            checked_bytes: report.checked_bytes,
            elsewhere: report.elsewhere,
            failed: report.failed,
            failures: failures(report.failures),
        }
    }
}

impl From<ProviderInfo> for api::AdminProvider {
    fn from(provider: ProviderInfo) -> Self {
        Self {
            provider_code: provider.code.to_string(),
            provider_name: provider.name,
            storage_location: provider.location.into(),
            is_active: provider.is_active,
            scheme: provider.scheme,
            is_tested: provider.is_tested,
            is_configured: true,
            state: None,
            state_since: None,
            last_error: None,
            last_error_at: None,
            backlog: api::ProviderBacklog::default(),
        }
    }
}
