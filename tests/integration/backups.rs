//! Snapshots over HTTP (reference §4.12): only to destinations that the configuration names.

use std::time::Duration;

use filestore_client::ErrorKind;
use filestore_client::api::{
    CreateBackup, ForgetBackups, PruneBackups, RestoreBackup, VerifyBackup,
};
use filestore_core::config::{BackupDestination, ProviderConfig};
use filestore_workspace::{TestServer, eventually};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A server with a destination `nightly`, in the directory.
async fn with_destination() -> (TestServer, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("nightly");
    std::fs::create_dir(&path).unwrap();
    let server = TestServer::start_with_sqlite(|config| {
        let destination = BackupDestination::new("nightly", path);
        config.store.backup_destinations.push(destination);
        config.store.purge_grace = Duration::ZERO;
    });
    (server.await, home)
}

/// Its disk may not be mounted: the snapshots would go to the disk beneath.
#[tokio::test]
async fn a_destination_whose_directory_is_not_there_is_refused_and_not_made() {
    let (server, home) = with_destination().await;
    let path = home.path().join("nightly");
    std::fs::remove_dir(&path).unwrap();

    let reply = server.post("/api/v1/admin/backups/nightly/create").send().await;
    let problem = reply.any_problem(500);
    assert!(problem.detail.contains("is not there"), "{problem:?}");
    assert!(!path.exists());
    server.stop().await;
}

#[tokio::test]
async fn a_snapshot_of_a_running_server_is_taken_verified_restored_and_pruned() {
    let (server, _home) = with_destination().await;
    let id = server.upload("hello").org("42").send().await.expect(201).json()["file_id"].clone();
    let id = id.as_str().unwrap();

    let client = server.client();
    let admin = client.admin();
    let named = admin.backups().destinations().await.unwrap();
    assert_eq!(named.iter().map(|known| known.name.as_str()).collect::<Vec<_>>(), ["nightly"]);

    for copied in [1, 0] {
        let report = admin.backups().create("nightly", &CreateBackup::default()).await.unwrap();
        assert_eq!((report.copied, report.reused, report.error), (copied, 1 - copied, None));
    }
    let verified = admin.backups().verify("nightly", &VerifyBackup::default()).await.unwrap();
    assert!(verified.ok && verified.checked == 1, "{verified:?}");

    client.delete(id).await.unwrap();
    let gone = eventually("the purge", async || client.info(id).await.err()).await;
    assert_eq!(gone.kind(), ErrorKind::NotFound);

    let report = admin.backups().restore("nightly", &RestoreBackup::file(id)).await.unwrap();
    assert_eq!((report.restored, report.failed), (1, 0));
    let again =
        admin.backups().restore("nightly", &RestoreBackup::organization("42")).await.unwrap();
    assert_eq!((again.restored, again.present), (0, 1));
    let content = server.get(&format!("/api/v1/files/{id}")).send().await.expect(200);
    assert_eq!(content.text(), "hello");

    let pruned = admin.backups().prune("nightly", &PruneBackups::new(1)).await.unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept.len(), pruned.blobs_removed), (1, 1, 0));
    assert_eq!(admin.backups().list("nightly").await.unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_disk_that_is_gone_is_named_by_receipts_until_it_is_forgotten() {
    let (server, home) = with_destination().await;
    let id = server.upload("hello").org("42").send().await.expect(201).json()["file_id"].clone();
    let id = id.as_str().unwrap();
    let client = server.client();
    let admin = client.admin();
    admin.backups().create("nightly", &CreateBackup::default()).await.unwrap();

    client.delete(id).await.unwrap();
    eventually("the purge", async || client.info(id).await.err()).await;
    let held = client.receipt(id).await.unwrap();
    let disk = held.receipt["backups"][0]["destination_id"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(home.path().join("nightly")).unwrap();
    let gone = client.receipt(id).await.unwrap();
    let named = &gone.receipt["backups"][0];
    assert_eq!((&named["destination_id"], &named["problem"]), (&json!(disk), &json!("unusable")));

    let forgotten = admin.backups().forget("nightly", &ForgetBackups::new(disk)).await.unwrap();
    assert_eq!(forgotten.forgotten, 1);
    let again = admin.backups().forget("nightly", &ForgetBackups::default()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_backup_request_is_named() {
    let (server, _home) = with_destination().await;
    let elsewhere = server.get("/api/v1/admin/backups/elsewhere").send().await;
    assert_eq!(elsewhere.problem(404, "not_found").allowed, ["nightly"]);
    let climbing = server.post("/api/v1/admin/backups/..%2Fetc/create").send().await;
    climbing.problem(404, "not_found");

    for (run, body, code, field) in [
        ("create", json!({"hardLinks": true}), "unknown_field", "hardLinks"),
        ("create", json!({"local_only": 1}), "invalid_field", "local_only"),
        ("verify", json!({"snapshot_id": "x"}), "invalid_field", "snapshot_id"),
        ("restore", json!({}), "invalid_field", "file_id"),
        ("restore", json!({"file_id": "x"}), "invalid_field", "file_id"),
        ("prune", json!({}), "missing_field", "keep"),
        ("prune", json!({"keep": 0}), "invalid_field", "keep"),
        ("forget", json!({"destination_id": "x"}), "invalid_field", "destination_id"),
        ("forget", json!({"id": "x"}), "unknown_field", "id"),
    ] {
        let path = format!("/api/v1/admin/backups/nightly/{run}");
        let reply = server.post(&path).json(&body).send().await;
        assert_eq!(reply.problem(400, code).field.as_deref(), Some(field), "{run} {body}");
    }

    let none = server.post("/api/v1/admin/backups/nightly/verify").send().await;
    none.problem(404, "not_found");
    let wrong = server.get("/api/v1/admin/backups/nightly/create").send().await;
    assert_eq!(wrong.problem(405, "method_not_allowed").allowed, ["POST"]);
    let unknown = server.post("/api/v1/admin/backups/nightly/destroy").send().await;
    unknown.problem(404, "not_found");
    server.stop().await;
}

/// A server with the destinations `near`, at a provider in the directory, and `dead`, at one that nobody runs.
async fn with_providers(home: &std::path::Path) -> TestServer {
    with_providers_at(home, "http://127.0.0.1:9").await
}

/// Does the same as [`with_providers`], with the provider of `dead` at this URL.
async fn with_providers_at(home: &std::path::Path, dead_url: &str) -> TestServer {
    let code = |code: &str| code.parse::<filestore_core::ProviderCode>().unwrap();
    let root = home.join("bucket").display().to_string();
    let near = ProviderConfig::new(code("bucket"), "fs").with_option("root", root);
    let options = [
        ("endpoint", dead_url),
        ("region", "nowhere"),
        ("bucket", "none"),
        ("access_key_id", "id"),
        ("secret_access_key", "hushhush"),
    ];
    let dead = ProviderConfig::new(code("gone"), "s3").with_option("disable_config_load", "true");
    let mut dead = options.into_iter().fold(dead, |dead, (key, text)| dead.with_option(key, text));
    dead.retries = 0;

    TestServer::start_with_sqlite(|config| {
        config.store.providers = vec![near, dead];
        config.check_providers = false;
        config.store.backup_destinations = vec![
            BackupDestination::new("near", code("bucket")),
            BackupDestination::new("dead", code("gone")),
        ];
    })
    .await
}

#[tokio::test]
async fn a_prune_at_a_provider_is_a_conflict_while_a_snapshot_is_made_there() {
    let home = tempfile::tempdir().unwrap();
    let server = with_providers(home.path()).await;
    server.upload("hello").org("42").send().await.expect(201);
    let client = server.client();
    let admin = client.admin();
    let made = admin.backups().create("near", &CreateBackup::default()).await.unwrap();
    assert_eq!((made.copied, made.error), (1, None));

    // Another machine's.
    let runs = home.path().join("bucket/.filestore-backup/runs");
    std::fs::create_dir_all(&runs).unwrap();
    let beat = runs.join("01ARZ3NDEKTSV4RRFFQ69G5FAV.create.-.0");
    std::fs::write(&beat, "a run is under way\n").unwrap();
    let keep = PruneBackups::new(1);
    let refused = admin.backups().prune("near", &keep).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("a snapshot is being made"), "{refused}");
    let again = admin.backups().create("near", &CreateBackup::default()).await.unwrap();
    assert_eq!((again.copied, again.reused, again.error), (0, 1, None), "snapshots go on");

    std::fs::remove_file(beat).unwrap();
    let pruned = admin.backups().prune("near", &keep).await.unwrap();
    assert_eq!((pruned.removed.len(), pruned.kept.len(), pruned.error), (1, 1, None));
    server.stop().await;
}

#[tokio::test]
async fn a_destination_at_a_dead_provider_fails_clearly_and_stops_nobody_else() {
    let home = tempfile::tempdir().unwrap();
    let server = with_providers(home.path()).await;
    server.upload("hello").org("42").send().await.expect(201);
    for _ in 0..4 {
        let reply = server.post("/api/v1/admin/backups/dead/create").send().await;
        let problem = reply.any_problem(502);
        assert!(!format!("{problem:?}").contains("hushhush"), "{problem:?}");
    }
    server.get("/api/v1/admin/backups/dead").send().await.any_problem(502);

    server.upload("after").org("42").send().await.expect(201);
    let client = server.client();
    let made = client.admin().backups().create("near", &CreateBackup::default()).await.unwrap();
    assert_eq!((made.copied, made.error), (2, None));
    server.stop().await;
}

#[tokio::test]
async fn a_detached_backup_goes_on_without_its_caller() {
    let (server, _home) = with_destination().await;
    server.upload("bytes").ok().await;
    let client = server.client();
    let begun = client.admin().backups().start("nightly", &CreateBackup::default()).await.unwrap();
    assert_eq!(begun.name, "nightly");
    let snapshots = eventually("the snapshot", async || {
        let all = client.admin().backups().list("nightly").await.ok()?;
        (!all.is_empty()).then_some(all)
    })
    .await;
    assert_eq!((snapshots.len(), snapshots[0].files), (1, 1));

    let refused = server
        .post("/api/v1/admin/backups/unknown/create")
        .json(&json!({"detach": true}))
        .send()
        .await;
    refused.problem(404, "not_found");
}

/// Otherwise the stop would wait for the provider.
#[tokio::test]
async fn a_detached_backup_is_cancelled_when_the_server_stops() {
    let home = tempfile::tempdir().unwrap();
    // A provider that accepts connections and never replies.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let server = with_providers_at(home.path(), &url).await;
    let client = server.client();
    let starting = tokio::spawn(async move {
        client.admin().backups().start("dead", &CreateBackup::default()).await
    });

    let _held = silent.accept().await.unwrap();
    server.stop().await;
    let error = starting.await.unwrap().unwrap_err();
    // The client tries again what the server has not done, and finds no server.
    let kinds = [ErrorKind::Busy, ErrorKind::Connect, ErrorKind::Interrupted];
    assert!(kinds.contains(&error.kind()), "{error}");
}
