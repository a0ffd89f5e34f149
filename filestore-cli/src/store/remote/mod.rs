//! A server as the target, over TCP or through the admin socket in its data directory.

mod watching;

use std::num::NonZeroUsize;

use async_trait::async_trait;
use filestore_client::{self as client, Client};
use filestore_core::api::{
    AdminProvider, BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport,
    BackupVerifyReport, BindingReply, BindingUpdateReply, ChangeReply, CreateBackup, CreateBinding,
    CreateKey, CreateWebhook, DeleteFileResult, DeleteReply, DeletedWebhookReply, EditReply,
    EditWebhook, EnableWebhook, EraseReceipt, EventPage, EventQuery, Explanation, FileRecord, Fit,
    ForgetBackups, FsckReport, FsckRunRequest, FsckStatus, KeyReply, ListQuery, ListReply, MeReply,
    MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport, NewKeyReply, NewWebhookReply,
    OrganizationId, OrganizationNumber, OrganizationSyncStatus, OrganizationsReply, PageQuery,
    ProviderCheckReport, ProviderReply, PruneBackups, PurgeReport, PurgeRunRequest, ReadyReply,
    ReceiptKeyReply, RedeliverReply, RedeliverWebhook, RestoreBackup, RestoreFileResult,
    RestoreReply, ResumableUpload, ResumableUploadList, RotateKey, RotateWebhook, SheetMap,
    SignRequest, SignUploadRequest, SignedReceipt, SignedUrlReply, SigningSecretReply, Snapshot,
    StatusReply, SubSystem, SubSystemsReply, SyncReport, SyncStatusReport, UpdateBinding,
    UsageReply, VariantCacheReport, VerifyBackup, WebhookFailures, WebhookFailuresQuery,
    WebhookPingReply, WebhookReply,
};
use filestore_core::variants::Motion;

use super::destination::{Delivery, Destination};
use super::item::{Input, Item};
use super::operations::{Stop, Target};
use super::range::ByteRange;
use super::request::{
    Acknowledged, Batch, Change, DetachedRun, Edit, IfMatch, Lifetime, MetadataEdit, Migration,
    Place, Upload, Variant,
};
use super::socket::AdminSocket;
use crate::command::backup::{is_directory, kept};
use crate::failure::{Failure, Result};
use crate::output::Meter;

/// A server behind the typed client.
#[derive(Debug)]
pub(crate) struct Remote {
    client: Client,
    /// The admin socket, if the client uses it. Some sockets exist only while this value lives.
    _socket: Option<AdminSocket>,
}

impl Remote {
    pub(super) fn new(client: Client) -> Self {
        Self { client, _socket: None }
    }

    /// Creates the target for a client of the admin socket.
    pub(super) fn through(client: Client, socket: AdminSocket) -> Self {
        Self { client, _socket: Some(socket) }
    }

    /// Passes the place on as the user typed it. The server checks it.
    fn place(&self, place: Place) -> Result<client::Place> {
        let organization_id = OrganizationId::unchecked(place.organization_id);
        let sub_system = SubSystem::unchecked(place.sub_system);
        Ok(self.client.organization(organization_id)?.sub_system(sub_system)?)
    }
}

#[async_trait]
impl Target for Remote {
    async fn upload(&self, upload: Upload, meter: &Meter) -> Result<Acknowledged> {
        let Upload { place, item, lifetime, sha256, idempotency_key } = upload;
        let mut request = client::Upload::new(to_send(item).await?).on_progress(sent(meter));
        if lifetime == Lifetime::Temporary {
            request = request.temp();
        }
        if let Some(sha256) = sha256 {
            request = request.sha256(sha256);
        }
        if let Some(key) = idempotency_key {
            request = request.idempotency_key(key);
        }

        let reply = self.place(place)?.upload_reply(request).await?;
        Ok(Acknowledged { is_replay: reply.is_replayed(), record: reply.value })
    }

    async fn batch(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>> {
        let Batch { place, items, idempotency_key } = batch;
        let mut request = client::Batch::new().on_progress(sent(meter));
        for item in items {
            request = request.item(to_send(item).await?);
        }
        if let Some(key) = idempotency_key {
            request = request.idempotency_key(key);
        }
        Ok(self.place(place)?.batch(request).await?)
    }

    async fn change(
        &self,
        id: &str,
        change: Change,
        if_match: Option<IfMatch>,
        meter: &Meter,
    ) -> Result<ChangeReply> {
        let mut request = match change {
            Change::Thumbnail => client::Change::thumbnail(),
            Change::Ready(None) => client::Change::ready(),
            Change::Ready(Some(item)) => client::Change::ready().with_file(to_send(item).await?),
            Change::Replace(item) => client::Change::replace(to_send(item).await?),
        };

        if let Some(condition) = if_match {
            request = request.if_match(etag_of(condition));
        }

        Ok(self.client.change(id, request.on_progress(sent(meter))).await?.value)
    }

    async fn edit(&self, id: &str, edit: Edit, if_match: Option<IfMatch>) -> Result<EditReply> {
        let mut request = to_edit(edit);
        if let Some(condition) = if_match {
            request = request.if_match(etag_of(condition));
        }
        Ok(self.client.edit(id, request).await?.value)
    }

    async fn download(
        &self,
        id: &str,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64> {
        let mut download = self.client.download(id).on_progress(received(meter));
        match range {
            Some(ByteRange::Between(first, last)) => download = download.range(first..=last),
            Some(ByteRange::From(first)) => download = download.range(first..),
            Some(ByteRange::Last(count)) => download = download.suffix(count),
            None => {}
        }

        let mut delivery = Delivery::begin(to)?;
        let done = download.to_writer(delivery.writer()).await?;
        delivery.finish().await?;
        Ok(done.len_bytes)
    }

    async fn variant(&self, id: &str, size: u32, fit: Fit, motion: Motion) -> Result<Variant> {
        let request = self.client.variant(id, size).fit(fit);
        let variant = match motion {
            Motion::Still => request.await?,
            Motion::Animated => request.animated().await?,
        };
        Ok(Variant { bytes: variant.bytes, mime_type: variant.content_type })
    }

    async fn sheet(&self, ids: &[String], size: u32, fit: Fit) -> Result<Variant> {
        let sheet = self.client.sheet(ids).size(size).fit(fit).await?;
        Ok(Variant { bytes: sheet.bytes, mime_type: sheet.content_type })
    }

    async fn sheet_map(&self, ids: &[String], size: u32, fit: Fit) -> Result<SheetMap> {
        Ok(self.client.sheet(ids).size(size).fit(fit).map().await?)
    }

    async fn info(&self, id: &str) -> Result<FileRecord> {
        Ok(self.client.info(id).await?.value)
    }

    async fn explain(&self, id: &str) -> Result<Explanation> {
        Ok(self.client.explain(id).await?)
    }

    async fn list(&self, query: &ListQuery) -> Result<ListReply> {
        Ok(self.client.list(query).await?)
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        Ok(self.client.events().page(query).await?)
    }

    async fn delete(&self, id: &str, if_match: Option<IfMatch>) -> Result<DeleteReply> {
        Ok(match if_match {
            Some(condition) => self.client.delete_if_match(id, etag_of(condition)).await?,
            None => self.client.delete(id).await?,
        })
    }

    async fn delete_many(&self, ids: &[String]) -> Result<Vec<DeleteFileResult>> {
        Ok(self.client.delete_many(ids).await?)
    }

    async fn restore(&self, id: &str) -> Result<RestoreReply> {
        Ok(self.client.restore(id).await?)
    }

    async fn restore_many(&self, ids: &[String]) -> Result<Vec<RestoreFileResult>> {
        Ok(self.client.restore_many(ids).await?)
    }

    async fn me(&self) -> Result<MeReply> {
        Ok(self.client.me().await?)
    }

    async fn organizations(&self, query: &PageQuery) -> Result<OrganizationsReply> {
        Ok(self.client.organizations(query).await?)
    }

    async fn sub_systems(
        &self,
        organization: &OrganizationId,
        query: &PageQuery,
    ) -> Result<SubSystemsReply> {
        Ok(self.client.sub_systems(organization.clone(), query).await?)
    }

    async fn sign(&self, id: &str, request: &SignRequest) -> Result<SignedUrlReply> {
        Ok(self.client.sign(id, request).await?)
    }

    async fn sign_upload(&self, request: &SignUploadRequest) -> Result<SignedUrlReply> {
        Ok(self.client.sign_upload(request).await?)
    }

    async fn signing_secrets(&self) -> Result<Vec<SigningSecretReply>> {
        Ok(self.client.admin().signing().list().await?)
    }

    async fn signing_rotate(&self) -> Result<Vec<SigningSecretReply>> {
        Ok(self.client.admin().signing().rotate().await?)
    }

    async fn signing_revoke(&self, kid: &str) -> Result<Vec<SigningSecretReply>> {
        Ok(self.client.admin().signing().revoke(kid).await?)
    }

    async fn keys(&self) -> Result<Vec<KeyReply>> {
        Ok(self.client.admin().keys().list().await?)
    }

    async fn create_key(&self, new: &CreateKey) -> Result<NewKeyReply> {
        Ok(self.client.admin().keys().create(new).await?)
    }

    async fn rotate_key(&self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply> {
        Ok(self.client.admin().keys().rotate(id, rotation).await?)
    }

    async fn revoke_key(&self, id: &str) -> Result<KeyReply> {
        Ok(self.client.admin().keys().revoke(id).await?)
    }

    async fn webhooks(&self) -> Result<Vec<WebhookReply>> {
        Ok(self.client.webhooks().list().await?)
    }

    async fn webhook(&self, id: &str) -> Result<WebhookReply> {
        Ok(self.client.webhooks().get(id).await?)
    }

    async fn create_webhook(&self, new: &CreateWebhook) -> Result<NewWebhookReply> {
        Ok(self.client.webhooks().create(new).await?)
    }

    async fn edit_webhook(&self, id: &str, edit: &EditWebhook) -> Result<WebhookReply> {
        Ok(self.client.webhooks().edit(id, edit).await?)
    }

    async fn rotate_webhook(&self, id: &str, rotation: &RotateWebhook) -> Result<NewWebhookReply> {
        Ok(self.client.webhooks().rotate(id, rotation).await?)
    }

    async fn ping_webhook(&self, id: &str) -> Result<WebhookPingReply> {
        Ok(self.client.webhooks().ping(id).await?)
    }

    async fn webhook_failures(
        &self,
        id: &str,
        query: &WebhookFailuresQuery,
    ) -> Result<WebhookFailures> {
        Ok(self.client.webhooks().failures(id, query).await?)
    }

    async fn redeliver(&self, id: &str, what: &RedeliverWebhook) -> Result<RedeliverReply> {
        Ok(self.client.webhooks().redeliver(id, what).await?)
    }

    async fn enable_webhook(&self, id: &str, from: &EnableWebhook) -> Result<WebhookReply> {
        Ok(self.client.webhooks().enable(id, from).await?)
    }

    async fn disable_webhook(&self, id: &str) -> Result<WebhookReply> {
        Ok(self.client.webhooks().disable(id).await?)
    }

    async fn delete_webhook(&self, id: &str) -> Result<DeletedWebhookReply> {
        Ok(self.client.webhooks().delete(id).await?)
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<UsageReply> {
        Ok(self.client.usage(organization.clone()).await?)
    }

    async fn providers(&self) -> Result<Vec<ProviderReply>> {
        Ok(self.client.providers().list().await?)
    }

    async fn all_providers(&self) -> Result<Vec<AdminProvider>> {
        Ok(self.client.admin().providers().list().await?)
    }

    async fn check_provider(&self, code: &str) -> Result<ProviderCheckReport> {
        Ok(self.client.admin().providers().check(code).await?)
    }

    async fn bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<BindingReply>> {
        Ok(self.client.bindings().list(organization).await?)
    }

    async fn create_binding(&self, binding: CreateBinding) -> Result<BindingReply> {
        Ok(self.client.bindings().create(&binding).await?)
    }

    async fn update_binding(&self, update: UpdateBinding) -> Result<BindingUpdateReply> {
        Ok(self.client.bindings().update(&update).await?)
    }

    async fn receipt(&self, id: &str) -> Result<SignedReceipt> {
        Ok(self.client.receipt(id).await?)
    }

    async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>> {
        Ok(self.client.receipt_keys().await?)
    }

    async fn rotate_receipt_key(&self) -> Result<Vec<ReceiptKeyReply>> {
        Ok(self.client.admin().receipts().rotate_key().await?)
    }

    async fn purge(&self, request: &PurgeRunRequest, _meter: &Meter) -> Result<PurgeReport> {
        Ok(self.client.admin().purge().run(request).await?)
    }

    async fn sync(&self, meter: &Meter) -> Result<SyncReport> {
        watching::sync(self.client.admin().sync(), meter).await
    }

    async fn sync_enqueue(&self, organization: OrganizationNumber) -> Result<u64> {
        Ok(self.client.admin().sync().enqueue(organization).await?.queued)
    }

    async fn sync_retry(&self, organization: Option<OrganizationNumber>) -> Result<u64> {
        Ok(self.client.admin().sync().retry(organization).await?.queued)
    }

    async fn migrate_plan(
        &self,
        organization: OrganizationNumber,
        to: &str,
    ) -> Result<MigratePlan> {
        Ok(self.client.admin().migrations().plan(organization, to).await?)
    }

    async fn migrate_run(
        &self,
        migration: &Migration,
        stop: Stop,
        meter: &Meter,
    ) -> Result<MigrateReport> {
        watching::migration(self.client.admin().migrations(), migration, stop, meter).await
    }

    async fn migrate_status(&self, organization: OrganizationNumber) -> Result<MigrateStatus> {
        Ok(self.client.admin().migrations().status(organization).await?)
    }

    async fn migrate_verify(
        &self,
        organization: OrganizationNumber,
        to: &str,
        _meter: &Meter,
    ) -> Result<MigrateVerifyReport> {
        Ok(self.client.admin().migrations().verify(organization, to).await?)
    }

    async fn erase(
        &self,
        organization: &OrganizationId,
        _stop: Stop,
        _meter: &Meter,
    ) -> Result<EraseReceipt> {
        Ok(self.client.admin().organizations().erase(organization.clone()).await?)
    }

    async fn start(&self, run: DetachedRun<'_>) -> Result<()> {
        let admin = self.client.admin();
        match run {
            DetachedRun::Migration(migration) => {
                admin.migrations().start(&migration.request()).await?;
            }
            DetachedRun::Fsck(request) => {
                admin.fsck().start(request).await?;
            }
            DetachedRun::Backup(destination, request) => {
                admin.backups().start(&configured(destination)?, request).await?;
            }
        }
        Ok(())
    }

    async fn fsck_status(&self) -> Result<FsckStatus> {
        Ok(self.client.admin().fsck().status().await?)
    }

    async fn fsck(
        &self,
        request: &FsckRunRequest,
        stop: Stop,
        meter: &Meter,
    ) -> Result<FsckReport> {
        watching::fsck(self.client.admin(), request, stop, meter).await
    }

    async fn backup_create(
        &self,
        destination: &str,
        request: &CreateBackup,
        _meter: &Meter,
    ) -> Result<BackupReport> {
        Ok(self.client.admin().backups().create(&configured(destination)?, request).await?)
    }

    async fn backup_destinations(&self) -> Result<Vec<String>> {
        let all = self.client.admin().backups().destinations().await?;
        Ok(all.into_iter().map(|destination| destination.name).collect())
    }

    async fn backup_list(&self, destination: &str) -> Result<Vec<Snapshot>> {
        Ok(self.client.admin().backups().list(&configured(destination)?).await?)
    }

    async fn backup_verify(
        &self,
        destination: &str,
        snapshot: Option<String>,
    ) -> Result<BackupVerifyReport> {
        let request = VerifyBackup::new(snapshot);
        Ok(self.client.admin().backups().verify(&configured(destination)?, &request).await?)
    }

    async fn backup_restore(
        &self,
        destination: &str,
        request: &RestoreBackup,
        _meter: &Meter,
    ) -> Result<BackupRestoreReport> {
        Ok(self.client.admin().backups().restore(&configured(destination)?, request).await?)
    }

    async fn backup_prune(
        &self,
        destination: &str,
        keep: NonZeroUsize,
    ) -> Result<BackupPruneReport> {
        let request = PruneBackups::new(kept(keep));
        Ok(self.client.admin().backups().prune(&configured(destination)?, &request).await?)
    }

    async fn backup_forget(
        &self,
        destination: &str,
        request: &ForgetBackups,
    ) -> Result<BackupForgetReport> {
        Ok(self.client.admin().backups().forget(&configured(destination)?, request).await?)
    }

    async fn uploads(
        &self,
        organization: Option<&OrganizationId>,
        query: &PageQuery,
    ) -> Result<ResumableUploadList> {
        Ok(match organization {
            // Any key with the scope `read` can list the uploads of its organization.
            Some(organization) => self.client.uploads(organization.clone(), query).await?,
            None => self.client.admin().uploads().list(None, query).await?,
        })
    }

    async fn upload_state(&self, id: &str) -> Result<ResumableUpload> {
        Ok(self.client.admin().uploads().show(id).await?)
    }

    async fn cancel_upload(&self, id: &str) -> Result<ResumableUpload> {
        Ok(self.client.admin().uploads().cancel(id).await?)
    }

    async fn sync_status(&self) -> Result<SyncStatusReport> {
        Ok(self.client.admin().sync().status().await?)
    }

    async fn sync_status_of(
        &self,
        organization: OrganizationNumber,
    ) -> Result<OrganizationSyncStatus> {
        Ok(self.client.admin().sync().status_of(organization).await?)
    }

    async fn variants_status(&self) -> Result<VariantCacheReport> {
        Ok(self.client.admin().variants().status().await?)
    }

    async fn variants_prune(&self) -> Result<VariantCacheReport> {
        Ok(self.client.admin().variants().prune().await?)
    }

    async fn status(&self) -> Result<StatusReply> {
        Ok(self.client.admin().status().await?)
    }

    async fn health(&self) -> Result<ReadyReply> {
        Ok(self.client.ready().await?)
    }

    async fn close(&self) {}
}

/// Refuses a directory on this machine, because a server uses only destinations from its
/// configuration.
fn configured(destination: &str) -> Result<String> {
    if is_directory(destination) {
        let problem = "a server accepts only destinations from its configuration";
        return Err(Failure::refused(problem).hint(
            "use a name from [[backup.destinations]], or stop the server and use --data-dir",
        ));
    }
    Ok(destination.to_owned())
}

/// Formats a condition as the value of If-Match.
fn etag_of(condition: IfMatch) -> String {
    match condition {
        IfMatch::Any => "*".to_owned(),
        IfMatch::Sha256(hex) => format!("\"{hex}\""),
    }
}

fn to_edit(edit: Edit) -> client::Edit {
    let mut request = client::Edit::new();
    if let Some(name) = edit.name {
        request = request.original_name(name);
    }
    if let Some(mime_type) = edit.mime_type {
        request = request.mime_type(mime_type);
    }
    match edit.metadata {
        Some(MetadataEdit::Merge(members)) => request.metadata(members),
        Some(MetadataEdit::Clear) => request.clear_metadata(),
        None => request,
    }
}

/// Converts an item to the client's type. Only a file can be read again for a retry.
async fn to_send(item: Item) -> Result<client::Item> {
    let mut sent = match &item.input {
        Input::File(path, _) => client::Item::from_path(path)?,
        Input::Stdin | Input::Stream(_) => {
            client::Item::from_reader(item.input.open().await?, None)
        }
    };

    if let Some(name) = item.name {
        sent = sent.original_name(name);
    }
    if let Some(mime_type) = item.mime_type {
        sent = sent.mime_type(mime_type);
    }
    if let Some(metadata) = item.metadata {
        sent = sent.metadata(metadata);
    }

    Ok(sent)
}

/// Reports sent bytes. The caller sets the total, which can include several uploads.
fn sent(meter: &Meter) -> impl Fn(client::Progress) + Send + Sync + 'static {
    let meter = meter.clone();
    move |progress| meter.set(progress.done_bytes)
}

/// Reports received bytes, and their total if it is known.
fn received(meter: &Meter) -> impl Fn(client::Progress) + Send + Sync + 'static {
    let meter = meter.clone();
    move |progress| {
        meter.set_total(progress.total_bytes);
        meter.set(progress.done_bytes);
    }
}
