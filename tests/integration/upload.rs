//! POST /api/v1/files/upload (reference §4.2).

use filestore_workspace::{Form, TestServer, files_under, fixtures, sha256_hex};

/// A whole, valid form but for what a test adds.
fn form() -> Form {
    Form::new().text("organization_id", "acme").text("sub_system", "gallery")
}

async fn post(server: &TestServer, form: Form) -> filestore_workspace::Reply {
    server.post("/api/v1/files/upload").form(form).send().await
}

/// Nothing visible, and no bytes of `content` anywhere on the disk.
async fn assert_nothing_stored(server: &TestServer, content: &[u8]) {
    assert_eq!(server.listed().await, [""; 0]);
    let kept = filestore_workspace::eventually("the removal of staged bytes", async || {
        let found = files_under(server.data_dir())
            .into_iter()
            .any(|file| std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(content)));
        (!found).then_some(())
    });
    kept.await;
}

#[tokio::test]
async fn an_upload_answers_201_with_location_etag_and_pending() {
    let server = TestServer::start().await;
    let reply = server.upload("hello").send().await.expect(201);
    assert!(reply.only("content-type").starts_with("application/json"));

    let record = reply.record();
    assert_eq!(record.sync_status, "PENDING");

    let location = reply.only("location");
    assert!(location.ends_with(&format!("/api/v1/files/{}", record.file_id)), "{location}");

    let content = server.content(&record.file_id).send().await.expect(200);
    assert_eq!(content.only("etag"), reply.only("etag"));
    assert!(reply.only("etag").starts_with('"'), "strong: {}", reply.only("etag"));
    assert_eq!(content.body, "hello");
}

#[tokio::test]
async fn the_fields_may_come_in_any_order() {
    let server = TestServer::start().await;
    let file_first = Form::new()
        .bytes("file", b"hello")
        .text("sub_system", "gallery")
        .text("original_name", "late.txt")
        .text("organization_id", "acme");
    let record = post(&server, file_first).await.expect(201).record();
    assert_eq!((&*record.original_name, record.file_size), ("late.txt", 5));
}

#[tokio::test]
async fn each_required_field_that_is_missing_is_400_and_named() {
    let server = TestServer::start().await;
    let file = |form: Form| form.bytes("file", b"x");
    for (missing, form) in [
        ("file", form()),
        ("organization_id", file(Form::new().text("sub_system", "gallery"))),
        ("sub_system", file(Form::new().text("organization_id", "acme"))),
    ] {
        let problem = post(&server, form).await.problem(400, "missing_field");
        assert_eq!(problem.field.as_deref(), Some(missing));
    }
    assert_nothing_stored(&server, b"x").await;
}

#[tokio::test]
async fn an_unknown_field_is_400_and_named_so_that_a_typo_does_not_pass() {
    let server = TestServer::start().await;
    let typo = form().text("upload_tmp", "true").bytes("file", b"x");
    let problem = post(&server, typo).await.problem(400, "unknown_field");
    assert_eq!(problem.field.as_deref(), Some("upload_tmp"));
    let late = form().bytes("file", b"x").text("purpose", "fun");
    let problem = post(&server, late).await.problem(400, "unknown_field");
    assert_eq!(problem.field.as_deref(), Some("purpose"));
    assert_nothing_stored(&server, b"x").await;
}

#[tokio::test]
async fn a_repeated_field_is_400_and_named() {
    let server = TestServer::start().await;
    let twice = form().text("organization_id", "acme").bytes("file", b"x");
    let problem = post(&server, twice).await.problem(400, "repeated_field");
    assert_eq!(problem.field.as_deref(), Some("organization_id"));
    let two_files = form().bytes("file", b"x").bytes("file", b"y");
    let problem = post(&server, two_files).await.problem(400, "repeated_field");
    assert_eq!(problem.field.as_deref(), Some("file"));
    assert_nothing_stored(&server, b"x").await;
}

#[tokio::test]
async fn the_charset_field_of_old_browsers_is_let_through() {
    let server = TestServer::start().await;
    post(&server, form().text("_charset_", "utf-8").bytes("file", b"x")).await.expect(201);
}

#[tokio::test]
async fn booleans_are_true_false_1_or_0_in_any_case() {
    let server = TestServer::start().await;
    for (text, status) in
        [("true", "TEMP"), ("TRUE", "TEMP"), ("1", "TEMP"), ("False", "READY"), ("0", "READY")]
    {
        let record = server.upload("x").field("upload_temp", text).ok().await;
        assert_eq!(record.status, status, "{text}");
    }

    for bad in ["", "yes", "on", "2", "tru", " true", "01"] {
        let problem =
            server.upload("x").field("upload_temp", bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("upload_temp"), "{bad:?}");
    }
}

#[tokio::test]
async fn an_empty_file_is_allowed() {
    let server = TestServer::start().await;
    let record = server.upload("").part_name("empty.txt").ok().await;
    assert_eq!((record.file_size, &*record.sha256), (0, &*sha256_hex(b"")));
    let content = server.content(&record.file_id).send().await.expect(200);
    assert_eq!((content.only("content-length"), content.body.len()), ("0", 0));
    server.variant(&record.file_id, 200).send().await.problem(422, "not_an_image");
}

#[tokio::test]
async fn a_file_input_that_was_left_empty_is_a_missing_file() {
    let server = TestServer::start().await;
    // What a browser sends for it: an empty file name and no bytes (WHATWG HTML, 4.10.22.4).
    let problem = server.upload("").part_name("").send().await.problem(400, "missing_field");
    assert_eq!(problem.field.as_deref(), Some("file"));
}

#[tokio::test]
async fn a_right_sha256_is_accepted_in_either_case() {
    let server = TestServer::start().await;
    let sum = sha256_hex(b"hello");
    server.upload("hello").sha256(&sum).ok().await;
    server.upload("hello").sha256(&sum.to_uppercase()).ok().await;
}

#[tokio::test]
async fn a_wrong_sha256_is_422_and_nothing_is_stored() {
    let server = TestServer::start().await;
    let reply = server.upload("corrupted in transit").sha256(&sha256_hex(b"hello")).send().await;
    reply.problem(422, "digest_mismatch");
    for bad in ["", "abc", &"g".repeat(64)] {
        let problem = server.upload("x").sha256(bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("sha256"), "{bad:?}");
    }
    assert_nothing_stored(&server, b"corrupted in transit").await;
}

#[tokio::test]
async fn an_upload_that_is_cut_off_is_no_upload() {
    let server = TestServer::start().await;
    let form = form().bytes("file", b"all of the bytes are there");
    let content_type = form.content_type();
    let reply =
        server.post("/api/v1/files/upload").body(&content_type, form.cut_off()).send().await;
    reply.problem(400, "malformed_body");
    assert_nothing_stored(&server, b"all of the bytes").await;
}

#[tokio::test]
async fn an_upload_whose_connection_breaks_leaves_nothing() {
    let server = TestServer::start().await;
    let form = form().bytes("file", &fixtures::noise(7, 300_000));
    let (content_type, body) = (form.content_type(), form.finish());
    let head = format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );

    let mut wire = server.wire().await;
    wire.send(head).await;
    wire.send(&body[..200_000]).await;
    drop(wire);
    assert_nothing_stored(&server, &fixtures::noise(7, 1000)).await;
}

#[tokio::test]
async fn an_upload_may_come_in_chunks_of_unknown_number() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(3, 200_000);
    let form = form().bytes("file", &bytes);
    let content_type = form.content_type();

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ))
    .await;
    for piece in form.finish().chunks(7919) {
        wire.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).await;
    }
    wire.send("0\r\n\r\n").await;
    let reply = wire.reply().await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["sha256"], sha256_hex(&bytes));
}

#[tokio::test]
async fn a_large_file_comes_back_as_it_was_sent() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(11, 9_000_001);
    let record = server.upload(&bytes).ok().await;
    let content = server.content(&record.file_id).send().await.expect(200);
    assert!(content.body == bytes);
}

#[tokio::test]
async fn bytes_that_look_like_a_boundary_are_kept() {
    let server = TestServer::start().await;
    let tricky = b"\r\n------filestore-test-9f2c4b7e1\r\n--\r\n\r\n----filestore\r\n-".as_slice();
    let record = server.upload(tricky).ok().await;
    assert_eq!(server.content(&record.file_id).send().await.expect(200).body, tricky);
}

#[tokio::test]
async fn an_upload_survives_a_restart() {
    let server = TestServer::start().await;
    let record = server.upload("durable").name("a.txt").ok().await;
    let server = server.restart().await;
    assert_eq!(server.content(&record.file_id).send().await.expect(200).body, "durable");
    assert_eq!(server.record(&record.file_id).await.original_name, "a.txt");
}
