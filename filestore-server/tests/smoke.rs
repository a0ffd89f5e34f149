//! A whole server on a free port, spoken to over HTTP: the seams between routes, forms and the store.

mod support;

use std::time::Duration;

use filestore_server::{Config, Server, StartError};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

struct Running {
    server: Server,
    client: Client,
    _dir: TempDir,
}

impl Running {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap(), dir.path().join("data"));
        change(&mut config);
        let client = support::http_client().build().unwrap();
        Self { server: Server::start(config).await.unwrap(), client, _dir: dir }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.server.url()))
    }

    async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    async fn send_form(&self, method: Method, path: &str, form: Form) -> Response {
        self.request(method, path).multipart(form).send().await.unwrap()
    }

    /// Uploads `bytes` for organization 7; returns the record.
    async fn upload(&self, bytes: &'static [u8]) -> Value {
        let form = form().part("file", Part::bytes(bytes).file_name("a.bin"));
        let response = self.send_form(Method::POST, "/api/v1/files/upload", form).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        response.json().await.unwrap()
    }

    /// Sends bytes as they are and reads until the server closes.
    async fn raw(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(self.server.local_addr()).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.unwrap();
        reply
    }
}

fn form() -> Form {
    Form::new().text("organization_id", "7").text("sub_system", "tests")
}

fn id_of(record: &Value) -> &str {
    record["file_id"].as_str().unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

/// Reads status, code and field of a problem.
async fn problem(response: Response) -> (u16, String, Option<String>) {
    assert_eq!(header(&response, "content-type"), "application/problem+json");

    let id = header(&response, "x-request-id").to_owned();
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["request_id"], json!(id));
    assert_eq!(body["status"], json!(status));

    let field = body["field"].as_str().map(str::to_owned);
    (status, body["code"].as_str().unwrap().to_owned(), field)
}

#[tokio::test]
async fn what_is_uploaded_is_read_back_whole_and_in_ranges() {
    let running = Running::start().await;
    let form = form()
        .part("file", Part::bytes(&b"hello world"[..]).file_name("C:\\tmp\\gr\u{fc}\u{df}e.txt"));
    let created = running.send_form(Method::POST, "/api/v1/files/upload", form).await;
    let (location, etag) =
        (header(&created, "location").to_owned(), header(&created, "etag").to_owned());
    let record: Value = created.json().await.unwrap();
    assert_eq!(location, format!("/api/v1/files/{}", id_of(&record)));
    assert_eq!(
        (&record["sync_status"], &record["original_name"]),
        (&json!("PENDING"), &json!("grüße.txt"))
    );

    let whole = running.get(&location).await;
    assert_eq!((header(&whole, "etag"), header(&whole, "content-length")), (etag.as_str(), "11"));
    assert_eq!(header(&whole, "content-type"), "text/plain; charset=utf-8");
    assert_eq!(whole.text().await.unwrap(), "hello world");

    let part =
        running.request(Method::GET, &location).header("range", "bytes=-5").send().await.unwrap();
    assert_eq!((part.status().as_u16(), header(&part, "content-range")), (206, "bytes 6-10/11"));
    assert_eq!(part.text().await.unwrap(), "world");

    let head =
        running.request(Method::HEAD, &location).header("range", "bytes=-5").send().await.unwrap();
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, "11"));

    let again = running
        .request(Method::GET, &location)
        .header("if-none-match", &etag)
        .send()
        .await
        .unwrap();
    assert_eq!((again.status().as_u16(), header(&again, "etag")), (304, etag.as_str()));
    running.server.stop().await;
}

#[tokio::test]
async fn a_large_file_is_streamed_both_ways() {
    let running = Running::start().await;
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let form = form().part("file", Part::bytes(bytes.clone()).file_name("large"));
    let created = running.send_form(Method::POST, "/api/v1/files/upload", form).await;
    let path = header(&created, "location").to_owned();
    assert_eq!(running.get(&path).await.bytes().await.unwrap(), bytes);

    let range = "bytes=1000000-9999999";
    let part = running.request(Method::GET, &path).header("range", range).send().await.unwrap();
    assert_eq!(part.bytes().await.unwrap(), bytes[1_000_000..10_000_000]);
    running.server.stop().await;
}

#[tokio::test]
async fn fields_may_follow_the_file_and_are_refused_by_name() {
    let running = Running::start().await;
    let file = || Part::bytes(&b"x"[..]).file_name("x");
    let path = "/api/v1/files/upload";
    let late =
        Form::new().part("file", file()).text("sub_system", "s").text("organization_id", "7");
    assert_eq!(running.send_form(Method::POST, path, late).await.status(), StatusCode::CREATED);

    for (bad, code, field) in [
        (form().part("file", file()).text("upload_tmp", "true"), "unknown_field", "upload_tmp"),
        (form().part("file", file()).part("file", file()), "repeated_field", "file"),
        (form().part("file", file()).text("upload_temp", "yes"), "invalid_field", "upload_temp"),
        (form(), "missing_field", "file"),
        (form().part("file", Part::bytes(&b""[..]).file_name("")), "missing_field", "file"),
        (
            Form::new().part("file", file()).text("sub_system", "s"),
            "missing_field",
            "organization_id",
        ),
    ] {
        let refused = problem(running.send_form(Method::POST, path, bad).await).await;
        assert_eq!(refused, (400, code.to_owned(), Some(field.to_owned())));
    }

    let page: Value = running.get("/api/v1/files").await.json().await.unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 1, "what was refused left nothing");
    running.server.stop().await;
}

#[tokio::test]
async fn a_batch_is_all_or_nothing_and_names_the_item() {
    let running = Running::start_with(|config| config.store.limits.max_file_size = 4).await;
    let item = |bytes: &'static [u8]| Part::bytes(bytes).file_name("f");
    let path = "/api/v1/files/batch";
    let bad = form().part("items[0].file", item(b"ok")).part("items[7].file", item(b"too large"));
    let response = running.send_form(Method::POST, path, bad).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let body: Value = response.json().await.unwrap();
    assert_eq!((&body["item"], &body["field"]), (&json!(7), &json!("items[7].file")));
    let page: Value = running.get("/api/v1/files").await.json().await.unwrap();
    assert_eq!(page["items"], json!([]));

    let good = form().part("items[9].file", item(b"nine")).part("items[2].file", item(b"two"));
    let good = good.text("items[9].original_name", "n");
    let records: Value = running.send_form(Method::POST, path, good).await.json().await.unwrap();
    assert_eq!((&records[0]["file_size"], &records[1]["original_name"]), (&json!(3), &json!("n")));
    running.server.stop().await;
}

#[tokio::test]
async fn a_change_answers_the_contracts_three_fields_and_honours_if_match() {
    let running = Running::start().await;
    let record = running.upload(b"one").await;
    let replace = || {
        Form::new()
            .text("file_id", id_of(&record).to_owned())
            .part("file", Part::bytes(&b"two"[..]).file_name("b.bin"))
    };

    let path = "/api/v1/files/upload";
    let stale =
        running.request(Method::PUT, path).header("if-match", "\"stale\"").multipart(replace());
    let refused = problem(stale.send().await.unwrap()).await;
    assert_eq!(refused, (412, "precondition_failed".to_owned(), Some("If-Match".to_owned())));

    let etag = format!("\"{}\"", record["sha256"].as_str().unwrap());
    let fresh = running.request(Method::PUT, path).header("if-match", etag).multipart(replace());
    let changed: Value = fresh.send().await.unwrap().json().await.unwrap();
    let keys: Vec<_> = changed.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["file_id", "sync_status", "updated_at"]);

    let content = running.get(&format!("/api/v1/files/{}", id_of(&record))).await;
    assert_eq!(content.text().await.unwrap(), "two");
    running.server.stop().await;
}

#[tokio::test]
async fn an_idempotent_upload_is_done_once() {
    let running = Running::start().await;
    let send = async |bytes: &'static [u8]| {
        let form = form().part("file", Part::bytes(bytes).file_name("f"));
        let request =
            running.request(Method::POST, "/api/v1/files/upload").header("idempotency-key", "k");
        let response = request.multipart(form).send().await.unwrap();
        let location = response.headers().get("location").cloned();
        (response.status().as_u16(), location, response.text().await.unwrap())
    };

    let first = send(b"x").await;
    assert_eq!(first.0, 201);
    assert_eq!(send(b"x").await, first, "the stored reply, headers included");
    assert_eq!(send(b"y").await.0, 422);
    running.server.stop().await;
}

#[tokio::test]
async fn paths_methods_and_ids_are_told_apart() {
    let running = Running::start().await;
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    for (method, path, status, allow) in [
        (Method::GET, "/nowhere".to_owned(), 404, None),
        (Method::GET, "/api/v1/files/x/y".to_owned(), 404, None),
        (Method::GET, "/api/v1/files/upload".to_owned(), 405, Some("POST, PUT")),
        (Method::GET, "/api/v1/files/batch".to_owned(), 405, Some("POST")),
        (Method::POST, "/api/v1/files".to_owned(), 405, Some("GET, HEAD")),
        (Method::OPTIONS, format!("/api/v1/files/{id}"), 405, Some("GET, HEAD, PATCH, DELETE")),
        (Method::PUT, format!("/api/v1/files/{id}/200/200"), 405, Some("GET, HEAD")),
        (Method::GET, format!("/api/v1/files/{id}/restore"), 405, Some("POST")),
        (Method::DELETE, format!("/api/v1/files/{id}"), 404, None),
        (Method::GET, format!("/api/v1/files/{}", id.to_lowercase()), 400, None),
        (Method::GET, "/api/v1/files/%zz".to_owned(), 400, None),
        (Method::GET, "/api/v1/files/x/201/201".to_owned(), 400, None),
        (Method::GET, format!("/api/v1/files/{id}/200/250"), 400, None),
        (Method::GET, format!("/api/v1/files/{id}/200/200?fit=fill"), 400, None),
        (Method::GET, format!("/api/v1/files/{id}/200/200"), 404, None),
        (Method::GET, "/api/v1/files?limit=0".to_owned(), 400, None),
        (Method::GET, "/api/v1/files?cursor=foreign".to_owned(), 400, None),
    ] {
        let response = running.request(method.clone(), &path).send().await.unwrap();
        let allowed =
            response.headers().get("allow").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(allowed.as_deref(), allow, "{method} {path}");
        assert_eq!(problem(response).await.0, status, "{method} {path}");
    }
    running.server.stop().await;
}

#[tokio::test]
async fn head_works_wherever_get_does() {
    let running = Running::start().await;
    let record = running.upload(b"x").await;
    let file = format!("/api/v1/files/{}", id_of(&record));

    for path in [
        "/api/v1/health-checks",
        "/api/v1/health-checks/ready",
        "/api/v1/files",
        "/api/v1/storage-providers",
        "/api/v1/organization-storage-bindings",
        "/api/v1/admin/sync/status",
        "/api/v1/admin/variants/status",
        &file,
        &format!("{file}/info"),
    ] {
        let get = running.get(path).await;
        let head = running.request(Method::HEAD, path).send().await.unwrap();
        assert_eq!((get.status(), head.status()), (StatusCode::OK, StatusCode::OK), "{path}");
        assert_eq!(header(&head, "content-length"), header(&get, "content-length"), "{path}");
    }
    running.server.stop().await;
}

#[tokio::test]
async fn a_request_id_is_the_servers_own() {
    let running = Running::start().await;
    let send = async || {
        let request =
            running.request(Method::GET, "/api/v1/health-checks").header("x-request-id", "mine");
        header(&request.send().await.unwrap(), "x-request-id").to_owned()
    };

    let (first, second) = (send().await, send().await);
    assert!(first.len() == 26 && first != second, "{first} {second}");
    running.server.stop().await;
}

#[tokio::test]
async fn a_public_prefix_is_in_locations_and_accepted_in_paths() {
    let running = Running::start_with(|config| {
        config.public_url = Some("https://x.example/a/b/".into());
        config.insecure_no_auth = true;
    })
    .await;
    let form = form().part("file", Part::bytes(&b"x"[..]).file_name("x"));
    let created = running.send_form(Method::POST, "/a/b/api/v1/files/upload", form).await;
    let location = header(&created, "location").to_owned();

    assert!(location.starts_with("/a/b/api/v1/files/"), "{location}");
    assert_eq!(
        running.get(&location).await.status(),
        StatusCode::OK,
        "a proxy that leaves the prefix"
    );
    assert_eq!(
        running.get(&location[4..]).await.status(),
        StatusCode::OK,
        "a proxy that strips it"
    );
    assert_eq!(running.get("/a/api/v1/files").await.status(), StatusCode::NOT_FOUND);
    running.server.stop().await;
}

#[tokio::test]
async fn an_announced_body_too_large_is_refused_before_it_is_sent() {
    let running = Running::start().await;
    let reply = running
        .raw(
            "POST /api/v1/files/upload HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
             content-type: multipart/form-data; boundary=b\r\ncontent-length: 99999999999\r\n\r\n",
        )
        .await;
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains(r#""limit":1073741824"#), "{reply}");
    running.server.stop().await;
}

#[tokio::test]
async fn a_client_that_stops_sending_is_told_so_and_leaves_nothing() {
    let running = Running::start_with(|config| config.body.idle = Duration::from_millis(50)).await;
    let reply = running
        .raw(
            "POST /api/v1/files/upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\
             content-type: multipart/form-data; boundary=b\r\n\r\n\
             --b\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\npart of it",
        )
        .await;
    assert!(
        reply.starts_with("HTTP/1.1 408 ") && reply.contains("\r\nconnection: close\r\n"),
        "{reply}"
    );

    let staging = running.server.store().data_dir().path().join("staging");
    assert_eq!(std::fs::read_dir(staging).unwrap().count(), 0);
    running.server.stop().await;
}

#[tokio::test]
async fn json_bodies_are_held_to_type_and_size() {
    let running = Running::start().await;
    let send = async |kind: &str, body: String| {
        let path = "/api/v1/organization-storage-bindings/create";
        let request = running.request(Method::POST, path).header("content-type", kind).body(body);
        problem(request.send().await.unwrap()).await
    };

    let json = "application/json; charset=utf-8";
    assert_eq!(send("text/plain", "{}".into()).await.0, 415);
    assert_eq!(send(json, format!("{{{}}}", " ".repeat(64 << 10))).await.0, 413);
    assert_eq!(send(json, "{".into()).await.1, "malformed_body");
    assert_eq!(send(json, r#"{"isActive":true,"isActive":true}"#.into()).await.1, "repeated_field");

    let unknown =
        r#"{"organizationId":1,"organizationName":"n","storageProvider":"a b","syncEnabled":true}"#;
    assert_eq!(send(json, unknown.into()).await.0, 422);
    running.server.stop().await;
}

#[tokio::test]
async fn a_deleted_file_is_gone_at_once_and_comes_back_restored() {
    let running =
        Running::start_with(|config| config.store.purge_grace = Duration::from_hours(1)).await;
    let record = running.upload(b"x").await;
    let path = format!("/api/v1/files/{}", id_of(&record));

    for _ in 0..2 {
        let deleted: Value =
            running.request(Method::DELETE, &path).send().await.unwrap().json().await.unwrap();
        let expected = json!({"fileId": id_of(&record), "deleted": true, "storageLocation": "LOCAL", "purgePending": true});
        assert_eq!(deleted, expected);
    }

    assert_eq!(running.get(&path).await.status(), StatusCode::NOT_FOUND);

    let info: Value = running.get(&format!("{path}/info")).await.json().await.unwrap();
    assert_eq!(info["purge_status"], json!("SYSTEM_PURGE"));

    let restored = running.request(Method::POST, &format!("{path}/restore")).send().await.unwrap();
    assert_eq!(restored.status(), StatusCode::OK);
    assert_eq!(running.get(&path).await.text().await.unwrap(), "x");
    running.server.stop().await;
}

#[tokio::test]
async fn the_admin_socket_speaks_the_same_api_and_goes_with_the_server() {
    let running = Running::start().await;
    let path = running.server.store().data_dir().admin_socket();
    let mut socket = UnixStream::connect(&path).await.unwrap();
    let request = "POST /api/v1/admin/purge/run HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                   content-type: application/json\r\ncontent-length: 16\r\n\r\n{\"dry_run\":true}";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains(r#""dry_run":true"#), "{reply}");

    running.server.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn stopping_lets_a_running_upload_finish() {
    let running = Running::start().await;
    let body = "--b\r\nContent-Disposition: form-data; name=organization_id\r\n\r\n7\r\n\
                --b\r\nContent-Disposition: form-data; name=sub_system\r\n\r\ns\r\n\
                --b\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\nhello\r\n--b--\r\n";
    let (start, rest) = body.split_at(100);
    let mut socket = TcpStream::connect(running.server.local_addr()).await.unwrap();
    let head = format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
         content-type: multipart/form-data; boundary=b\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );

    socket.write_all(head.as_bytes()).await.unwrap();
    let mut goes_on = [0; 25];
    socket.read_exact(&mut goes_on).await.unwrap();
    assert!(goes_on.starts_with(b"HTTP/1.1 100 "), "the request runs");

    socket.write_all(start.as_bytes()).await.unwrap();
    let finish = async {
        socket.write_all(rest.as_bytes()).await.unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.unwrap();
        reply
    };

    let ((), reply) = tokio::join!(running.server.stop(), finish);
    assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("0.0.0.0:0".parse().unwrap(), dir.path().to_owned());
    let refused = Server::start(config.clone()).await.unwrap_err();
    assert!(matches!(refused, StartError::Exposed { .. }) && refused.is_usage(), "{refused}");
    config.insecure_no_auth = true;
    Server::start(config).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_damaged_record_says_so_and_harms_no_other() {
    let running = Running::start().await;
    let bad = running.upload(b"bad").await;
    let good = running.upload(b"good").await;
    let database = running.server.store().data_dir().database();
    let vandal = rusqlite::Connection::open(database).unwrap();
    vandal.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    vandal.execute("UPDATE files SET width = 1 WHERE file_id = ?1", [id_of(&bad)]).unwrap();

    let refused = running.get(&format!("/api/v1/files/{}/info", id_of(&bad))).await;
    assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "record_damaged");
    assert!(problem["detail"].as_str().unwrap().contains("has to be repaired"), "{problem}");

    let listed: Value = running.get("/api/v1/files").await.json().await.unwrap();
    let listed = listed["items"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(id_of(&listed[0]), id_of(&good));
    assert_eq!(running.server.store().damage().damaged_rows, 1);
}
