//! Resumable uploads with a signed URL: a page without a key creates one upload, and continues it with its address
//! alone (reference: resumable uploads).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_core::Scope;
use filestore_core::keys::{ApiKey, KeyScope, NewKey};
use filestore_workspace::{Call, Form, Reply, TestServer, sha256_hex};
use reqwest::Method;
use serde_json::{Value, json};

async fn key(server: &TestServer, scopes: &[KeyScope]) -> (ApiKey, String) {
    let new = NewKey::new("a service", Scope::All, scopes.iter().copied());
    let (key, secret) = server.store().keys().create(new).await.unwrap();
    (key, format!("Bearer {}", secret.expose()))
}

/// Asks for a URL with a key. Adds `more` to the request.
async fn sign(server: &TestServer, bearer: &str, more: &Value) -> String {
    let mut asked = json!({"organization_id": "acme", "sub_system": "videos", "resumable": true});
    let more = more.as_object().unwrap().clone();
    asked.as_object_mut().unwrap().extend(more);
    let call = server.post("/api/v1/files/sign-upload").json(&asked);
    let reply = call.header("authorization", bearer).send().await.expect(200).json();
    let url = reply["url"].as_str().unwrap().to_owned();
    url.strip_prefix(&server.url("")).unwrap_or(&url).to_owned()
}

fn tus(call: Call) -> Call {
    call.header("tus-resumable", "1.0.0")
}

async fn create(server: &TestServer, url: &str, length: usize) -> Reply {
    tus(server.post(url)).header("upload-length", &length.to_string()).send().await
}

fn path(reply: &Reply) -> String {
    reply.only("location").to_owned()
}

async fn append(server: &TestServer, path: &str, offset: usize, bytes: &[u8]) -> Reply {
    let call = tus(server.call(Method::PATCH, path)).header("upload-offset", &offset.to_string());
    call.body("application/offset+octet-stream", bytes.to_vec()).send().await
}

fn metadata(key: &str, value: &str) -> String {
    format!("{key} {}", STANDARD.encode(value))
}

#[tokio::test]
async fn a_page_without_a_key_uploads_one_file_on_the_terms_of_the_url() {
    let server = TestServer::start().await;
    let (_, bearer) = key(&server, &[KeyScope::Read, KeyScope::Write]).await;
    let terms = json!({"mime_type": "video/mp4", "upload_temp": true, "max_size": 11});
    let url = sign(&server, &bearer, &terms).await;
    assert!(url.starts_with("/api/v1/uploads?"), "{url}");

    let call = tus(server.post(&url)).header("upload-length", "11");
    let created = call.header("upload-metadata", &metadata("filename", "party.mp4")).send().await;
    let upload = path(&created.expect(201));
    append(&server, &upload, 0, b"hello ").await.expect(204);
    let head = tus(server.head(&upload)).send().await.expect(200);
    assert_eq!(head.only("upload-offset"), "6");
    let done = append(&server, &upload, 6, b"world").await.expect(204);

    let info = server.get(&format!("/api/v1/files/{}/info", done.only("file-id")));
    let record = info.header("authorization", &bearer).send().await.expect(200).record();
    assert_eq!((&*record.organization_id, &*record.sub_system), ("acme", "videos"));
    assert_eq!((&*record.original_name, &*record.mime_type), ("party.mp4", "video/mp4"));
    assert_eq!((record.status.as_str(), &*record.sha256), ("TEMP", &*sha256_hex(b"hello world")));

    append(&server, &upload, 11, b"").await.expect(204);
    create(&server, &url, 11).await.problem(409, "signature_used");
    let plain = server.post(&url).body("text/plain", "x").send().await;
    plain.problem(409, "signature_used");
}

#[tokio::test]
async fn the_same_terms_find_the_upload_and_other_terms_replace_it() {
    let server = TestServer::start().await;
    let (_, bearer) = key(&server, &[KeyScope::Write]).await;
    let url = sign(&server, &bearer, &json!({})).await;
    let first = path(&create(&server, &url, 5).await.expect(201));
    append(&server, &first, 0, b"he").await.expect(204);

    let again = create(&server, &url, 5).await.expect(201);
    assert_eq!((path(&again), again.only("upload-offset")), (first.clone(), "2"));
    assert_eq!(again.only("idempotency-replayed"), "true");

    let other = path(&create(&server, &url, 6).await.expect(201));
    assert_ne!(other, first);
    append(&server, &first, 2, b"llo").await.problem(401, "unauthorized");
    append(&server, &other, 0, b"world!").await.expect(204);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn the_address_alone_is_no_right_to_an_upload_with_a_key() {
    let server = TestServer::start().await;
    let (_, bearer) = key(&server, &[KeyScope::Write]).await;
    let call = tus(server.post("/api/v1/uploads?organization_id=acme&sub_system=s"));
    let call = call.header("upload-length", "5").header("authorization", &bearer);
    let upload = path(&call.send().await.expect(201));

    let signed = path(&create(&server, &sign(&server, &bearer, &json!({})).await, 5).await);
    let mut wrong = signed.clone();
    wrong.replace_range(wrong.len() - 2.., "--");
    for path in [&*upload, &wrong, "/api/v1/uploads/x"] {
        for method in [Method::GET, Method::DELETE] {
            tus(server.call(method, path)).send().await.problem(401, "unauthorized");
        }
        append(&server, path, 0, b"x").await.problem(401, "unauthorized");
        let meant = tus(server.post(path)).header("x-http-method-override", "DELETE");
        meant.send().await.problem(401, "unauthorized");
    }
    tus(server.call(Method::DELETE, &signed)).send().await.expect(204);

    // A bad key is not read as none.
    let call = tus(server.head(&signed)).header("authorization", "Bearer fsk_none");
    assert_eq!(call.send().await.status, 401);
}

#[tokio::test]
async fn signed_upload_keeps_its_terms() {
    let server = TestServer::start().await;
    let (_, bearer) = key(&server, &[KeyScope::Write]).await;
    let url = sign(&server, &bearer, &json!({"max_size": 5, "mime_type": "text/plain"})).await;

    let problem = create(&server, &url, 6).await.problem(413, "too_large");
    assert_eq!((problem.field.as_deref(), problem.limit), (Some("Upload-Length"), Some(5)));
    for (field, value) in
        [("organization_id", "other"), ("sub_system", "x"), ("mime_type", "text/html")]
    {
        let call = tus(server.post(&url)).header("upload-length", "5");
        let reply = call.header("upload-metadata", &metadata(field, value)).send().await;
        assert_eq!(reply.problem(403, "forbidden").field.as_deref(), Some(field));
    }
    let id = metadata("file_id", "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let call = tus(server.post(&url)).header("upload-length", "5").header("upload-metadata", &id);
    call.send().await.problem(403, "forbidden");
    let call = tus(server.post(&url)).header("upload-length", "5");
    call.header("upload-concat", "partial").send().await.problem(403, "forbidden");
    server.post(&format!("{url}&sub_system=x")).send().await.problem(403, "signature_invalid");

    // The limit holds for a length that comes later, and for bytes without one.
    let call = tus(server.post(&url)).header("upload-defer-length", "1");
    let upload = path(&call.send().await.expect(201));
    let call = tus(server.call(Method::PATCH, &upload)).header("upload-offset", "0");
    let call = call.header("upload-length", "6").body("application/offset+octet-stream", "x");
    call.send().await.problem(413, "too_large");
    append(&server, &upload, 0, b"123456").await.problem(413, "too_large");
    let usage = server.store().scoped(&Scope::All).usage(&"acme".parse().unwrap()).await;
    assert_eq!(usage.unwrap().total().files, 0);
}

#[tokio::test]
async fn key_revoked_in_between() {
    let server = TestServer::start().await;
    let (writer, bearer) = key(&server, &[KeyScope::Write]).await;
    let url = sign(&server, &bearer, &json!({})).await;
    let upload = path(&create(&server, &url, 5).await.expect(201));
    append(&server, &upload, 0, b"he").await.expect(204);
    server.store().keys().revoke(writer.id).await.unwrap();
    let refused = append(&server, &upload, 2, b"llo").await;
    assert_eq!(refused.problem(403, "signature_invalid").field.as_deref(), Some("key"));
    create(&server, &url, 5).await.problem(403, "signature_invalid");
}

#[tokio::test]
async fn a_signed_url_is_for_its_own_path_only() {
    let server = TestServer::start().await;
    let (_, bearer) = key(&server, &[KeyScope::Write]).await;
    let url = sign(&server, &bearer, &json!({})).await;
    let form = url.replace("/api/v1/uploads?", "/api/v1/files/upload?");
    let reply = server.post(&form).form(Form::new().bytes("file", b"x")).send().await;
    reply.problem(403, "signature_invalid");

    let plain = server.post(&url).body("text/plain", "hello").send().await.expect(201);
    assert_eq!(plain.record().sub_system, "videos");
    create(&server, &url, 5).await.problem(409, "signature_used");
}
