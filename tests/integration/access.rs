//! Keys (reference §5): every endpoint, every kind of key, own files and foreign ones. The expected
//! answers come from the table of the reference.

use std::time::Duration;

use filestore_core::keys::{KeyScope, KeySecret, NewKey};
use filestore_core::uploads::NewResumable;
use filestore_core::{FileStore, NewUpload, Scope};
use filestore_server::{Auth, Origins, Server, StartError};
use filestore_workspace::wire::Wire;
use filestore_workspace::{Call, Form, Reply, TestServer};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::UnixStream;

const REFERENCE: &str = include_str!("../../filestore-server/docs/reference/access.md");

const OWN: &str = "7";
const FOREIGN: &str = "8";

/// A file id that no file has.
const NO_FILE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A row of the reference's table: a method, a path, and what they need.
struct Row {
    method: Method,
    path: &'static str,
    needs: &'static str,
}

fn rows() -> Vec<Row> {
    let table =
        REFERENCE.split("| needs |\n|---|---|---|\n").nth(1).expect("the table of section 5");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let method = cells[0].parse().expect("a method");
        Row { method, path: cells[1].trim_matches('`'), needs: cells[2] }
    })
    .collect()
}

/// A key, as the table of tests knows it.
struct Kind {
    secret: Option<String>,
    scope: Option<KeyScope>,
    organizations: Scope,
}

impl Kind {
    /// Tells what the reference promises for a route's need, if the key's organizations fit.
    fn is_let_in(&self, needs: &str) -> bool {
        let is_admin = self.scope == Some(KeyScope::Admin);
        match needs {
            "no key" => true,
            "a key" => self.scope.is_some(),
            "`admin` for `*`" => is_admin && self.organizations == Scope::All,
            scope => is_admin || self.scope.is_some_and(|own| format!("`{own}`") == scope),
        }
    }

    fn covers(&self, organization: &str) -> bool {
        self.organizations.covers(&organization.parse().expect("an organization"))
    }
}

async fn new_key(store: &FileStore, scope: KeyScope, organizations: Scope) -> Kind {
    let new = NewKey::new("test", organizations.clone(), [scope]);
    let (_, secret) = store.keys().create(new).await.expect("a key");
    Kind { secret: Some(secret.expose().to_owned()), scope: Some(scope), organizations }
}

/// Keys of every kind: each scope for each choice of organizations, and those that are none.
async fn kinds(store: &FileStore) -> Vec<Kind> {
    let one = |id: &str| Scope::Organizations(vec![id.parse().expect("an organization")]);
    let mut kinds = Vec::new();
    for scope in KeyScope::ALL {
        for organizations in [one(OWN), one(FOREIGN), Scope::All] {
            kinds.push(new_key(store, *scope, organizations).await);
        }
    }

    let revoked = NewKey::new("revoked", Scope::All, [KeyScope::Admin]);
    let (key, secret) = store.keys().create(revoked).await.expect("a key");
    store.keys().revoke(key.id).await.expect("a revocation");
    let unknown = KeySecret::of([7; 32]).expose().to_owned();
    for secret in
        [None, Some("nonsense".to_owned()), Some(unknown), Some(secret.expose().to_owned())]
    {
        kinds.push(Kind { secret, scope: None, organizations: Scope::Organizations(Vec::new()) });
    }
    kinds
}

async fn file_of(store: &FileStore, organization: &str) -> String {
    let new = NewUpload::new(organization.parse().unwrap(), "s".parse().unwrap());
    store.upload(new, &b"bytes"[..]).await.expect("a file").file_id.to_string()
}

async fn upload_of(store: &FileStore, organization: &str) -> String {
    let new = NewUpload::new(organization.parse().unwrap(), "s".parse().unwrap());
    let new = NewResumable::new(new).with_length(5);
    store.resumable().create(new).await.expect("an upload").upload.address.to_segment()
}

/// The target of a request: a file, a file among others, an organization that it names, or neither.
enum About {
    File,
    FileOfSeveral,
    ReceiptOfFile,
    CellOfSheet,
    Organization,
    Nothing,
}

/// Begins the request of a row, about a file and organization.
fn request(
    server: &TestServer,
    row: &Row,
    (file, upload): (&str, &str),
    organization: &str,
) -> (Call, About) {
    let path = row.path.replace("{upload}", upload);
    let path = path.replace("{fileId}", file).replace("{width}/{height}", "200/200");
    let path =
        path.replace("{code}", "LOCAL").replace("{key_id}", NO_FILE).replace("{kid}", "none");
    let path = path.replace("{upload_id}", NO_FILE);
    let path = path.replace("{destination}", "none");
    let path = path.replace("{organizationId}", organization);
    let is_beside = ["/", "/api/v1", "/console", "/metrics"].contains(&path.as_str());
    let path = if is_beside { path } else { format!("/api/v1{path}") };
    let call = server.call(row.method.clone(), &path);
    let place = |form: Form| form.text("organization_id", organization).text("sub_system", "s");

    match (row.method.as_str(), row.path) {
        ("GET", "/files/{fileId}/receipt") => (call, About::ReceiptOfFile),
        ("PATCH", "/files/{fileId}") => (call.json(&json!({"mime_type": "a/b"})), About::File),
        (_, path) if path.contains("{fileId}") => (call, About::File),
        ("POST", "/files/upload") => {
            (call.form(place(Form::new()).bytes("file", b"x")), About::Organization)
        }
        ("POST", "/files/batch") => {
            (call.form(place(Form::new()).bytes("items[0].file", b"x")), About::Organization)
        }
        ("POST" | "GET", "/uploads") => {
            let path = format!("{path}?organization_id={organization}");
            let call = match row.method {
                Method::POST => {
                    server.post(&format!("{path}&sub_system=s")).body("text/plain", "x")
                }
                _ => server.get(&path),
            };
            (call, About::Organization)
        }
        ("PATCH", "/uploads/{upload}") => {
            let call = call.header("tus-resumable", "1.0.0").header("upload-offset", "0");
            (call.body("application/offset+octet-stream", "x"), About::File)
        }
        ("POST", "/uploads/{upload}") => {
            (call.header("x-http-method-override", "HEAD"), About::File)
        }
        ("GET" | "DELETE", "/uploads/{upload}") => (call, About::File),
        ("PUT", "/files/upload") => (
            call.form(Form::new().text("file_id", file).text("make_as_ready", "true")),
            About::File,
        ),
        ("POST", "/files/delete" | "/files/restore") => {
            (call.json(&json!({"ids": [file]})), About::FileOfSeveral)
        }
        (
            "GET",
            "/organizations/{organizationId}/usage" | "/organizations/{organizationId}/sub-systems",
        ) => (call, About::Organization),
        ("GET", "/sheets") => {
            let call = server.call(Method::GET, &format!("{path}?ids={file}"));
            (call.header("accept", "application/json"), About::CellOfSheet)
        }
        ("GET", "/files" | "/events") => {
            let path = format!("{path}?organization_id={organization}");
            (server.call(Method::GET, &path), About::Organization)
        }
        ("POST", "/files/sign-upload") => {
            let place = json!({"organization_id": organization, "sub_system": "s"});
            (call.json(&place), About::Organization)
        }
        ("GET", "/storage-providers" | "/metrics" | "/me" | "/organizations") => {
            (call, About::Nothing)
        }
        (_, path) => {
            let is_known = row.needs == "`admin` for `*`" || row.needs == "no key";
            assert!(is_known, "say what a request to {path} is about");
            (call, About::Nothing)
        }
    }
}

fn with_key(call: Call, kind: &Kind) -> Call {
    match &kind.secret {
        Some(secret) => call.header("authorization", &format!("Bearer {secret}")),
        None => call,
    }
}

/// Compares the reply with what the reference promises.
fn check(reply: &Reply, row: &Row, kind: &Kind, about: &About, organization: &str) {
    let what = format!("{} {} {:?} {organization}", row.method, row.path, kind.scope);
    if row.needs == "no key" {
        assert!(reply.status < 400, "{what}: {}", reply.text());
        return;
    }
    if kind.scope.is_none() {
        assert_eq!(reply.only("www-authenticate"), "Bearer", "{what}");
        reply.problem(401, "unauthorized");
        return;
    }
    if !kind.is_let_in(row.needs) {
        reply.problem(403, "forbidden");
        return;
    }

    match about {
        About::File if !kind.covers(organization) => drop(reply.problem(404, "not_found")),
        // The file was not purged; `receipts` asks for one that was.
        About::ReceiptOfFile => drop(reply.problem(404, "not_found")),
        About::Organization if !kind.covers(organization) => drop(reply.problem(403, "forbidden")),
        About::File | About::Organization => {
            // A variant of bytes that are no picture.
            assert!(reply.status < 300 || reply.status == 422, "{what}: {}", reply.text());
        }
        About::FileOfSeveral => {
            let result = &reply.clone().expect(200).json()["results"][0];
            let done = if row.path == "/files/delete" { "deleted" } else { "restored" };
            assert_eq!(result[done], kind.covers(organization), "{what}: {result}");
            let expected = if kind.covers(organization) { Value::Null } else { json!("not_found") };
            assert_eq!(result["error"]["code"], expected, "{what}: {result}");
        }
        About::CellOfSheet => {
            let cell = &reply.clone().expect(200).json()["cells"][0];
            // Bytes that are no picture.
            let expected = if kind.covers(organization) { "not_an_image" } else { "not_found" };
            assert_eq!(cell["error"]["code"], expected, "{what}: {cell}");
        }
        About::Nothing => assert!(![401, 403].contains(&reply.status), "{what}: {}", reply.text()),
    }
}

#[tokio::test]
async fn every_route_answers_every_kind_of_key_as_the_reference_says() {
    let server = TestServer::start_without_purge().await;
    let kinds = kinds(server.store()).await;
    let rows = rows();
    assert!(rows.len() > 30, "the table is read");

    for row in &rows {
        for kind in &kinds {
            for organization in [OWN, FOREIGN] {
                let file = file_of(server.store(), organization).await;
                let upload = if row.path.contains("{upload}") {
                    upload_of(server.store(), organization).await
                } else {
                    String::new()
                };
                let (call, about) = request(&server, row, (&file, &upload), organization);
                let reply = with_key(call, kind).send().await;
                check(&reply, row, kind, &about, organization);
            }
        }
    }
}

/// Sends a request with a key and returns the reply without what differs between two equal requests.
async fn anonymous(call: Call, kind: &Kind) -> (u16, Value, Vec<String>) {
    let reply = with_key(call, kind).send().await;
    let mut problem = reply.json();
    for unique in ["request_id", "instance"] {
        problem.as_object_mut().unwrap().remove(unique);
    }
    let names = reply.headers.keys().map(ToString::to_string).collect();
    (reply.status, problem, names)
}

#[tokio::test]
async fn a_foreign_file_looks_like_one_that_does_not_exist() {
    let server = TestServer::start_without_purge().await;
    let own = Scope::Organizations(vec![OWN.parse().unwrap()]);
    let kind = new_key(server.store(), KeyScope::Admin, own).await;
    let foreign = file_of(server.store(), FOREIGN).await;

    for row in rows().iter().filter(|row| row.path.contains("{fileId}")) {
        let (one, _) = request(&server, row, (&foreign, ""), FOREIGN);
        let (other, _) = request(&server, row, (NO_FILE, ""), FOREIGN);
        let (one, other) = (anonymous(one, &kind).await, anonymous(other, &kind).await);
        assert_eq!((one.0, &one), (404, &other), "{} {}", row.method, row.path);
    }
}

#[tokio::test]
async fn the_gate_closes_with_the_first_key_and_never_opens_again() {
    let server = TestServer::start().await;
    server.get("/api/v1/files").send().await.expect(200);
    let new = json!({"organizations": ["*"], "scopes": ["admin"], "name": "first"});
    let made = server.post("/api/v1/admin/keys").json(&new).send().await.expect(201).json();
    server.get("/api/v1/files").send().await.problem(401, "unauthorized");
    server.get("/api/v1/nowhere").send().await.problem(401, "unauthorized");

    let (id, secret) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let shown = |call: Call| call.header("authorization", &format!("Bearer {secret}"));
    shown(server.get("/api/v1/files")).send().await.expect(200);
    shown(server.get("/api/v1/nowhere")).send().await.problem(404, "not_found");
    let listed = shown(server.get("/api/v1/admin/keys")).send().await.expect(200).json();
    assert_eq!((&listed[0]["id"], &listed[0]["name"]), (&json!(id), &json!("first")));
    assert!(listed[0].get("key").is_none() && listed[0]["last_used_at"].is_string());

    let revoke = format!("/api/v1/admin/keys/{id}/revoke");
    shown(server.post(&revoke)).send().await.expect(200);
    shown(server.get("/api/v1/files")).send().await.problem(401, "unauthorized");
    let server = server.restart().await;
    server.get("/api/v1/files").send().await.problem(401, "unauthorized");

    let socket = UnixStream::connect(server.data_dir().join("admin.sock")).await.unwrap();
    let mut wire = Wire::over(socket);
    wire.send("GET /api/v1/admin/keys HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 200, "the socket needs no key");
}

#[tokio::test]
async fn a_rotated_key_keeps_its_id_and_its_idempotency() {
    let server = TestServer::start().await;
    let (key, first) = server
        .store()
        .keys()
        .create(NewKey::new("k", Scope::All, [KeyScope::Write]))
        .await
        .unwrap();
    let upload = async |secret: &str| {
        let form =
            Form::new().text("organization_id", OWN).text("sub_system", "s").bytes("file", b"x");
        let call = server.post("/api/v1/files/upload").header("idempotency-key", "once").form(form);
        call.header("authorization", &format!("Bearer {secret}")).send().await
    };

    let before = upload(first.expose()).await.expect(201).file_id();
    let (_, second) = server.store().keys().rotate(key.id, Duration::ZERO).await.unwrap();
    upload(first.expose()).await.problem(401, "unauthorized");
    assert_eq!(upload(second.expose()).await.expect(201).file_id(), before);

    let other = new_key(server.store(), KeyScope::Write, Scope::All).await;
    let others = upload(other.secret.as_deref().unwrap()).await.expect(201).file_id();
    assert_ne!(others, before, "a key's idempotency is its own");
}

#[tokio::test]
async fn a_key_that_may_not_read_is_shown_no_record() {
    let server = TestServer::start_without_purge().await;
    let store = server.store();
    let all = [KeyScope::Write, KeyScope::Delete];
    let (_, blind) = store.keys().create(NewKey::new("k", Scope::All, all)).await.unwrap();
    let seeing = [KeyScope::Write, KeyScope::Read];
    let (_, seeing) = store.keys().create(NewKey::new("k", Scope::All, seeing)).await.unwrap();
    let admin = new_key(store, KeyScope::Admin, Scope::All).await;
    let shown =
        |call: Call, secret: &str| call.header("authorization", &format!("Bearer {secret}"));
    let id = file_of(store, OWN).await;
    let path = format!("/api/v1/files/{id}");
    let restore = || server.post(&format!("{path}/restore"));

    // Of a file that is not deleted, and of one that is.
    for delete in [false, true] {
        if delete {
            shown(server.call(Method::DELETE, &path), blind.expose()).send().await.expect(200);
        }
        let reply = shown(restore(), blind.expose()).send().await.expect(200);
        assert_eq!(reply.json(), json!({"file_id": id}));
        assert!(reply.header("etag").is_none(), "the tag is the digest of the bytes");
    }
    for secret in [seeing.expose(), admin.secret.as_deref().unwrap()] {
        let reply = shown(restore(), secret).send().await.expect(200);
        assert_eq!((&reply.json()["file_id"], &reply.json()["file_size"]), (&json!(id), &json!(5)));
        assert!(reply.header("etag").is_some());
    }

    let ready = || server.change(&id).field("make_as_ready", "true").call();
    let reply = shown(ready(), blind.expose()).send().await.expect(200);
    assert!(reply.header("etag").is_none(), "{:?}", reply.headers);
    assert!(shown(ready(), seeing.expose()).send().await.expect(200).header("etag").is_some());
    let replaced = shown(server.change(&id).file("new").call(), blind.expose()).send().await;
    assert!(replaced.expect(200).header("etag").is_some(), "the digest of what it has sent");
}

#[tokio::test]
async fn the_metrics_of_the_whole_service_are_for_its_administrators() {
    let server = TestServer::start().await;
    let one = Scope::Organizations(vec![OWN.parse().unwrap()]);
    let tenant = new_key(server.store(), KeyScope::Admin, one).await;
    let service = new_key(server.store(), KeyScope::Admin, Scope::All).await;
    with_key(server.get("/metrics"), &tenant).send().await.problem(403, "forbidden");
    with_key(server.get("/metrics"), &service).send().await.expect(200);
}

/// Begins an upload and waits until the server has let it in. Returns what is still to be sent.
async fn begin_upload(server: &TestServer, secret: Option<&str>) -> (Wire, Vec<u8>) {
    let form = Form::new().text("organization_id", OWN).text("sub_system", "s").bytes("file", b"x");
    let (content_type, body) = (form.content_type(), form.finish());
    let bearer = secret.map(|secret| format!("Authorization: Bearer {secret}\r\n"));
    let head = format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
         Content-Type: {content_type}\r\nContent-Length: {}\r\n{}\r\n",
        body.len(),
        bearer.unwrap_or_default()
    );

    let mut wire = server.wire().await;
    wire.send(head).await;
    assert_eq!(wire.status_line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.status_line().await, "", "the end of the interim reply");
    (wire, body)
}

#[tokio::test]
async fn an_upload_under_way_ends_with_the_right_to_it() {
    let server = TestServer::start().await;
    let (mut open, rest_of_open) = begin_upload(&server, None).await;
    let (key, secret) = {
        let new = NewKey::new("k", Scope::All, [KeyScope::Write]);
        server.store().keys().create(new).await.unwrap()
    };
    open.send(rest_of_open).await;
    assert_eq!(open.reply().await.status, 401, "the first key was made meanwhile");

    let (mut good, rest_of_good) = begin_upload(&server, Some(secret.expose())).await;
    good.send(rest_of_good).await;
    assert_eq!(good.reply().await.status, 201);

    let (mut revoked, rest_of_revoked) = begin_upload(&server, Some(secret.expose())).await;
    server.store().keys().revoke(key.id).await.unwrap();
    revoked.send(rest_of_revoked).await;
    assert_eq!(revoked.reply().await.status, 401);
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn a_refused_stranger_is_not_listened_to_for_long() {
    let server = TestServer::start_with(|config| config.http.drain = Duration::from_hours(1)).await;
    new_key(server.store(), KeyScope::Read, Scope::All).await;
    let mut wire = server.wire().await;
    wire.send(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\
         Content-Type: multipart/form-data; boundary=b\r\n\r\n",
    )
    .await;

    assert_eq!(wire.reply().await.status, 401);
    assert!(wire.ends().await, "the rest of the upload is not waited for");
}

#[tokio::test]
async fn a_server_is_closed_from_the_start_where_the_configuration_says_so() {
    let server = TestServer::start_with(|config| config.auth = Auth::Keys).await;
    server.get("/api/v1/files").send().await.problem(401, "unauthorized");
    server.get("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn an_open_server_is_not_opened_to_every_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = filestore_server::Config::new("127.0.0.1:0".parse().unwrap(), dir.path());
    config.cors.origins = Origins::Any;
    let refused = Server::start(config.clone()).await.unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("key create"), "{refused}");

    let mut closed = config.clone();
    closed.auth = Auth::Keys;
    Server::start(closed).await.unwrap().stop().await;
    config.insecure_no_auth = true;
    Server::start(config).await.unwrap().stop().await;
}

#[tokio::test]
async fn the_first_key_may_come_from_its_hash() {
    let secret = KeySecret::of([9; 32]);
    let server = TestServer::start_with(|config| {
        config.listen = "0.0.0.0:0".parse().unwrap();
        config.first_key_hash = Some(secret.digest());
    })
    .await;
    let call = server.get("/api/v1/admin/status");
    call.header("authorization", &format!("Bearer {}", secret.expose())).send().await.expect(200);
    server.get("/api/v1/files").send().await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_start_without_keys_beyond_loopback_names_the_command_that_makes_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = filestore_server::Config::new("0.0.0.0:0".parse().unwrap(), dir.path());
    let refused = Server::start(config.clone()).await.unwrap_err();
    let command =
        format!("filestore --data-dir {} key create --org '*' --scope admin", dir.path().display());
    assert!(refused.is_usage() && refused.to_string().contains(&command), "{refused}");

    let store = FileStore::open(dir.path()).await.unwrap();
    new_key(&store, KeyScope::Admin, Scope::All).await;
    store.close().await;
    drop(store);
    Server::start(config.clone()).await.unwrap().stop().await;

    config.auth = Auth::None;
    let refused = Server::start(config).await.unwrap_err();
    assert!(matches!(refused, StartError::KeysBesideNone), "{refused}");
}
