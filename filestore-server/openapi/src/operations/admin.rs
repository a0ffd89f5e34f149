//! Administration of the whole service.

use filestore_core::api::{
    AdminProvider, BackupDestination, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, CreateBackup, CreateKey, EraseReceipt, EraseRequest,
    ForgetBackups, FsckReport, FsckRunRequest, FsckStatus, KeyReply, MigratePlan, MigrateReport,
    MigrateRunRequest, MigrateStatus, MigrateStopRequest, MigrateVerifyReport,
    MigrateVerifyRequest, NewKeyReply, ProviderCheckReport, PruneBackups, PurgeReport,
    PurgeRunRequest, ReceiptKeyReply, RestoreBackup, RotateKey, SigningSecretReply, Snapshot,
    StatusReply, SyncQueueReport, SyncQueueRequest, SyncReport, SyncStatusReport,
    VariantCacheReport, VerifyBackup,
};
use serde_json::{Value, json};

use crate::operation::{Group, Need, Operation};
use crate::schemas::{Schemas, reply, request};
use crate::shared::{organization_number, required_query};

pub(crate) fn group() -> Group {
    Group {
        name: "Administration",
        description: "The whole service at a glance, background work on demand, migrations. The same API answers \
                      on the Unix socket `admin.sock` of the data directory.",
        operations: [
            vec![status(), purge_run()],
            sync(),
            migrate(),
            fsck(),
            backups(),
            providers(),
            keys(),
            signing(),
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
            "Ends with what is not well, and the next step.",
        )
        .replies(200, "The state.", reply::<StatusReply>)
}

/// Runs that take long send line feeds until their report; a failure after the first one cuts the reply.
const LONG: &str = "May take long: the reply sends a line feed every second until the report, and a client that \
                    disconnects stops the run.";

/// Runs whose failure after the head of the reply is in their report.
const LONG_SAID: &str = "May take long: the reply sends a line feed every second until the report, and a client \
                         that disconnects stops the run. A failure after the first one is in `error`.";

fn purge_run() -> Operation {
    post("/admin/purge/run", "runPurge")
        .says("Purge what is due", LONG)
        .optional_json(request::<PurgeRunRequest>)
        .replies(200, "What was purged.", reply::<PurgeReport>)
}

fn sync() -> Vec<Operation> {
    vec![
        post("/admin/sync/run", "runSync")
            .says("Copy what waits to its providers", LONG)
            .optional_json(nothing)
            .replies(200, "What was copied.", reply::<SyncReport>),
        post("/admin/sync/enqueue", "enqueueSync")
            .says("Queue an organization's files that are not at its provider", "")
            .json(one_organization)
            .replies(200, "How many wait now.", reply::<SyncQueueReport>)
            .refuses([404, 409]),
        post("/admin/sync/retry", "retrySync")
            .says("Queue files again whose copy failed for good", "")
            .optional_json(request::<SyncQueueRequest>)
            .replies(200, "How many wait now.", reply::<SyncQueueReport>),
        get("/admin/sync/status", "getSyncStatus").says("Count files by sync status", "").replies(
            200,
            "The counts.",
            reply::<SyncStatusReport>,
        ),
    ]
}

fn migrate() -> Vec<Operation> {
    let organization =
        required_query("organizationId", "Number of the organization.", organization_number());
    let to = required_query("to", "Code of the target provider.", json!({ "type": "string" }));

    vec![
        get("/admin/migrate/plan", "planMigration")
            .says("Count a migration, and change nothing", "")
            .asks([organization.clone(), to])
            .replies(200, "The work of the migration.", reply::<MigratePlan>)
            .refuses([409, 422]),
        post("/admin/migrate/run", "runMigration")
            .says("Move an organization's files to its provider", LONG)
            .json(request::<MigrateRunRequest>)
            .replies(200, "What was moved.", reply::<MigrateReport>)
            .refuses([409, 422]),
        post("/admin/migrate/stop", "stopMigration")
            .says("Stop the migration of an organization", "")
            .json(request::<MigrateStopRequest>)
            .replies(200, "Where the files are.", reply::<MigrateStatus>),
        get("/admin/migrate/status", "getMigrationStatus")
            .says("Read where an organization's files are", "")
            .asks([organization])
            .replies(200, "Where the files are.", reply::<MigrateStatus>),
        post("/admin/migrate/verify", "verifyMigration")
            .says("Read every file at a provider and compare digests", LONG)
            .json(request::<MigrateVerifyRequest>)
            .replies(200, "What was read.", reply::<MigrateVerifyReport>)
            .refuses([409, 422, 502]),
    ]
}

fn fsck() -> Vec<Operation> {
    vec![
        post("/admin/fsck/run", "runCheck")
            .says("Check the whole store", LONG)
            .optional_json(request::<FsckRunRequest>)
            .replies(200, "What was found.", reply::<FsckReport>)
            .refuses([409, 422]),
        post("/admin/fsck/stop", "stopCheck")
            .says("Stop the check of the store", "")
            .optional_json(nothing)
            .replies(200, "How the checks stand.", reply::<FsckStatus>),
        post("/admin/organizations/{organization_id}/erase", "eraseOrganization")
            .says("Erase an organization", LONG)
            .json(request::<EraseRequest>)
            .replies(200, "What was removed, and what was looked at.", reply::<EraseReceipt>),
        get("/admin/fsck/status", "getCheckStatus")
            .says("Read the state of the checks", "")
            .replies(200, "How the checks stand.", reply::<FsckStatus>),
    ]
}

fn backups() -> Vec<Operation> {
    vec![
        get("/admin/backups", "listBackupDestinations")
            .says("List the destinations for snapshots that the configuration names", "")
            .replies_all(200, "The destinations.", reply::<BackupDestination>),
        get("/admin/backups/{destination}", "listSnapshots")
            .says("List the snapshots in a destination, the oldest first", "")
            .replies_all(200, "The snapshots.", reply::<Snapshot>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/create", "createSnapshot")
            .says("Take a snapshot of the store", LONG_SAID)
            .optional_json(request::<CreateBackup>)
            .replies(200, "The snapshot.", reply::<BackupReport>)
            .refuses([404, 409, 502, 507]),
        post("/admin/backups/{destination}/verify", "verifySnapshot")
            .says("Read a snapshot and compare every digest", LONG_SAID)
            .optional_json(request::<VerifyBackup>)
            .replies(200, "What was read.", reply::<BackupVerifyReport>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/restore", "restoreFromSnapshot")
            .says("Bring files back that the store has not any more", LONG_SAID)
            .json(request::<RestoreBackup>)
            .replies(200, "What was restored.", reply::<BackupRestoreReport>)
            .refuses([404, 409, 507]),
        post("/admin/backups/{destination}/prune", "pruneSnapshots")
            .says("Remove all but the newest snapshots", LONG_SAID)
            .json(request::<PruneBackups>)
            .replies(200, "What was removed.", reply::<BackupPruneReport>)
            .refuses([404, 409]),
        post("/admin/backups/{destination}/forget", "forgetSnapshots")
            .says(
                "Forget disks that had snapshots and are gone",
                "Receipts of purges name such a disk until it is forgotten, as it may have the bytes.",
            )
            .optional_json(request::<ForgetBackups>)
            .replies(200, "How many were forgotten.", reply::<BackupForgetReport>)
            .refuses([404, 409]),
    ]
}

fn providers() -> Vec<Operation> {
    vec![
        get("/admin/providers", "listProviderStates")
            .says("List providers with their state and what waits for them", "")
            .replies_all(200, "The providers.", reply::<AdminProvider>),
        post("/admin/providers/{code}/check", "checkProvider")
            .says("Try a provider out, with objects of its own", "")
            .optional_json(nothing)
            .replies(200, "The steps of the check.", reply::<ProviderCheckReport>)
            .refuses([409, 422, 502]),
    ]
}

fn signing() -> Vec<Operation> {
    vec![
        get("/admin/signing-secrets", "listSigningSecrets")
            .says("List the secrets that sign URLs", "Names and lives, never a secret.")
            .replies_all(200, "The secrets.", reply::<SigningSecretReply>),
        post("/admin/signing-secrets/rotate", "rotateSigningSecret")
            .says("Sign with a new secret", "URLs of the one before stay good until they expire.")
            .optional_json(nothing)
            .replies_all(200, "The secrets as they are now.", reply::<SigningSecretReply>),
        post("/admin/signing-secrets/{kid}/revoke", "revokeSigningSecret")
            .says("Refuse all URLs of a secret at once", "")
            .optional_json(nothing)
            .replies_all(200, "The secrets that are left.", reply::<SigningSecretReply>),
        post("/admin/receipt-keys/rotate", "rotateReceiptKey")
            .says("Sign receipts with a new key", "The public key of the one before stays listed.")
            .optional_json(nothing)
            .replies_all(200, "The keys as they are now.", reply::<ReceiptKeyReply>),
    ]
}

fn keys() -> Vec<Operation> {
    vec![
        get("/admin/keys", "listKeys")
            .says("List keys, newest first, without their texts", "")
            .replies_all(200, "The keys.", reply::<KeyReply>),
        post("/admin/keys", "createKey")
            .says("Make a key", "The first key closes the server to callers without one.")
            .json(request::<CreateKey>)
            .replies(201, "The key, with its text, which is shown this once.", reply::<NewKeyReply>)
            .refuses([409]),
        post("/admin/keys/{key_id}/rotate", "rotateKey")
            .says("Give a key another text", "")
            .optional_json(request::<RotateKey>)
            .replies(200, "The key, with its text, which is shown this once.", reply::<NewKeyReply>)
            .refuses([409]),
        post("/admin/keys/{key_id}/revoke", "revokeKey")
            .says("Refuse a key from now on", "A second call answers the same.")
            .optional_json(nothing)
            .replies(200, "The key, which is revoked.", reply::<KeyReply>),
    ]
}

fn variants() -> Vec<Operation> {
    vec![
        get("/admin/variants/status", "getVariantCache")
            .says("Read the contents of the variant cache", "")
            .replies(200, "The contents.", reply::<VariantCacheReport>),
        post("/admin/variants/prune", "pruneVariants")
            .says("Empty the variant cache", "")
            .optional_json(nothing)
            .replies(200, "What is left, and what was removed.", reply::<VariantCacheReport>),
    ]
}
