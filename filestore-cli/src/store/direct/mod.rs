//! A data directory as the target. The core runs in this process.
//!
//! A user who can write to the directory has all rights, so there is no key, and the scope is always all
//! organizations. A direct command has no background work: each task runs only as a command.

mod content;
mod convert;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use filestore_core::admin::{Backups, MigrateOptions, NoProgress};
use filestore_core::api::{
    AccessMode, AdminProvider, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, BindingReply, BindingUpdateReply, ChangeReply,
    CreateBackup, CreateBinding, CreateKey, CreateWebhook, DeleteFileResult, DeleteReply,
    DeletedWebhookReply, EditReply, EditWebhook, EnableWebhook, EraseReceipt, EventOrder,
    EventPage, EventQuery, Explanation, FileRecord, Fit, ForgetBackups, FsckReport, FsckRunRequest,
    FsckStatus, KeyReply, ListQuery, ListReply, MeReply, MigratePlan, MigrateReport, MigrateStatus,
    MigrateVerifyReport, NewKeyReply, NewWebhookReply, OrganizationId, OrganizationNumber,
    OrganizationSyncStatus, OrganizationsReply, PageQuery, ProviderCheckReport, ProviderReply,
    PurgeReport, PurgeRunRequest, ReadyReply, ReceiptKeyReply, RedeliverReply, RedeliverWebhook,
    RestoreBackup, RestoreFileResult, RestoreReply, ResumableUpload, ResumableUploadList,
    RotateKey, RotateWebhook, SheetMap, SignRequest, SignUploadRequest, SignedReceipt,
    SignedUrlReply, SigningSecretReply, Snapshot, StatusReply, SubSystemsReply, SyncReport,
    SyncStatusReport, UpdateBinding, UsageReply, VariantCacheReport, WebhookFailures,
    WebhookFailuresQuery, WebhookPingReply, WebhookReply,
};
use filestore_core::config::BackupPlace;
use filestore_core::events::After;
use filestore_core::explain::Reader;
use filestore_core::keys::KeyId;
use filestore_core::uploads::UploadId;
use filestore_core::variants::Motion;
use filestore_core::{self as core, FileId, FileStore, Files, ProviderCode, Scope};

use super::destination::Destination;
use super::operations::{Stop, Target};
use super::range::ByteRange;
use super::request::{
    Acknowledged, Batch, Change, DetachedRun, Edit, IfMatch, Migration, Upload, Variant,
};
use crate::command::backup::is_directory;
use crate::failure::{Failure, Result};
use crate::output::Meter;

/// An open data directory.
#[derive(Debug)]
pub(crate) struct Direct {
    store: FileStore,
}

impl Direct {
    pub(super) fn new(store: FileStore) -> Self {
        Self { store }
    }

    /// Returns the files of all organizations.
    fn files(&self) -> Files<'_> {
        self.store.scoped(&Scope::All)
    }

    /// Opens a directory of snapshots, or a destination from the configuration.
    async fn backups(&self, destination: &str) -> Result<Backups> {
        Ok(if is_directory(destination) {
            Backups::create(destination).await?
        } else {
            self.store.admin().backups(destination).await?
        })
    }

    /// Converts records, and says which of them wait for a copy. If the bindings cannot be read, the
    /// records do not say it.
    async fn shown(&self, records: &[core::FileRecord]) -> Vec<FileRecord> {
        let config = self.store.config();
        let mut shown: Vec<_> =
            records.iter().map(|record| FileRecord::of(record, &config)).collect();
        let awaited = self.store.bindings().awaits_copy(records).await.unwrap_or_default();
        for (shown, awaits) in shown.iter_mut().zip(awaited) {
            shown.awaits_copy = Some(awaits);
        }
        shown
    }

    async fn shown_one(&self, record: &core::FileRecord) -> FileRecord {
        let mut all = self.shown(std::slice::from_ref(record)).await;
        all.pop().expect("a record for each record")
    }

    fn provider(&self, code: &str) -> Result<ProviderCode> {
        Ok(self.store.admin().provider_code(code)?)
    }
}

fn parse_id(id: &str) -> Result<FileId> {
    Ok(id.parse::<FileId>()?)
}

#[async_trait]
impl Target for Direct {
    async fn upload(&self, upload: Upload, meter: &Meter) -> Result<Acknowledged> {
        self.upload_one(upload, meter).await
    }

    async fn batch(&self, batch: Batch, meter: &Meter) -> Result<Vec<FileRecord>> {
        self.upload_all(batch, meter).await
    }

    async fn change(
        &self,
        id: &str,
        change: Change,
        if_match: Option<IfMatch>,
        meter: &Meter,
    ) -> Result<ChangeReply> {
        self.change_one(parse_id(id)?, change, if_match, meter).await
    }

    async fn edit(&self, id: &str, edit: Edit, if_match: Option<IfMatch>) -> Result<EditReply> {
        let change = core::Change::Edit(convert::edit(edit)?);
        let conditions = convert::preconditions(if_match)?;
        let changed = self.files().change(parse_id(id)?, change, conditions).await?;
        Ok(EditReply::Record(Box::new(self.shown_one(&changed.record).await)))
    }

    async fn download(
        &self,
        id: &str,
        range: Option<ByteRange>,
        to: &Destination,
        meter: &Meter,
    ) -> Result<u64> {
        self.download_one(parse_id(id)?, range, to, meter).await
    }

    async fn variant(&self, id: &str, size: u32, fit: Fit, motion: Motion) -> Result<Variant> {
        self.make_variant(parse_id(id)?, size, fit, motion).await
    }

    async fn sheet(&self, ids: &[String], size: u32, fit: Fit) -> Result<Variant> {
        let sheet = self.make_sheet(ids, size, fit).await?;
        Ok(Variant { bytes: sheet.webp.clone(), mime_type: "image/webp".into() })
    }

    async fn sheet_map(&self, ids: &[String], size: u32, fit: Fit) -> Result<SheetMap> {
        Ok((&*self.make_sheet(ids, size, fit).await?).into())
    }

    async fn info(&self, id: &str) -> Result<FileRecord> {
        let record = self.files().info(parse_id(id)?).await?;
        Ok(self.shown_one(&record).await)
    }

    async fn explain(&self, id: &str) -> Result<Explanation> {
        Ok(self.files().explain(parse_id(id)?, Reader::Operator).await?.into())
    }

    async fn list(&self, query: &ListQuery) -> Result<ListReply> {
        if let Some(ids) = query.ids.as_deref().filter(|_| query.asks_for_ids_alone()) {
            let records = self.files().records(&convert::listed_ids(ids)?).await?;
            return Ok(ListReply::new(self.shown(&records).await, None));
        }
        let page = self.files().list(&convert::list_request(query)?).await?;
        Ok(ListReply::new(self.shown(&page.items).await, page.next_cursor))
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage> {
        let (filter, limit) = (convert::event_filter(query)?, convert::event_limit(query)?);
        let events = self.store.events(&Scope::All);
        let page = if query.order == Some(EventOrder::Desc) {
            let before = convert::place(query.before.as_deref(), After::End)?;
            events.page_back(&filter, before, limit).await?
        } else {
            let after = convert::place(query.after.as_deref(), After::Start)?;
            let wait = Duration::from_secs(query.wait.unwrap_or_default().into());
            events.wait(&filter, after, limit, wait).await?
        };
        Ok(EventPage::from(&page))
    }

    async fn delete(&self, id: &str, if_match: Option<IfMatch>) -> Result<DeleteReply> {
        let conditions = convert::preconditions(if_match)?;
        let record = self.files().delete_if(parse_id(id)?, conditions).await?;
        Ok(DeleteReply::pending(record.file_id.to_string(), record.state.location()))
    }

    async fn delete_many(&self, ids: &[String]) -> Result<Vec<DeleteFileResult>> {
        let mut results = Vec::with_capacity(ids.len());
        for id in ids {
            let deleted = match id.parse() {
                Ok(id) => self.files().delete(id).await,
                Err(error) => Err(error),
            };
            results.push(match deleted {
                Ok(record) => DeleteFileResult::pending(id, record.state.location()),
                Err(error) => DeleteFileResult::failed(id, error.kind(), error.message()),
            });
        }
        Ok(results)
    }

    async fn restore(&self, id: &str) -> Result<RestoreReply> {
        let record = self.files().restore(parse_id(id)?).await?;
        Ok(self.shown_one(&record).await.into())
    }

    async fn restore_many(&self, ids: &[String]) -> Result<Vec<RestoreFileResult>> {
        let mut results = Vec::with_capacity(ids.len());
        for id in ids {
            let restored = match id.parse() {
                Ok(id) => self.files().restore(id).await,
                Err(error) => Err(error),
            };
            results.push(match restored {
                Ok(_) => RestoreFileResult::restored(id),
                Err(error) => RestoreFileResult::failed(id, error.kind(), error.message()),
            });
        }
        Ok(results)
    }

    async fn me(&self) -> Result<MeReply> {
        let has_keys = self.store.keys().exist();
        let mode = if has_keys { AccessMode::Keys } else { AccessMode::Open };
        Ok(MeReply::of(mode, None, self.store.id(), &self.store.config()))
    }

    async fn organizations(&self, query: &PageQuery) -> Result<OrganizationsReply> {
        let page = self.files().organizations(&convert::page_request(query)).await?;
        let config = self.store.config();
        Ok(OrganizationsReply::of(page.items, page.next_cursor, &config))
    }

    async fn sub_systems(
        &self,
        organization: &OrganizationId,
        query: &PageQuery,
    ) -> Result<SubSystemsReply> {
        let organization = organization.as_str().parse::<core::OrganizationId>()?;
        let page = self.files().sub_systems(&organization, &convert::page_request(query)).await?;
        Ok(SubSystemsReply::of(page.items, page.next_cursor))
    }

    async fn sign(&self, id: &str, request: &SignRequest) -> Result<SignedUrlReply> {
        let (id, request) = (parse_id(id)?, request.try_into()?);
        let url = self.files().sign(id, &request).await?;
        Ok(SignedUrlReply::new(url.path_and_query, url.expires_at.to_string()))
    }

    async fn sign_upload(&self, request: &SignUploadRequest) -> Result<SignedUrlReply> {
        let signing = self.store.signing();
        let Some(count) = request.count else {
            let url = signing.upload(&request.try_into()?).await?;
            return Ok(SignedUrlReply::new(url.path_and_query, url.expires_at.to_string()));
        };
        let urls = signing.uploads(&request.try_into()?, count as usize).await?;
        let expires_at = urls.first().map(|url| url.expires_at.to_string()).unwrap_or_default();
        let urls: Vec<_> = urls.into_iter().map(|url| url.path_and_query).collect();
        let first = urls.first().cloned().unwrap_or_default();
        Ok(SignedUrlReply::new(first, expires_at).with_urls(urls))
    }

    async fn signing_secrets(&self) -> Result<Vec<SigningSecretReply>> {
        Ok(self.store.signing().secrets().into_iter().map(Into::into).collect())
    }

    async fn signing_rotate(&self) -> Result<Vec<SigningSecretReply>> {
        self.store.signing().rotate().await?;
        self.signing_secrets().await
    }

    async fn signing_revoke(&self, kid: &str) -> Result<Vec<SigningSecretReply>> {
        self.store.signing().revoke(kid).await?;
        self.signing_secrets().await
    }

    async fn keys(&self) -> Result<Vec<KeyReply>> {
        Ok(self.store.keys().list().iter().map(Into::into).collect())
    }

    async fn create_key(&self, new: &CreateKey) -> Result<NewKeyReply> {
        Ok((&self.store.keys().create(new.try_into()?).await?).into())
    }

    async fn rotate_key(&self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply> {
        let overlap = Duration::from_secs(rotation.overlap_s.unwrap_or(0));
        Ok((&self.store.keys().rotate(id.parse::<KeyId>()?, overlap).await?).into())
    }

    async fn revoke_key(&self, id: &str) -> Result<KeyReply> {
        Ok((&self.store.keys().revoke(id.parse::<KeyId>()?).await?).into())
    }

    async fn webhooks(&self) -> Result<Vec<WebhookReply>> {
        Ok(self.store.webhooks().list().await?.iter().map(Into::into).collect())
    }

    async fn webhook(&self, id: &str) -> Result<WebhookReply> {
        let id = id.parse()?;
        let mut shown = WebhookReply::from(&self.store.webhooks().get(id).await?);
        let oldest = self.store.webhooks().oldest_waiting(id).await?;
        shown.oldest_waiting_at = oldest.map(|at| at.to_string());
        Ok(shown)
    }

    async fn create_webhook(&self, new: &CreateWebhook) -> Result<NewWebhookReply> {
        Ok((&self.store.webhooks().create(new.try_into()?).await?).into())
    }

    async fn edit_webhook(&self, id: &str, edit: &EditWebhook) -> Result<WebhookReply> {
        Ok((&self.store.webhooks().edit(id.parse()?, edit.try_into()?).await?).into())
    }

    async fn rotate_webhook(&self, id: &str, rotation: &RotateWebhook) -> Result<NewWebhookReply> {
        Ok((&self.store.webhooks().rotate(id.parse()?, rotation.overlap()).await?).into())
    }

    async fn ping_webhook(&self, id: &str) -> Result<WebhookPingReply> {
        Ok(self.store.webhooks().ping(id.parse()?).await?.into())
    }

    async fn webhook_failures(
        &self,
        id: &str,
        query: &WebhookFailuresQuery,
    ) -> Result<WebhookFailures> {
        let (state, after, limit) = query.page()?;
        let page = self.store.webhooks().failures(id.parse()?, state, after, limit).await?;
        Ok((&page).into())
    }

    async fn redeliver(&self, id: &str, what: &RedeliverWebhook) -> Result<RedeliverReply> {
        Ok(self.store.webhooks().redeliver(id.parse()?, what.try_into()?).await?.into())
    }

    async fn enable_webhook(&self, id: &str, from: &EnableWebhook) -> Result<WebhookReply> {
        Ok((&self.store.webhooks().enable(id.parse()?, from.place()?).await?).into())
    }

    async fn disable_webhook(&self, id: &str) -> Result<WebhookReply> {
        Ok((&self.store.webhooks().disable(id.parse()?).await?).into())
    }

    async fn delete_webhook(&self, id: &str) -> Result<DeletedWebhookReply> {
        self.store.webhooks().delete(id.parse()?).await?;
        Ok(DeletedWebhookReply::new(id))
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<UsageReply> {
        let organization = organization.as_str().parse::<core::OrganizationId>()?;
        let usage = self.files().usage(&organization).await?;
        Ok(UsageReply::of(&organization, &usage, &self.store.config()))
    }

    async fn providers(&self) -> Result<Vec<ProviderReply>> {
        Ok(self.store.providers().active().into_iter().map(Into::into).collect())
    }

    async fn all_providers(&self) -> Result<Vec<AdminProvider>> {
        let (all, now) = (self.store.admin().provider_status().await?, self.store.now());
        Ok(all.iter().map(|provider| AdminProvider::of(provider, now)).collect())
    }

    async fn check_provider(&self, code: &str) -> Result<ProviderCheckReport> {
        Ok((&self.store.admin().check_provider(code).await?).into())
    }

    async fn bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<BindingReply>> {
        let organization = organization.map(TryInto::try_into).transpose()?;
        Ok(self.store.bindings().list(organization).await?.iter().map(Into::into).collect())
    }

    async fn create_binding(&self, binding: CreateBinding) -> Result<BindingReply> {
        Ok((&self.store.bindings().create(convert::new_binding(binding)?).await?).into())
    }

    async fn update_binding(&self, update: UpdateBinding) -> Result<BindingUpdateReply> {
        let organization = update.organization_id;
        let change = convert::binding_change(update)?;
        Ok((&self.store.bindings().update(organization.try_into()?, change).await?).into())
    }

    async fn receipt(&self, id: &str) -> Result<SignedReceipt> {
        Ok(self.files().receipt(parse_id(id)?).await?.into())
    }

    async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>> {
        Ok(self.store.receipts().keys().await?.into_iter().map(Into::into).collect())
    }

    async fn rotate_receipt_key(&self) -> Result<Vec<ReceiptKeyReply>> {
        self.store.receipts().rotate_key().await?;
        self.receipt_keys().await
    }

    async fn purge(&self, request: &PurgeRunRequest, meter: &Meter) -> Result<PurgeReport> {
        let (options, admin) = (request.try_into()?, self.store.admin());
        let report = if request.dry_run {
            admin.purge_plan_of(&options).await
        } else {
            admin.purge_with(&options, &|| false, meter).await
        };
        Ok(report?.into())
    }

    async fn sync(&self, meter: &Meter) -> Result<SyncReport> {
        Ok(self.store.admin().sync(Arc::new(meter.clone())).await?.into())
    }

    async fn sync_enqueue(&self, organization: OrganizationNumber) -> Result<u64> {
        Ok(self.store.admin().sync_enqueue(organization.try_into()?).await?)
    }

    async fn sync_retry(&self, organization: Option<OrganizationNumber>) -> Result<u64> {
        Ok(self.store.admin().sync_retry(organization.map(TryInto::try_into).transpose()?).await?)
    }

    async fn migrate_plan(
        &self,
        organization: OrganizationNumber,
        to: &str,
    ) -> Result<MigratePlan> {
        let to = self.provider(to)?;
        Ok(self.store.admin().migrate_plan(organization.try_into()?, &to).await?.into())
    }

    async fn migrate_run(
        &self,
        migration: &Migration,
        stop: Stop,
        meter: &Meter,
    ) -> Result<MigrateReport> {
        let to = self.provider(&migration.to)?;
        let mut options = MigrateOptions::default();
        options.bytes_per_second = migration.bytes_per_second;

        let progress = Arc::new(meter.clone());
        let organization = migration.organization.try_into()?;
        let admin = self.store.admin();
        Ok(admin.migrate(organization, &to, options, &|| *stop.borrow(), progress).await?.into())
    }

    async fn migrate_status(&self, organization: OrganizationNumber) -> Result<MigrateStatus> {
        Ok(self.store.admin().migrate_status(organization.try_into()?).await?.into())
    }

    async fn migrate_verify(
        &self,
        organization: OrganizationNumber,
        to: &str,
        meter: &Meter,
    ) -> Result<MigrateVerifyReport> {
        let to = self.provider(to)?;
        Ok(self
            .store
            .admin()
            .migrate_verify(organization.try_into()?, &to, Arc::new(meter.clone()))
            .await?
            .into())
    }

    async fn erase(
        &self,
        organization: &OrganizationId,
        stop: Stop,
        meter: &Meter,
    ) -> Result<EraseReceipt> {
        let organization = organization.as_str().parse::<core::OrganizationId>()?;
        let stop = || *stop.borrow();
        Ok(self.store.admin().erase_organization(&organization, &stop, meter).await?.into())
    }

    async fn start(&self, _: DetachedRun<'_>) -> Result<()> {
        Err(Failure::refused("only a server can continue a run without this program")
            .hint("omit --detach, or use --server"))
    }

    async fn fsck_status(&self) -> Result<FsckStatus> {
        Ok(self.store.admin().fsck_status().await?.into())
    }

    async fn fsck(
        &self,
        request: &FsckRunRequest,
        stop: Stop,
        meter: &Meter,
    ) -> Result<FsckReport> {
        let mut options = convert::fsck_options(request);
        options.provider =
            request.provider_code.as_deref().map(|code| self.provider(code)).transpose()?;
        Ok(self.store.admin().fsck(options, &|| *stop.borrow(), meter).await?.into())
    }

    async fn backup_create(
        &self,
        destination: &str,
        request: &CreateBackup,
        meter: &Meter,
    ) -> Result<BackupReport> {
        let (backups, progress) = (self.backups(destination).await?, Arc::new(meter.clone()));
        Ok(self.store.admin().backup(&backups, (*request).into(), progress).await?.into())
    }

    async fn backup_destinations(&self) -> Result<Vec<String>> {
        let config = self.store.config();
        Ok(config.backup_destinations.iter().map(|named| named.name.clone()).collect())
    }

    async fn backup_list(&self, destination: &str) -> Result<Vec<Snapshot>> {
        let snapshots = self.backups(destination).await?.list().await?;
        Ok(snapshots.into_iter().map(Into::into).collect())
    }

    async fn backup_verify(
        &self,
        destination: &str,
        snapshot: Option<String>,
    ) -> Result<BackupVerifyReport> {
        let id = snapshot.as_deref().map(str::parse).transpose()?;
        Ok(self.backups(destination).await?.verify(id, Arc::new(NoProgress)).await?.into())
    }

    async fn backup_restore(
        &self,
        destination: &str,
        request: &RestoreBackup,
        meter: &Meter,
    ) -> Result<BackupRestoreReport> {
        let (backups, progress) = (self.backups(destination).await?, Arc::new(meter.clone()));
        let id = request.snapshot_id.as_deref().map(str::parse).transpose()?;
        let selection = request.try_into()?;
        Ok(self.store.admin().restore(&backups, id, selection, progress).await?.into())
    }

    async fn backup_prune(
        &self,
        destination: &str,
        keep: NonZeroUsize,
    ) -> Result<BackupPruneReport> {
        Ok(self.backups(destination).await?.prune(keep, Arc::new(NoProgress)).await?.into())
    }

    async fn backup_forget(
        &self,
        destination: &str,
        request: &ForgetBackups,
    ) -> Result<BackupForgetReport> {
        let id = request.destination_id.as_deref().map(str::parse).transpose()?;
        let admin = self.store.admin();
        let place = if is_directory(destination) {
            BackupPlace::from(destination)
        } else {
            admin.backup_place(destination)?
        };
        Ok(BackupForgetReport::new(admin.forget_backups(place, id).await?))
    }

    async fn uploads(
        &self,
        organization: Option<&OrganizationId>,
        query: &PageQuery,
    ) -> Result<ResumableUploadList> {
        let organization = organization.map(|id| id.as_str().parse::<core::OrganizationId>());
        let (after, limit) = convert::upload_page(query)?;
        let organization = organization.transpose()?;
        let uploads = self.store.admin().uploads(organization.as_ref(), after, limit).await?;
        Ok(ResumableUploadList::of(&uploads, limit))
    }

    async fn upload_state(&self, id: &str) -> Result<ResumableUpload> {
        let upload = self.store.admin().upload(id.parse::<UploadId>()?).await?;
        Ok((&upload).into())
    }

    async fn cancel_upload(&self, id: &str) -> Result<ResumableUpload> {
        let upload = self.store.admin().cancel_upload(id.parse::<UploadId>()?).await?;
        Ok((&upload).into())
    }

    async fn sync_status(&self) -> Result<SyncStatusReport> {
        Ok(self.store.admin().sync_status().await?.into())
    }

    async fn sync_status_of(
        &self,
        organization: OrganizationNumber,
    ) -> Result<OrganizationSyncStatus> {
        Ok(self.store.admin().sync_status_of(organization.try_into()?).await?.into())
    }

    async fn variants_status(&self) -> Result<VariantCacheReport> {
        Ok(self.store.admin().variant_cache().await.into())
    }

    async fn variants_prune(&self) -> Result<VariantCacheReport> {
        Ok(self.store.admin().prune_variants().await.into())
    }

    async fn status(&self) -> Result<StatusReply> {
        let admin = self.store.admin();
        let (overview, variants) = (admin.overview().await, admin.variant_cache().await);
        Ok(StatusReply::of(&overview, variants))
    }

    async fn health(&self) -> Result<ReadyReply> {
        let health = self.store.check().await;
        health.database.map_err(|e| Failure::from(e).doing("the database does not respond"))?;
        health.storage.map_err(|e| Failure::from(e).doing("the storage does not work"))?;
        Ok(ReadyReply::new("ready", "ok", "ok"))
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
