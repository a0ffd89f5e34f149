//! The operations of a target: one method per command, with the types of the wire contract.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use filestore_core::api::{
    AdminProvider, BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport,
    BackupVerifyReport, BindingReply, BindingUpdateReply, ChangeReply, CreateBackup, CreateBinding,
    CreateKey, CreateWebhook, DeleteFileResult, DeleteReply, DeletedWebhookReply, EditReply,
    EditWebhook, EnableWebhook, EraseReceipt, EventPage, EventQuery, Explanation, FileRecord, Fit,
    ForgetBackups, FsckReport, FsckRunRequest, FsckStatus, KeyReply, ListQuery, ListReply, MeReply,
    MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport, NewKeyReply, NewWebhookReply,
    OrganizationId, OrganizationNumber, OrganizationSyncStatus, OrganizationsReply, PageQuery,
    ProviderCheckReport, ProviderReply, PurgeReport, PurgeRunRequest, ReadyReply, ReceiptKeyReply,
    RedeliverReply, RedeliverWebhook, RestoreBackup, RestoreFileResult, RestoreReply,
    ResumableUpload, ResumableUploadList, RotateKey, RotateWebhook, SheetMap, SignRequest,
    SignUploadRequest, SignedReceipt, SignedUrlReply, SigningSecretReply, Snapshot, StatusReply,
    SubSystemsReply, SyncReport, SyncStatusReport, UpdateBinding, UsageReply, VariantCacheReport,
    WebhookFailures, WebhookFailuresQuery, WebhookPingReply, WebhookReply,
};
use filestore_core::variants::Motion;
use tokio::sync::watch;

use super::destination::Destination;
use super::range::ByteRange;
use super::request::{
    Acknowledged, Batch, Change, DetachedRun, Edit, IfMatch, Migration, Upload, Variant,
};
use crate::failure::Result;
use crate::output::Meter;

/// The stop signal of the user. The signal is true after the first Ctrl-C. Copies in progress still complete.
pub(crate) type Stop = watch::Receiver<bool>;

/// A store that runs commands.
///
/// # Contract
/// A target gets a file id as the user typed it, and checks it. Transfers report their progress to
/// the given meter.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    async fn upload(&self, upload: Upload, meter: &Meter) -> Result<Acknowledged>;
    async fn batch(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>>;
    async fn change(
        &self,
        id: &str,
        change: Change,
        if_match: Option<IfMatch>,
        meter: &Meter,
    ) -> Result<ChangeReply>;
    async fn edit(&self, id: &str, edit: Edit, if_match: Option<IfMatch>) -> Result<EditReply>;
    /// Writes a file, or a range of it, to `to`. Returns the number of written bytes. The output
    /// gets its name when it is complete. A whole file is compared with its SHA-256 first.
    async fn download(
        &self,
        id: &str,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64>;
    async fn variant(&self, id: &str, size: u32, fit: Fit, motion: Motion) -> Result<Variant>;
    /// Returns a contact sheet.
    async fn sheet(&self, ids: &[String], size: u32, fit: Fit) -> Result<Variant>;
    /// Returns the position of each file on a contact sheet.
    async fn sheet_map(&self, ids: &[String], size: u32, fit: Fit) -> Result<SheetMap>;
    async fn info(&self, id: &str) -> Result<FileRecord>;
    /// Returns where a file is and why, and what comes next.
    async fn explain(&self, id: &str) -> Result<Explanation>;
    async fn list(&self, query: &ListQuery) -> Result<ListReply>;
    /// Returns a page of events.
    async fn events(&self, query: &EventQuery) -> Result<EventPage>;
    async fn delete(&self, id: &str, if_match: Option<IfMatch>) -> Result<DeleteReply>;
    /// Deletes up to [`MAX_DELETED_AT_ONCE`](filestore_core::api::MAX_DELETED_AT_ONCE) files. The
    /// results have the order of the ids.
    async fn delete_many(&self, ids: &[String]) -> Result<Vec<DeleteFileResult>>;
    async fn restore(&self, id: &str) -> Result<RestoreReply>;
    /// Restores up to [`MAX_RESTORED_AT_ONCE`](filestore_core::api::MAX_RESTORED_AT_ONCE) files.
    /// The results have the order of the ids.
    async fn restore_many(&self, ids: &[String]) -> Result<Vec<RestoreFileResult>>;
    /// Returns the key of the caller and the limits of the target.
    async fn me(&self) -> Result<MeReply>;
    async fn organizations(&self, query: &PageQuery) -> Result<OrganizationsReply>;
    async fn sub_systems(
        &self,
        organization: &OrganizationId,
        query: &PageQuery,
    ) -> Result<SubSystemsReply>;
    /// Lists the resumable uploads of an organization, or of all organizations.
    async fn uploads(
        &self,
        organization: Option<&OrganizationId>,
        query: &PageQuery,
    ) -> Result<ResumableUploadList>;
    async fn upload_state(&self, id: &str) -> Result<ResumableUpload>;
    /// Cancels a resumable upload. Returns its last state.
    async fn cancel_upload(&self, id: &str) -> Result<ResumableUpload>;
    async fn usage(&self, organization: &OrganizationId) -> Result<UsageReply>;
    async fn sign(&self, id: &str, request: &SignRequest) -> Result<SignedUrlReply>;
    async fn sign_upload(&self, request: &SignUploadRequest) -> Result<SignedUrlReply>;
    async fn signing_secrets(&self) -> Result<Vec<SigningSecretReply>>;
    async fn signing_rotate(&self) -> Result<Vec<SigningSecretReply>>;
    async fn signing_revoke(&self, kid: &str) -> Result<Vec<SigningSecretReply>>;

    async fn keys(&self) -> Result<Vec<KeyReply>>;
    async fn create_key(&self, new: &CreateKey) -> Result<NewKeyReply>;
    async fn rotate_key(&self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply>;
    async fn revoke_key(&self, id: &str) -> Result<KeyReply>;

    async fn webhooks(&self) -> Result<Vec<WebhookReply>>;
    async fn webhook(&self, id: &str) -> Result<WebhookReply>;
    async fn create_webhook(&self, new: &CreateWebhook) -> Result<NewWebhookReply>;
    async fn edit_webhook(&self, id: &str, edit: &EditWebhook) -> Result<WebhookReply>;
    async fn rotate_webhook(&self, id: &str, rotation: &RotateWebhook) -> Result<NewWebhookReply>;
    async fn ping_webhook(&self, id: &str) -> Result<WebhookPingReply>;
    async fn webhook_failures(
        &self,
        id: &str,
        query: &WebhookFailuresQuery,
    ) -> Result<WebhookFailures>;
    async fn redeliver(&self, id: &str, what: &RedeliverWebhook) -> Result<RedeliverReply>;
    async fn enable_webhook(&self, id: &str, from: &EnableWebhook) -> Result<WebhookReply>;
    async fn disable_webhook(&self, id: &str) -> Result<WebhookReply>;
    async fn delete_webhook(&self, id: &str) -> Result<DeletedWebhookReply>;

    async fn providers(&self) -> Result<Vec<ProviderReply>>;
    async fn all_providers(&self) -> Result<Vec<AdminProvider>>;
    async fn check_provider(&self, code: &str) -> Result<ProviderCheckReport>;
    async fn bindings(&self, organization: Option<OrganizationNumber>)
    -> Result<Vec<BindingReply>>;
    async fn create_binding(&self, binding: CreateBinding) -> Result<BindingReply>;
    async fn update_binding(&self, update: UpdateBinding) -> Result<BindingUpdateReply>;

    async fn purge(&self, request: &PurgeRunRequest, meter: &Meter) -> Result<PurgeReport>;
    /// Returns the receipt of a purged file.
    async fn receipt(&self, id: &str) -> Result<SignedReceipt>;
    async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>>;
    async fn rotate_receipt_key(&self) -> Result<Vec<ReceiptKeyReply>>;
    async fn sync(&self, meter: &Meter) -> Result<SyncReport>;
    /// Queues the files from before the binding. Returns their number.
    async fn sync_enqueue(&self, organization: OrganizationNumber) -> Result<u64>;
    /// Queues failed files again. Returns their number.
    async fn sync_retry(&self, organization: Option<OrganizationNumber>) -> Result<u64>;
    async fn sync_status(&self) -> Result<SyncStatusReport>;
    async fn sync_status_of(
        &self,
        organization: OrganizationNumber,
    ) -> Result<OrganizationSyncStatus>;
    async fn migrate_plan(&self, organization: OrganizationNumber, to: &str)
    -> Result<MigratePlan>;
    async fn migrate_run(
        &self,
        migration: &Migration,
        stop: Stop,
        meter: &Meter,
    ) -> Result<MigrateReport>;
    async fn migrate_status(&self, organization: OrganizationNumber) -> Result<MigrateStatus>;
    async fn migrate_verify(
        &self,
        organization: OrganizationNumber,
        to: &str,
        meter: &Meter,
    ) -> Result<MigrateVerifyReport>;
    /// Erases an organization as far as possible.
    async fn erase(
        &self,
        organization: &OrganizationId,
        stop: Stop,
        meter: &Meter,
    ) -> Result<EraseReceipt>;
    /// Starts a run that continues without this program. Only a server can do that.
    async fn start(&self, run: DetachedRun<'_>) -> Result<()>;
    async fn fsck_status(&self) -> Result<FsckStatus>;
    /// Checks the store until the end, or until `stop` is true.
    async fn fsck(&self, request: &FsckRunRequest, stop: Stop, meter: &Meter)
    -> Result<FsckReport>;
    async fn backup_create(
        &self,
        destination: &str,
        request: &CreateBackup,
        meter: &Meter,
    ) -> Result<BackupReport>;
    /// Lists the names of the configured destinations.
    async fn backup_destinations(&self) -> Result<Vec<String>>;
    async fn backup_list(&self, destination: &str) -> Result<Vec<Snapshot>>;
    async fn backup_verify(
        &self,
        destination: &str,
        snapshot: Option<String>,
    ) -> Result<BackupVerifyReport>;
    async fn backup_restore(
        &self,
        destination: &str,
        request: &RestoreBackup,
        meter: &Meter,
    ) -> Result<BackupRestoreReport>;
    async fn backup_prune(
        &self,
        destination: &str,
        keep: NonZeroUsize,
    ) -> Result<BackupPruneReport>;
    async fn backup_forget(
        &self,
        destination: &str,
        request: &ForgetBackups,
    ) -> Result<BackupForgetReport>;
    async fn variants_status(&self) -> Result<VariantCacheReport>;
    async fn variants_prune(&self) -> Result<VariantCacheReport>;
    async fn status(&self) -> Result<StatusReply>;
    /// Fails if the target answers but is not ready.
    async fn health(&self) -> Result<ReadyReply>;

    /// Releases all resources. No other call follows.
    async fn close(&self);
}
