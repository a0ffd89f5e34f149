//! Administration: background work on demand, and its state.

use filestore_core::api::{
    AdminProvider, BackupDestination, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, CreateBackup, CreateKey, DryRun, EraseReceipt,
    EraseRequest, ForgetBackups, FsckReport, FsckRunRequest, FsckStatus, KeyReply, MigratePlan,
    MigrateReport, MigrateRunRequest, MigrateStatus, MigrateStopRequest, MigrateVerifyReport,
    MigrateVerifyRequest, NewKeyReply, ProviderCheckReport, PruneBackups, PurgeReport,
    PurgeRunRequest, ReceiptKeyReply, RestoreBackup, RotateKey, SigningSecretReply, Snapshot,
    StatusReply, SyncQueueReport, SyncQueueRequest, SyncReport, SyncStatusReport,
    VariantCacheReport, VerifyBackup,
};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The administration of a server; its key needs the scope `admin`.
///
/// ```no_run
/// use filestore_client::DryRun;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let plan = client.admin().purge_run(DryRun::Yes).await?;
/// println!("{} files, {} bytes would go", plan.purged, plan.purged_bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    client: &'a Client,
}

impl Client {
    /// Gives access to the administration of the server.
    pub fn admin(&self) -> Admin<'_> {
        Admin { client: self }
    }
}

impl Admin<'_> {
    /// Reports on the whole service: store, disk, providers, waiting work, and what is not well.
    pub async fn status(&self) -> Result<StatusReply> {
        let request = self.client.request(Method::GET, &["admin", "status"]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Purges now what is due, and waits for the end, however long that takes. Dropping the future stops
    /// the run.
    pub async fn purge_run(&self, dry_run: DryRun) -> Result<PurgeReport> {
        let body = PurgeRunRequest::new(dry_run);
        let request = self.request(Method::POST, &["purge", "run"]).json(&body);
        self.client.json(Call::once(request).endless()).await
    }

    /// Syncs now what is pending, and waits for the end, however long that takes. Dropping the future
    /// stops the run once its copies under way are finished.
    pub async fn sync_run(&self) -> Result<SyncReport> {
        let request = self.request(Method::POST, &["sync", "run"]);
        self.client.json(Call::once(request).endless()).await
    }

    /// Counts the files in each sync status.
    pub async fn sync_status(&self) -> Result<SyncStatusReport> {
        self.client.json(Call::repeatable(self.request(Method::GET, &["sync", "status"]))).await
    }

    /// Queues the READY files of an organization that are not at its provider: those from before its
    /// binding. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) without an active binding.
    pub async fn sync_enqueue(&self, organization_id: i64) -> Result<SyncQueueReport> {
        self.queue("enqueue", Some(organization_id)).await
    }

    /// Queues files whose sync was given up (FAILED) again: of one organization, or of all.
    pub async fn sync_retry(
        &self,
        organization_id: impl Into<Option<i64>>,
    ) -> Result<SyncQueueReport> {
        self.queue("retry", organization_id.into()).await
    }

    async fn queue(&self, what: &str, organization_id: Option<i64>) -> Result<SyncQueueReport> {
        let body = SyncQueueRequest::new(organization_id);
        let request = self.request(Method::POST, &["sync", what]).json(&body);
        // What is queued already is not queued again.
        self.client.json(Call::repeatable(request).endless()).await
    }

    /// Plans a migration of the organization to the provider `to`; changes nothing.
    pub async fn migrate_plan(&self, organization_id: i64, to: &str) -> Result<MigratePlan> {
        let request = self.request(Method::GET, &["migrate", "plan"]);
        let request = request.query(&[("organizationId", organization_id)]).query(&[("to", to)]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Moves the organization's files to its provider, and waits for the end of it, however long that
    /// takes. [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the organization is bound to another
    /// provider, or a migration of it is under way.
    ///
    /// Dropping the future stops the migration once its copies under way are finished; so does
    /// [`migrate_stop`](Self::migrate_stop), and then the report comes.
    ///
    /// ```no_run
    /// use filestore_client::api::MigrateRunRequest;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let request = MigrateRunRequest::new(42, "s3-eu").bytes_per_second(20 << 20);
    /// let report = client.admin().migrate_run(&request).await?;
    /// println!("{} files moved, {} left", report.moved_files, report.left_files);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate_run(&self, request: &MigrateRunRequest) -> Result<MigrateReport> {
        let request = self.request(Method::POST, &["migrate", "run"]).json(request);
        self.client.json(Call::once(request).endless()).await
    }

    /// Tells the migration of the organization that is under way to stop; says where its files are.
    pub async fn migrate_stop(&self, organization_id: i64) -> Result<MigrateStatus> {
        let request = self.request(Method::POST, &["migrate", "stop"]);
        self.client
            .json(Call::repeatable(request.json(&MigrateStopRequest::new(organization_id))))
            .await
    }

    /// Reports where the organization's files are, and the migration under way.
    pub async fn migrate_status(&self, organization_id: i64) -> Result<MigrateStatus> {
        let request = self.request(Method::GET, &["migrate", "status"]);
        self.client
            .json(Call::repeatable(request.query(&[("organizationId", organization_id)])))
            .await
    }

    /// Reads every READY file of the organization that the provider `to` holds and compares its digest
    /// with the record's; waits for the end of it. Dropping the future ends it.
    pub async fn migrate_verify(
        &self,
        organization_id: i64,
        to: &str,
    ) -> Result<MigrateVerifyReport> {
        let body = MigrateVerifyRequest::new(organization_id, to);
        let request = self.request(Method::POST, &["migrate", "verify"]).json(&body);
        self.client.json(Call::repeatable(request).endless()).await
    }

    /// Checks the whole store, and waits for the end of it, however long that takes.
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while another check is under way.
    ///
    /// Dropping the future stops the check, and so does [`fsck_stop`](Self::fsck_stop); then the report
    /// comes. The next check of the same kind goes on from there.
    ///
    /// ```no_run
    /// use filestore_client::api::FsckRunRequest;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let mut request = FsckRunRequest::default();
    /// request.deep = true;
    /// let report = client.admin().fsck_run(&request).await?;
    /// println!("{} things are not as they should be", report.found);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck_run(&self, request: &FsckRunRequest) -> Result<FsckReport> {
        let request = self.request(Method::POST, &["fsck", "run"]).json(request);
        self.client.json(Call::once(request).endless()).await
    }

    /// Erases an organization: its keys' rights, all its files wherever their bytes are, its bindings and
    /// remembered replies. Waits for the end of it. A receipt that is not complete says what is left, and
    /// another call goes on; so it does after the future was dropped.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let receipt = client.admin().erase_organization("42").await?;
    /// println!("{} files, complete: {}", receipt.files, receipt.complete);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn erase_organization(&self, organization: &str) -> Result<EraseReceipt> {
        let path = ["admin", "organizations", organization, "erase"];
        let request = self.client.request(Method::POST, &path);
        let request = request.json(&EraseRequest::new(organization));
        self.client.json(Call::once(request).endless()).await
    }

    /// Tells the check under way to stop; says how the checks stand.
    pub async fn fsck_stop(&self) -> Result<FsckStatus> {
        self.client.json(Call::repeatable(self.request(Method::POST, &["fsck", "stop"]))).await
    }

    /// Reports on the check under way, and on the last ones.
    pub async fn fsck_status(&self) -> Result<FsckStatus> {
        self.client.json(Call::repeatable(self.request(Method::GET, &["fsck", "status"]))).await
    }

    /// Lists every provider, inactive ones included, `LOCAL` first.
    pub async fn providers(&self) -> Result<Vec<AdminProvider>> {
        let request = self.client.request(Method::GET, &["admin", "providers"]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Tries a provider out: its abilities, its gaps, and the verdict if files can be kept at it. A fault of
    /// the provider is in the report, not an error.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let report = client.admin().provider_check("s3-eu").await?;
    /// for step in &report.steps {
    ///     println!("{}: {} {}", step.name, step.outcome, step.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn provider_check(&self, code: &str) -> Result<ProviderCheckReport> {
        let request = self.client.request(Method::POST, &["admin", "providers", code, "check"]);
        self.client.json(Call::repeatable(request).endless()).await
    }

    /// Lists the places for snapshots that the server's configuration names.
    pub async fn backup_destinations(&self) -> Result<Vec<BackupDestination>> {
        let request = self.client.request(Method::GET, &["admin", "backups"]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Takes a snapshot of the store, and waits for the end of it, however long that takes. Dropping the
    /// future ends the run; what was copied stays, and the next one goes on from there. A failure after
    /// the run has begun is in the report.
    ///
    /// ```no_run
    /// use filestore_client::api::CreateBackup;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let report = client.admin().backup_create("nightly", &CreateBackup::default()).await?;
    /// if let Some(snapshot) = &report.snapshot {
    ///     println!("{}: {} files", snapshot.snapshot_id, snapshot.files);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backup_create(
        &self,
        destination: &str,
        request: &CreateBackup,
    ) -> Result<BackupReport> {
        self.backup(destination, "create", request, Call::once).await
    }

    /// Lists the snapshots in a destination, the oldest first.
    pub async fn backup_list(&self, destination: &str) -> Result<Vec<Snapshot>> {
        let request = self.request(Method::GET, &["backups", destination]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Reads all of a snapshot and compares every digest; waits for the end of it. Dropping the future
    /// ends it.
    pub async fn backup_verify(
        &self,
        destination: &str,
        request: &VerifyBackup,
    ) -> Result<BackupVerifyReport> {
        self.backup(destination, "verify", request, Call::repeatable).await
    }

    /// Restores files that the store has not any more from a snapshot, each under its id.
    pub async fn backup_restore(
        &self,
        destination: &str,
        request: &RestoreBackup,
    ) -> Result<BackupRestoreReport> {
        self.backup(destination, "restore", request, Call::once).await
    }

    /// Removes all but the newest snapshots in a destination, and what no kept one names.
    pub async fn backup_prune(
        &self,
        destination: &str,
        request: &PruneBackups,
    ) -> Result<BackupPruneReport> {
        self.backup(destination, "prune", request, Call::once).await
    }

    /// Forgets disks that had snapshots of a destination and are gone: receipts of purges do not name them any
    /// more. Not repeated after a lost reply, which would report nothing forgotten.
    pub async fn backup_forget(
        &self,
        destination: &str,
        request: &ForgetBackups,
    ) -> Result<BackupForgetReport> {
        self.backup(destination, "forget", request, Call::once).await
    }

    async fn backup<T: DeserializeOwned>(
        &self,
        destination: &str,
        what: &str,
        body: &impl Serialize,
        call: fn(RequestBuilder) -> Call,
    ) -> Result<T> {
        let path = ["admin", "backups", destination, what];
        let request = self.client.request(Method::POST, &path).json(body);
        self.client.json(call(request).endless()).await
    }

    /// Reports the contents of the variant cache.
    pub async fn variants_status(&self) -> Result<VariantCacheReport> {
        self.client.json(Call::repeatable(self.request(Method::GET, &["variants", "status"]))).await
    }

    /// Empties the variant cache, and waits for the end of it. Not repeated after a lost reply, which
    /// would report nothing removed.
    pub async fn variants_prune(&self) -> Result<VariantCacheReport> {
        let request = self.request(Method::POST, &["variants", "prune"]);
        self.client.json(Call::once(request).endless()).await
    }

    /// Lists the secrets that sign URLs: their names and lives, not the secrets.
    pub async fn signing_secrets(&self) -> Result<Vec<SigningSecretReply>> {
        let request = self.client.request(Method::GET, &["admin", "signing-secrets"]);
        self.client.json(Call::repeatable(request)).await
    }

    /// Makes a new secret sign URLs from now on; those of the one before stay good until they expire.
    pub async fn signing_rotate(&self) -> Result<Vec<SigningSecretReply>> {
        let request = self.request(Method::POST, &["signing-secrets", "rotate"]);
        self.client.json(Call::once(request)).await
    }

    /// Forgets a secret of the data directory: all URLs that it signed are refused at once.
    pub async fn signing_revoke(&self, kid: &str) -> Result<Vec<SigningSecretReply>> {
        let path = ["admin", "signing-secrets", kid, "revoke"];
        self.client.json(Call::once(self.client.request(Method::POST, &path))).await
    }

    /// Makes a new key sign receipts from now on; the public key of the one before stays listed.
    pub async fn rotate_receipt_key(&self) -> Result<Vec<ReceiptKeyReply>> {
        let request = self.request(Method::POST, &["receipt-keys", "rotate"]);
        self.client.json(Call::once(request)).await
    }

    /// Makes a key of the API. Its text is in this reply and nowhere else: the server keeps a digest.
    ///
    /// ```no_run
    /// use filestore_client::api::CreateKey;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let shop = CreateKey::new(["42"], ["read", "write"]).name("the web shop");
    /// let made = client.admin().create_key(&shop).await?;
    /// println!("{} {}", made.about.id, made.key);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_key(&self, key: &CreateKey) -> Result<NewKeyReply> {
        let request = self.client.request(Method::POST, &["admin", "keys"]).json(key);
        self.client.json(Call::once(request)).await
    }

    /// Lists the keys of the API, newest first, without their texts.
    pub async fn keys(&self) -> Result<Vec<KeyReply>> {
        self.client
            .json(Call::repeatable(self.client.request(Method::GET, &["admin", "keys"])))
            .await
    }

    /// Gives a key another text, which is in this reply and nowhere else.
    pub async fn rotate_key(&self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply> {
        let path = ["admin", "keys", id, "rotate"];
        let request = self.client.request(Method::POST, &path).json(rotation);
        self.client.json(Call::once(request)).await
    }

    /// Refuses a key from now on. A key that is revoked already stays so, and is no error.
    pub async fn revoke_key(&self, id: &str) -> Result<KeyReply> {
        let path = ["admin", "keys", id, "revoke"];
        self.client.json(Call::repeatable(self.client.request(Method::POST, &path))).await
    }

    fn request(self, method: Method, path: &[&str; 2]) -> RequestBuilder {
        self.client.request(method, &["admin", path[0], path[1]])
    }
}
