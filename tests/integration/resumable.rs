//! Resumable uploads over tus 1.0 (reference: resumable uploads).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_workspace::wire::Wire;
use filestore_workspace::{Call, Reply, TestServer, eventually, fixtures, sha256_hex};
use reqwest::Method;

const CREATE: &str = "/api/v1/uploads?organization_id=acme&sub_system=docs";

/// An upload that a server knows by its address.
struct Tus<'s> {
    server: &'s TestServer,
    path: String,
}

fn tus(call: Call) -> Call {
    call.header("tus-resumable", "1.0.0")
}

async fn create(server: &TestServer, headers: &[(&str, &str)]) -> Reply {
    let call = tus(server.post(CREATE));
    headers.iter().fold(call, |call, (name, value)| call.header(name, value)).send().await
}

async fn of_length(server: &TestServer, length: usize) -> Tus<'_> {
    let reply = create(server, &[("upload-length", &length.to_string())]).await.expect(201);
    at(server, &reply)
}

fn at<'s>(server: &'s TestServer, reply: &Reply) -> Tus<'s> {
    Tus { server, path: reply.only("location").to_owned() }
}

impl Tus<'_> {
    fn call(&self, method: Method) -> Call {
        tus(self.server.call(method, &self.path))
    }

    fn patch(&self, offset: usize) -> Call {
        self.call(Method::PATCH).header("upload-offset", &offset.to_string())
    }

    async fn append(&self, offset: usize, bytes: &[u8]) -> Reply {
        let call = self.patch(offset);
        call.body("application/offset+octet-stream", bytes.to_vec()).send().await
    }

    async fn head(&self) -> Reply {
        self.call(Method::HEAD).send().await
    }

    async fn offset(&self) -> usize {
        self.head().await.expect(200).only("upload-offset").parse().unwrap()
    }

    /// Waits until the only upload of the server has kept bytes up to an offset. Ends no transfer.
    async fn wait_for(&self, offset: usize) {
        let kept = async || {
            let list = self.server.get("/api/v1/uploads?organization_id=acme").send().await.json();
            (list["items"][0]["offset"] == offset).then_some(())
        };
        eventually("kept bytes", kept).await;
    }

    /// Sends a PATCH that announces `length` bytes, with `bytes` of them, on a connection of its own.
    async fn begin(&self, offset: usize, length: usize, bytes: &[u8]) -> Wire {
        let mut wire = self.server.wire().await;
        let head = format!(
            "PATCH {} HTTP/1.1\r\nHost: {}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n\
             Content-Type: application/offset+octet-stream\r\nContent-Length: {length}\r\n\r\n",
            self.path,
            self.server.addr()
        );
        wire.send(head).await;
        wire.send(bytes).await;
        wire
    }
}

fn metadata(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<_> =
        pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
    pairs.join(",")
}

#[tokio::test]
async fn one_go() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 11).await;
    let head = upload.head().await.expect(200);
    assert_eq!((head.only("upload-offset"), head.only("upload-length")), ("0", "11"));
    assert_eq!(head.only("cache-control"), "no-store");
    assert_eq!(head.only("tus-resumable"), "1.0.0");

    let done = upload.append(0, b"hello world").await.expect(204);
    assert_eq!(done.only("upload-offset"), "11");
    let record = server.record(done.only("file-id")).await;
    assert_eq!(record.sha256, sha256_hex(b"hello world"));
    assert_eq!(done.only("etag"), format!("\"{}\"", record.sha256));
    assert_eq!((&*record.organization_id, &*record.sub_system), ("acme", "docs"));
    assert_eq!(server.content(&record.file_id).send().await.expect(200).body, "hello world");
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn many_pieces_are_one_file_and_offsets_never_decrease() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(7, 3_000_000);
    let upload = of_length(&server, bytes.len()).await;
    let mut offset = 0;
    for end in [1, 70_000, 70_001, 2_999_999, 3_000_000] {
        let reply = upload.append(offset, &bytes[offset..end]).await.expect(204);
        assert_eq!(reply.only("upload-offset"), end.to_string());
        assert_eq!(upload.offset().await, end);
        offset = end;
    }
    let file_id = upload.head().await.only("file-id").to_owned();
    assert_eq!(server.record(&file_id).await.sha256, sha256_hex(&bytes));
}

#[tokio::test]
async fn closed_after_10_kib() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(1, 20 << 10);
    let upload = of_length(&server, bytes.len()).await;
    drop(upload.begin(0, bytes.len(), &bytes[..10 << 10]).await);
    upload.wait_for(10 << 10).await;
    assert_eq!(upload.offset().await, 10 << 10);
    let done = upload.append(10 << 10, &bytes[10 << 10..]).await.expect(204);
    assert_eq!(server.record(done.only("file-id")).await.sha256, sha256_hex(&bytes));
}

#[tokio::test]
async fn half_open_line_does_not_block_head() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(2, 50 << 10);
    let upload = of_length(&server, bytes.len()).await;
    let mut old = upload.begin(0, bytes.len(), &bytes[..10 << 10]).await;
    // The connection stays open and says nothing more.
    upload.wait_for(10 << 10).await;
    let offset = upload.offset().await;
    assert_eq!(offset, 10 << 10);
    if let Some(reply) = old.reply_or_end().await {
        assert_eq!((reply.status, &reply.json()["code"]), (400, &"upload_superseded".into()));
    }
    let done = upload.append(offset, &bytes[offset..]).await.expect(204);
    assert_eq!(server.record(done.only("file-id")).await.sha256, sha256_hex(&bytes));
}

#[tokio::test]
async fn two_patches_at_one_offset_one_wins() {
    let server = TestServer::start().await;
    for _ in 0..5 {
        let upload = of_length(&server, 6).await;
        let (one, other) = tokio::join!(upload.append(0, b"aaaaaa"), upload.append(0, b"bbbbbb"));
        let (winner, loser, letter) =
            if one.status == 204 { (one, other, "a") } else { (other, one, "b") };
        let file_id = winner.expect(204).only("file-id").to_owned();
        let code = if loser.status == 400 { "upload_superseded" } else { "upload_offset_mismatch" };
        loser.problem(if loser.status == 400 { 400 } else { 409 }, code);
        let content = server.content(&file_id).send().await.expect(200).text();
        assert_eq!(content, letter.repeat(6));
    }
    assert_eq!(server.listed().await.len(), 5);
}

#[tokio::test]
async fn a_wrong_offset_is_409_and_hears_the_right_one() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 11).await;
    upload.append(0, b"hello").await.expect(204);
    for wrong in [0, 4, 6] {
        let reply = upload.append(wrong, b"x").await;
        reply.problem(409, "upload_offset_mismatch");
        assert_eq!(reply.only("upload-offset"), "5");
    }
}

#[tokio::test]
async fn length_exceeded_leaves_no_file() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    upload.append(0, b"hello!").await.problem(413, "upload_length_exceeded");
    assert_eq!(upload.offset().await, 0, "known by Content-Length: the upload stays");

    let mut wire = server.wire().await;
    let head = format!(
        "PATCH {} HTTP/1.1\r\nHost: {}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n\
         Content-Type: application/offset+octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        upload.path,
        server.addr()
    );
    wire.send(head).await;
    wire.send("6\r\nhello!\r\n0\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 413);
    upload.call(Method::GET).send().await.problem(410, "upload_gone");
    assert_eq!(server.listed().await, [""; 0]);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn delete_ends_running_patch() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 50 << 10).await;
    let mut running = upload.begin(0, 50 << 10, &[7; 1000]).await;
    let arrived = async || {
        let listed = server.get("/api/v1/uploads?organization_id=acme").send().await.json();
        (server.staged() == 1 && listed["items"][0]["state"] == "open").then_some(())
    };
    eventually("the upload", arrived).await;
    upload.call(Method::DELETE).send().await.expect(204);
    upload.call(Method::GET).send().await.problem(404, "not_found");
    if let Some(reply) = running.reply_or_end().await {
        assert!([400, 404].contains(&reply.status));
    }
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn a_delete_ends_the_upload_and_never_the_file() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let file_id = upload.append(0, b"hello").await.expect(204).only("file-id").to_owned();
    upload.call(Method::DELETE).send().await.expect(204);
    upload.call(Method::GET).send().await.problem(404, "not_found");
    upload.call(Method::DELETE).send().await.problem(404, "not_found");
    server.content(&file_id).send().await.expect(200);
}

#[tokio::test]
async fn a_restart_goes_on_at_the_told_offset() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(3, 300_000);
    let upload = of_length(&server, bytes.len()).await;
    upload.append(0, &bytes[..123_456]).await.expect(204);
    let path = upload.path.clone();
    let server = server.restart().await;
    let upload = Tus { server: &server, path };
    assert_eq!(upload.offset().await, 123_456);
    let done = upload.append(123_456, &bytes[123_456..]).await.expect(204);
    assert_eq!(server.record(done.only("file-id")).await.sha256, sha256_hex(&bytes));
}

#[tokio::test]
async fn creation_takes_bytes_and_the_fields_of_the_metadata() {
    let server = TestServer::start().await;
    let fields = metadata(&[
        ("organization_id", "acme"),
        ("sub_system", "gallery"),
        ("filename", "grüße.txt"),
        ("filetype", "text/x-own"),
        ("metadata", r#"{"a":1}"#),
        ("relativePath", "null"),
    ]);
    let reply = tus(server.post("/api/v1/uploads"))
        .header("upload-length", "5")
        .header("upload-metadata", &fields)
        .body("application/offset+octet-stream; charset=x", "hello")
        .send()
        .await
        .expect(201);
    assert_eq!(reply.only("upload-offset"), "5");
    let record = server.record(reply.only("file-id")).await;
    assert_eq!((&*record.original_name, &*record.sub_system), ("grüße.txt", "gallery"));
    assert_eq!(record.metadata["a"], 1);
    let upload = at(&server, &reply);
    assert_eq!(upload.head().await.only("upload-metadata"), fields, "as it was sent");
}

#[tokio::test]
async fn fields_that_are_wrong_are_named() {
    let server = TestServer::start().await;
    let post = |query: &str, fields: &str| {
        tus(server.post(&format!("/api/v1/uploads?{query}")))
            .header("upload-length", "5")
            .header("upload-metadata", fields)
    };
    let org = metadata(&[("organization_id", "acme")]);
    let repeated = post("organization_id=acme&sub_system=x", &org).send().await;
    let problem = repeated.problem(400, "repeated_field");
    assert_eq!(problem.field.as_deref(), Some("organization_id"));
    let problem = post("sub_sytem=x", &org).send().await.problem(400, "unknown_field");
    assert_eq!(problem.field.as_deref(), Some("sub_sytem"));
    let problem = post("", &org).send().await.problem(400, "missing_field");
    assert_eq!(problem.field.as_deref(), Some("sub_system"));
    let problem = post("sub_system=x", "organization_id !!").send().await;
    assert_eq!(problem.problem(400, "invalid_field").field.as_deref(), Some("Upload-Metadata"));
    let problem = post("sub_system=x", &format!("{org},upload_temp bWF5YmU=")).send().await;
    assert_eq!(problem.problem(400, "invalid_field").field.as_deref(), Some("upload_temp"));
    assert_eq!(server.staged(), 0);
}

#[tokio::test]
async fn the_headers_of_a_creation_are_strict() {
    let server = TestServer::start().await;
    create(&server, &[]).await.problem(411, "length_required");
    create(&server, &[("upload-length", "-1")]).await.problem(400, "invalid_field");
    create(&server, &[("upload-defer-length", "2")]).await.problem(400, "invalid_field");
    let both = [("upload-length", "1"), ("upload-defer-length", "1")];
    create(&server, &both).await.problem(400, "invalid_field");
    let too_large = (17_u64 << 30).to_string();
    create(&server, &[("upload-length", &too_large)]).await.problem(413, "too_large");

    let lost = server.post(CREATE).header("upload-length", "5").send().await;
    lost.problem(412, "unsupported_version");
    assert_eq!(lost.only("tus-version"), "1.0.0");
    let old = server.post(CREATE).header("tus-resumable", "0.2.2").header("upload-length", "5");
    old.send().await.problem(412, "unsupported_version");
    let coded = create(&server, &[("upload-length", "5"), ("content-encoding", "gzip")]).await;
    coded.problem(415, "unsupported_media_type");
    assert_eq!(server.staged(), 0);
}

#[tokio::test]
async fn deferred_length_ends_by_empty_patch() {
    let server = TestServer::start().await;
    let reply = create(&server, &[("upload-defer-length", "1")]).await.expect(201);
    let upload = at(&server, &reply);
    assert_eq!(upload.head().await.only("upload-defer-length"), "1");
    upload.append(0, b"hello").await.expect(204);
    let done = upload.patch(5).header("upload-length", "5");
    let done = done.body("application/offset+octet-stream", "").send().await.expect(204);
    assert_eq!(server.content(done.only("file-id")).send().await.expect(200).body, "hello");
}

#[tokio::test]
async fn zero_bytes_finish_in_post() {
    let server = TestServer::start().await;
    let reply = create(&server, &[("upload-length", "0")]).await.expect(201);
    assert_eq!(server.record(reply.only("file-id")).await.file_size, 0);
}

#[tokio::test]
async fn lost_last_reply_is_replayed() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let first = upload.append(0, b"hello").await.expect(204);
    let again = upload.append(5, b"").await.expect(204);
    assert_eq!(first.only("file-id"), again.only("file-id"));
    assert_eq!(server.listed().await.len(), 1);
    upload.append(4, b"o").await.problem(409, "upload_offset_mismatch");
}

#[tokio::test]
async fn a_repeated_creation_finds_its_upload() {
    let server = TestServer::start().await;
    let keyed = [("upload-length", "5"), ("idempotency-key", "k")];
    let first = create(&server, &keyed).await.expect(201);
    at(&server, &first).append(0, b"he").await.expect(204);
    let again = create(&server, &keyed).await.expect(201);
    assert_eq!(again.only("location"), first.only("location"));
    assert_eq!((again.only("upload-offset"), again.only("idempotency-replayed")), ("2", "true"));
    let other = [("upload-length", "6"), ("idempotency-key", "k")];
    create(&server, &other).await.problem(422, "idempotency_mismatch");
}

#[tokio::test]
async fn failed_end_is_not_told_as_complete() {
    let server = TestServer::start_with(|config| config.store.require_binding = true).await;
    let reply = tus(server.post("/api/v1/uploads?organization_id=42&sub_system=docs"));
    let reply = reply.header("upload-length", "5").send().await.expect(201);
    let upload = at(&server, &reply);
    upload.append(0, b"hello").await.problem(409, "binding_required");
    assert_eq!(upload.offset().await, 4);
    server.bind(42, "LOCAL", true).await;
    let done = upload.append(4, b"o").await.expect(204);
    assert_eq!(server.content(done.only("file-id")).send().await.expect(200).body, "hello");
}

#[tokio::test]
async fn a_digest_that_differs_fails_the_upload() {
    let server = TestServer::start().await;
    let sum = metadata(&[("sha256", &sha256_hex(b"other"))]);
    let reply = create(&server, &[("upload-length", "5"), ("upload-metadata", &sum)]).await;
    let upload = at(&server, &reply.expect(201));
    upload.append(0, b"hello").await.problem(422, "digest_mismatch");
    let gone = upload.call(Method::GET).send().await.problem(410, "upload_gone");
    assert!(gone.detail.contains("digest_mismatch"), "{}", gone.detail);
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_checksum_that_differs_is_460_and_its_bytes_do_not_count() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 11).await;
    let checked = |offset: usize, sum: &str, bytes: &'static str| {
        let call = upload.patch(offset).header("upload-checksum", sum);
        call.body("application/offset+octet-stream", bytes).send()
    };
    let sum = "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=";
    let reply = checked(0, sum, "jello world").await;
    reply.problem(460, "checksum_mismatch");
    assert_eq!(upload.offset().await, 0);
    checked(0, "crc32 YQ==", "hello world").await.problem(400, "invalid_field");
    checked(0, sum, "hello world").await.expect(204);
}

#[tokio::test]
async fn media_type_with_parameters_and_no_other() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    for wrong in ["application/octet-stream", "multipart/form-data", ""] {
        let reply = upload.patch(0).body(wrong, "hello").send().await;
        reply.problem(415, "unsupported_media_type");
    }
    let odd = "Application/Offset+Octet-Stream; charset=utf-8";
    upload.patch(0).body(odd, "hello").send().await.expect(204);
}

#[tokio::test]
async fn a_post_can_stand_for_another_method() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let meant = |method: &str| upload.call(Method::POST).header("x-http-method-override", method);
    let patch = meant("PATCH").header("upload-offset", "0");
    patch.body("application/offset+octet-stream", "he").send().await.expect(204);
    let head = meant("HEAD").send().await.expect(200);
    assert_eq!(head.only("upload-offset"), "2");
    meant("GET").send().await.problem(400, "invalid_field");
    meant("DELETE").send().await.expect(204);
    upload.call(Method::GET).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn options_says_what_is_supported() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    for path in ["/api/v1/uploads", &upload.path] {
        let reply = server.call(Method::OPTIONS, path).send().await.expect(204);
        assert_eq!((reply.only("tus-version"), reply.only("tus-resumable")), ("1.0.0", "1.0.0"));
        assert!(reply.only("tus-extension").contains("creation-with-upload"));
        assert_eq!(reply.only("tus-max-size"), (16_u64 << 30).to_string());
        assert_eq!(reply.only("tus-checksum-algorithm"), "sha1,sha256");
    }
}

#[tokio::test]
async fn an_upload_replaces_a_file_on_its_condition() {
    let server = TestServer::start().await;
    let file = server.upload("old").send().await.expect(201);
    let (id, tag) = (file.file_id(), file.only("etag").to_owned());
    let replace = |tag: &str| {
        let call = tus(server.post(&format!("/api/v1/uploads?file_id={id}")));
        call.header("upload-length", "3").header("if-match", tag)
    };
    replace("\"0\"").send().await.problem(412, "precondition_failed");
    let one = at(&server, &replace(&tag).send().await.expect(201));
    let two = at(&server, &replace(&tag).send().await.expect(201));
    assert_eq!(one.append(0, b"new").await.expect(204).only("file-id"), id);
    assert_eq!(server.record(&id).await.version, 2);
    two.append(0, b"two").await.problem(412, "precondition_failed");
    assert_eq!(server.content(&id).send().await.expect(200).body, "new");
}

#[tokio::test]
async fn a_finished_upload_redirects_to_its_file_and_shows_json_on_request() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let open = upload.call(Method::GET).send().await.expect(200).json();
    assert_eq!((&open["state"], &open["offset"]), (&"open".into(), &0.into()));
    let file_id = upload.append(0, b"hello").await.expect(204).only("file-id").to_owned();
    let there = upload.call(Method::GET).send().await.expect(303);
    assert_eq!(there.only("location"), format!("/api/v1/files/{file_id}"));
    let json = upload.call(Method::GET).header("accept", "application/json").send().await;
    let json = json.expect(200).json();
    assert_eq!((&json["state"], &json["file_id"]), (&"finished".into(), &file_id.into()));
    assert_eq!(json["complete"], true);

    server.delete(json["file_id"].as_str().unwrap()).await.expect(200);
    upload.call(Method::GET).send().await.problem(410, "upload_gone");
}

#[tokio::test]
async fn a_list_shows_no_addresses_and_ends_no_transfer() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let _running = upload.begin(0, 5, b"he").await;
    let list = server.get("/api/v1/uploads?organization_id=acme&limit=1").send().await.expect(200);
    let id = list.json()["items"][0]["upload_id"].as_str().unwrap().to_owned();
    assert!(upload.path.contains(&id));
    let token = upload.path.rsplit('.').next().unwrap();
    assert!(!list.text().contains(token));
    assert_eq!(list.json()["next_cursor"], id);
    let next = format!("/api/v1/uploads?organization_id=acme&cursor={id}");
    assert_eq!(server.get(&next).send().await.expect(200).json()["items"], serde_json::json!([]));
    server.get("/api/v1/uploads").send().await.problem(400, "missing_field");
}

#[tokio::test]
async fn location_without_public_url_is_a_path_and_with_it_absolute() {
    let server = TestServer::start().await;
    let reply = create(&server, &[("upload-length", "5")]).await.expect(201);
    assert!(reply.only("location").starts_with("/api/v1/uploads/"));
    let public = |config: &mut filestore_server::Config| {
        config.public_url = Some("https://files.example/s".into());
        config.insecure_no_auth = true;
    };
    let server = TestServer::start_with(public).await;
    let reply = create(&server, &[("upload-length", "5")]).await.expect(201);
    let location = reply.only("location");
    assert!(location.starts_with("https://files.example/s/api/v1/uploads/"), "{location}");
}

#[tokio::test]
async fn a_wrong_token_and_a_foreign_organization_are_unknown() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let mut wrong = upload.path.clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == 'A' { 'B' } else { 'A' });
    for path in [&*wrong, "/api/v1/uploads/x", "/api/v1/uploads/01ARZ3NDEKTSV4RRFFQ69G5FAV.x"] {
        tus(server.call(Method::GET, path)).send().await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn plain_upload_in_one_request() {
    let server = TestServer::start().await;
    let reply = server
        .post(CREATE)
        .header("content-disposition", "inline; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt")
        .body("text/plain", "hello")
        .send()
        .await
        .expect(201);
    let record = reply.record();
    assert_eq!((&*record.original_name, &*record.mime_type), ("grüße.txt", "text/plain"));
    assert_eq!(reply.only("etag"), format!("\"{}\"", sha256_hex(b"hello")));
}

#[tokio::test]
async fn same_final_twice_is_one_file() {
    let server = TestServer::start().await;
    let mut parts = Vec::new();
    for piece in ["hello ", "world"] {
        let length = piece.len().to_string();
        let partial = [("upload-concat", "partial"), ("upload-length", &length)];
        let part = at(&server, &create(&server, &partial).await.expect(201));
        let done = part.append(0, piece.as_bytes()).await.expect(204);
        assert_eq!(done.header("file-id"), None, "a part is no file");
        assert_eq!(part.head().await.expect(200).only("upload-concat"), "partial");
        parts.push(part.path);
    }
    assert_eq!(server.listed().await, [""; 0]);

    let concat = format!("final;{} {}", parts[0], parts[1]);
    let first = create(&server, &[("upload-concat", &concat)]).await.expect(201);
    let again = create(&server, &[("upload-concat", &concat)]).await.expect(201);
    assert_eq!(first.only("file-id"), again.only("file-id"));
    let content = server.content(first.only("file-id")).send().await.expect(200);
    assert_eq!(content.body, "hello world");

    let whole = at(&server, &first);
    assert_eq!(whole.head().await.expect(200).only("upload-concat"), concat);
    whole.append(11, b"!").await.problem(403, "upload_final");
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn foreign_and_unfinished_parts_are_400_without_a_reason() {
    let server = TestServer::start().await;
    let of = async |organization: &str| {
        let path = format!("/api/v1/uploads?organization_id={organization}");
        let call = tus(server.post(&path)).header("upload-concat", "partial");
        let reply = call.header("upload-length", "2").send().await.expect(201);
        at(&server, &reply)
    };
    let (unfinished, foreign) = (of("acme").await, of("other").await);
    foreign.append(0, b"xx").await.expect(204);
    let nobodys = "/api/v1/uploads/01ARZ3NDEKTSV4RRFFQ69G5FAV.kq3VxJ0m2pQeT8rLw1uYzA";
    let mut told = Vec::new();
    for part in [&*unfinished.path, &foreign.path, nobodys] {
        let reply = create(&server, &[("upload-concat", &format!("final;{part}"))]).await;
        told.push(reply.problem(400, "invalid_field").detail);
    }
    assert!(told.iter().all(|detail| *detail == told[0]), "{told:?}");
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_form_is_no_plain_upload() {
    let server = TestServer::start().await;
    let form = filestore_workspace::Form::new().bytes("file", b"hello");
    server.post(CREATE).form(form).send().await.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn abandoned_session_goes() {
    let short = |config: &mut filestore_server::Config| {
        config.store.uploads.max_open_per_organization = 1;
    };
    let server = TestServer::start_with(short).await;
    let upload = of_length(&server, 5).await;
    let full = create(&server, &[("upload-length", "5")]).await;
    full.problem(503, "too_many_uploads");
    assert_eq!(full.only("retry-after"), "60");
    upload.call(Method::DELETE).send().await.expect(204);
    create(&server, &[("upload-length", "5")]).await.expect(201);
}

#[tokio::test]
async fn a_finished_upload_answers_with_its_record_on_request() {
    let server = TestServer::start().await;
    let upload = of_length(&server, 5).await;
    let append = |offset: usize, bytes: &'static str| {
        let call = upload.patch(offset).header("prefer", "respond-async, return=representation");
        call.body("application/offset+octet-stream", bytes).send()
    };
    let unfinished = append(0, "hell").await.expect(204);
    assert_eq!(unfinished.header("preference-applied"), None);
    let done = append(4, "o").await.expect(200);
    assert_eq!(done.only("preference-applied"), "return=representation");
    assert_eq!(done.record().sha256, sha256_hex(b"hello"));
    assert_eq!((done.only("file-id"), done.only("upload-offset")), (&*done.file_id(), "5"));

    let empty = create(&server, &[("upload-length", "0"), ("prefer", "return=representation")]);
    let empty = empty.await.expect(201);
    assert!(empty.only("location").contains("/uploads/"), "the address of the upload");
    assert_eq!(empty.record().file_size, 0);
}
