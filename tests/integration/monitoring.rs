//! What operators see of a server: `/metrics` and the audit log.

use std::path::Path;
use std::time::Duration;

use filestore_core::Scope;
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

#[tokio::test]
async fn a_deletion_whose_client_went_away_is_on_record() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("audit.jsonl");
    let server =
        TestServer::start_with_sqlite(|config| config.audit_log = Some(path.clone())).await;
    let id = server.upload("12345").ok().await.file_id;

    let database = server.data_dir().join("metadata.sqlite3");
    let holder = rusqlite::Connection::open(database).expect("the database");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the turn to write");
    let mut client = TcpStream::connect(server.addr()).await.expect("a connection");
    let delete = format!("DELETE /api/v1/files/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(delete.as_bytes()).await.expect("the server reads");
    eventually("the deletion beside this look", async || {
        let text = server.get("/metrics").send().await.expect(200).text();
        sample(&text, "filestore_http_requests_running").filter(|running| *running >= 2.0)
    })
    .await;

    client.set_zero_linger().expect("a socket");
    drop(client);
    let line = lines(&path, 1).await.remove(0);
    assert_eq!(shown(&line, &["result", "status"]), [json!("abandoned"), Value::Null]);
    assert_eq!(line["path"], format!("/api/v1/files/{id}"));

    holder.execute_batch("ROLLBACK").expect("the end of the turn");
    eventually("the deletion", async || (server.info(&id).await.status == 404).then_some(())).await;
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
