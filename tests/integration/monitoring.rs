//! What operators see of a server: `/metrics` and the audit log.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use filestore_core::Scope;
use filestore_core::config::BackupDestination;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::wire::Wire;
use filestore_workspace::{Call, TestServer, eventually};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};

/// Returns the value of the sample with exactly this name and these labels.
fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(line.parse().expect("a number"))
}

#[tokio::test]
async fn the_metrics_count_requests_by_route_and_status() {
    let server = TestServer::start().await;
    let id = server.upload("12345").ok().await.file_id;
    server.content(&id).send().await.expect(200);
    server.head(&format!("/api/v1/files/{id}")).send().await.expect(200);
    server.get("/nowhere").send().await.expect(404);

    let reply = server.get("/metrics").send().await.expect(200);
    assert_eq!(reply.only("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(reply.only("cache-control"), "no-store");
    let text = reply.text();
    assert!(!text.contains(&id), "no file is named");

    let requests = "filestore_http_requests_total";
    for (labels, count) in [
        (r#"method="POST",route="/files/upload",status="201""#, 1.0),
        (r#"method="GET",route="/files/{file_id}",status="200""#, 2.0),
        (r#"method="any",route="unmatched",status="404""#, 1.0),
    ] {
        let name = format!("{requests}{{{labels}}}");
        assert_eq!(sample(&text, &name), Some(count), "{name} in {text}");
    }

    let times = "filestore_http_request_duration_seconds";
    let upload = r#"method="POST",route="/files/upload""#;
    assert_eq!(sample(&text, &format!("{times}_count{{{upload}}}")), Some(1.0));
    assert!(sample(&text, &format!("{times}_sum{{{upload}}}")).is_some_and(|sum| sum > 0.0));
    for name in [
        "filestore_http_connections",
        "filestore_http_received_bytes_total",
        "filestore_http_sent_bytes_total",
        "filestore_http_requests_running",
        "filestore_disk_free_bytes",
        "filestore_database_up",
        "filestore_provider_up{provider=\"LOCAL\"}",
    ] {
        assert!(sample(&text, name).is_some_and(|value| value > 0.0), "{name} in {text}");
    }
}

#[tokio::test]
async fn what_waits_is_measured_with_its_age() {
    let server = TestServer::start_with(|config| config.store.blob_grace = Duration::ZERO).await;
    let id = server.upload("12345").ok().await.file_id;
    server.change(&id).file("other").send().await.expect(200);

    let text = server.get("/metrics").send().await.expect(200).text();
    for work in ["sync", "purge", "dropped"] {
        let labels = format!("{{provider=\"LOCAL\",work=\"{work}\"}}");
        assert!(sample(&text, &format!("filestore_backlog{labels}")).is_some(), "{text}");
        let age = sample(&text, &format!("filestore_backlog_oldest_seconds{labels}"));
        assert!(age.is_some_and(|age| (0.0..3600.0).contains(&age)), "{text}");
    }
}

#[tokio::test]
async fn stored_files_and_the_last_backup_are_measured() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Snapshots are of SQLite.
    let server = TestServer::start_with_sqlite(|config| {
        let destination = BackupDestination::new("nightly", dir.path());
        config.store.backup_destinations.push(destination);
    })
    .await;
    server.upload("12345").ok().await;
    server.post("/api/v1/admin/backups/nightly/create").send().await.expect(200);

    let text = server.get("/metrics").send().await.expect(200).text();
    for (name, expected) in [
        ("filestore_stored_files{location=\"LOCAL\"}", 1.0),
        ("filestore_stored_bytes{location=\"LOCAL\"}", 5.0),
        ("filestore_stored_files{location=\"CLOUD\"}", 0.0),
    ] {
        assert_eq!(sample(&text, name), Some(expected), "{name} in {text}");
    }
    let last = "filestore_backup_last_success_time_seconds{destination=\"nightly\"}";
    let opened = sample(&text, "filestore_start_time_seconds");
    assert!(sample(&text, last) >= opened, "{last} in {text}");
}

#[tokio::test]
async fn openmetrics_is_spoken_to_those_who_ask() {
    let server = TestServer::start().await;
    let accept = "application/openmetrics-text; version=1.0.0, text/plain; q=0.5";
    let reply = server.get("/metrics").header("accept", accept).send().await.expect(200);
    assert!(reply.only("content-type").starts_with("application/openmetrics-text"));
    assert!(reply.text().ends_with("# EOF\n"));

    let head = server.head("/metrics").send().await.expect(200);
    assert!(head.body.is_empty());
    server.post("/metrics").send().await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn metrics_on_an_address_of_their_own_are_all_that_is_there() {
    let server = TestServer::start_with(|config| {
        config.metrics_listen = Some("127.0.0.1:0".parse().expect("an address"));
    })
    .await;
    server.get("/api/v1/health-checks").send().await.expect(200);

    let own = server.metrics_addr().expect("it is configured");
    let get = |path: &str| Call::bare(Method::GET, &format!("http://{own}{path}"));
    let text = get("/metrics").send().await.expect(200).text();
    let health =
        r#"filestore_http_requests_total{method="GET",route="/health-checks",status="200"}"#;
    assert_eq!(sample(&text, health), Some(1.0), "{text}");
    assert!(!text.contains("route=\"/metrics\""), "scrapes of it are not clients' requests");

    get("/api/v1/files").send().await.problem(404, "not_found");
    let post = Call::bare(Method::POST, &format!("http://{own}/metrics"));
    post.send().await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_stranger_without_a_key_sees_no_metrics() {
    let server = TestServer::start().await;
    let forwarded = server.get("/metrics").header("x-forwarded-for", "192.0.2.1").send().await;
    forwarded.any_problem(403);
}

/// Reads the audit log once it has so many lines.
async fn lines(path: &Path, count: usize) -> Vec<Value> {
    eventually("the lines of the audit log", async || {
        let text = std::fs::read_to_string(path).ok()?;
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        (text.ends_with('\n') && lines.len() >= count).then_some(lines)
    })
    .await
    .iter()
    .map(|line| serde_json::from_str(line).expect("a line of JSON"))
    .collect()
}

fn shown(line: &Value, keys: &[&str]) -> Vec<Value> {
    keys.iter().map(|key| line[*key].clone()).collect()
}

#[tokio::test]
async fn deletions_bindings_and_administration_are_on_record_and_reading_is_not() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;

    let id = server.upload("12345").ok().await.file_id;
    server.info(&id).await.expect(200);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let delete = server.call(Method::DELETE, &format!("/api/v1/files/{id}?secret=x"));
    let deleted = delete.header("traceparent", trace).send().await.expect(200);
    server.delete("01ARZ3NDEKTSV4RRFFQ69G5FAV").await.expect(404);
    let binding = json!({
        "organizationId": 7, "organizationName": "Acme", "storageProvider": "LOCAL", "syncEnabled": false
    });
    let create = "/api/v1/organization-storage-bindings/create";
    server.post(create).json(&binding).send().await.expect(201);

    let lines = lines(&path, 3).await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    let keys = ["actor", "client", "action", "path", "status", "result", "request_id", "trace_id"];
    assert_eq!(
        shown(&lines[0], &keys),
        [
            json!("anonymous"),
            json!("127.0.0.1"),
            json!("DELETE /files/{file_id}"),
            json!(format!("/api/v1/files/{id}")),
            json!(200),
            json!("done"),
            json!(deleted.only("x-request-id")),
            json!("4bf92f3577b34da6a3ce929d0e0e4736"),
        ]
    );
    assert_eq!(shown(&lines[1], &["status", "result"]), [json!(404), json!("refused")]);
    assert_eq!(lines[2]["request"], binding);
    assert!(lines[2]["time"].as_str().is_some_and(|time| time.ends_with('Z')));
}

/// Begins a deletion, and goes away when the server is at it.
async fn abandon_a_deletion(server: &TestServer, id: &str) {
    let mut client = TcpStream::connect(server.addr()).await.expect("a connection");
    let delete = format!("DELETE /api/v1/files/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(delete.as_bytes()).await.expect("the server reads");
    eventually("the deletion beside this look, or its end", async || {
        let text = server.get("/metrics").send().await.expect(200).text();
        let running = sample(&text, "filestore_http_requests_running");
        let is_answered = client.try_read(&mut [0; 1]).is_ok();
        (is_answered || running >= Some(2.0)).then_some(())
    })
    .await;
    client.set_zero_linger().expect("a socket");
}

#[tokio::test]
async fn a_deletion_whose_client_went_away_is_on_record() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server =
        TestServer::start_with_sqlite(|config| config.audit_log = Some(path.clone())).await;
    let database = server.data_dir().join("metadata.sqlite3");
    let holder = rusqlite::Connection::open(database).expect("the database");

    // On a busy machine a deletion may give up its wait for the turn before its client goes away.
    let mut begun = 0;
    let (line, id) = eventually("an abandoned deletion is made", async || {
        let id = server.upload("12345").ok().await.file_id;
        holder.execute_batch("BEGIN IMMEDIATE").expect("the turn to write");
        abandon_a_deletion(&server, &id).await;
        begun += 1;
        let line = lines(&path, begun).await.remove(begun - 1);
        holder.execute_batch("ROLLBACK").expect("the end of the turn");

        // Is written after the deletion, if that still waits.
        server.upload("behind").ok().await;
        let is_made = server.content(&id).send().await.status == 404;
        (is_made && line["result"] == "abandoned").then_some((line, id))
    })
    .await;
    assert_eq!(line["status"], Value::Null);
    assert_eq!(line["path"], format!("/api/v1/files/{id}"));
}

#[tokio::test]
async fn a_key_that_lacks_the_scope_is_on_record() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let new = NewKey::new("reader", Scope::All, [KeyScope::Read]);
    let (key, secret) = server.store().keys().create(new).await.expect("a key");

    let delete = server.call(Method::DELETE, "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let bearer = format!("Bearer {}", secret.expose());
    delete.header("authorization", &bearer).send().await.problem(403, "forbidden");
    let line = lines(&path, 1).await.remove(0);
    let keys = ["actor", "key_id", "result"];
    assert_eq!(shown(&line, &keys), [json!("key"), json!(key.id.to_string()), json!("refused")]);
}

#[tokio::test]
async fn an_edit_is_on_record_without_what_was_written() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("12345").ok().await.file_id;

    server.edit(&id, &json!({"metadata": {"diagnosis": "x"}})).send().await.expect(200);
    server.edit("01ARZ3NDEKTSV4RRFFQ69G5FAV", &json!({})).send().await.expect(404);
    let lines = lines(&path, 2).await;
    let keys = ["action", "path", "status", "result", "request"];
    let edit = json!("PATCH /files/{file_id}");
    let own = json!(format!("/api/v1/files/{id}"));
    assert_eq!(shown(&lines[0], &keys), [edit, own, json!(200), json!("done"), Value::Null]);
    assert_eq!(lines[1]["result"], "refused");
}

/// Creates a resumable upload that replaces a file by three bytes. Returns its path, with the token.
async fn begin_replacement(server: &TestServer, id: &str, etag: &str) -> String {
    let create = server.post(&format!("/api/v1/uploads?file_id={id}"));
    let create = create.header("tus-resumable", "1.0.0").header("upload-length", "3");
    let created = create.header("if-match", etag).send().await.expect(201);
    created.only("location").to_owned()
}

async fn append(server: &TestServer, path: &str, offset: usize, bytes: &str) -> u16 {
    let patch = server.call(Method::PATCH, path).header("tus-resumable", "1.0.0");
    let patch = patch.header("upload-offset", &offset.to_string());
    patch.body("application/offset+octet-stream", bytes.to_owned()).send().await.status
}

#[tokio::test]
async fn a_replacement_by_a_resumable_upload_is_on_record_once_and_a_new_file_is_not() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let file = server.upload("old").send().await.expect(201);
    let (id, etag) = (file.file_id(), file.only("etag").to_owned());
    let organization = server.record(&id).await.organization_id;

    let create = server.post("/api/v1/uploads?organization_id=acme&sub_system=docs");
    let create = create.header("tus-resumable", "1.0.0").header("upload-length", "3");
    let new = create.send().await.expect(201).only("location").to_owned();
    assert_eq!(append(&server, &new, 0, "new").await, 204);

    let (one, two) = (
        begin_replacement(&server, &id, &etag).await,
        begin_replacement(&server, &id, &etag).await,
    );
    assert_eq!(append(&server, &one, 0, "ne").await, 204);
    assert_eq!(append(&server, &one, 2, "w").await, 204);
    assert_eq!(append(&server, &one, 3, "").await, 204, "the reply again");
    assert_eq!(append(&server, &two, 0, "two").await, 412);
    server.delete(&id).await.expect(200);

    let lines = lines(&path, 3).await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    let done = json!({"change": "replace", "file_id": id, "organization_id": organization});
    assert_eq!(lines[0]["report"], done);
    let keys = ["action", "path", "status", "result"];
    let shown_path = one.split('.').next().expect("a path");
    let action = "PATCH /uploads/{upload}";
    assert_eq!(
        shown(&lines[0], &keys),
        [json!(action), json!(shown_path), json!(204), json!("done")]
    );
    assert_eq!(lines[1]["report"], json!({"change": "replace", "file_id": id}));
    assert_eq!(shown(&lines[1], &["status", "result"]), [json!(412), json!("refused")]);
    assert_eq!(lines[2]["action"], "DELETE /files/{file_id}");
}

#[tokio::test]
async fn a_replacement_in_one_request_to_the_resumable_uploads_is_on_record() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("old").ok().await.file_id;

    let replace = server.post(&format!("/api/v1/uploads?file_id={id}"));
    replace.body("application/octet-stream", "new").send().await.expect(200);
    let line = lines(&path, 1).await.remove(0);
    assert_eq!(shown(&line, &["action", "status"]), [json!("POST /uploads"), json!(200)]);
    assert_eq!(line["report"]["file_id"], id.as_str());
}

#[tokio::test]
async fn a_deletion_of_many_is_on_record_with_what_became_of_each() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("12345").ok().await.file_id;

    let ids = json!({"ids": [id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"]});
    server.post("/api/v1/files/delete").json(&ids).send().await.expect(200);
    let line = lines(&path, 1).await.remove(0);
    assert_eq!(line["request"], ids);
    let failed = json!({"01ARZ3NDEKTSV4RRFFQ69G5FAV": "not_found", "x": "invalid_field"});
    assert_eq!(line["report"], json!({"deleted": 1, "failed": failed}));
}

#[tokio::test]
async fn work_that_goes_on_is_on_record_with_its_end() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with_sqlite(|config| {
        config.audit_log = Some(path.clone());
        config.store.purge_grace = Duration::from_millis(500);
    })
    .await;

    // A run that has something to remove needs the turn to write, which another has.
    let database = server.data_dir().join("metadata.sqlite3");
    let holder = rusqlite::Connection::open(database).expect("the database");
    let mut held = 0;
    eventually("a deleted file is there while the turn is held", async || {
        let id = server.upload("12345").ok().await.file_id;
        server.delete(&id).await.expect(200);
        held += 1;
        holder.execute_batch("BEGIN IMMEDIATE").expect("the turn to write");
        let count = holder.query_row("SELECT count(*) FROM files", (), |row| row.get::<_, i64>(0));
        if count.expect("a count") > 0 {
            return Some(());
        }
        holder.execute_batch("ROLLBACK").expect("the end of the turn");
        None
    })
    .await;
    eventually("the file is due", async || {
        let plan = server.store().admin().purge_plan().await.expect("a plan");
        (plan.purged > 0).then_some(())
    })
    .await;

    let stream = UnixStream::connect(server.data_dir().join("admin.sock")).await.expect("a socket");
    let run = "POST /api/v1/admin/purge/run HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    let mut wire = Wire::over(stream);
    wire.send(run).await;
    let begun = lines(&path, held + 1).await.remove(held);
    assert_eq!(begun["actor"], "admin_socket");
    assert_ne!(begun["result"], "done");

    holder.execute_batch("ROLLBACK").expect("the end of the turn");
    assert_eq!(wire.reply().await.status, 200);
    let ended = lines(&path, held + 2).await.remove(held + 1);
    assert_eq!((&ended["result"], &ended["request_id"]), (&json!("done"), &begun["request_id"]));
    assert_eq!(ended["action"], "POST /admin/purge/run");
}

/// Makes a key for all organizations. Returns its id and the value of its header.
async fn key(server: &TestServer, scopes: &[KeyScope]) -> (String, String) {
    let new = NewKey::new("test", Scope::All, scopes.iter().copied());
    let (key, secret) = server.store().keys().create(new).await.expect("a key");
    (key.id.to_string(), format!("Bearer {}", secret.expose()))
}

#[tokio::test]
async fn a_replacement_a_promotion_and_signed_urls_are_on_record_with_file_and_end() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("12345").ok().await.file_id;
    let (key_id, bearer) = key(&server, &[KeyScope::Read, KeyScope::Write]).await;
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let with_key = |call: Call| call.header("authorization", &bearer);

    with_key(server.change(&id).file("other").call()).send().await.expect(200);
    with_key(server.change(&id).field("make_as_ready", "true").call()).send().await.expect(200);
    with_key(server.change(unknown).file("other").call()).send().await.expect(404);
    let sign = server.post(&format!("/api/v1/files/{id}/sign"));
    let signed = with_key(sign).json(&json!({"size": 200})).send().await.expect(200).json();
    let place = json!({"organization_id": "acme", "sub_system": "docs", "expires_in_s": 60});
    let sign_upload = server.post("/api/v1/files/sign-upload").json(&place);
    let minted = with_key(sign_upload).send().await.expect(200).json();
    let refused = server.post(&format!("/api/v1/files/{unknown}/sign"));
    with_key(refused).send().await.expect(404);

    let lines = lines(&path, 6).await;
    assert!(lines.iter().all(|line| line["key_id"] == *key_id), "{lines:?}");
    let keys = ["action", "status", "report"];
    let put = json!("PUT /files/upload");
    let report = |change: &str| json!({"file_id": id, "change": change, "organization_id": "acme", "version": 2});
    assert_eq!(shown(&lines[0], &keys), [put.clone(), json!(200), report("replace")]);
    assert_eq!(shown(&lines[1], &keys), [put.clone(), json!(200), report("make_as_ready")]);
    let missed = json!({"file_id": unknown});
    assert_eq!(shown(&lines[2], &keys), [put, json!(404), missed]);

    let sign = json!("POST /files/{file_id}/sign");
    let end = json!({"expires_at": signed["expires_at"]});
    assert_eq!(shown(&lines[3], &keys), [sign.clone(), json!(200), end]);
    assert_eq!(lines[3]["path"], format!("/api/v1/files/{id}/sign"));
    assert_eq!(lines[3]["request"], json!({"size": 200}));
    let end = json!({"expires_at": minted["expires_at"]});
    assert_eq!(shown(&lines[4], &keys), [json!("POST /files/sign-upload"), json!(200), end]);
    assert_eq!(lines[4]["request"], place);
    assert_eq!(shown(&lines[5], &keys), [sign, json!(404), Value::Null]);

    let text = std::fs::read_to_string(&path).expect("the log");
    assert!(!text.contains("sig="), "no line lets its reader in: {text}");
}

/// Lists the method and the path of each row of the reference's table of routes that is not safe.
fn unsafe_routes() -> BTreeSet<(String, String)> {
    let reference = include_str!("../../filestore-server/docs/reference/access.md");
    let table = reference.split("| needs |\n|---|---|---|\n").nth(1).expect("the table");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| !["GET", "HEAD", "OPTIONS"].contains(&cells[0]))
        .map(|cells| (cells[0].to_owned(), cells[1].trim_matches('`').to_owned()))
        .collect()
}

#[tokio::test]
async fn each_route_that_changes_or_mints_something_leaves_a_line_also_when_it_refuses() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    // A key that may read: what needs more is 403, and to sign a file that is not there is 404.
    let (key_id, bearer) = key(&server, &[KeyScope::Read]).await;
    let mut routes = unsafe_routes();
    for (method, route) in &routes {
        let segments = route.split('/').map(|segment| match segment {
            "{fileId}" => "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            _ if segment.starts_with('{') => "x",
            _ => segment,
        });
        let sent = segments.collect::<Vec<_>>().join("/");
        let call = server.call(method.parse().expect("a method"), &format!("/api/v1{sent}"));
        let status = call.header("authorization", &bearer).send().await.status;
        assert!((400..500).contains(&status), "{method} {route}: {status}");
    }

    // These add files, and report a replacement only.
    for (method, adding) in [
        ("POST", "/files/upload"),
        ("POST", "/files/batch"),
        ("POST", "/uploads"),
        ("PATCH", "/uploads/{upload}"),
    ] {
        assert!(routes.remove(&(method.to_owned(), adding.to_owned())), "{adding}");
    }
    let mut audited = BTreeSet::new();
    for line in lines(&path, routes.len()).await {
        assert_eq!(shown(&line, &["key_id", "result"]), [json!(key_id), json!("refused")]);
        let action = line["action"].as_str().expect("a text");
        let action = action.replace("{file_id}", "{fileId}");
        let action = action.replace("{organization_id}", "{organizationId}");
        let (method, route) = action.split_once(' ').expect("a method");
        audited.insert((method.to_owned(), route.to_owned()));
    }
    assert_eq!(audited, routes);
}

#[tokio::test]
async fn a_restoration_of_many_files_is_on_record_with_its_result() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("x").ok().await.file_id;
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    let ids = json!({"ids": [id, unknown]});
    server.post("/api/v1/files/restore").json(&ids).send().await.expect(200);
    let line = lines(&path, 1).await.remove(0);
    assert_eq!(line["request"], ids);
    assert_eq!(line["report"], json!({"restored": 1, "failed": {unknown: "not_found"}}));
}

#[tokio::test]
async fn strangers_cannot_fill_the_audit_log() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let (_, bearer) = key(&server, &[KeyScope::Delete]).await;

    for number in 0..200 {
        let delete = server.call(Method::DELETE, "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV");
        let guess = format!("Bearer fsk_{number}");
        let call = if number % 2 == 0 { delete } else { delete.header("authorization", &guess) };
        call.send().await.problem(401, "unauthorized");
    }
    // A key's own line goes by no count.
    let delete = server.call(Method::DELETE, "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV");
    delete.header("authorization", &bearer).send().await.expect(404);
    server.stop().await;

    let lines = lines(&path, 3).await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(shown(&lines[0], &["actor", "status"]), [json!("anonymous"), json!(401)]);
    assert_eq!(shown(&lines[1], &["actor", "status"]), [json!("key"), json!(404)]);
    let keys = ["actor", "client", "repeated", "result"];
    let counted = [json!("anonymous"), json!("127.0.0.1"), json!(199), json!("refused")];
    assert_eq!(shown(&lines[2], &keys), counted);
}

#[tokio::test]
async fn the_audit_log_is_printable_ascii_whatever_is_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;

    let hostile = "\u{9b}31m\u{202e}\u{2028}\u{2029}\u{85}é";
    let target = format!("/api/v1/files/{hostile}");
    let delete = format!("DELETE {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(server.exchange(&delete).await.status, 400);
    let ids = json!({"ids": [hostile]});
    server.post("/api/v1/files/delete").json(&ids).send().await.expect(200);

    let read = lines(&path, 2).await;
    assert_eq!((&read[0]["path"], &read[1]["request"]), (&json!(target), &ids));
    assert_eq!(read[1]["report"]["failed"][hostile], "invalid_field");
    let text = std::fs::read(&path).expect("the log");
    assert!(text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')), "{}", text.escape_ascii());
}

#[tokio::test]
async fn an_audit_line_is_short_however_long_the_request_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server = TestServer::start_with(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("12345").ok().await.file_id;

    let one_long = json!({"ids": ["\u{9b}".repeat(30_000)]});
    server.post("/api/v1/files/delete").json(&one_long).send().await.expect(200);
    let others = (0..999).map(|n| format!("{}{n:03}", "\u{9b}".repeat(25)));
    let many: Vec<_> = std::iter::once(id.clone()).chain(others).collect();
    let many = json!({ "ids": many });
    server.post("/api/v1/files/delete").json(&many).send().await.expect(200);
    let unknown = json!({"\u{9b}".repeat(30_000): 1});
    let sign = server.post(&format!("/api/v1/files/{id}/sign")).json(&unknown);
    sign.send().await.expect(400);

    let read = lines(&path, 3).await;
    assert_eq!(read[1]["report"]["file_ids"], json!([id]));
    assert_eq!(read[1]["report"]["not_ids"], 999);
    assert_eq!(read[1]["report"]["failed"].as_object().map(serde_json::Map::len), Some(10));
    let text = std::fs::read_to_string(&path).expect("the log");
    assert!(text.lines().all(|line| line.len() < 8192), "{text}");
}
