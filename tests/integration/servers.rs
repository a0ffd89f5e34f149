//! Several servers on one database: what one has answered holds for all of them. Beside PostgreSQL alone
//! (`tests/services/postgres/run`).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use filestore_client::{Client, Resumable, Upload};
use filestore_core::Scope;
use filestore_core::admin::NoProgress;
use filestore_core::api::SignRequest;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::{Servers, TestServer, eventually, fixtures, sha256_hex};
use reqwest::Method;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn what_one_server_has_answered_every_other_one_shows_at_once() {
    let Some(servers) = Servers::start(3).await else { return };
    let [one, two, three] = &servers.all[..] else { panic!("three") };
    for round in 0..3 {
        let text = format!("round {round}");
        let id = one.upload(&text).ok().await.file_id;
        for server in [two, three] {
            assert_eq!(server.content(&id).send().await.expect(200).body, text);
        }
        two.change(&id).file("replaced").send().await.expect(200);
        assert_eq!(three.content(&id).send().await.expect(200).body, "replaced");
        three.delete(&id).await.expect(200);
        for server in [one, two] {
            server.content(&id).send().await.problem(404, "not_found");
            assert!(!server.listed().await.contains(&id));
        }
    }
}

#[tokio::test]
async fn a_stream_of_one_server_tells_what_happens_at_another_and_goes_on_there() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let mut stream = one.get("/api/v1/events").events().await;
    let mut last = String::new();
    for round in 0..3 {
        let id = other.upload(format!("round {round}")).ok().await.file_id;
        let event = stream.event().await;
        assert_eq!(event["data"]["file_id"], id);
        event["id"].as_str().expect("an id").clone_into(&mut last);
    }
    drop(stream);
    let missed = one.upload("missed").ok().await.file_id;
    let mut stream = other.get("/api/v1/events").header("last-event-id", &last).events().await;
    assert_eq!(stream.event().await["data"]["file_id"], missed);
}

#[tokio::test]
async fn a_key_that_is_revoked_at_one_server_ends_its_streams_at_another() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
    let (key, secret) = one.store().keys().create(new).await.expect("a key");
    let shown = format!("Bearer {}", secret.expose());
    let stream = other.get("/api/v1/events").header("authorization", &shown).events().await;
    one.store().keys().revoke(key.id).await.expect("a revocation");
    stream.ends().await;
}

/// Shows a key to a server; returns the status of the answer.
async fn status(server: &TestServer, secret: &str) -> u16 {
    let shown = format!("Bearer {secret}");
    server.get("/api/v1/storage-providers").header("authorization", &shown).send().await.status
}

#[tokio::test]
async fn a_key_opens_every_server_at_once_and_is_refused_by_every_one_within_a_second() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let admin = NewKey::new("admin", Scope::All, [KeyScope::Admin]);
    let (_, admin) = one.store().keys().create(admin).await.expect("a key");
    // Each has made a key, and so is closed at once.
    let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
    let (key, secret) = other.store().keys().create(new).await.expect("a key");
    assert_eq!(status(other, admin.expose()).await, 200, "it asks before it refuses");
    assert_eq!(status(other, "fsk_unknown").await, 401);
    assert_eq!(status(one, secret.expose()).await, 200);
    let listed = one
        .get("/api/v1/admin/keys")
        .header("authorization", &format!("Bearer {}", admin.expose()))
        .send()
        .await
        .expect(200);
    assert!(listed.text().contains(&key.id.to_string()), "{}", listed.text());

    other.store().keys().revoke(key.id).await.expect("a key");
    let revoked = Instant::now();
    loop {
        let age = revoked.elapsed();
        match status(one, secret.expose()).await {
            401 => break,
            status => assert!(status == 200 && age < Duration::from_secs(1), "{status} {age:?}"),
        }
    }
}

#[tokio::test]
async fn the_first_key_closes_every_server_within_a_second() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    assert_eq!(other.get("/api/v1/storage-providers").send().await.status, 200);
    let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
    one.store().keys().create(new).await.expect("a key");

    let made = Instant::now();
    loop {
        let age = made.elapsed();
        match other.get("/api/v1/storage-providers").send().await.status {
            401 => break,
            status => assert!(status == 200 && age < Duration::from_secs(1), "{status} {age:?}"),
        }
    }
}

#[tokio::test]
async fn a_url_that_one_server_has_signed_every_other_one_serves_at_once() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let id = one.upload("bytes").ok().await.file_id;
    let signed = one.client().sign(&id, &SignRequest::content()).await.expect("a URL");
    let path = signed.url.strip_prefix(&one.url("")).expect("a URL of the server");
    assert_eq!(other.get(path).send().await.expect(200).body, "bytes");
    let damaged = path.replace("sig=", "sig=A");
    other.get(&damaged).send().await.problem(403, "signature_invalid");
}

#[tokio::test]
async fn a_retry_with_its_key_is_answered_by_whichever_server_it_comes_to() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    for round in 0..5 {
        let key = format!("key {round}");
        let first = one.upload("pay me").key(&key).send().await.expect(201);
        let again = other.upload("pay me").key(&key).send().await.expect(201);
        assert_eq!(again.json(), first.json());
        assert_eq!(again.only("idempotency-replayed"), "true");
        let other = other.upload("another").key(&key).send().await;
        other.problem(422, "idempotency_mismatch");
    }
}

#[tokio::test]
async fn variants_of_a_file_that_another_server_purged_are_removed() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let picture = fixtures::jpeg(600, 400);
    let id = one.upload(picture).name("a.jpg").ok().await.file_id;
    other.variant(&id, 200).send().await.expect(200);
    other.store().admin().upkeep().await.expect("a first look");
    assert!(other.store().admin().variant_cache().await.disk_entries > 0);

    one.delete(&id).await.expect(200);
    one.store().admin().purge(&NoProgress).await.expect("a run");
    eventually("the purge", async || (one.info(&id).await.status == 404).then_some(())).await;
    other.store().admin().upkeep().await.expect("a look");
    assert_eq!(other.store().admin().variant_cache().await.disk_entries, 0);
}

#[tokio::test]
async fn a_server_without_its_database_lets_nobody_in_by_old_keys_and_says_that_it_lives() {
    let Some(servers) = Servers::start(1).await else { return };
    let server = &servers.all[0];
    let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
    let (_, secret) = server.store().keys().create(new).await.expect("a key");
    assert_eq!(status(server, secret.expose()).await, 200);

    // From here on it neither hears of anything nor can ask.
    server.store().close().await;
    eventually("what it knows grows old", async || {
        (status(server, secret.expose()).await == 500).then_some(())
    })
    .await;
    server.get("/api/v1/health-checks").send().await.expect(200);
}

/// Asks a server again and again; waits until what is left of a limit shows that so many requests were made
/// elsewhere. `before` were made here. Returns how often it asked.
async fn hears_of(server: &TestServer, before: u64, elsewhere: u64) -> u64 {
    let (began, mut asked) = (Instant::now(), 0);
    eventually("a server hears of another's requests", async || {
        asked += 1;
        let reply = server.get(PROVIDERS).send().await.expect(200);
        let told = reply.header("ratelimit").expect("a limit");
        let left = told.split(';').find_map(|part| part.strip_prefix("r=")).expect("what is left");
        let left: u64 = left.parse().expect("a number");
        let regained = began.elapsed().as_secs() / SECS_EACH + 2;
        (left + before + asked + elsewhere <= u64::from(QUOTA) + regained).then_some(())
    })
    .await;
    asked
}

const PROVIDERS: &str = "/api/v1/storage-providers";
const QUOTA: u32 = 10_000;

/// The seconds after which a permit comes back.
const SECS_EACH: u64 = 24 * 3600 / QUOTA as u64;

#[tokio::test]
async fn a_limit_of_requests_holds_for_all_servers_together() {
    let started = Servers::start_with(2, |config| {
        config.rate_limits.window = Duration::from_hours(24);
        config.rate_limits.address.requests = Some(QUOTA);
    });
    let Some(servers) = started.await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    for _ in 0..50 {
        one.get(PROVIDERS).send().await.expect(200);
    }
    let asked = hears_of(other, 0, 50).await;
    hears_of(one, 50, asked).await;
}

#[tokio::test]
async fn every_server_continues_shows_and_cancels_a_resumable_upload() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let create = async || {
        let create = one.post("/api/v1/uploads?organization_id=acme&sub_system=docs");
        let create = create.header("tus-resumable", "1.0.0").header("upload-length", "5");
        create.send().await.expect(201).only("location").to_owned()
    };
    let tus = |server: &TestServer, method: Method, path: &str| {
        server.call(method, path).header("tus-resumable", "1.0.0")
    };
    let patch = |server: &TestServer, path: &str, offset: &str, bytes: &'static str| {
        let call = tus(server, Method::PATCH, path).header("upload-offset", offset);
        call.body("application/offset+octet-stream", bytes).send()
    };

    let path = create().await;
    patch(one, &path, "0", "he").await.expect(204);
    let head = tus(other, Method::HEAD, &path).send().await.expect(200);
    assert_eq!(head.only("upload-offset"), "2");
    patch(other, &path, "2", "l").await.expect(204);
    patch(other, &path, "2", "lo").await.problem(409, "upload_offset_mismatch");
    let whole = patch(one, &path, "3", "lo").await.expect(204);
    assert_eq!(other.content(whole.only("file-id")).send().await.expect(200).body, "hello");
    let head = tus(other, Method::HEAD, &path).send().await.expect(200);
    assert_eq!(head.only("file-id"), whole.only("file-id"));

    let path = create().await;
    patch(one, &path, "0", "he").await.expect(204);
    tus(other, Method::DELETE, &path).send().await.expect(204);
    for server in [one, other] {
        tus(server, Method::GET, &path).send().await.problem(410, "upload_gone");
    }
    patch(one, &path, "2", "llo").await.problem(410, "upload_gone");
}

#[tokio::test]
async fn the_pieces_of_our_client_go_to_alternating_servers() {
    let Some(servers) = Servers::start(2).await else { return };
    let [one, other] = &servers.all[..] else { panic!("two") };
    let url = alternating([one.addr(), other.addr()]).await;
    // A connection for each request.
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let client = Client::builder(&url).unwrap().http_client(http).build().unwrap();
    let place = client.organization("acme").unwrap().sub_system("docs").unwrap();
    let bytes = fixtures::noise(3, 100_000);
    let upload = Upload::from_bytes(bytes.clone()).original_name("a").resumable(Resumable::Always);
    let record = place.upload(upload).await.unwrap();
    assert_eq!(record.sha256, sha256_hex(&bytes));
    assert_eq!(one.listed().await, [record.file_id]);
}

/// Starts a proxy that passes each connection to the next server in turn.
async fn alternating(targets: [SocketAddr; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for target in targets.into_iter().cycle() {
            let Ok((mut client, _)) = listener.accept().await else { return };
            tokio::spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    url
}
