//! Signed URLs and the keys that asked for them (reference §5.2): a URL gives no more than its key does.

use std::time::Duration;

use filestore_core::Scope;
use filestore_core::keys::{ApiKey, KeyScope, NewKey};
use filestore_workspace::{Form, Reply, TestServer};
use serde_json::{Value, json};

const ORGANIZATION: &str = "7";

/// A key and its text.
async fn key(server: &TestServer, scopes: &[KeyScope], life: Option<Duration>) -> (ApiKey, String) {
    let organizations = Scope::Organizations(vec![ORGANIZATION.parse().unwrap()]);
    let mut new = NewKey::new("test", organizations, scopes.iter().copied());
    new.expires_in = life;
    let (key, secret) = server.store().keys().create(new).await.expect("a key");
    (key, secret.expose().to_owned())
}

/// Asks for a URL with a key; returns its path and query, and the whole reply.
async fn sign(server: &TestServer, path: &str, body: &Value, key: &str) -> (String, Value) {
    let call = server.post(path).json(body);
    let call = call.header("authorization", &format!("Bearer {key}"));
    let reply = call.send().await.expect(200).json();
    let url = reply["url"].as_str().unwrap().to_owned();
    (url, reply)
}

async fn sign_file(server: &TestServer, id: &str, key: &str) -> String {
    sign(server, &format!("/api/v1/files/{id}/sign"), &json!({}), key).await.0
}

async fn sign_upload(server: &TestServer, key: &str) -> String {
    let asked = json!({"organization_id": ORGANIZATION, "sub_system": "s"});
    sign(server, "/api/v1/files/sign-upload", &asked, key).await.0
}

async fn upload(server: &TestServer, url: &str) -> Reply {
    server.post(url).form(Form::new().bytes("file", b"x")).send().await
}

#[tokio::test]
async fn a_url_dies_with_the_key_that_asked_for_it_and_with_no_other() {
    let server = TestServer::start().await;
    let id = server.upload("hello").org(ORGANIZATION).ok().await.file_id;
    let both = [KeyScope::Read, KeyScope::Write];
    let (one, one_text) = key(&server, &both, None).await;
    let (_, other_text) = key(&server, &both, None).await;

    let url = sign_file(&server, &id, &one_text).await;
    let others = sign_file(&server, &id, &other_text).await;
    let (first, second) =
        (sign_upload(&server, &one_text).await, sign_upload(&server, &one_text).await);
    server.get(&url).send().await.expect(200);
    upload(&server, &first).await.expect(201);

    server.store().keys().rotate(one.id, Duration::ZERO).await.unwrap();
    server.get(&url).send().await.expect(200);

    server.store().keys().revoke(one.id).await.unwrap();
    for refused in [server.get(&url).send().await, upload(&server, &second).await] {
        assert_eq!(refused.problem(403, "signature_invalid").field.as_deref(), Some("key"));
    }
    server.get(&others).send().await.expect(200);
}

#[tokio::test]
async fn the_key_cannot_be_taken_out_of_a_url() {
    let server = TestServer::start().await;
    let id = server.upload("hello").org(ORGANIZATION).ok().await.file_id;
    let (one, text) = key(&server, &[KeyScope::Read], None).await;
    let (other, _) = key(&server, &[KeyScope::Read], None).await;
    let url = sign_file(&server, &id, &text).await;
    let named = format!("key={}", one.id);
    assert!(url.contains(&named), "{url}");

    for changed in [
        url.replace(&format!("{named}&"), ""),
        url.replace(&named, "key="),
        url.replace(&named, &format!("key={}", other.id)),
        url.replace(&named, &format!("key={}", other.id)).replace('?', &format!("?{named}&")),
        format!("{url}&key={}", other.id),
    ] {
        server.get(&changed).send().await.problem(403, "signature_invalid");
    }
}

#[tokio::test]
async fn a_url_ends_with_its_key_and_caches_are_told_so() {
    let server =
        TestServer::start_with(|config| config.store.signing.window = Duration::from_hours(1))
            .await;
    let id = server.upload("hello").org(ORGANIZATION).ok().await.file_id;
    let life = Duration::from_mins(1);
    let (short, text) = key(&server, &[KeyScope::Read], Some(life)).await;
    let (url, reply) = sign(&server, &format!("/api/v1/files/{id}/sign"), &json!({}), &text).await;

    let ends: filestore_core::Timestamp = reply["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(ends <= short.expires_at.unwrap(), "{ends}");
    let cached = server.get(&url).send().await.expect(200);
    let age = cached.only("cache-control").strip_prefix("public, max-age=").unwrap().to_owned();
    assert!(age.parse::<u64>().unwrap() <= 60, "{age}");
}

#[tokio::test]
async fn a_signed_upload_under_way_ends_with_its_key() {
    let server = TestServer::start().await;
    let (writer, text) = key(&server, &[KeyScope::Write], None).await;
    let url = sign_upload(&server, &text).await;
    let form = Form::new().bytes("file", b"x");
    let (content_type, body) = (form.content_type(), form.finish());

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST {url} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;
    assert_eq!(wire.status_line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.status_line().await, "");
    server.store().keys().revoke(writer.id).await.unwrap();
    wire.send(body).await;
    assert_eq!(wire.reply().await.status, 403);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn a_url_that_was_made_without_a_key_lives_until_its_end() {
    let server = TestServer::start().await;
    let id = server.upload("hello").org(ORGANIZATION).ok().await.file_id;
    let asked = server.post(&format!("/api/v1/files/{id}/sign")).json(&json!({}));
    let reply = asked.send().await.expect(200).json();
    let url = reply["url"].as_str().unwrap().to_owned();
    assert!(!url.contains("key="), "{url}");

    let (one, _) = key(&server, &[KeyScope::Read], None).await;
    server.store().keys().revoke(one.id).await.unwrap();
    server.get(&url).send().await.expect(200);
    server.get(&format!("/api/v1/files/{id}")).send().await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_slow_json_body_needs_the_right_when_it_has_come() {
    let server = TestServer::start().await;
    let id = server.upload("hello").org(ORGANIZATION).ok().await.file_id;
    let (deleter, text) = key(&server, &[KeyScope::Delete], None).await;
    let body = json!({"ids": [id]}).to_string();

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/delete HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Authorization: Bearer {text}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;
    assert_eq!(wire.status_line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.status_line().await, "");
    server.store().keys().revoke(deleter.id).await.unwrap();
    wire.send(body).await;
    assert_eq!(wire.reply().await.status, 401);
    let kept = server.store().scoped(&Scope::All).record(id.parse().unwrap()).await;
    assert!(kept.is_ok(), "nothing was deleted");
}
