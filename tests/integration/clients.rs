//! Requests as the libraries of others send them (reference §2.1, §4 and §4.2): names and text in older
//! encodings, blank fields, marks and percent signs, and lengths and codings of bodies.

use std::collections::BTreeMap;

use filestore_workspace::{Reply, TestServer, fixtures};
use reqwest::Method;
use serde_json::json;

/// The header block of a part called `{field}`, and the name that it means.
const NAMES: [(&[u8], &str); 12] = [
    // .NET and PowerShell 7
    (
        b"form-data; name=\"{field}\"; filename=\"=?utf-8?B?w6RiYy50eHQ=?=\"; filename*=utf-8''%C3%A4bc.txt",
        "äbc.txt",
    ),
    (b"form-data; name=\"{field}\"; filename=\"=?utf-8?B?w6RiYy50eHQ=?=\"", "äbc.txt"),
    (b"form-data; name=\"{field}\"; filename=\"=?ISO-8859-1?Q?gr=F6=DFe?=\"", "größe"),
    // Apache HttpClient
    (b"form-data; name=\"{field}\"; filename=\"???.txt\"; filename*=UTF-8''%E4%B8%AD%E6%96%87%E5%AD%97.txt", "中文字.txt"),
    (b"form-data; name=\"{field}\"; filename=\"gr__e.txt\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt", "größe.txt"),
    (b"form-data; name=\"{field}\"; filename=\"gr\xF6\xDFe.txt\"", "größe.txt"),
    (b"form-data; name=\"{field}\"; filename=\"gr\xF6\xDFe\"; filename*=UTF-8''gr%C3%B6%C3%9Fe", "größe"),
    // Python's email package
    (b"form-data; name=\"{field}\";\r\n filename*=utf-8''gr%C3%B6%C3%9Fe.txt", "größe.txt"),
    (
        b"form-data; name=\"{field}\";\r\n filename*0*=utf-8''gr%C3%B6;\r\n\tfilename*1*=%C3%9Fe.txt",
        "größe.txt",
    ),
    (b"form-data; name=\"{field}\"; filename*=iso-8859-1'de'gr%F6%DFe.txt", "größe.txt"),
    // A name of its own stays, also with percent signs, as aiohttp sends a blank.
    (b"form-data; name=\"{field}\"; filename=\"a_b.txt\"; filename*=UTF-8''c.txt", "a_b.txt"),
    (b"form-data; name=\"{field}\"; filename=\"my%20file.txt\"", "my%20file.txt"),
];

/// Writes a form of raw header blocks and bodies, with the boundary `b`.
fn form(parts: &[(Vec<u8>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, bytes) in parts {
        body.extend([b"--b\r\n", &head[..], b"\r\n\r\n", &bytes[..], b"\r\n"].concat());
    }
    body.extend_from_slice(b"--b--\r\n");
    body
}

fn text(name: &str, value: &'static [u8]) -> (Vec<u8>, &'static [u8]) {
    (format!("Content-Disposition: form-data; name=\"{name}\"").into_bytes(), value)
}

/// Fills in the name of the field.
fn disposition(template: &[u8], field: &str) -> Vec<u8> {
    let at = template.windows(7).position(|text| text == b"{field}").unwrap();
    [b"Content-Disposition: ", &template[..at], field.as_bytes(), &template[at + 7..]].concat()
}

async fn send(
    server: &TestServer,
    method: Method,
    path: &str,
    parts: &[(Vec<u8>, &[u8])],
) -> Reply {
    let call = server.call(method, path);
    call.body("multipart/form-data; boundary=b", form(parts)).send().await
}

async fn upload(server: &TestServer, parts: Vec<(Vec<u8>, &[u8])>) -> Reply {
    let place = vec![text("organization_id", b"acme"), text("sub_system", b"docs")];
    send(server, Method::POST, "/api/v1/files/upload", &[place, parts].concat()).await
}

#[tokio::test]
async fn the_name_that_a_client_means_is_stored_in_uploads_batches_and_replacements() {
    let server = TestServer::start().await;
    let mut batch = vec![text("organization_id", b"acme"), text("sub_system", b"docs")];
    for (index, (template, name)) in NAMES.iter().enumerate() {
        let shown = template.escape_ascii();
        let reply =
            upload(&server, vec![(disposition(template, "file"), &b"x"[..])]).await.expect(201);
        assert_eq!(reply.json()["original_name"], *name, "{shown}");

        let id = reply.json()["file_id"].as_str().unwrap().to_owned();
        server.edit(&id, &json!({ "original_name": "other" })).send().await.expect(200);
        let head = b"Content-Disposition: form-data; name=file_id".to_vec();
        let change = [(head, id.as_bytes()), (disposition(template, "file"), &b"y"[..])];
        send(&server, Method::PUT, "/api/v1/files/upload", &change).await.expect(200);
        assert_eq!(server.record(&id).await.original_name, *name, "{shown}");

        batch.push((disposition(template, &format!("items[{index}].file")), &b"x"[..]));
    }

    let reply = send(&server, Method::POST, "/api/v1/files/batch", &batch).await.expect(201);
    for (index, (template, name)) in NAMES.iter().enumerate() {
        assert_eq!(reply.json()[index]["original_name"], *name, "{}", template.escape_ascii());
    }
}

#[tokio::test]
async fn a_signed_upload_stores_the_name_and_type_that_a_client_means() {
    let server = TestServer::start().await;
    let wish = json!({ "organization_id": "acme", "sub_system": "docs" });
    let signed = server.post("/api/v1/files/sign-upload").json(&wish).send().await.expect(200);
    let url = signed.json()["url"].as_str().unwrap().to_owned();
    let path = &url[url.find("/api/v1").unwrap()..];

    let mut head = disposition(NAMES[0].0, "file");
    head.extend_from_slice(b"\r\nContent-Type: application/vnd.android.package-archive");
    let archive = fixtures::zip(["classes.dex"]);
    let reply = send(&server, Method::POST, path, &[(head, &archive[..])]).await.expect(201);
    assert_eq!(reply.json()["original_name"], "äbc.txt");
    assert_eq!(reply.json()["mime_type"], "application/vnd.android.package-archive");

    // A blank input of the page says nothing against the terms of the URL.
    let wish = json!({ "organization_id": "acme", "sub_system": "docs", "mime_type": "a/b" });
    let signed = server.post("/api/v1/files/sign-upload").json(&wish).send().await.expect(200);
    let url = signed.json()["url"].as_str().unwrap().to_owned();
    let path = &url[url.find("/api/v1").unwrap()..];
    let parts = [text("mime_type", b""), (disposition(NAMES[0].0, "file"), &b"x"[..])];
    let reply = send(&server, Method::POST, path, &parts).await.expect(201);
    assert_eq!(reply.json()["mime_type"], "a/b");
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_refused_with_its_field_and_never_replaced() {
    let server = TestServer::start().await;
    for value in [
        &b"form-data; name=file; filename=\"\x81\x8D.txt\""[..],
        b"form-data; name=file; filename*=GBK''%D6%D0.txt",
        b"form-data; name=file; filename*=UTF-8''%D6.txt",
    ] {
        let head = [b"Content-Disposition: ", value].concat();
        let reply = upload(&server, vec![(head, &b"x"[..])]).await;
        let problem = reply.problem(400, "malformed_body");
        assert_eq!(problem.field.as_deref(), Some("file"), "{}", value.escape_ascii());
        assert!(problem.detail.contains("filename"), "{}", problem.detail);
    }
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn text_in_an_encoding_that_the_part_or_the_form_names_is_decoded() {
    let server = TestServer::start().await;
    let file = || (disposition(NAMES[11].0, "file"), &b"x"[..]);
    let named = |head: &str, bytes: &'static [u8]| {
        let head = format!("Content-Disposition: form-data; name=original_name{head}");
        (head.into_bytes(), bytes)
    };

    let latin =
        "\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit";
    for parts in [
        vec![named(latin, b"gr\xF6\xDFe"), file()],
        vec![named(latin, "größe".as_bytes()), file()],
        vec![
            named("\r\nContent-Type: text/plain;\r\n charset=windows-1252", b"gr\xF6\xDFe"),
            file(),
        ],
        vec![text("_charset_", b"ISO-8859-1"), named("", b"gr\xF6\xDFe"), file()],
        vec![named("", "größe".as_bytes()), file()],
    ] {
        let reply = upload(&server, parts).await.expect(201);
        assert_eq!(reply.json()["original_name"], "größe");
    }

    let reply = upload(&server, vec![named("", b"gr\xF6\xDFe"), file()]).await;
    let problem = reply.problem(400, "invalid_field");
    assert_eq!(problem.field.as_deref(), Some("original_name"));
    assert!(problem.detail.contains("UTF-8"), "{}", problem.detail);
}

#[tokio::test]
async fn a_form_with_bare_line_feeds_is_told_so() {
    let server = TestServer::start().await;
    let parts =
        [text("organization_id", b"acme"), text("sub_system", b"docs"), text("file", &b"x"[..])];
    let body = String::from_utf8(form(&parts)).unwrap().replace("\r\n", "\n");
    let call = server.post("/api/v1/files/upload").body("multipart/form-data; boundary=b", body);
    let problem = call.send().await.problem(400, "malformed_body");
    assert!(problem.detail.contains("LF") && problem.detail.contains("CRLF"), "{}", problem.detail);
}

#[tokio::test]
async fn a_blank_name_type_or_metadata_is_as_if_absent_but_a_blank_flag_or_digest_is_refused() {
    let server = TestServer::start().await;
    let blank = server.upload("x").name("").mime("").field("metadata", "").part_name("a.txt");
    let record = blank.ok().await;
    assert_eq!((&*record.original_name, &*record.mime_type), ("a.txt", "text/plain"));
    let twice = server.upload("x").mime("").mime("text/plain").send().await;
    twice.problem(400, "repeated_field");

    // A script whose variable was never set asks for something else than it gets.
    for field in ["upload_temp", "sha256"] {
        let problem =
            server.upload("x").field(field, "").send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some(field));
    }
    for field in ["make_as_ready", "make_as_thumbnail"] {
        let reply = server.change(&record.file_id).field(field, "").send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some(field));
    }
}

#[tokio::test]
async fn json_can_begin_with_a_byte_order_mark() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    let delete = format!("\u{feff}{{\"ids\":[\"{id}\"]}}");
    let patch = "\u{feff}{\"metadata\":{\"a\":1}}".to_owned();
    let call = server.call(Method::PATCH, &format!("/api/v1/files/{id}"));
    call.body("application/merge-patch+json", patch).send().await.expect(200);
    assert_eq!(server.info(&id).await.json()["metadata"], json!({ "a": 1 }));

    let call = server.post("/api/v1/files/delete").body("application/json", delete);
    assert_eq!(call.send().await.expect(200).json()["results"][0]["deleted"], true);

    let twice = server.post("/api/v1/files/delete").body("application/json", "\u{feff}\u{feff}{}");
    twice.send().await.problem(400, "malformed_body");
}

#[tokio::test]
async fn an_id_in_a_path_can_be_percent_encoded() {
    let server = TestServer::start().await;
    let id = server.upload("hello").ok().await.file_id;
    let encoded: Vec<_> = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let encoded = encoded.concat();
    for id in [format!("%30{}", &id[1..]), encoded] {
        assert_eq!(server.content(&id).send().await.expect(200).body, "hello", "{id}");
        server.info(&id).await.expect(200);
    }
    server.get("/api/v1/organizations/%61cme/usage").send().await.expect(200);

    // The names of resources, and characters that no id has, stay what they are.
    server.get(&format!("/api/v1/%66iles/{id}")).send().await.expect(404);
    server.content(&format!("{id}%2F..")).send().await.problem(400, "invalid_field");
    server.content("%75pload").send().await.problem(400, "invalid_field");
}

#[tokio::test]
async fn a_replacement_of_a_deleted_file_does_not_blame_the_bytes() {
    let server = TestServer::start().await;
    let id = server.upload("x").ok().await.file_id;
    server.delete(&id).await.expect(200);

    let with_bytes = server.change(&id).file("y").send().await;
    let without = server.change(&id).field("make_as_ready", "true").send().await;
    for reply in [with_bytes, without] {
        let problem = reply.problem(404, "not_found");
        assert!(matches!(problem.field.as_deref(), None | Some("file_id")), "{:?}", problem.field);
    }
}

#[tokio::test]
async fn a_length_that_no_number_holds_is_too_large() {
    let server = TestServer::start().await;
    for length in [
        "18446744073709551613",
        "18446744073709551614",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
    ] {
        for (path, kind) in [
            ("files/upload", "multipart/form-data; boundary=b"),
            ("files/batch", "multipart/form-data; boundary=b"),
            ("files/delete", "application/json"),
        ] {
            let request = format!(
                "POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
                 Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
            );
            let reply = server.exchange(&request).await;
            assert_eq!(
                (reply.status, &reply.json()["code"]),
                (413, &json!("too_large")),
                "{length}"
            );
        }
    }
    for length in ["-1", "+1", "1x", "1 1", ""] {
        let request = format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        );
        assert_eq!(server.exchange(&request).await.status, 400, "{length}");
    }
}

#[tokio::test]
async fn chunked_once_is_the_only_transfer_coding() {
    let server = TestServer::start().await;
    let part = "--b\r\nContent-Disposition: form-data; name=";
    let body = format!(
        "{part}organization_id\r\n\r\nacme\r\n{part}sub_system\r\n\r\ndocs\r\n\
         {part}file\r\n\r\nx\r\n--b--\r\n"
    );
    let body = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());

    let expected = BTreeMap::from([
        ("chunked", (201, None)),
        ("Chunked", (201, None)),
        ("gzip, chunked", (501, Some("not_implemented"))),
        ("gzip\r\nTransfer-Encoding: chunked", (501, Some("not_implemented"))),
        ("identity, chunked", (501, Some("not_implemented"))),
        ("chunked, chunked", (400, Some("malformed_request"))),
    ]);
    for (coding, (status, code)) in expected {
        let request = format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {coding}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\n\r\n{body}"
        );
        let reply = server.exchange(&request).await;
        assert_eq!(reply.status, status, "{coding}");
        if let Some(code) = code {
            assert_eq!(reply.json()["code"], code, "{coding}");
            assert_eq!(reply.json()["field"], "Transfer-Encoding");
            assert_eq!(reply.header("connection"), Some("close"), "{coding}");
        }
    }
}
