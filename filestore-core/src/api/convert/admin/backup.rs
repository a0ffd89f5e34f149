//! Backups.

use crate::api;
use crate::domain::error::Error;
use crate::domain::report::backup::{
    BackupOptions, BackupReport, BlobFault, PruneReport, RestoreReport, RestoredAccess,
    RestoredKeys, Selection, SnapshotBytes, SnapshotClouds, SnapshotInfo, VerifyReport,
};

impl From<SnapshotInfo> for api::Snapshot {
    fn from(info: SnapshotInfo) -> Self {
        Self {
            snapshot_id: info.id.to_string(),
            store_id: info.store.to_string(),
            created_at: info.created_at.to_string(),
            shares_disk: info.bytes == SnapshotBytes::HardLinked,
            local_only: info.clouds == SnapshotClouds::Noted,
            files: info.files,
            blobs: info.blobs,
            bytes: info.blob_bytes,
            elsewhere: info.elsewhere,
            damaged: info.damaged,
            damaged_records: info.damaged_records,
            database_bytes: info.database_bytes,
        }
    }
}

impl From<BlobFault> for api::BackupFault {
    fn from(fault: BlobFault) -> Self {
        Self {
            sha256: fault.sha256.to_hex(),
            size_bytes: fault.size_bytes,
            file_id: fault.file_id.map(|id| id.to_string()),
            problem: fault.problem.as_str().to_owned(),
        }
    }
}

fn faults(faults: Vec<BlobFault>) -> Vec<api::BackupFault> {
    faults.into_iter().map(Into::into).collect()
}

impl From<api::CreateBackup> for BackupOptions {
    fn from(request: api::CreateBackup) -> Self {
        Self {
            bytes: if request.hard_links {
                SnapshotBytes::HardLinked
            } else {
                SnapshotBytes::Copied
            },
            clouds: if request.local_only { SnapshotClouds::Noted } else { SnapshotClouds::Copied },
        }
    }
}

impl TryFrom<&api::RestoreBackup> for Selection {
    type Error = Error;

    /// Reads whether to restore a file or an organization. `InvalidField` if the request names both
    /// or neither.
    fn try_from(request: &api::RestoreBackup) -> Result<Self, Error> {
        match (&request.organization_id, &request.file_id) {
            (Some(organization), None) => Ok(Self::Organization(organization.parse()?)),
            (None, Some(file)) => Ok(Self::File(file.parse()?)),
            _ => Err(Error::invalid("file_id", "give either organization_id or file_id, not both")),
        }
    }
}

impl From<&Error> for api::BackupError {
    fn from(error: &Error) -> Self {
        Self::new(error.kind().into(), error.message())
    }
}

impl From<BackupReport> for api::BackupReport {
    fn from(report: BackupReport) -> Self {
        Self {
            snapshot: Some(report.snapshot.into()),
            copied: report.copied,
            copied_bytes: report.copied_bytes,
            reused: report.reused,
            faults: faults(report.faults),
            error: None,
        }
    }
}

impl From<VerifyReport> for api::BackupVerifyReport {
    fn from(report: VerifyReport) -> Self {
        Self {
            ok: report.is_good(),
            snapshot: report.snapshot.into(),
            checked: report.checked,
            checked_bytes: report.checked_bytes,
            missing: report.missing,
            wrong: report.wrong,
            set_aside: report.set_aside,
            database_ok: report.database_is_good,
            faults: faults(report.faults),
            error: None,
        }
    }
}

impl From<RestoreReport> for api::BackupRestoreReport {
    fn from(report: RestoreReport) -> Self {
        Self {
            restored: report.restored,
            restored_bytes: report.restored_bytes,
            left_at_providers: report.left_at_providers,
            present: report.present,
            failed: report.failed,
            damaged_records: report.damaged_records,
            faults: faults(report.faults),
            keys: report.keys.map(Into::into),
            error: None,
        }
    }
}

impl From<RestoredKeys> for api::RestoredKeys {
    fn from(restored: RestoredKeys) -> Self {
        Self {
            taken_at: restored.taken_at.to_string(),
            revoked: restored.access == RestoredAccess::Revoked,
            keys: restored.keys.iter().map(Into::into).collect(),
            signing_secrets: restored.secrets.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<PruneReport> for api::BackupPruneReport {
    fn from(report: PruneReport) -> Self {
        Self {
            removed: report.removed.iter().map(ToString::to_string).collect(),
            kept: report.kept.iter().map(ToString::to_string).collect(),
            blobs_removed: report.blobs_removed,
            bytes_removed: report.bytes_removed,
            error: None,
        }
    }
}
