//! Administration of the whole service.

use filestore_core::api::{
    AdminProvider, BackupDestination, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, CreateBackup, CreateKey, EraseReceipt, EraseRequest,
    ForgetBackups, FsckReport, FsckRunRequest, FsckStatus, KeyReply, MigratePlan, MigrateReport,
    MigrateRunRequest, MigrateStatus, MigrateStopRequest, MigrateVerifyReport,
    MigrateVerifyRequest, NewKeyReply, OrganizationSyncStatus, ProviderCheckReport, PruneBackups,
    PurgeReport, PurgeRunRequest, ReceiptKeyReply, RestoreBackup, ResumableUpload,
    ResumableUploadList, RotateKey, SigningSecretReply, Snapshot, StatusReply, SyncQueueReport,
    SyncQueueRequest, SyncReport, SyncStatusReport, VariantCacheReport, VerifyBackup,
};
use serde_json::{Value, json};

use crate::operation::{Group, Need, Operation};
use crate::schemas::{Schemas, reply, request};
use crate::shared::{organization_id, organization_number, query, required_query, upload_page};

pub(crate) fn group() -> Group {
    Group {
        name: "Administration",
        description: "Check the state of the service, and run background work, migrations, checks and backups. The \
                      Unix socket `admin.sock` in the data directory answers the same requests.",
        operations: [
            vec![status(), purge_run()],
            sync(),
            migrate(),
            fsck(),
            backups(),
            providers(),
            keys(),
            signing(),
            uploads(),
            variants(),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn get(path: &'static str, id: &'static str) -> Operation {
    Operation::get(path, id, Need::ServiceAdmin)
}

fn post(path: &'static str, id: &'static str) -> Operation {
    Operation::post(path, id, Need::ServiceAdmin)
}

/// A body that says nothing, which may be left out.
fn nothing(_: &mut Schemas) -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

/// A queue request that must name its organization.
fn one_organization(schemas: &mut Schemas) -> Value {
    let any = request::<SyncQueueRequest>(schemas);
    json!({ "allOf": [any], "required": ["organizationId"] })
}

fn status() -> Operation {
    get("/admin/status", "getStatus")
        .says(
            "Read the state of the whole service",
            "The last field, `advice`, lists each problem with the next step.",
        )
        .replies(200, "The state.", reply::<StatusReply>)
}

/// The text for long runs. They send line feeds until the report. A failure after the first line feed cuts the reply.
const LONG: &str = "A run can take a long time. Until the report, the server sends a line feed every second. If the \
                    client disconnects, the run stops.";

/// The text for runs with an `error` field: a failure after the start is in the report.
const LONG_SAID: &str = "A run can take a long time. Until the report, the server sends a line feed every second. If \
                         the client disconnects, the run stops. If the run fails after the first line feed, the \
                         report contains `error`.";

/// The text for purge runs, which can remove files within their grace period.
const PURGE: &str = "With `now`, the purge removes deleted files before their grace period ends. You can then no \
                     longer restore them. With `organization_id`, the purge removes only files of that organization. \
                     A run can take a long time. Until the report, the server sends a line feed every second. If the \
                     client disconnects, the run stops.";

fn purge_run() -> Operation {
    post("/admin/purge/run", "runPurge")
        .says("Purge deleted files after their grace period, or at once", PURGE)
        .optional_json(request::<PurgeRunRequest>)
        .replies(200, "The report.", reply::<PurgeReport>)
}

fn sync() -> Vec<Operation> {
    vec![
        post("/admin/sync/run", "runSync")
            .says("Copy waiting files to their providers", LONG)
            .optional_json(nothing)
            .replies(200, "The report.", reply::<SyncReport>),
        post("/admin/sync/enqueue", "enqueueSync")
            .says("Queue all files of an organization that are not at its provider", "")
            .json(one_organization)
            .replies(200, "The number of queued files.", reply::<SyncQueueReport>)
            .refuses([404, 409]),
        post("/admin/sync/retry", "retrySync")
            .says("Queue files again after their last attempt failed", "")
            .optional_json(request::<SyncQueueRequest>)
            .replies(200, "The number of queued files.", reply::<SyncQueueReport>),
        get("/admin/sync/status", "getSyncStatus")
            .says(
                "Count files by sync status",
                "With `organizationId`, the reply has only the queue of this organization: `pending`, `syncing`, \
                 `failed`, and `done` for all other files.",
            )
            .asks([query("organizationId", "Only files of this organization.", organization_number())])
            .replies(200, "The counts.", reply::<SyncCounts>),
    ]
}

/// The counts of all files, or of the queue of one organization.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is read")]
enum SyncCounts {
    All(SyncStatusReport),
    Organization(OrganizationSyncStatus),
}

fn migrate() -> Vec<Operation> {
    let organization =
        required_query("organizationId", "Number of the organization.", organization_number());
    let to = required_query("to", "Code of the target provider.", json!({ "type": "string" }));

    vec![
        get("/admin/migrate/plan", "planMigration")
            .says("Plan a migration, without changes", "")
            .asks([organization.clone(), to])
            .replies(200, "The plan.", reply::<MigratePlan>)
            .refuses([409, 422]),
        post("/admin/migrate/run", "runMigration")
            .says("Move the files of an organization to its provider", LONG)
            .json(request::<MigrateRunRequest>)
            .replies(200, "The report.", reply::<MigrateReport>)
            .replies(202, "With `detach`: the migration goes on.", reply::<MigrateStatus>)
            .refuses([409, 422]),
        post("/admin/migrate/stop", "stopMigration")
            .says("Stop the migration of an organization", "")
            .json(request::<MigrateStopRequest>)
            .replies(200, "The files for each provider.", reply::<MigrateStatus>),
        get("/admin/migrate/status", "getMigrationStatus")
            .says("Count the files of an organization at each provider", "")
            .asks([organization])
            .replies(200, "The files for each provider.", reply::<MigrateStatus>),
        post("/admin/migrate/verify", "verifyMigration")
            .says("Read every file at a provider and compare digests", LONG)
            .json(request::<MigrateVerifyRequest>)
            .replies(200, "The report.", reply::<MigrateVerifyReport>)
            .refuses([409, 422, 502]),
    ]
}

fn fsck() -> Vec<Operation> {
    vec![
        post("/admin/fsck/run", "runCheck")
            .says("Check the whole store", LONG)
            .optional_json(request::<FsckRunRequest>)
            .replies(200, "The report.", reply::<FsckReport>)
            .replies(202, "With `detach`: the check goes on.", reply::<FsckStatus>)
            .refuses([409, 422]),
        post("/admin/fsck/stop", "stopCheck")
            .says("Stop the check of the store", "")
            .optional_json(nothing)
            .replies(200, "The state of the checks.", reply::<FsckStatus>),
        post("/admin/organizations/{organization_id}/erase", "eraseOrganization")
            .says("Erase an organization", LONG)
            .json(request::<EraseRequest>)
            .replies(200, "The receipt: removed data and checked places.", reply::<EraseReceipt>),
        get("/admin/fsck/status", "getCheckStatus")
            .says("Read the state of the checks", "")
            .replies(200, "The state of the checks.", reply::<FsckStatus>),
    ]
}

fn backups() -> Vec<Operation> {
    vec![
        get("/admin/backups", "listBackupDestinations")
            .says("List the configured backup destinations", "")
            .replies_all(200, "The destinations.", reply::<BackupDestination>),
        get("/admin/backups/{destination}", "listSnapshots")
            .says("List the snapshots at a destination, oldest first", "")
            .replies_all(200, "The snapshots.", reply::<Snapshot>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/create", "createSnapshot")
            .says("Take a snapshot of the store", LONG_SAID)
            .optional_json(request::<CreateBackup>)
            .replies(200, "The snapshot.", reply::<BackupReport>)
            .replies(202, "With `detach`: the run goes on.", reply::<BackupDestination>)
            .refuses([404, 409, 502, 507]),
        post("/admin/backups/{destination}/verify", "verifySnapshot")
            .says("Read a snapshot and compare every digest", LONG_SAID)
            .optional_json(request::<VerifyBackup>)
            .replies(200, "The report.", reply::<BackupVerifyReport>)
            .replies(202, "With `detach`: the run goes on.", reply::<BackupDestination>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/restore", "restoreFromSnapshot")
            .says("Restore files that are no longer in the store", LONG_SAID)
            .json(request::<RestoreBackup>)
            .replies(200, "The report.", reply::<BackupRestoreReport>)
            .refuses([404, 409, 507]),
        post("/admin/backups/{destination}/prune", "pruneSnapshots")
            .says("Remove old snapshots, and keep the newest", LONG_SAID)
            .json(request::<PruneBackups>)
            .replies(200, "The report.", reply::<BackupPruneReport>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/forget", "forgetSnapshots")
            .says(
                "Forget backup disks that no longer exist",
                "Until you forget a disk, purge receipts list the disk, because it might still contain the file.",
            )
            .optional_json(request::<ForgetBackups>)
            .replies(200, "The number of forgotten directories.", reply::<BackupForgetReport>)
            .refuses([404, 409]),
    ]
}

fn providers() -> Vec<Operation> {
    vec![
        get("/admin/providers", "listProviderStates")
            .says("List providers with their state and waiting work", "")
            .replies_all(200, "The providers.", reply::<AdminProvider>),
        post("/admin/providers/{code}/check", "checkProvider")
            .says("Test a provider with test objects", "")
            .optional_json(nothing)
            .replies(200, "The steps of the check.", reply::<ProviderCheckReport>)
            .refuses([409, 422, 502]),
    ]
}

fn signing() -> Vec<Operation> {
    vec![
        get("/admin/signing-secrets", "listSigningSecrets")
            .says(
                "List the secrets that sign URLs",
                "The reply contains names and times, but no secret.",
            )
            .replies_all(200, "The secrets.", reply::<SigningSecretReply>),
        post("/admin/signing-secrets/rotate", "rotateSigningSecret")
            .says(
                "Sign with a new secret",
                "URLs of the previous secret stay valid until they expire.",
            )
            .optional_json(nothing)
            .replies_all(200, "The secrets after the change.", reply::<SigningSecretReply>),
        post("/admin/signing-secrets/{kid}/revoke", "revokeSigningSecret")
            .says("Refuse all URLs of a secret at once", "")
            .optional_json(nothing)
            .replies_all(200, "The remaining secrets.", reply::<SigningSecretReply>),
        post("/admin/receipt-keys/rotate", "rotateReceiptKey")
            .says(
                "Sign purge receipts with a new key",
                "The public key of the previous key stays in the list.",
            )
            .optional_json(nothing)
            .replies_all(200, "The keys after the change.", reply::<ReceiptKeyReply>),
    ]
}

fn keys() -> Vec<Operation> {
    vec![
        get("/admin/keys", "listKeys")
            .says("List API keys, newest first, without their secrets", "")
            .replies_all(200, "The keys.", reply::<KeyReply>),
        post("/admin/keys", "createKey")
            .says(
                "Create an API key",
                "After you create the first key, every request over TCP needs a key.",
            )
            .json(request::<CreateKey>)
            .replies(
                201,
                "The key with its secret. No other reply shows the secret.",
                reply::<NewKeyReply>,
            )
            .refuses([409]),
        post("/admin/keys/{key_id}/rotate", "rotateKey")
            .says("Rotate a key: create a new secret", "")
            .optional_json(request::<RotateKey>)
            .replies(
                200,
                "The key with its secret. No other reply shows the secret.",
                reply::<NewKeyReply>,
            )
            .refuses([409]),
        post("/admin/keys/{key_id}/revoke", "revokeKey")
            .says("Revoke a key", "A second call returns the same reply.")
            .optional_json(nothing)
            .replies(200, "The revoked key.", reply::<KeyReply>),
    ]
}

fn uploads() -> Vec<Operation> {
    vec![
        get("/admin/uploads", "listAllUploads")
            .says(
                "List the resumable uploads of all organizations, oldest first",
                "The list contains ended uploads, but not the secret URLs.",
            )
            .asks([query("organization_id", "Only uploads of this organization.", organization_id())])
            .asks(upload_page())
            .replies(200, "A page of uploads.", reply::<ResumableUploadList>),
        get("/admin/uploads/{upload_id}", "showAnyUpload")
            .says("Show a resumable upload", "A running transfer continues.")
            .replies(200, "The upload.", reply::<ResumableUpload>),
        post("/admin/uploads/{upload_id}/cancel", "cancelAnyUpload")
            .says(
                "Cancel a resumable upload",
                "A running transfer ends, and the bytes are removed. A file that the upload has made stays.",
            )
            .optional_json(nothing)
            .replies(200, "The last state of the upload.", reply::<ResumableUpload>),
    ]
}

fn variants() -> Vec<Operation> {
    vec![
        get("/admin/variants/status", "getVariantCache")
            .says("Read the size of the variant cache", "")
            .replies(200, "The size.", reply::<VariantCacheReport>),
        post("/admin/variants/prune", "pruneVariants")
            .says("Empty the variant cache", "")
            .optional_json(nothing)
            .replies(
                200,
                "The size after the call, and the removed variants.",
                reply::<VariantCacheReport>,
            ),
    ]
}
