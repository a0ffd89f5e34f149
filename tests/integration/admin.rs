//! Administration of a running server, over TCP and over the data directory's Unix socket (reference
//! §4.12).

use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use filestore_workspace::wire::Wire;
use filestore_workspace::{TestServer, eventually, files_under, fixtures};
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use tokio::net::UnixStream;

#[tokio::test]
async fn a_dry_purge_run_counts_and_touches_nothing() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("12345").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let report =
        server.post("/api/v1/admin/purge/run").json(&json!({"dry_run": true})).send().await;
    let report = report.expect(200).json();
    assert_json_snapshot!(report, { ".next_due_at" => "[next due at]" }, @r#"
    {
      "blobs_removed": 0,
      "dry_run": true,
      "expired": 0,
      "failed": 0,
      "failures": [],
      "is_paused": false,
      "next_due_at": "[next due at]",
      "postponed": {},
      "purged": 0,
      "purged_bytes": 0,
      "removed_at": {},
      "waiting": 1,
      "waiting_bytes": 5
    }
    "#);

    server.restore(&id).await.expect(200);
}

#[tokio::test]
async fn a_purge_run_purges_what_is_due_before_it_answers() {
    let server = TestServer::start().await;
    let id = server.upload("12345").ok().await.file_id;
    server.delete(&id).await.expect(200);
    server.post("/api/v1/admin/purge/run").json(&json!({})).send().await.expect(200);
    eventually("the record to be gone", async || {
        Some(server.info(&id).await).filter(|reply| reply.status == 404)
    })
    .await;
    let idle = server.post("/api/v1/admin/purge/run").send().await.expect(200).json();
    assert_eq!((&idle["purged"], &idle["failures"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn a_purge_run_now_waits_for_no_grace_and_takes_one_organization_if_asked() {
    let server = TestServer::start_without_purge().await;
    let mut ids = Vec::new();
    for organization in ["42", "43", "43"] {
        let id = server.upload("12345").org(organization).ok().await.file_id;
        server.delete(&id).await.expect(200);
        ids.push(id);
    }
    let kept = server.upload("live").org("42").ok().await.file_id;
    let run = async |body: serde_json::Value| {
        server.post("/api/v1/admin/purge/run").json(&body).send().await.expect(200).json()
    };

    let patient = run(json!({"organization_id": "42"})).await;
    assert_eq!((&patient["purged"], &patient["waiting"]), (&json!(0), &json!(1)));
    let plan = run(json!({"now": true, "organization_id": "42", "dry_run": true})).await;
    assert_eq!((&plan["purged"], &plan["purged_bytes"]), (&json!(1), &json!(5)));
    assert_eq!((&plan["waiting"], &plan["next_due_at"]), (&json!(0), &json!(null)));
    server.info(&ids[0]).await.expect(200);

    let report = run(json!({"now": true, "organization_id": "42"})).await;
    assert_eq!((&report["purged"], &report["purged_bytes"]), (&json!(1), &json!(5)));
    server.info(&ids[0]).await.problem(404, "not_found");
    server.restore(&ids[1]).await.expect(200);
    server.delete(&ids[1]).await.expect(200);

    assert_eq!(run(json!({})).await["waiting"], 2);
    let all = run(json!({"now": true})).await;
    assert_eq!((&all["purged"], &all["waiting"]), (&json!(2), &json!(0)));
    server.content(&kept).send().await.expect(200);
}

#[tokio::test]
async fn a_bad_field_of_a_purge_run_is_400_and_named() {
    let server = TestServer::start_without_purge().await;
    let long = "x".repeat(65);
    let organizations =
        [json!("007"), json!("a b"), json!(""), json!(long), json!(42), Value::Null];
    for (field, bad) in organizations.map(|bad| ("organization_id", bad)).into_iter().chain([
        ("now", json!("true")),
        ("now", json!(1)),
        ("dry_run", json!(null)),
    ]) {
        let reply = server.post("/api/v1/admin/purge/run").json(&json!({field: bad})).send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some(field), "{bad}");
    }
}

#[tokio::test]
async fn the_status_and_the_metrics_show_what_waits_for_its_purge_and_no_backlog() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("12345").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let due = server.info(&id).await.expect(200).json()["purge_due_at"].clone();

    let status = server.get("/api/v1/admin/status").send().await.expect(200).json();
    let purge = &status["purge"];
    assert_eq!((&purge["waiting"], &purge["waiting_bytes"]), (&json!(1), &json!(5)));
    assert_eq!((&purge["next_due_at"], &purge["due"]), (&due, &json!(0)));
    let mut advised = status["advice"].as_array().unwrap().iter().map(|one| &one["about"]);
    assert!(advised.all(|about| about != "LOCAL"), "nothing is late: {status}");

    let text = server.get("/metrics").send().await.expect(200).text();
    for line in [
        "filestore_purge_waiting_files 1",
        "filestore_purge_waiting_bytes 5",
        "filestore_backlog{provider=\"LOCAL\",work=\"purge\"} 0",
        "filestore_backlog_oldest_seconds{provider=\"LOCAL\",work=\"purge\"} 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} in {text}");
    }
    assert!(!text.contains("filestore_purge_next_due_time_seconds 0\n"), "{text}");

    server.post("/api/v1/admin/purge/run").json(&json!({"now": true})).send().await.expect(200);
    let text = server.get("/metrics").send().await.expect(200).text();
    assert!(text.contains("filestore_purge_next_due_time_seconds 0\n"), "{text}");
}

#[tokio::test]
async fn an_unknown_key_in_an_admin_request_is_400() {
    let server = TestServer::start().await;
    let reply = server.post("/api/v1/admin/purge/run").json(&json!({"dryrun": true})).send().await;
    assert_eq!(reply.problem(400, "unknown_field").field.as_deref(), Some("dryrun"));
}

#[tokio::test]
async fn a_sync_run_settles_what_has_nowhere_to_go() {
    let server = TestServer::start().await;
    let status = async || server.get("/api/v1/admin/sync/status").send().await.expect(200).json();
    assert_json_snapshot!(status().await, @r#"
    {
      "bytes_copied": 0,
      "failed": 0,
      "files_moved": 0,
      "none": 0,
      "pending": 0,
      "synced": 0,
      "syncing": 0
    }
    "#);

    let id = server.upload("x").ok().await.file_id;
    let report = server.post("/api/v1/admin/sync/run").send().await.expect(200).json();
    assert_eq!(report["failures"], json!([]));
    assert_eq!(server.record(&id).await.sync_status, "NONE");
    assert_eq!(status().await["none"], 1);
}

#[tokio::test]
async fn the_variant_cache_is_counted_and_emptied() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(600, 400)).ok().await.file_id;
    let made = server.variant(&id, 200).send().await.expect(200);
    let status = server.get("/api/v1/admin/variants/status").send().await.expect(200).json();
    assert_eq!(status["disk_entries"], 1, "{status}");
    assert!(status["disk_bytes"].as_u64().unwrap() >= made.body.len() as u64, "{status}");
    let pruned = server.post("/api/v1/admin/variants/prune").send().await.expect(200).json();
    assert!(pruned["removed"].as_u64().unwrap() >= 1, "{pruned}");
    assert_eq!((&pruned["disk_entries"], &pruned["memory_entries"]), (&json!(0), &json!(0)));
    assert_eq!(server.variant(&id, 200).send().await.expect(200).body, made.body);
}

#[tokio::test]
async fn the_admin_socket_is_private_and_speaks_the_same_api() {
    let server = TestServer::start().await;
    let path = server.data_dir().join("admin.sock");
    let metadata = std::fs::metadata(&path).expect("a socket in the data directory");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);

    let id = server.upload("x").ok().await.file_id;
    let mut wire = Wire::over(UnixStream::connect(&path).await.unwrap());
    wire.send(format!("GET /api/v1/files/{id}/info HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.json()["file_id"]), (200, &json!(id)));

    wire.send("GET /api/v1/admin/sync/status HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 200);
}

#[tokio::test]
async fn a_restart_replaces_the_socket_of_the_process_before() {
    let server = TestServer::start().await;
    let server = server.restart().await;
    let path = server.data_dir().join("admin.sock");
    let mut wire = Wire::over(UnixStream::connect(&path).await.expect("the new server listens"));
    wire.send("GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 200);
}

#[tokio::test]
async fn nothing_in_the_data_directory_is_open_to_other_users() {
    let server = TestServer::start().await;
    server.upload("private").ok().await;
    for file in files_under(server.data_dir()) {
        let Ok(metadata) = std::fs::symlink_metadata(&file) else { continue };
        let everybody = metadata.permissions().mode() & 0o007;
        let parent = std::fs::metadata(server.data_dir()).unwrap().permissions().mode() & 0o007;
        assert!(everybody == 0 || parent == 0, "{} is {everybody:o}", file.display());
    }
}

#[tokio::test]
async fn the_uploads_of_all_callers_are_listed_and_cancelled_without_their_addresses() {
    let server = TestServer::start().await;
    let mut paths = Vec::new();
    for organization in ["acme", "other"] {
        let path = format!("/api/v1/uploads?organization_id={organization}&sub_system=docs");
        let create = server.post(&path).header("tus-resumable", "1.0.0");
        let create = create.header("upload-length", "11");
        let create = create.body("application/offset+octet-stream", "hello");
        paths.push(create.send().await.expect(201).only("location").to_owned());
    }
    let list = async |query: &str| {
        server.get(&format!("/api/v1/admin/uploads{query}")).send().await.expect(200).json()
    };

    let all = list("").await;
    let ids: Vec<_> =
        all["items"].as_array().unwrap().iter().map(|one| &one["upload_id"]).collect();
    for (path, id) in paths.iter().zip(&ids) {
        assert!(path.contains(id.as_str().unwrap()), "oldest first: {all}");
    }
    assert!(paths.iter().all(|path| !all.to_string().contains(path.rsplit('.').next().unwrap())));
    assert_eq!(list("?organization_id=other").await["items"][0]["upload_id"], *ids[1]);
    assert_eq!(list("?limit=1").await["next_cursor"], *ids[0]);
    let rest = list(&format!("?cursor={}", ids[0].as_str().unwrap())).await;
    assert_eq!((&rest["items"][0]["upload_id"], &rest["next_cursor"]), (ids[1], &json!(null)));

    let status = server.get("/api/v1/admin/status").send().await.expect(200).json();
    let expected = json!({"open": 2, "open_bytes": 22, "transfers": 0});
    assert_eq!(status["resumable"], expected);

    let one = format!("/api/v1/admin/uploads/{}", ids[0].as_str().unwrap());
    let shown = server.get(&one).send().await.expect(200).json();
    assert_eq!((&shown["state"], &shown["offset"]), (&json!("open"), &json!(5)));
    let last = server.post(&format!("{one}/cancel")).send().await.expect(200).json();
    assert_eq!(last, shown);
    for reply in [
        server.get(&one).send().await,
        server.post(&format!("{one}/cancel")).send().await,
        server.head(&paths[0]).send().await,
    ] {
        assert_eq!(reply.status, 404, "a cancelled upload is unknown");
    }
    server.get("/api/v1/admin/uploads/film").send().await.problem(400, "invalid_field");
    server.get("/api/v1/admin/uploads?limit=0").send().await.problem(400, "invalid_field");
}
