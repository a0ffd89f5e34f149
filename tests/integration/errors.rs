//! Problems and request ids (reference §6), and the details that an error must not give away.

use filestore_workspace::{Form, TestServer, eventually, files_under, fixtures};
use insta::assert_json_snapshot;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn a_problem_has_every_member_of_the_contract() {
    let server = TestServer::start().await;
    let reply = server.get("/api/v1/files/nope").header("x-request-id", "mine").send().await;
    reply.problem(400, "invalid_field");
    assert_json_snapshot!(reply.json(), { ".request_id" => "[id]", ".instance" => "[urn]" }, @r#"
    {
      "code": "invalid_field",
      "detail": "a file id is an upper-case ULID of 26 characters",
      "field": "file_id",
      "instance": "[urn]",
      "request_id": "[id]",
      "status": 400,
      "title": "Bad Request",
      "type": "urn:filestore:problem:invalid_field"
    }
    "#);
}

#[tokio::test]
async fn every_reply_carries_its_own_request_id() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;

    let mut seen = std::collections::HashSet::new();
    for path in [
        "/api/v1/health-checks".to_owned(),
        format!("/api/v1/files/{id}"),
        format!("/api/v1/files/{id}/info"),
        "/api/v1/files/nope".to_owned(),
        "/nowhere".to_owned(),
    ] {
        let reply = server.get(&path).send().await;
        let request_id = reply.only("x-request-id").to_owned();
        assert!(!request_id.is_empty() && seen.insert(request_id), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_404() {
    let server = TestServer::start().await;
    for path in
        ["//", "/api", "/api/v1//", "/api/v2/files", "/api/v1/filez", "/api/v1/files/a/b/c/d"]
    {
        server.get(path).send().await.any_problem(404);
    }

    server.post("/nowhere").send().await.any_problem(404);
}

#[tokio::test]
async fn a_wrong_method_is_405_with_allow() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    for (method, path, allow) in [
        (Method::GET, "/api/v1/files/upload".to_owned(), vec!["POST", "PUT"]),
        (Method::DELETE, "/api/v1/files/upload".to_owned(), vec!["POST", "PUT"]),
        (Method::GET, "/api/v1/files/batch".to_owned(), vec!["POST"]),
        (Method::PUT, "/api/v1/files/batch".to_owned(), vec!["POST"]),
        (Method::POST, "/api/v1/health-checks".to_owned(), vec!["GET", "HEAD"]),
        (Method::POST, format!("/api/v1/files/{id}"), vec!["DELETE", "GET", "HEAD", "PATCH"]),
        (Method::PUT, format!("/api/v1/files/{id}"), vec!["DELETE", "GET", "HEAD", "PATCH"]),
        (Method::PATCH, "/api/v1/files/upload".to_owned(), vec!["POST", "PUT"]),
        (Method::POST, format!("/api/v1/files/{id}/200/200"), vec!["GET", "HEAD"]),
        (Method::DELETE, format!("/api/v1/files/{id}/info"), vec!["GET", "HEAD"]),
        (Method::GET, format!("/api/v1/files/{id}/restore"), vec!["POST"]),
        (Method::POST, "/api/v1/storage-providers".to_owned(), vec!["GET", "HEAD"]),
        (Method::GET, "/api/v1/organization-storage-bindings/create".to_owned(), vec!["POST"]),
        (Method::POST, "/api/v1/organization-storage-bindings/update".to_owned(), vec!["PUT"]),
        (Method::DELETE, "/api/v1/files".to_owned(), vec!["GET", "HEAD"]),
    ] {
        let reply = server.call(method.clone(), &path).send().await;
        assert_eq!(reply.status, 405, "{method} {path}: {}", reply.text());
        reply.any_problem(405);
        let mut allowed: Vec<&str> = reply.only("allow").split(',').map(str::trim).collect();
        allowed.retain(|method| *method != "OPTIONS");
        allowed.sort_unstable();
        assert_eq!(allowed, allow, "{method} {path}");
    }
}

#[tokio::test]
async fn head_works_wherever_get_does() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(300, 300)).ok().await.file_id;
    for path in [
        "/api/v1/health-checks".to_owned(),
        "/api/v1/health-checks/ready".to_owned(),
        "/api/v1/storage-providers".to_owned(),
        "/api/v1/organization-storage-bindings?organizationId=7".to_owned(),
        "/api/v1/files?organization_id=acme".to_owned(),
        format!("/api/v1/files/{id}"),
        format!("/api/v1/files/{id}/info"),
        format!("/api/v1/files/{id}/200/200"),
        "/api/v1/admin/sync/status".to_owned(),
        "/api/v1/files/nope".to_owned(),
        "/nowhere".to_owned(),
    ] {
        let (get, head) = (server.get(&path).send().await, server.head(&path).send().await);
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty(), "{path}");
        assert_eq!(head.only("content-type"), get.only("content-type"), "{path}");
    }
}

#[tokio::test]
async fn an_http_1_0_client_is_answered_and_its_connection_closed() {
    let server = TestServer::start().await;
    let id = server.upload("old friend").ok().await.file_id;
    let mut wire = server.wire().await;
    wire.send(format!("GET /api/v1/files/{id} HTTP/1.0\r\n\r\n")).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.body[..]), (200, &b"old friend"[..]));
    assert!(wire.ends().await);
}

#[tokio::test]
async fn text_that_is_no_utf_8_is_400() {
    let server = TestServer::start().await;
    let form = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .part("Content-Disposition: form-data; name=\"original_name\"", b"caf\xE9")
        .bytes("file", b"x");
    let reply = server.post("/api/v1/files/upload").form(form).send().await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(reply.any_problem(400).field.as_deref(), Some("original_name"));
    server.get("/api/v1/files?organization_id=%FF").send().await.any_problem(400);
}

#[tokio::test]
async fn what_is_not_multipart_or_json_is_415() {
    let server = TestServer::start().await;
    for (method, path) in [
        (Method::POST, "/api/v1/files/upload"),
        (Method::PUT, "/api/v1/files/upload"),
        (Method::POST, "/api/v1/files/batch"),
    ] {
        for kind in [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/mixed; boundary=x",
            "x",
        ] {
            let reply = server.call(method.clone(), path).body(kind, "a=b").send().await;
            assert_eq!(reply.status, 415, "{path} {kind}: {}", reply.text());
            reply.any_problem(415);
        }
        server.call(method, path).send().await.any_problem(415);
    }

    for path in ["create", "update"] {
        let method = if path == "create" { Method::POST } else { Method::PUT };
        let path = format!("/api/v1/organization-storage-bindings/{path}");
        server.call(method, &path).body("text/plain", "{}").send().await.any_problem(415);
    }
}

#[tokio::test]
async fn a_body_with_a_content_encoding_is_415() {
    let server = TestServer::start().await;
    let bind = "/api/v1/organization-storage-bindings/create";
    for (path, content_type) in
        [("/api/v1/files/upload", "multipart/form-data; boundary=x"), (bind, "application/json")]
    {
        let post = server.post(path).header("content-encoding", "gzip");
        let reply = post.body(content_type, "coded").send().await;
        let problem = reply.problem(415, "unsupported_media_type");
        assert_eq!(problem.field.as_deref(), Some("Content-Encoding"));
        assert_eq!(reply.only("accept-encoding"), "identity");
    }
    let form = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .bytes("file", b"x");

    let post = server.post("/api/v1/files/upload").header("content-encoding", "Identity");
    post.form(form).send().await.expect(201);
}

#[tokio::test]
async fn malformed_multipart_is_400() {
    let server = TestServer::start().await;
    let bodies: [(&str, &[u8]); 8] = [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"nothing like it"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nno header\r\n--x--\r\n"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--x--\r\n",
        ),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end",
        ),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\r\n\r\ntwo names\r\n--x--\r\n",
        ),
    ];

    for (kind, body) in bodies {
        let reply = server.post("/api/v1/files/upload").body(kind, body).send().await;
        assert_eq!(reply.status, 400, "{kind} {}: {}", String::from_utf8_lossy(body), reply.text());
        reply.any_problem(400);
    }
}

#[tokio::test]
async fn malformed_json_is_400() {
    let server = TestServer::start().await;
    let path = "/api/v1/organization-storage-bindings/create";
    for body in [
        "",
        "{",
        "[]",
        "7",
        "null",
        "\"x\"",
        "{\"organizationId\":}",
        "{} {}",
        "\u{feff}{}",
        "{'a':1}",
    ] {
        let reply = server.post(path).body("application/json", body).send().await;
        assert_eq!(reply.status, 400, "{body:?}: {}", reply.text());
        reply.any_problem(400);
    }

    let deep = "[".repeat(10_000);
    server.post(path).body("application/json", deep).send().await.any_problem(400);
}

#[tokio::test]
async fn json_over_64_kib_is_413() {
    let server = TestServer::start().await;
    let body = json!({ "organizationName": "x".repeat(65 << 10) });
    let reply =
        server.post("/api/v1/organization-storage-bindings/create").json(&body).send().await;
    reply.any_problem(413);
}

#[tokio::test]
async fn a_path_cannot_climb_out() {
    let server = TestServer::start().await;
    for path in [
        "/api/v1/files/../../../../etc/passwd",
        "/api/v1/files/%2e%2e/%2e%2e/etc/passwd",
        "/api/v1/files/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/files/%00",
        "//etc/passwd",
    ] {
        let reply =
            server.exchange(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert!([400, 404].contains(&reply.status), "{path}: {}", reply.status);
        assert!(!String::from_utf8_lossy(&reply.body).contains("root:"));
    }
}

#[tokio::test]
async fn an_error_tells_nothing_of_the_inside() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;

    // It gets its final name beside the reply.
    let blob = eventually("the blob under its final name", async || {
        let mut stored = files_under(&server.data_dir().join("blobs")).into_iter();
        stored.find(|blob| std::fs::read(blob).is_ok_and(|bytes| bytes == b"x"))
    });
    std::fs::remove_file(blob.await).unwrap();
    let reply = server.content(&id).send().await;
    let problem = reply.problem(500, "internal");
    let text = reply.text().to_lowercase();

    let dir = server.data_dir().to_string_lossy().to_lowercase();
    for secret in [&*dir, "sqlite", "select", "no such file", "os error", ".rs", "acme/"] {
        assert!(!text.contains(secret), "{secret} in {problem:?}");
    }
}

#[tokio::test]
async fn hostile_names_do_not_break_a_problem_document() {
    let server = TestServer::start().await;
    let field = "<script>\"\\\u{1F389}";
    let form = Form::new().text("organization_id", "acme").text(field, "x");
    let reply = server.post("/api/v1/files/upload").form(form).send().await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    reply.any_problem(400);
}

#[tokio::test]
async fn a_413_known_from_the_length_is_answered_before_reading_and_is_readable() {
    let server = TestServer::start_with(|config| config.store.limits.max_file_size = 1 << 20).await;
    let mut wire = server.wire().await;
    wire.send(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 4000000000\r\n\r\n",
    )
    .await;
    let reply = wire.reply().await;
    assert_eq!(reply.status, 413, "without a byte of the body");
    assert_eq!(reply.json()["code"], "too_large");

    // A browser reads the reply only once its body is sent: it must still be there.
    let mut browser = server.wire().await;
    browser
        .send("POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 4000000\r\n\r\n")
        .await;

    let piece = fixtures::noise(1, 100_000);
    for _ in 0..40 {
        browser.send(&piece).await;
    }
    assert_eq!(browser.reply().await.status, 413);
}

#[tokio::test]
async fn a_413_found_while_reading_is_readable_too() {
    let server = TestServer::start_with(|config| config.store.limits.max_file_size = 100_000).await;
    let reply = server.upload(fixtures::noise(1, 100_001)).send().await;
    assert_eq!(reply.problem(413, "too_large").limit, Some(100_000));
    server.upload(fixtures::noise(1, 100_000)).ok().await;
}

#[tokio::test]
async fn expect_100_continue_is_not_answered_with_100_when_the_length_is_too_large() {
    let server = TestServer::start_with(|config| config.store.limits.max_file_size = 1000).await;
    let mut wire = server.wire().await;
    wire.send(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 4000000\r\n\r\n",
    )
    .await;
    let status = wire.status_line().await;
    assert!(status.contains(" 413 "), "{status}");
}

#[tokio::test]
async fn a_header_block_that_is_too_large_is_431() {
    let server = TestServer::start().await;
    let mut wire = server.wire().await;
    let huge = "x".repeat(1 << 20);
    let _ = wire
        .try_send(format!(
            "GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\nX-Big: {huge}\r\n\r\n"
        ))
        .await;
    assert_eq!(wire.reply().await.status, 431);
}

#[tokio::test]
async fn a_request_line_that_is_too_long_is_414_and_a_far_longer_one_431() {
    let server = TestServer::start().await;
    // If a line of 66 KiB arrives in pieces, the block is over its limit before the line ends.
    for (target, statuses) in [(60 << 10, &[404][..]), (66 << 10, &[414, 431]), (1 << 20, &[431])] {
        let mut wire = server.wire().await;
        let path = format!("/{}", "x".repeat(target));
        // The server can close the connection before it has read the whole line.
        let _ = wire.try_send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        let reply = wire.reply().await;
        assert!(statuses.contains(&reply.status), "{target} bytes: {}", reply.status);
        assert_eq!(reply.body.is_empty(), reply.status != 404, "{target} bytes");
    }
}

#[tokio::test]
async fn what_is_not_http_is_400_and_the_connection_ends() {
    let server = TestServer::start().await;
    for junk in [
        "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let mut wire = server.wire().await;
        let _ = wire.try_send(junk).await;
        assert!(
            wire.reply_or_end().await.is_none_or(|reply| (400..506).contains(&reply.status)),
            "{junk:?}"
        );
    }

    server.get("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn ambiguous_lengths_are_refused() {
    let server = TestServer::start().await;
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: -1",
        "Content-Length: 5, 6",
        "Transfer-Encoding: gzip",
    ] {
        let mut wire = server.wire().await;
        wire.send(format!(
            "POST /api/v1/organization-storage-bindings/create HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{framing}\r\n\r\n{{}}xyz0\r\n\r\n"
        ))
        .await;
        let reply = wire.reply_or_end().await;
        assert!(reply.is_none_or(|reply| reply.status >= 400), "{framing}");
    }
}

#[tokio::test]
async fn a_request_without_exactly_one_host_is_400() {
    let server = TestServer::start().await;
    for hosts in ["", "Host: a\r\nHost: b\r\n"] {
        let reply =
            server.exchange(&format!("GET /api/v1/health-checks HTTP/1.1\r\n{hosts}\r\n")).await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (400, &"malformed_request".into()),
            "{hosts:?}"
        );
        assert!(reply.header("x-request-id").is_some());
    }

    assert_eq!(server.exchange("GET /api/v1/health-checks HTTP/1.0\r\n\r\n").await.status, 200);
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_turn() {
    let server = TestServer::start().await;
    let mut wire = server.wire().await;
    let get = "GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let missing = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    wire.send(format!("{get}{missing}{get}")).await;
    let statuses =
        [wire.reply().await.status, wire.reply().await.status, wire.reply().await.status];
    assert_eq!(statuses, [200, 404, 200]);
}
