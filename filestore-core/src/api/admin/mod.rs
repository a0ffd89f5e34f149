//! Administration in JSON (`/api/v1/admin/...`). Fields are snake_case, except `organizationId`.

mod backup;
mod key;
mod purge;
mod sync;
mod migrate;
mod provider;
mod variant;
mod status;
mod fsck;
mod erase;

pub use backup::{
    BackupDestination, BackupError, BackupFault, BackupForgetReport, BackupPruneReport,
    BackupReport, BackupRestoreReport, BackupVerifyReport, CreateBackup, ForgetBackups,
    PruneBackups, RestoreBackup, RestoredKeys, Snapshot, VerifyBackup,
};
pub use erase::{EraseReceipt, EraseRequest, ErasedPlace, MayReturn};
pub use fsck::{FsckFinding, FsckReport, FsckRunRequest, FsckRunning, FsckStatus, FsckSummary};
pub use key::{ALL_ORGANIZATIONS, CreateKey, KEY_SCOPES, KeyReply, NewKeyReply, RotateKey};
pub use migrate::{
    MigrateHolding, MigratePlan, MigrateReport, MigrateRunRequest, MigrateRunning, MigrateStatus,
    MigrateStopRequest, MigrateVerifyReport, MigrateVerifyRequest,
};
pub use provider::{AdminProvider, ProviderBacklog, ProviderCheckReport, ProviderCheckStep};
pub use purge::{PurgeReport, PurgeRunRequest};
pub use status::{
    StatusAdvice, StatusDisk, StatusEvents, StatusMigration, StatusPurge, StatusReply,
    StatusResumable, StatusStore, StatusUnfinished, StatusWebhooks,
};
pub use sync::{
    OrganizationSyncStatus, SyncQueueReport, SyncQueueRequest, SyncReport, SyncStatusReport,
};
pub use variant::VariantCacheReport;

use serde::{Deserialize, Serialize};

/// A file that background work could not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkFailure {
    /// File id.
    pub file_id: String,
    /// Explanation for people.
    pub error: String,
}

impl WorkFailure {
    /// Creates a failure from a file id and a reason.
    pub fn new(file_id: impl Into<String>, error: impl Into<String>) -> Self {
        Self { file_id: file_id.into(), error: error.into() }
    }
}
