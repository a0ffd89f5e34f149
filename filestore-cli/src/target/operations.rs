//! The operations of a target: one method per command, in the types of the wire contract.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use filestore_core::api::{
    AdminProvider, BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport,
    BackupVerifyReport, BindingReply, BindingUpdateReply, ChangeReply, CreateBackup, CreateBinding,
    CreateKey, DeleteFileResult, DeleteReply, DryRun, EraseReceipt, FileRecord, Fit, ForgetBackups,
    FsckReport, FsckRunRequest, KeyReply, ListQuery, ListReply, MigratePlan, MigrateReport,
    MigrateStatus, MigrateVerifyReport, NewKeyReply, ProviderCheckReport, ProviderReply,
    PurgeReport, ReadyReply, ReceiptKeyReply, RestoreBackup, RotateKey, SheetMap, SignRequest,
    SignUploadRequest, SignedReceipt, SignedUrlReply, SigningSecretReply, Snapshot, StatusReply,
    SyncReport, SyncStatusReport, UpdateBinding, UsageReply, VariantCacheReport,
};
use filestore_core::variants::Motion;
use tokio::sync::watch;

use super::destination::Destination;
use super::range::ByteRange;
use super::request::{Acknowledged, Batch, Change, IfMatch, Migration, Upload, Variant};
use crate::failure::Result;
use crate::output::Meter;

/// The user's wish to stop: true from the first Ctrl-C on. Copies under way are still completed.
pub(crate) type Stop = watch::Receiver<bool>;

/// A store that commands are carried out on.
///
/// # Contract
/// A file id goes to the target as the user typed it: the target is the one to refuse it. Transfers
/// report to the meter they are given as bytes move.
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
    /// Writes a file, or a range of it, to `to`; returns the number of bytes written. A file at
    /// `to` gets its name when all bytes are there. The SHA-256 of a whole file is checked before;
    /// a range has none to check.
    async fn download(
        &self,
        id: &str,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64>;
    async fn variant(&self, id: &str, size: u32, fit: Fit, motion: Motion) -> Result<Variant>;
    /// Makes a contact sheet.
    async fn sheet(&self, ids: &[String], size: u32, fit: Fit) -> Result<Variant>;
    /// Says where each file stands on the sheet.
    async fn sheet_map(&self, ids: &[String], size: u32, fit: Fit) -> Result<SheetMap>;
    async fn info(&self, id: &str) -> Result<FileRecord>;
    async fn list(&self, query: &ListQuery) -> Result<ListReply>;
    async fn delete(&self, id: &str, if_match: Option<IfMatch>) -> Result<DeleteReply>;
    /// Deletes up to [`MAX_DELETED_AT_ONCE`](filestore_core::api::MAX_DELETED_AT_ONCE) files; the
    /// results come in the order of the ids.
    async fn delete_many(&self, ids: &[String]) -> Result<Vec<DeleteFileResult>>;
    async fn restore(&self, id: &str) -> Result<FileRecord>;
    async fn usage(&self, organization: &str) -> Result<UsageReply>;
    async fn sign(&self, id: &str, request: &SignRequest) -> Result<SignedUrlReply>;
    async fn sign_upload(&self, request: &SignUploadRequest) -> Result<SignedUrlReply>;
    async fn signing_secrets(&self) -> Result<Vec<SigningSecretReply>>;
    async fn signing_rotate(&self) -> Result<Vec<SigningSecretReply>>;
    async fn signing_revoke(&self, kid: &str) -> Result<Vec<SigningSecretReply>>;

    async fn keys(&self) -> Result<Vec<KeyReply>>;
    async fn create_key(&self, new: &CreateKey) -> Result<NewKeyReply>;
    async fn rotate_key(&self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply>;
    async fn revoke_key(&self, id: &str) -> Result<KeyReply>;

    async fn providers(&self) -> Result<Vec<ProviderReply>>;
    async fn all_providers(&self) -> Result<Vec<AdminProvider>>;
    async fn check_provider(&self, code: &str) -> Result<ProviderCheckReport>;
    async fn bindings(&self, organization: Option<i64>) -> Result<Vec<BindingReply>>;
    async fn create_binding(&self, binding: CreateBinding) -> Result<BindingReply>;
    async fn update_binding(&self, update: UpdateBinding) -> Result<BindingUpdateReply>;

    async fn purge(&self, dry_run: DryRun, meter: &Meter) -> Result<PurgeReport>;
    /// Returns the receipt of a purged file.
    async fn receipt(&self, id: &str) -> Result<SignedReceipt>;
    async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>>;
    async fn rotate_receipt_key(&self) -> Result<Vec<ReceiptKeyReply>>;
    async fn sync(&self, meter: &Meter) -> Result<SyncReport>;
    /// Queues the files stored before the binding was made; returns how many.
    async fn sync_enqueue(&self, organization: i64) -> Result<u64>;
    /// Queues failed files again; returns how many.
    async fn sync_retry(&self, organization: Option<i64>) -> Result<u64>;
    async fn sync_status(&self) -> Result<SyncStatusReport>;
    async fn migrate_plan(&self, organization: i64, to: &str) -> Result<MigratePlan>;
    async fn migrate_run(
        &self,
        migration: &Migration,
        stop: Stop,
        meter: &Meter,
    ) -> Result<MigrateReport>;
    async fn migrate_status(&self, organization: i64) -> Result<MigrateStatus>;
    async fn migrate_verify(
        &self,
        organization: i64,
        to: &str,
        meter: &Meter,
    ) -> Result<MigrateVerifyReport>;
    /// Erases an organization, as far as that can be done now.
    async fn erase(&self, organization: &str, stop: Stop, meter: &Meter) -> Result<EraseReceipt>;
    /// Checks the store, until the end or until `stop` says so.
    async fn fsck(&self, request: &FsckRunRequest, stop: Stop, meter: &Meter)
    -> Result<FsckReport>;
    async fn backup_create(
        &self,
        destination: &str,
        request: &CreateBackup,
        meter: &Meter,
    ) -> Result<BackupReport>;
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
    /// Fails if the target answers but cannot work.
    async fn health(&self) -> Result<ReadyReply>;

    /// Releases everything that is held. No other call follows.
    async fn close(&self);
}
