//! Administration with a provider (reference §4.12): sync, migration and checks, over HTTP and through
//! the typed client. The provider is a directory, so that no network is needed.

use filestore_client::api::{CreateBinding, FsckRunRequest, MigrateRunRequest, UpdateBinding};
use filestore_client::{ErrorKind, OrganizationNumber};
use filestore_core::config::ProviderConfig;
use filestore_workspace::upload::UploadCall;
use filestore_workspace::{TestServer, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

const ORGANIZATION: OrganizationNumber = OrganizationNumber::unchecked(42);

/// A server with a provider `disk`, whose files are in the directory.
async fn with_disk() -> (TestServer, TempDir) {
    let disk = tempfile::tempdir().unwrap();
    let root = disk.path().to_str().unwrap().to_owned();
    let server = TestServer::start_with(|config| {
        let provider = ProviderConfig::new("disk".parse().unwrap(), "fs").with_option("root", root);
        config.store.providers.push(provider);
    });
    (server.await, disk)
}

fn binding(provider: &str, sync_enabled: bool) -> CreateBinding {
    let mut binding = CreateBinding::new(ORGANIZATION, "Acme", provider);
    binding.sync_enabled = sync_enabled;
    binding
}

fn rebound(provider: &str) -> UpdateBinding {
    let mut update = UpdateBinding::new(ORGANIZATION);
    update.storage_provider = Some(provider.into());
    update
}

fn upload<'a>(server: &'a TestServer, bytes: &str) -> UploadCall<'a> {
    server.upload(bytes).org("42")
}

fn migration(to: &str) -> MigrateRunRequest {
    MigrateRunRequest::new(ORGANIZATION, to)
}

const MANY: u64 = 100;

/// Files that a migration to the provider may move, and one so slow that it would take minutes; the copies
/// under way end in seconds.
async fn slow_migration(server: &TestServer) -> MigrateRunRequest {
    let mut batch = server.batch_of("42");
    for _ in 0..MANY {
        batch = batch.item("x".repeat(1000));
    }
    batch.ok().await;
    server.client().admin().sync().run().await.unwrap();
    server.client().bindings().create(&binding("disk", false)).await.unwrap();
    migration("disk").bytes_per_second(1000)
}

#[tokio::test]
async fn an_organization_goes_to_its_provider_and_comes_back() {
    let (server, _disk) = with_disk().await;
    let (client, http) = (server.client(), server.client());
    let admin = client.admin();

    let early = upload(&server, "before the binding").ok().await.file_id;
    eventually("the file to be settled", async || {
        Some(server.record(&early).await).filter(|record| record.sync_status == "NONE")
    })
    .await;
    http.bindings().create(&binding("disk", true)).await.unwrap();
    let late = upload(&server, "after it").ok().await.file_id;
    assert_eq!(admin.sync().enqueue(ORGANIZATION).await.unwrap().queued, 1);

    eventually("both files to be at the provider", async || {
        // The server's own worker may have some of them.
        assert_eq!(admin.sync().run().await.unwrap().failures, []);
        Some(admin.sync().status().await.unwrap()).filter(|status| status.synced == 2)
    })
    .await;
    let status = admin.sync().status().await.unwrap();
    assert_eq!((status.pending, status.files_moved, status.bytes_copied), (0, 2, 26));

    let there = admin.migrations().status(ORGANIZATION).await.unwrap();
    assert_eq!(
        (there.bound_to.as_deref(), there.holdings[0].provider_code.as_str()),
        (Some("disk"), "disk")
    );

    http.bindings().update(&rebound("LOCAL")).await.unwrap();
    let plan = admin.migrations().plan(ORGANIZATION, "LOCAL").await.unwrap();
    assert_eq!(
        (plan.move_files, plan.move_bytes, plan.from[0].provider_code.as_str()),
        (2, 26, "disk")
    );

    let report = admin.migrations().run(&migration("LOCAL")).await.unwrap();
    assert_eq!(
        (report.moved_files, report.moved_bytes, report.left_files),
        (2, 26, 0),
        "{report:?}"
    );
    assert!(!report.stopped && report.failures.is_empty());

    let verified = admin.migrations().verify(ORGANIZATION, "LOCAL").await.unwrap();
    assert_eq!((verified.checked_files, verified.checked_bytes, verified.elsewhere), (2, 26, 0));

    for (id, bytes) in [(&early, "before the binding"), (&late, "after it")] {
        assert_eq!(server.content(id).send().await.expect(200).text(), bytes);
    }
}

#[tokio::test]
async fn a_migration_elsewhere_than_the_binding_is_a_conflict_that_names_the_provider() {
    let (server, _disk) = with_disk().await;
    let client = server.client();
    client.bindings().create(&binding("disk", true)).await.unwrap();
    let error = client.admin().migrations().run(&migration("LOCAL")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);

    let reply = server
        .post("/api/v1/admin/migrate/run")
        .json(&json!({"organizationId": 42, "to": "LOCAL"}));

    let problem = reply.send().await.problem(409, "conflict");
    assert_eq!(
        (problem.field.as_deref(), &problem.allowed[..]),
        (Some("to"), &["disk".to_owned()][..])
    );
}

#[tokio::test]
async fn a_migration_whose_caller_goes_away_stops_and_can_be_run_again() {
    let (server, _disk) = with_disk().await;
    let client = server.client();
    let slow = slow_migration(&server).await;
    let running = tokio::spawn({
        let client = server.client();
        async move { client.admin().migrations().run(&slow).await }
    });

    let status = async || client.admin().migrations().status(ORGANIZATION).await.unwrap().running;
    eventually("the migration to begin", status).await;
    let error = client.admin().migrations().run(&migration("disk")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "one at a time");

    running.abort();
    eventually("the migration to end", async || status().await.is_none().then_some(())).await;
    let left = client.admin().migrations().plan(ORGANIZATION, "disk").await.unwrap().move_files;
    assert!(left > 0, "it was stopped, not finished");

    let rest = client.admin().migrations().run(&migration("disk")).await.unwrap();
    assert_eq!((rest.moved_files, rest.left_files), (left, 0));
}

#[tokio::test]
async fn a_migration_that_is_told_to_stop_says_what_it_did() {
    let (server, _disk) = with_disk().await;
    let client = server.client();
    let slow = slow_migration(&server).await;

    let admin = client.admin();
    let stop = async {
        let begun = async || admin.migrations().status(ORGANIZATION).await.unwrap().running;
        eventually("the migration to begin", begun).await;
        admin.migrations().stop(ORGANIZATION).await.unwrap();
    };

    let (report, ()) = tokio::join!(admin.migrations().run(&slow), stop);
    let report = report.unwrap();
    assert!(report.stopped && report.left_files > 0, "{report:?}");
    assert_eq!(report.moved_files + report.left_files, MANY, "{report:?}");

    let rest = admin.migrations().run(&migration("disk")).await.unwrap();
    assert_eq!((rest.moved_files, rest.left_files, rest.stopped), (report.left_files, 0, false));
}

#[tokio::test]
async fn every_provider_is_listed_and_one_can_be_tried_out() {
    let (server, _disk) = with_disk().await;
    let mut all = server.get("/api/v1/admin/providers").send().await.expect(200).json();
    let codes: Vec<_> =
        all.as_array().unwrap().iter().map(|provider| &provider["provider_code"]).collect();
    assert_eq!(codes, ["LOCAL", "disk"]);
    assert!(all[1]["state_since"].take().is_string());
    assert_eq!(
        all[1],
        json!({
            "provider_code": "disk", "provider_name": "disk", "storage_location": "CLOUD",
            "is_active": true, "scheme": "fs", "is_tested": true, "is_configured": true,
            "state": "closed", "state_since": null, "last_error": null, "last_error_at": null,
            "backlog": {"sync": 0, "purge": 0, "dropped": 0, "oldest_secs": null},
        })
    );
    assert_eq!(server.client().admin().providers().list().await.unwrap().len(), 2);

    let report = server.client().admin().providers().check("disk").await.unwrap();
    assert!(report.can_serve, "{report:?}");

    let write = report.steps.iter().find(|step| step.name == "write").expect("a step");
    assert_eq!(write.outcome, "ok");

    let unknown = server.post("/api/v1/admin/providers/moon/check").send().await;
    let problem = unknown.problem(422, "unknown_provider");
    assert_eq!((problem.field.as_deref(), problem.allowed.len()), (Some("code"), 2));

    let local = server.post("/api/v1/admin/providers/LOCAL/check").send().await;
    assert_eq!(local.problem(400, "invalid_field").field.as_deref(), Some("code"));

    let wrong = server.get("/api/v1/admin/providers/disk/check").send().await;
    assert_eq!(wrong.problem(405, "method_not_allowed").allowed, ["POST"]);
}

#[tokio::test]
async fn what_is_wrong_with_an_admin_request_is_named() {
    let (server, _disk) = with_disk().await;
    let to = |key: &str, value: Value| {
        let mut body = json!({"organizationId": 42, "to": "disk"});
        body[key] = value;
        body
    };

    for (path, body, status, code, field) in [
        ("sync/enqueue", json!({}), 400, "missing_field", "organizationId"),
        ("sync/enqueue", json!({"organizationId": 0}), 400, "invalid_field", "organizationId"),
        ("sync/enqueue", json!({"organization_id": 1}), 400, "unknown_field", "organization_id"),
        ("sync/enqueue", json!({"organizationId": 9}), 404, "no_active_binding", "organizationId"),
        ("sync/retry", json!({"organizationId": "9"}), 400, "invalid_field", "organizationId"),
        ("sync/retry", json!({"org": 9}), 400, "unknown_field", "org"),
        ("migrate/run", json!({"organizationId": 42}), 400, "missing_field", "to"),
        ("migrate/run", json!({"to": "disk"}), 400, "missing_field", "organizationId"),
        ("migrate/run", to("to", json!("moon")), 422, "unknown_provider", "to"),
        ("migrate/run", to("to", json!(7)), 400, "invalid_field", "to"),
        ("migrate/run", to("bytes_per_second", json!(0)), 400, "invalid_field", "bytes_per_second"),
        ("migrate/run", to("bytesPerSecond", json!(1)), 400, "unknown_field", "bytesPerSecond"),
        (
            "migrate/run",
            to("organizationId", json!(42)),
            404,
            "no_active_binding",
            "organizationId",
        ),
        ("migrate/verify", to("to", json!("a b")), 422, "unknown_provider", "to"),
        ("migrate/verify", to("rate", json!(1)), 400, "unknown_field", "rate"),
        ("migrate/stop", json!({}), 400, "missing_field", "organizationId"),
    ] {
        let reply = server.post(&format!("/api/v1/admin/{path}")).json(&body).send().await;
        assert_eq!(reply.problem(status, code).field.as_deref(), Some(field), "{path} {body}");
    }

    for (query, code, field) in [
        ("plan?to=disk", "missing_field", "organizationId"),
        ("plan?organizationId=42", "missing_field", "to"),
        ("plan?organizationId=042&to=disk", "invalid_field", "organizationId"),
        ("plan?organizationId=42&to=disk&to=disk", "invalid_field", "to"),
        ("status", "missing_field", "organizationId"),
        ("status?organizationId=x", "invalid_field", "organizationId"),
    ] {
        let reply = server.get(&format!("/api/v1/admin/migrate/{query}")).send().await;
        assert_eq!(reply.problem(400, code).field.as_deref(), Some(field), "{query}");
    }

    let wrong = server.get("/api/v1/admin/migrate/run").send().await;
    assert_eq!(wrong.problem(405, "method_not_allowed").allowed, ["POST"]);
    assert_eq!(
        server.post("/api/v1/admin/sync/retry").send().await.expect(200).json(),
        json!({"queued": 0})
    );
}

#[tokio::test]
async fn a_migration_is_stopped_with_the_server_and_reports() {
    let (server, disk) = with_disk().await;
    let slow = slow_migration(&server).await;
    let client = server.client();
    let begun = async || client.admin().migrations().status(ORGANIZATION).await.unwrap().running;
    let running = tokio::spawn({
        let client = server.client();
        async move { client.admin().migrations().run(&slow).await }
    });

    eventually("the migration to begin", begun).await;
    server.stop().await;
    let report = running.await.unwrap().unwrap();
    assert!(report.stopped && report.left_files > 0, "{report:?}");

    drop(disk);
}

#[tokio::test]
async fn the_sync_queue_of_one_organization_is_counted() {
    let (server, _disk) = with_disk().await;
    for number in 0..3 {
        upload(&server, &format!("{number}")).ok().await;
    }
    upload(&server, "temporary").temp().ok().await;
    server.upload("another").org("7").ok().await;
    server.client().admin().sync().run().await.unwrap();
    let status = server.client().admin().sync().status_of(ORGANIZATION).await.unwrap();
    assert_eq!((status.pending, status.syncing, status.failed, status.done), (0, 0, 0, 4));
    assert_eq!(status.organization_id, ORGANIZATION);

    let path = "/api/v1/admin/sync/status?organizationId=8";
    let nobody = server.get(path).send().await.expect(200).json();
    let expected = json!({"organizationId": 8, "pending": 0, "syncing": 0, "failed": 0, "done": 0});
    assert_eq!(nobody, expected);
    let bad = server.get("/api/v1/admin/sync/status?organizationId=x").send().await;
    bad.any_problem(400);
}

#[tokio::test]
async fn a_detached_migration_goes_on_without_its_caller_until_it_is_told_to_stop() {
    let (server, _disk) = with_disk().await;
    let client = server.client();
    let slow = slow_migration(&server).await;
    let admin = client.admin();
    let begun = admin.migrations().start(&slow).await.unwrap().running.expect("it goes on");
    assert_eq!(begun.planned_files, Some(MANY));
    assert!(begun.started_at.is_some());
    let second = admin.migrations().start(&slow).await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Conflict, "a refusal has its status");

    // The caller is gone, and files move.
    let status = async || admin.migrations().status(ORGANIZATION).await.unwrap().running;
    eventually("a file to move", async || status().await.filter(|running| running.files > 0)).await;
    admin.migrations().stop(ORGANIZATION).await.unwrap();
    eventually("the migration to end", async || status().await.is_none().then_some(())).await;

    let rest = admin.migrations().start(&migration("disk")).await.unwrap();
    assert!(rest.running.is_none_or(|running| running.planned_files < Some(MANY)));
    eventually("the rest to move", async || {
        let plan = admin.migrations().plan(ORGANIZATION, "disk").await.unwrap();
        (plan.move_files == 0 && status().await.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_detached_check_ends_by_itself_and_the_server_waits_for_it() {
    let (server, _disk) = with_disk().await;
    upload(&server, "bytes").ok().await;
    let client = server.client();
    let mut request = FsckRunRequest::default();
    request.deep = true;
    client.admin().fsck().start(&request).await.unwrap();
    let ended = eventually("the check to end", async || {
        let status = client.admin().fsck().status().await.unwrap();
        status.last.filter(|last| last.ended_at.is_some())
    })
    .await;
    assert_eq!((ended.checked_files, ended.found), (1, 0));

    let slow = slow_migration(&server).await;
    client.admin().migrations().start(&slow).await.unwrap();
    let server = server.restart().await;
    let status = server.client().admin().migrations().status(ORGANIZATION).await.unwrap();
    assert_eq!(status.running, None, "the stop has ended it");
}
