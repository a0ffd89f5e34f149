//! `Idempotency-Key` (reference §4.2 and §4.4): a request that is sent twice is carried out once.

use std::time::Duration;

use filestore_workspace::{Form, TestServer, eventually};
use futures_util::future::join_all;

#[tokio::test]
async fn the_same_upload_with_the_same_key_returns_the_stored_reply() {
    let server = TestServer::start().await;
    let first = server.upload("pay me").name("a.txt").key("k-1").send().await.expect(201);
    let second = server.upload("pay me").name("a.txt").key("k-1").send().await.expect(201);
    assert_eq!(first.json(), second.json());
    assert_eq!(first.only("location"), second.only("location"));
    assert_eq!(first.only("etag"), second.only("etag"));
    assert_eq!(second.only("idempotency-replayed"), "true");
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn the_stored_reply_is_returned_even_after_the_file_changed() {
    let server = TestServer::start().await;
    let first = server.upload("one").key("k-1").send().await.expect(201);
    server.change(&first.file_id()).file("two").send().await.expect(200);
    let second = server.upload("one").key("k-1").send().await.expect(201);
    assert_eq!(second.json(), first.json());
    assert_eq!(
        server.content(&first.file_id()).send().await.body,
        "two",
        "and nothing was changed by it"
    );
}

#[tokio::test]
async fn another_content_under_the_same_key_is_422() {
    let server = TestServer::start().await;
    server.upload("one").name("a.txt").key("k-1").ok().await;
    let mismatches = [
        server.upload("two").name("a.txt").key("k-1"),
        server.upload("one").name("b.txt").key("k-1"),
        server.upload("one").name("a.txt").sub_system("other").key("k-1"),
        server.upload("one").name("a.txt").temp().key("k-1"),
        server.upload("one").name("a.txt").mime("a/b").key("k-1"),
    ];

    for upload in mismatches {
        upload.send().await.problem(422, "idempotency_mismatch");
    }
    server
        .batch()
        .named("a.txt", "one")
        .key("k-1")
        .send()
        .await
        .problem(422, "idempotency_mismatch");
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn what_a_part_says_counts_where_the_fields_are_silent() {
    let server = TestServer::start().await;
    let send = async |key: &str, fields: &[(&str, &str)], file_name: &str, mime: &str| {
        let mut form = Form::new().text("organization_id", "acme").text("sub_system", "gallery");
        for (name, value) in fields {
            form = form.text(name, value);
        }
        let form = form.file("file", file_name, mime, b"\0\x01");
        server.post("/api/v1/files/upload").header("idempotency-key", key).form(form).send().await
    };

    send("k-1", &[], "a", "image/x-one").await.expect(201);
    send("k-1", &[], "a", "image/x-one").await.expect(201);
    send("k-1", &[], "a", "image/x-two").await.problem(422, "idempotency_mismatch");
    send("k-1", &[], "b", "image/x-one").await.problem(422, "idempotency_mismatch");

    let given = [("original_name", "n"), ("mime_type", "image/x-given")];
    send("k-2", &given, "a", "image/x-one").await.expect(201);
    send("k-2", &given, "b", "image/x-two").await.expect(201);
    assert_eq!(server.listed().await.len(), 2);
}

#[tokio::test]
async fn the_fingerprint_is_the_fields_and_digests_never_the_multipart_bytes() {
    let server = TestServer::start().await;
    let in_one_order = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .text("original_name", "a.txt")
        .bytes("file", b"x");

    let in_another = Form::new()
        .bytes("file", b"x")
        .text("original_name", "a.txt")
        .text("sub_system", "gallery")
        .text("organization_id", "acme");

    let send = async |form| {
        let call = server.post("/api/v1/files/upload").header("idempotency-key", "k-1").form(form);
        call.send().await.expect(201).file_id()
    };
    assert_eq!(send(in_one_order).await, send(in_another).await);
}

#[tokio::test]
async fn a_key_is_scoped_to_its_organization() {
    let server = TestServer::start().await;
    let acme = server.upload("one").org("acme").key("k-1").ok().await;
    let other = server.upload("two").org("other").key("k-1").ok().await;
    assert_ne!(acme.file_id, other.file_id);
}

#[tokio::test]
async fn a_batch_with_the_same_key_is_done_once() {
    let server = TestServer::start().await;
    let first = server.batch().item("a").item("b").key("k-1").send().await.expect(201);
    let second = server.batch().item("a").item("b").key("k-1").send().await.expect(201);
    assert_eq!(first.json(), second.json());
    server.batch().item("b").item("a").key("k-1").send().await.problem(422, "idempotency_mismatch");
    assert_eq!(server.listed().await.len(), 2);
}

#[tokio::test]
async fn of_concurrent_requests_with_one_key_one_is_done_and_the_others_are_409_or_replays() {
    let server = TestServer::start().await;
    let replies = join_all((0..8).map(|_| server.upload("same").key("k-1").send())).await;

    let mut done = Vec::new();
    for reply in replies {
        match reply.status {
            201 => done.push(reply.json()),
            _ => assert_eq!(reply.problem(409, "idempotency_in_progress").status, 409),
        }
    }

    assert!(!done.is_empty());
    assert!(done.iter().all(|reply| *reply == done[0]));
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn a_request_with_the_key_of_a_running_one_is_409_until_that_is_done() {
    let server = TestServer::start().await;
    let form = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .bytes("file", &[b'x'; 1000]);
    let (content_type, body) = (form.content_type(), form.finish());

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k-1\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;

    wire.send(&body[..body.len() - 100]).await;
    eventually("the running request to be noticed", async || {
        let reply = server.upload([b'x'; 1000]).key("k-1").send().await;
        assert_ne!(reply.status, 201, "the first one has not been answered");
        (reply.status == 409).then(|| reply.problem(409, "idempotency_in_progress"))
    })
    .await;

    wire.send(&body[body.len() - 100..]).await;
    let first = wire.reply().await;
    assert_eq!(first.status, 201);

    let replay = server.upload([b'x'; 1000]).key("k-1").ok().await;
    assert_eq!(first.json()["file_id"], replay.file_id);
}

#[tokio::test]
async fn a_retry_after_a_lost_reply_stores_nothing_twice() {
    let server = TestServer::start().await;
    for round in 0..8 {
        let (key, bytes) = (format!("k-{round}"), format!("round {round}"));
        let form = Form::new()
            .text("organization_id", "acme")
            .text("sub_system", "gallery")
            .bytes("file", bytes.as_bytes());
        let (content_type, body) = (form.content_type(), form.finish());
        let mut wire = server.wire().await;
        wire.send(format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {key}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
        wire.send(&body).await;
        drop(wire);
        eventually("the retry to be answered", async || {
            Some(server.upload(&bytes).key(&key).send().await).filter(|reply| reply.status == 201)
        })
        .await;
        assert_eq!(server.listed().await.len(), round + 1);
    }
}

#[tokio::test]
async fn a_failed_upload_frees_its_key() {
    let server = TestServer::start().await;
    let wrong = "0".repeat(64);
    server.upload("x").sha256(&wrong).key("k-1").send().await.problem(422, "digest_mismatch");
    server.upload("x").key("k-1").ok().await;
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_time() {
    let server =
        TestServer::start_with(|config| config.store.idempotency_ttl = Duration::from_millis(1))
            .await;
    let first = server.upload("one").key("k-1").ok().await;
    eventually("the key to be forgotten", async || {
        let again = server.upload("one").key("k-1").ok().await;
        (again.file_id != first.file_id).then_some(())
    })
    .await;
}

#[tokio::test]
async fn keys_survive_a_restart() {
    let server = TestServer::start().await;
    let first = server.upload("one").key("k-1").send().await.expect(201).json();
    let server = server.restart().await;
    assert_eq!(server.upload("one").key("k-1").send().await.expect(201).json(), first);
}

#[tokio::test]
async fn a_key_is_1_to_255_printable_characters() {
    let server = TestServer::start().await;
    server.upload("x").key(&"k".repeat(255)).ok().await;
    server.upload("x").key(&"k".repeat(256)).send().await.any_problem(400);
    server.upload("x").key("").send().await.any_problem(400);
}
