//! The types of the HTTP API `/api/v1`, with the exact names of the JSON.
//!
//! Some replies use `snake_case`, some `camelCase`. Only this module knows which. For example,
//! [`FileRecord`] has `file_id`, and [`DeleteReply`] has `fileId`.
//!
//! A server can add fields to replies at any time, so readers ignore unknown fields. Every struct
//! is `#[non_exhaustive]`, and requests have constructors. An enum keeps an unknown word of a later
//! server as `Unknown`, so always handle that case.

mod vocabulary;
mod id;
mod file;
mod file_name;
mod list;
mod upload;
mod usage;
mod event;
mod webhook;
mod me;
mod binding;
mod health;
mod problem;
mod sign;
mod sheet;
mod receipt;
mod explain;
mod admin;
#[cfg(feature = "store")]
mod convert;

pub use admin::{
    ALL_ORGANIZATIONS, AdminProvider, BackupDestination, BackupError, BackupFault,
    BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport, BackupVerifyReport,
    CreateBackup, CreateKey, EraseReceipt, EraseRequest, ErasedPlace, ForgetBackups, FsckFinding,
    FsckReport, FsckRunRequest, FsckRunning, FsckStatus, FsckSummary, KEY_SCOPES, KeyReply,
    MayReturn, MigrateHolding, MigratePlan, MigrateReport, MigrateRunRequest, MigrateRunning,
    MigrateStatus, MigrateStopRequest, MigrateVerifyReport, MigrateVerifyRequest, NewKeyReply,
    OrganizationSyncStatus, ProviderBacklog, ProviderCheckReport, ProviderCheckStep, PruneBackups,
    PurgeReport, PurgeRunRequest, RestoreBackup, RestoredKeys, RotateKey, Snapshot, StatusAdvice,
    StatusDisk, StatusEvents, StatusMigration, StatusPurge, StatusReply, StatusResumable,
    StatusStore, StatusUnfinished, StatusWebhooks, SyncQueueReport, SyncQueueRequest, SyncReport,
    SyncStatusReport, VariantCacheReport, VerifyBackup, WorkFailure,
};
pub use binding::{BindingReply, BindingUpdateReply, CreateBinding, ProviderReply, UpdateBinding};
#[cfg(feature = "store")]
pub use convert::{field_name, problem_of};
pub use event::{Event, EventData, EventPage, EventQuery};
pub use explain::{ExplainedFact, ExplainedHistory, ExplainedRecord, ExplainedStep, Explanation};
pub use file::{
    ChangeReply, DeleteFileError, DeleteFileResult, DeleteFilesReply, DeleteFilesRequest,
    DeleteReply, EditReply, FileIdReply, FileRecord, Metadata, RestoreFileError, RestoreFileResult,
    RestoreFilesReply, RestoreFilesRequest, RestoreReply,
};
pub use file_name::{decode_windows_1252, text_of_file_name};
pub use health::{HealthReply, ReadyProvider, ReadyReply};
pub use id::{FileId, InvalidId, OrganizationId, OrganizationNumber, SubSystem};
pub use list::{ListQuery, ListReply};
pub use me::{MeFeatures, MeKey, MeLimits, MeReply, MeStore};
pub use problem::Problem;
pub use receipt::{
    AwaitedBlob, BackupLook, DeletedBy, HoldingSnapshot, PurgeReceipt, ReceiptKeyReply,
    RemovedBlob, SignedReceipt,
};
pub use sheet::{SheetCell, SheetCellError, SheetMap};
pub use sign::{SignRequest, SignUploadRequest, SignedUrlReply, SigningSecretReply};
pub use upload::{ResumableUpload, ResumableUploadList};
pub use usage::{
    OrganizationBinding, OrganizationReply, OrganizationsReply, PageQuery, SubSystemReply,
    SubSystemsReply, UsageAt, UsageByLocation, UsageReply,
};
pub use vocabulary::{
    AccessMode, AdviceCode, BreakerState, CheckOutcome, Disposition, DryRun, ErrorCode, EventOrder,
    EventType, Fit, ListOrder, PurgeStatus, Status, StorageLocation, SyncStatus, UnknownWord,
    UrlCache,
};
pub use webhook::{
    CreateWebhook, DeletedWebhookReply, EditWebhook, EnableWebhook, NewWebhookReply,
    RedeliverReply, RedeliverWebhook, RotateWebhook, WebhookFailure, WebhookFailures,
    WebhookFailuresQuery, WebhookPingReply, WebhookReply,
};

/// Path prefix for every endpoint.
pub const PREFIX: &str = "/api/v1";

/// Maximum files in one POST `/files/delete`.
pub const MAX_DELETED_AT_ONCE: usize = 1000;

/// Maximum files in one POST `/files/restore`.
pub const MAX_RESTORED_AT_ONCE: usize = MAX_DELETED_AT_ONCE;

/// Maximum ids in one GET `/files?ids=`.
pub const MAX_LISTED_IDS: usize = 100;

/// Maximum files on a contact sheet.
pub const MAX_SHEET_FILES: usize = 100;

/// Variant sizes: the side of the square, in pixels.
pub const VARIANT_SIZES: [u32; 7] = [200, 250, 300, 400, 500, 700, 1000];
