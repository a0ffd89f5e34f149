//! Signed URLs (reference §5.2): reading and uploading without a key.

use std::time::Duration;

use filestore_client::api::{Disposition, Fit, SignRequest, SignUploadRequest};
use filestore_core::Timestamp;
use filestore_core::signing::{SignedMethod, SigningSecret};
use filestore_workspace::wire::Wire;
use filestore_workspace::{Form, Reply, TestServer, eventually, fixtures};
use reqwest::Method;
use serde_json::json;

/// A secret of the configuration, which an application signs with by itself.
fn shared_secret() -> SigningSecret {
    SigningSecret::new("app", *b"a secret of thirty-two bytes ...").unwrap()
}

async fn with_shared_secret() -> TestServer {
    TestServer::start_with(|config| config.store.signing.secrets = vec![shared_secret()]).await
}

/// Asks for a URL, and returns its path and query.
async fn signed(server: &TestServer, id: &str, request: &SignRequest) -> String {
    path_of(server, &server.client().sign(id, request).await.unwrap().url)
}

async fn upload_url(server: &TestServer, request: &SignUploadRequest) -> String {
    path_of(server, &server.client().sign_upload(request).await.unwrap().url)
}

fn path_of(server: &TestServer, url: &str) -> String {
    url.strip_prefix(&server.url("")).expect("a URL of the server").to_owned()
}

fn one_file(bytes: &[u8]) -> Form {
    Form::new().bytes("file", bytes)
}

async fn send(server: &TestServer, url: &str, form: Form) -> Reply {
    server.post(url).form(form).send().await
}

#[tokio::test]
async fn a_signed_url_serves_get_and_head_and_may_be_kept_by_any_cache() {
    let server = TestServer::start().await;
    let id = server.upload("hello").name("a.txt").ok().await.file_id;
    let url = signed(&server, &id, &SignRequest::content()).await;

    for method in [Method::GET, Method::HEAD] {
        let reply = server.call(method.clone(), &url).send().await.expect(200);
        let cached = reply.only("cache-control").strip_prefix("public, max-age=").unwrap();
        assert!(cached.parse::<u64>().unwrap() <= 300, "{cached}");
        assert_eq!(reply.body, if method == Method::GET { "hello" } else { "" });
    }

    let range = server.get(&url).header("range", "bytes=1-2").send().await.expect(206);
    assert!(range.only("cache-control").starts_with("public"));
    let again = server.get(&url).header("if-none-match", range.only("etag")).send().await;
    assert!(again.expect(304).only("cache-control").starts_with("public"));
}

#[tokio::test]
async fn urls_of_one_window_are_equal() {
    let server =
        TestServer::start_with(|config| config.store.signing.window = Duration::from_hours(1))
            .await;
    let id = server.upload("hello").ok().await.file_id;

    let mut urls = Vec::new();
    for _ in 0..3 {
        urls.push(server.client().sign(&id, &SignRequest::content()).await.unwrap());
    }
    assert!(urls[0] == urls[1] || urls[1] == urls[2], "a window ended at most once: {urls:?}");
}

#[tokio::test]
async fn a_damaged_signature_is_403_also_where_no_key_is_asked_for() {
    let server = TestServer::start().await;
    let picture = fixtures::jpeg(640, 480);
    let id = server.upload(&picture).ok().await.file_id;
    let other = server.upload(&picture).ok().await.file_id;
    let request = SignRequest::variant(200, Fit::Inside);
    let url = signed(&server, &id, &request).await;
    server.get(&url).send().await.expect(200);

    let sig = url.rsplit("sig=").next().unwrap();
    let last = if sig.ends_with('A') { 'Q' } else { 'A' };
    for damaged in [
        url.replace(&id, &other),
        url.replace("/200/200", "/400/400"),
        url.replace("/200/200", ""),
        url.replace("/200/200", "/200/200/"),
        url.replace("fit=inside", "fit=cover"),
        url.replace("fit=inside", "fit=%69nside"),
        url.replace("fit=inside&", ""),
        url.replace("exp=1", "exp=9"),
        format!("{url}&disposition=inline"),
        format!("{url}&exp=9999999999"),
        format!("{url}&sig={sig}"),
        url.replace(sig, &format!("{}{last}", &sig[..sig.len() - 1])),
        url.replace(sig, &sig.to_uppercase()),
        url.replace(sig, "x"),
        url.replace("kid=", "kid=x"),
        url.split("&sig").next().unwrap().to_owned() + "&sig=",
    ] {
        server.get(&damaged).send().await.problem(403, "signature_invalid");
    }
}

#[tokio::test]
async fn a_url_is_for_its_method_alone() {
    let server = with_shared_secret().await;
    let id = server.upload("hello").ok().await.file_id;
    let end = Timestamp::now().plus(Duration::from_mins(1));

    let path = format!("/api/v1/files/{id}");
    let post = shared_secret().sign(SignedMethod::Post, &path, "", end);
    server.get(&post).send().await.problem(403, "signature_invalid");
    let get = shared_secret().sign(SignedMethod::Get, "/api/v1/files/upload", "nonce=1", end);
    send(&server, &get, one_file(b"x")).await.problem(403, "signature_invalid");
}

#[tokio::test]
async fn an_application_signs_for_itself_and_an_expired_url_says_so() {
    let server = with_shared_secret().await;
    let id = server.upload("hello").ok().await.file_id;
    let path = format!("/api/v1/files/{id}");
    let now = Timestamp::now();

    let soon = now.plus(Duration::from_secs(30));
    let good = shared_secret().sign(SignedMethod::Get, &path, "disposition=attachment", soon);
    let reply = server.get(&good).send().await.expect(200);
    assert!(reply.only("content-disposition").starts_with("attachment"));
    let cached = reply.only("cache-control").strip_prefix("public, max-age=").unwrap();
    assert!(cached.parse::<u64>().unwrap() <= 30, "never beyond the URL's own end: {cached}");

    let over = now.minus(Duration::from_secs(2));
    let late = shared_secret().sign(SignedMethod::Get, &path, "", over);
    let problem = server.get(&late).send().await.problem(403, "signature_expired");
    assert_eq!(problem.field.as_deref(), Some("exp"));
    let forged = late.replace("sig=", "sig=A");
    server.get(&forged).send().await.problem(403, "signature_invalid");
}

#[tokio::test]
async fn a_url_works_with_and_without_the_public_prefix() {
    let server = TestServer::start_with(|config| {
        config.public_url = Some("https://files.example.org/storage".into());
        config.insecure_no_auth = true;
    })
    .await;
    let id = server.upload("hello").ok().await.file_id;
    let call = server.post(&format!("/api/v1/files/{id}/sign"));
    call.header("host", "evil.example").send().await.problem(421, "misdirected_request");
    let url = server.client().sign(&id, &SignRequest::content()).await.unwrap().url;

    let path = url.strip_prefix("https://files.example.org").expect("the public URL");
    assert!(path.starts_with("/storage/api/v1/files/"), "{path}");
    server.get(path).send().await.expect(200);
    server.get(path.strip_prefix("/storage").unwrap()).send().await.expect(200);
    server.get(&format!("/storage{path}")).send().await.expect(404);
}

#[tokio::test]
async fn only_what_is_there_is_signed_for_and_only_as_it_can_be_served() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("hello").ok().await.file_id;
    let path = format!("/api/v1/files/{id}/sign");

    for (body, field) in [
        (json!({"size": 201}), "size"),
        (json!({"size": "200"}), "size"),
        (json!({"fit": "inside"}), "fit"),
        (json!({"size": 200, "disposition": "inline"}), "disposition"),
        (json!({"disposition": "save"}), "disposition"),
        (json!({"expires_in_s": 0}), "expires_in_s"),
        (json!({"expires_in_s": 604_801}), "expires_in_s"),
        (json!({"expires_in": 60}), "expires_in"),
    ] {
        let reply = server.post(&path).json(&body).send().await;
        assert_eq!(reply.any_problem(400).field.as_deref(), Some(field), "{body}");
    }

    let disposition = SignRequest::content().disposition(Disposition::Inline);
    let url = signed(&server, &id, &disposition).await;
    let reply = server.get(&url).send().await.expect(200);
    assert!(reply.only("content-disposition").starts_with("inline"));

    server.delete(&id).await.expect(200);
    server.get(&url).send().await.problem(404, "not_found");
    server.post(&path).send().await.problem(404, "not_found");
    let unknown = "/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV/sign";
    server.post(unknown).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_secret_is_rotated_in_peace_and_revoked_at_once() {
    let server = TestServer::start().await;
    let id = server.upload("hello").ok().await.file_id;
    let before = signed(&server, &id, &SignRequest::content()).await;

    let client = server.client();
    let secrets = client.admin().signing().rotate().await.unwrap();
    assert_eq!(secrets.iter().filter(|secret| secret.signs).count(), 1);
    let after = signed(&server, &id, &SignRequest::content()).await;
    assert_ne!(before, after);

    let server = server.restart().await;
    server.get(&before).send().await.expect(200);
    server.get(&after).send().await.expect(200);

    let client = server.client();
    let old = secrets.iter().find(|secret| !secret.signs).unwrap();
    assert!(before.contains(&format!("kid={}", old.kid)) && old.valid_until.is_some());
    let left = client.admin().signing().revoke(&old.kid).await.unwrap();
    assert_eq!(left.len(), 1);
    server.get(&before).send().await.problem(403, "signature_invalid");
    server.get(&after).send().await.expect(200);

    let unknown = server.post("/api/v1/admin/signing-secrets/nobody/revoke").send().await;
    unknown.problem(404, "not_found");
    let listed = server.get("/api/v1/admin/signing-secrets").send().await.expect(200);
    assert_eq!(listed.json()[0].as_object().unwrap().len(), 5, "no secret among them");
}

#[tokio::test]
async fn a_signed_upload_makes_one_file_as_the_signer_said() {
    let server = TestServer::start().await;
    let request =
        SignUploadRequest::new("42", "avatars").max_size(10).mime_type("image/png").temp();
    let url = upload_url(&server, &request).await;

    let form = Form::new().text("original_name", "me.png").bytes("file", b"0123456789");
    let record = send(&server, &url, form).await.expect(201).record();
    assert_eq!((record.organization_id.as_str(), record.sub_system.as_str()), ("42", "avatars"));
    assert_eq!((record.mime_type.as_str(), record.status.as_str()), ("image/png", "TEMP"));
    assert_eq!(record.original_name, "me.png");

    send(&server, &url, one_file(b"x")).await.problem(409, "signature_used");
    assert_ne!(upload_url(&server, &request).await, url, "each URL is another one");

    let server = server.restart().await;
    send(&server, &url, one_file(b"x")).await.problem(409, "signature_used");
    assert_eq!(server.listed_of("42").await.len(), 1);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn of_uploads_that_race_for_one_url_one_is_stored() {
    let server = TestServer::start().await;
    for round in 0..5 {
        let url = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
        let racers = (0..6).map(|_| send(&server, &url, one_file(b"bytes")));
        let replies = futures_util::future::join_all(racers).await;

        let (stored, refused): (Vec<_>, Vec<_>) =
            replies.iter().partition(|reply| reply.status == 201);
        assert_eq!((stored.len(), refused.len()), (1, 5));
        for reply in refused {
            reply.problem(409, "signature_used");
        }
        assert_eq!(server.listed_of("42").await.len(), round + 1);
    }
    server.wait_for_empty_staging().await;
}

/// Begins an upload to a signed URL and waits until the server has let it in. Returns what is still to be
/// sent.
async fn begin(server: &TestServer, url: &str, idempotency_key: &str) -> (Wire, Vec<u8>) {
    let form = one_file(b"bytes");
    let (content_type, body) = (form.content_type(), form.finish());
    let mut wire = server.wire().await;
    wire.send(format!(
        "POST {url} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Idempotency-Key: {idempotency_key}\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;
    (wire, body)
}

/// Waits until the server asks for the body.
async fn expect_continue(wire: &mut Wire) {
    assert_eq!(wire.status_line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.status_line().await, "", "the end of the interim reply");
}

#[tokio::test]
async fn a_url_that_is_in_use_or_spent_stages_nothing_whatever_idempotency_key_comes_with_it() {
    let server = TestServer::start().await;
    let url = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
    let (mut first, rest) = begin(&server, &url, "1").await;
    expect_continue(&mut first).await;

    // The body is not asked for, and not waited for.
    let (mut twin, _) = begin(&server, &url, "2").await;
    let refused = twin.reply().await;
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("signature_used")));

    first.send(rest).await;
    assert_eq!(first.reply().await.status, 201);
    let (mut late, _) = begin(&server, &url, "3").await;
    assert_eq!(late.status_line().await, "HTTP/1.1 409 Conflict");
    let (mut again, rest) = begin(&server, &url, "1").await;
    again.send(rest).await;
    assert_eq!(again.reply().await.status, 201, "the stored reply");
}

#[tokio::test]
async fn an_upload_that_goes_away_leaves_its_url_good() {
    let server = TestServer::start().await;
    let url = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
    let (mut gone, _) = begin(&server, &url, "1").await;
    expect_continue(&mut gone).await;
    drop(gone);
    eventually("the URL being free", async || {
        (send(&server, &url, one_file(b"bytes")).await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_revoked_secret_ends_an_upload_under_way() {
    let server = TestServer::start().await;
    let url = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
    let (mut wire, rest) = begin(&server, &url, "1").await;
    expect_continue(&mut wire).await;
    let kid = server.store().signing().secrets()[0].kid.clone();
    server.store().signing().revoke(&kid).await.unwrap();

    wire.send(rest).await;
    let refused = wire.reply().await;
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("signature_invalid")));
    assert!(server.listed_of("42").await.is_empty());
}

#[tokio::test]
async fn a_revocation_holds_though_the_secrets_cannot_be_read_again() {
    let server = TestServer::start_with_sqlite(|_| ()).await;
    let id = server.upload("hello").ok().await.file_id;
    let url = signed(&server, &id, &SignRequest::content()).await;
    let kid = server.store().signing().secrets()[0].kid.clone();
    let database = server.data_dir().join("metadata.sqlite3");
    let vandal = rusqlite::Connection::open(database).unwrap();
    let damage = "ALTER TABLE signing_secrets RENAME COLUMN created_at TO made_at";
    vandal.execute_batch(damage).unwrap();

    server.store().signing().revoke(&kid).await.unwrap();
    server.get(&url).send().await.problem(403, "signature_invalid");
}

#[tokio::test]
async fn a_refused_upload_leaves_its_url_good() {
    let server = TestServer::start().await;
    let request = SignUploadRequest::new("42", "docs").max_size(5).mime_type("text/plain");
    let url = upload_url(&server, &request).await;

    let problem = send(&server, &url, one_file(b"123456")).await.problem(413, "too_large");
    assert_eq!(problem.limit, Some(5));
    let with = |name: &str, value: &str| Form::new().text(name, value).bytes("file", b"12345");
    for (name, value) in [
        ("organization_id", "43"),
        ("sub_system", "other"),
        ("mime_type", "text/html"),
        ("upload_temp", "true"),
    ] {
        let problem = send(&server, &url, with(name, value)).await.problem(403, "forbidden");
        assert_eq!(problem.field.as_deref(), Some(name));
    }
    send(&server, &url, Form::new()).await.problem(400, "missing_field");
    send(&server, &url.replace("max_size=5", "max_size=9"), one_file(b"123456"))
        .await
        .problem(403, "signature_invalid");

    let form = with("organization_id", "42").text("sub_system", "docs");
    assert_eq!(send(&server, &url, form).await.expect(201).record().mime_type, "text/plain");
}

#[tokio::test]
async fn a_signed_upload_whose_reply_was_lost_is_answered_again_under_its_idempotency_key() {
    let server = TestServer::start().await;
    let url = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
    let keyed =
        |bytes: &[u8]| server.post(&url).header("idempotency-key", "k").form(one_file(bytes));

    let first = keyed(b"bytes").send().await.expect(201);
    let again = keyed(b"bytes").send().await.expect(201);
    assert_eq!(first.file_id(), again.file_id());
    keyed(b"other").send().await.problem(422, "idempotency_mismatch");
    send(&server, &url, one_file(b"bytes")).await.problem(409, "signature_used");

    let other = upload_url(&server, &SignUploadRequest::new("42", "docs")).await;
    let call = server.post(&other).header("idempotency-key", "k").form(one_file(b"third"));
    call.send().await.expect(201);
    assert_eq!(server.listed_of("42").await.len(), 2, "each URL has keys of its own");
}

#[tokio::test]
async fn the_client_asks_for_whole_urls() {
    let server = TestServer::start().await;
    let id = server.upload("hello").ok().await.file_id;
    let reply = server.client().sign(&id, &SignRequest::content().expires_in_s(60)).await.unwrap();
    assert!(reply.url.starts_with(&server.url("/api/v1/files/")), "{}", reply.url);
    let bytes = reqwest::get(&reply.url).await.unwrap().text().await.unwrap();
    assert_eq!(bytes, "hello");
    assert!(reply.expires_at.contains(".000Z"), "{}", reply.expires_at);
}

#[tokio::test]
async fn a_private_url_is_kept_by_no_shared_cache() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(300, 300)).ok().await.file_id;
    for request in [
        SignRequest::content().private(),
        SignRequest::content().private().without_redirect(),
        SignRequest::variant(200, Fit::Cover).private(),
    ] {
        let url = signed(&server, &id, &request).await;
        assert!(url.contains("cache=private"), "{url}");
        let reply = server.get(&url).send().await.expect(200);
        assert_eq!(reply.only("cache-control"), "private, no-cache");
        assert_eq!(reply.header("vary"), None, "the reply depends on no key");

        let public = url.replacen("cache=private", "cache=public", 1);
        server.get(&public).send().await.problem(403, "signature_invalid");
    }
    let odd = json!({"size": 200, "redirect": false});
    let reply = server.post(&format!("/api/v1/files/{id}/sign")).json(&odd).send().await;
    assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("redirect"));
}

#[tokio::test]
async fn several_upload_urls_are_signed_in_one_call_and_each_is_good_for_one_file() {
    let server = TestServer::start().await;
    let request = SignUploadRequest::new("42", "docs").count(3);
    let reply = server.client().sign_upload(&request).await.unwrap();
    assert_eq!((reply.urls.len(), &reply.urls[0]), (3, &reply.url));
    for url in &reply.urls {
        let url = path_of(&server, url);
        send(&server, &url, one_file(url.as_bytes())).await.expect(201);
        send(&server, &url, one_file(b"again")).await.problem(409, "signature_used");
    }
    let one = server.client().sign_upload(&SignUploadRequest::new("42", "docs")).await.unwrap();
    assert!(one.urls.is_empty());

    for count in [json!(0), json!(101), json!("3"), json!(-1)] {
        let asked = json!({"organization_id": "42", "sub_system": "docs", "count": count});
        let reply = server.post("/api/v1/files/sign-upload").json(&asked).send().await;
        let problem = reply.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("count"), "{count}");
    }
}
