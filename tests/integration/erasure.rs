//! Erasure of an organization (reference §4.12): nothing that began, was signed or was stored before it
//! comes back.

use std::time::Duration;

use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::signing::{SignedMethod, SigningSecret};
use filestore_core::{OrganizationId, Scope, Timestamp};
use filestore_workspace::wire::Wire;
use filestore_workspace::{Call, Form, TestServer};
use serde_json::{Value, json};

const ERASED: &str = "7";
const OTHER: &str = "8";

fn only(organizations: &[&str]) -> Scope {
    let list: Vec<OrganizationId> =
        organizations.iter().map(|one| one.parse().expect("an organization")).collect();
    Scope::Organizations(list)
}

/// Makes a key and returns its text.
async fn key(server: &TestServer, organizations: Scope, scopes: &[KeyScope]) -> String {
    let new = NewKey::new("test", organizations, scopes.iter().copied());
    server.store().keys().create(new).await.expect("a key").1.expose().to_owned()
}

fn with(call: Call, key: Option<&str>) -> Call {
    match key {
        Some(key) => call.header("authorization", &format!("Bearer {key}")),
        None => call,
    }
}

async fn erase(server: &TestServer, admin: Option<&str>) -> Value {
    let path = format!("/api/v1/admin/organizations/{ERASED}/erase");
    let call = server.post(&path).json(&json!({"confirm": ERASED}));
    with(call, admin).send().await.expect(200).json()
}

fn upload_form() -> Form {
    Form::new().text("organization_id", ERASED).text("sub_system", "s").bytes("file", b"bytes")
}

/// Begins a request with a form and waits until the server has let it in. Returns what is still to be sent.
async fn begin(
    server: &TestServer,
    method: &str,
    path: &str,
    form: Form,
    key: Option<&str>,
) -> (Wire, Vec<u8>) {
    let (content_type, body) = (form.content_type(), form.finish());
    let bearer = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n{bearer}\r\n",
        body.len(),
    );

    let mut wire = server.wire().await;
    wire.send(head).await;
    assert_eq!(wire.status_line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.status_line().await, "", "the end of the interim reply");
    (wire, body)
}

async fn finish((mut wire, rest): (Wire, Vec<u8>)) -> u16 {
    wire.send(rest).await;
    wire.reply().await.status
}

async fn files_of_erased(server: &TestServer) -> u64 {
    let organization = ERASED.parse().unwrap();
    server.store().scoped(&Scope::All).usage(&organization).await.unwrap().total().files
}

#[tokio::test]
async fn what_a_key_began_before_it_lost_the_organization_is_refused() {
    let server = TestServer::start().await;
    let file = server.upload("old").org(ERASED).ok().await.file_id;
    let admin = key(&server, Scope::All, &[KeyScope::Admin]).await;
    let narrowed = key(&server, only(&[ERASED, OTHER]), &[KeyScope::Write]).await;
    let path = "/api/v1/files/upload";
    let batch = Form::new()
        .text("organization_id", ERASED)
        .text("sub_system", "s")
        .bytes("items[0].file", b"bytes");
    let replace = Form::new().text("file_id", &file).bytes("file", b"new bytes");
    let other =
        Form::new().text("organization_id", OTHER).text("sub_system", "s").bytes("file", b"b");

    let key = Some(narrowed.as_str());
    let upload = begin(&server, "POST", path, upload_form(), key).await;
    let batch = begin(&server, "POST", "/api/v1/files/batch", batch, key).await;
    let replace = begin(&server, "PUT", path, replace, key).await;
    let other = begin(&server, "POST", path, other, key).await;

    let receipt = erase(&server, Some(&admin)).await;
    assert_eq!(receipt["complete"], true, "{receipt}");
    assert_eq!(finish(upload).await, 403);
    assert_eq!(finish(batch).await, 403);
    assert_eq!(finish(replace).await, 404);
    assert_eq!(finish(other).await, 201, "another organization is none of its business");
    assert_eq!(files_of_erased(&server).await, 0);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn what_a_key_of_all_organizations_began_before_is_refused_and_a_new_upload_is_taken() {
    let server = TestServer::start().await;
    let admin = key(&server, Scope::All, &[KeyScope::Admin]).await;
    let begun = begin(&server, "POST", "/api/v1/files/upload", upload_form(), Some(&admin)).await;
    assert_eq!(erase(&server, Some(&admin)).await["complete"], true);
    assert_eq!(finish(begun).await, 409);
    assert_eq!(files_of_erased(&server).await, 0);

    let anew = with(server.post("/api/v1/files/upload").form(upload_form()), Some(&admin));
    anew.send().await.expect(201);
    assert_eq!(files_of_erased(&server).await, 1);
}

#[tokio::test]
async fn what_began_before_is_refused_in_the_open_mode_as_well() {
    let server = TestServer::start().await;
    let begun = begin(&server, "POST", "/api/v1/files/upload", upload_form(), None).await;
    assert_eq!(erase(&server, None).await["complete"], true);
    assert_eq!(finish(begun).await, 409);
    server.upload("anew").org(ERASED).ok().await;
    assert_eq!(files_of_erased(&server).await, 1);
}

#[tokio::test]
async fn an_upload_whose_url_was_signed_before_is_refused() {
    let secret = SigningSecret::new("app", *b"a secret of thirty-two bytes ...").unwrap();
    let of_the_application = secret.clone();
    let server = TestServer::start_with(|config| config.store.signing.secrets = vec![secret]).await;
    let admin = key(&server, Scope::All, &[KeyScope::Admin]).await;
    let sign = async |key: &str| {
        let asked = json!({"organization_id": ERASED, "sub_system": "s"});
        let call = server.post("/api/v1/files/sign-upload").json(&asked);
        let reply = with(call, Some(key)).send().await.expect(200).json();
        reply["url"].as_str().unwrap().to_owned()
    };
    let of_itself = |nonce: &str, more: &str| {
        let end = Timestamp::now().plus(Duration::from_mins(5));
        let query = format!("organization_id={ERASED}&sub_system=s&nonce={nonce}{more}");
        of_the_application.sign(SignedMethod::Post, "/api/v1/files/upload", &query, end)
    };
    let send =
        async |url: &str| server.post(url).form(Form::new().bytes("file", b"x")).send().await;

    send(&of_itself("1", "")).await.expect(201);
    let before = sign(&admin).await;
    let old = of_itself("2", "");
    let url = sign(&admin).await;
    let begun = begin(&server, "POST", &url, Form::new().bytes("file", b"x"), None).await;

    let receipt = erase(&server, Some(&admin)).await;
    assert_eq!(receipt["complete"], true, "{receipt}");
    let caches = &receipt["may_return"][0];
    assert_eq!(caches["place"], "shared caches");
    assert!(caches["until"].is_string(), "{receipt}");

    assert_eq!(finish(begun).await, 403);
    for refused in [before, old, of_itself("3", ""), of_itself("4", "&era=1")] {
        let problem = send(&refused).await.problem(403, "signature_invalid");
        assert_eq!(problem.field.as_deref(), Some("era"), "{refused}");
    }
    assert_eq!(files_of_erased(&server).await, 0);

    send(&sign(&admin).await).await.expect(201);
    let now = Timestamp::now().plus(Duration::from_secs(1)).as_millis();
    send(&of_itself("5", &format!("&era={now}"))).await.expect(201);
}

#[tokio::test]
async fn no_reply_is_remembered_from_before() {
    let server = TestServer::start().await;
    let first = server.upload("same").org(ERASED).key("k").ok().await.file_id;
    assert_eq!(server.upload("same").org(ERASED).key("k").ok().await.file_id, first);
    let twin = upload_form();
    let (content_type, body) = (twin.content_type(), twin.finish());
    let receipt = erase(&server, None).await;
    assert_eq!((&receipt["complete"], &receipt["replies"]), (&json!(true), &json!(1)));

    let call = server.post("/api/v1/files/upload").header("idempotency-key", "k");
    let anew = call.body(&content_type, body).send().await.expect(201).file_id();
    assert_ne!(anew, first);
    server.content(&first).send().await.expect(404);
}
