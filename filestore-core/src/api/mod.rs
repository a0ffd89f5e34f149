//! The wire contract of `/api/v1`: serde types with exactly the contract's names and casing.
//!
//! This is the only place that knows the mix of `snake_case` and `camelCase`. Replies may gain
//! fields at any time, so readers ignore fields that they do not know, and every struct here is
//! `#[non_exhaustive]`: requests have constructors. Enumerated values are enums that keep a word of
//! a later server as `Unknown`, because a client must treat them as open.

mod vocabulary;
mod id;
mod file;
mod list;
mod usage;
mod binding;
mod health;
mod problem;
mod sign;
mod sheet;
mod receipt;
mod admin;
#[cfg(feature = "store")]
mod convert;

pub use admin::{
    ALL_ORGANIZATIONS, AdminProvider, BackupDestination, BackupError, BackupFault,
    BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport, BackupVerifyReport,
    CreateBackup, CreateKey, EraseReceipt, EraseRequest, ErasedPlace, ForgetBackups, FsckFinding,
    FsckReport, FsckRunRequest, FsckRunning, FsckStatus, FsckSummary, KeyReply, MigrateHolding,
    MigratePlan, MigrateReport, MigrateRunRequest, MigrateRunning, MigrateStatus,
    MigrateStopRequest, MigrateVerifyReport, MigrateVerifyRequest, NewKeyReply, ProviderBacklog,
    ProviderCheckReport, ProviderCheckStep, PruneBackups, PurgeReport, PurgeRunRequest,
    RestoreBackup, RotateKey, Snapshot, StatusAdvice, StatusDisk, StatusMigration, StatusPurge,
    StatusReply, StatusStore, StatusUnfinished, SyncQueueReport, SyncQueueRequest, SyncReport,
    SyncStatusReport, VariantCacheReport, VerifyBackup, WorkFailure,
};
pub use binding::{BindingReply, BindingUpdateReply, CreateBinding, ProviderReply, UpdateBinding};
#[cfg(feature = "store")]
pub use convert::field_name;
pub use file::{
    ChangeReply, DeleteFileError, DeleteFileResult, DeleteFilesReply, DeleteFilesRequest,
    DeleteReply, FileRecord, Metadata,
};
pub use health::{HealthReply, ReadyProvider, ReadyReply};
pub use id::{FileId, InvalidId, OrganizationId, SubSystem};
pub use list::{ListQuery, ListReply};
pub use problem::Problem;
pub use receipt::{
    AwaitedBlob, BackupLook, DeletedBy, HoldingSnapshot, PurgeReceipt, ReceiptKeyReply,
    RemovedBlob, SignedReceipt,
};
pub use sheet::{SheetCell, SheetCellError, SheetMap};
pub use sign::{SignRequest, SignUploadRequest, SignedUrlReply, SigningSecretReply};
pub use usage::{UsageAt, UsageByLocation, UsageReply};
pub use vocabulary::{
    BreakerState, CheckOutcome, Disposition, DryRun, ErrorCode, Fit, PurgeStatus, Status,
    StorageLocation, SyncStatus, UnknownWord,
};

/// The path prefix every endpoint has.
pub const PREFIX: &str = "/api/v1";

/// The most files that one request may delete.
pub const MAX_DELETED_AT_ONCE: usize = 1000;

/// The most files of a contact sheet.
pub const MAX_SHEET_FILES: usize = 100;

/// The sides a gallery variant may have, in pixels.
pub const VARIANT_SIZES: [u32; 7] = [200, 250, 300, 400, 500, 700, 1000];
