//! Limits (reference §7), all of them configurable, and the reply that a client gets at each.

use std::time::Duration;

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_server::LeastRate;
use filestore_workspace::wire::Wire;
use filestore_workspace::{Form, TestServer, eventually, fixtures};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::clock::HeldClock;

/// A patience short enough to wait for, and long enough for a client of a busy machine.
const BRIEF: Duration = Duration::from_millis(500);

fn form() -> Form {
    Form::new().text("organization_id", "acme").text("sub_system", "gallery")
}

#[tokio::test]
async fn a_file_may_be_exactly_as_large_as_the_limit() {
    let server = TestServer::start_with(|config| config.store.limits.max_file_size = 5000).await;
    server.upload(fixtures::noise(1, 5000)).ok().await;
    let problem = server.upload(fixtures::noise(1, 5001)).send().await.problem(413, "too_large");
    assert_eq!(problem.limit, Some(5000));
    let id = server.upload("small").ok().await.file_id;
    server.change(&id).file(fixtures::noise(1, 5001)).send().await.problem(413, "too_large");
    assert_eq!(server.content(&id).send().await.body, "small");
    assert_eq!(server.listed().await.len(), 2);
}

#[tokio::test]
async fn a_text_field_and_a_part_header_are_at_most_8_kib() {
    let server = TestServer::start().await;
    let upload = async |form: Form| server.post("/api/v1/files/upload").form(form).send().await;
    let long_field = form().text("original_name", &"x".repeat(9 << 10)).bytes("file", b"x");
    let reply = upload(long_field).await;
    assert!([400, 413].contains(&reply.status), "{}", reply.text());

    let long_header = form().part(
        &format!(
            "Content-Disposition: form-data; name=\"file\"\r\nX-Long: {}",
            "x".repeat(9 << 10)
        ),
        b"x",
    );

    let reply = upload(long_header).await;
    assert!([400, 413].contains(&reply.status), "{}", reply.text());
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_charset_field_is_no_way_around_the_limit_of_text_fields() {
    let server = TestServer::start().await;
    let form = form().text("_charset_", &"x".repeat(9 << 10)).bytes("file", b"x");
    let reply = server.post("/api/v1/files/upload").form(form).send().await;
    let problem = reply.problem(413, "too_large");
    assert_eq!((problem.field.as_deref(), problem.limit), (Some("_charset_"), Some(8 << 10)));
}

#[tokio::test]
async fn a_charset_field_comes_once_like_any_other() {
    let server = TestServer::start().await;
    for path in ["/api/v1/files/upload", "/api/v1/files/batch"] {
        let twice = form().text("_charset_", "utf-8").text("_charset_", "utf-8");
        let problem = server.post(path).form(twice).send().await.problem(400, "repeated_field");
        assert_eq!(problem.field.as_deref(), Some("_charset_"), "{path}");
    }
}

#[tokio::test]
async fn a_content_type_with_thousands_of_parameters_is_400() {
    let server = TestServer::start().await;
    let crowd: Vec<_> = (0..8000).map(|n| format!(";{n:x}=a")).collect();
    let crowd = crowd.concat();
    let content_type = format!("multipart/form-data{crowd};boundary=x");
    let request = server.post("/api/v1/files/upload").body(&content_type, "--x--");
    request.send().await.problem(400, "malformed_body");

    let crowded = format!("Content-Disposition: form-data; name=\"_charset_\"{}", &crowd[..7000]);
    let crowded = form().part(&crowded, b"utf-8");
    let reply = server.post("/api/v1/files/batch").form(crowded).send().await;
    let problem = reply.problem(400, "malformed_body");
    assert!(problem.detail.contains("16"), "{problem:?}");
}

#[tokio::test]
async fn the_length_of_a_name_is_configurable() {
    let server =
        TestServer::start_with(|config| config.store.limits.original_name_chars = 10).await;
    server.upload("x").name("0123456789").ok().await;
    let problem = server.upload("x").name("0123456789a").send().await.problem(400, "invalid_field");
    assert_eq!(problem.limit, Some(10));
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let server = TestServer::start_with(|config| config.http.first_byte = BRIEF).await;
    assert!(server.wire().await.ends().await);
    server.get("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn a_header_that_does_not_end_is_cut_off() {
    let server = TestServer::start_with(|config| config.http.header = BRIEF).await;
    let mut wire = server.wire().await;
    wire.send("GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n").await;
    let reply = wire.reply_or_end().await;
    assert!(reply.is_none_or(|reply| reply.status == 408));
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_a_while_and_then_closed() {
    let server = TestServer::start_with(|config| {
        config.http.keep_alive_idle = BRIEF * 4;
        config.http.header = BRIEF;
        config.http.first_byte = BRIEF;
    })
    .await;

    let mut clock = HeldClock::hold();
    let mut wire = server.wire().await;
    let get = "GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for _ in 0..3 {
        wire.send(get).await;
        assert_eq!(wire.reply().await.status, 200, "the header's patience is not the idle one's");
        tokio::time::advance(BRIEF * 2).await;
    }

    let idle = Instant::now();
    assert!(clock.passes_until(wire.ends()).await);
    assert!(idle.elapsed() < Duration::from_mins(1), "another timeout ended it");
}

#[tokio::test]
async fn a_body_that_stops_is_408_and_leaves_nothing() {
    let server = TestServer::start_with(|config| config.body.idle = BRIEF).await;
    let form = form().bytes("file", &fixtures::noise(1, 10_000));
    let (content_type, body) = (form.content_type(), form.finish());

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;

    wire.send(&body[..5000]).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.json()["code"]), (408, &"body_timeout".into()));
    assert_eq!(server.listed().await, [""; 0]);
}

#[tokio::test]
async fn a_body_that_never_begins_is_408() {
    let server = TestServer::start_with(|config| config.body.first_byte = BRIEF).await;
    let mut wire = server.wire().await;
    wire.send("POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 100\r\n\r\n")
        .await;
    assert_eq!(wire.reply().await.status, 408);
}

#[tokio::test]
async fn beyond_the_connection_limit_clients_wait_and_are_not_refused() {
    let server = TestServer::start_with(|config| config.http.max_connections = 2).await;
    let get = "GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (mut one, mut two, mut three) =
        (server.wire().await, server.wire().await, server.wire().await);
    one.send(get).await;
    two.send(get).await;
    assert_eq!((one.reply().await.status, two.reply().await.status), (200, 200));
    three.send(get).await;
    drop(one);
    assert_eq!(three.reply().await.status, 200);
}

#[tokio::test]
async fn a_full_variant_queue_is_503_with_retry_after() {
    let server = TestServer::start_with(|config| {
        config.store.variants.queue = 1;
        config.store.variants.threads = 1;
    })
    .await;

    let photo = fixtures::jpeg(1100, 1100);
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(server.upload(&photo).ok().await.file_id);
    }
    let replies = join_all(ids.iter().map(|id| server.variant(id, 700).send())).await;
    let turned_away: Vec<_> = replies.iter().filter(|reply| reply.status == 503).collect();
    assert!(!turned_away.is_empty(), "six at once, one place to wait");

    for reply in turned_away {
        reply.problem(503, "busy");
        assert!(reply.only("retry-after").parse::<u64>().unwrap() >= 1);
    }

    assert!(replies.iter().any(|reply| reply.status == 200));

    for id in &ids {
        eventually("every variant, one after another", async || {
            Some(server.variant(id, 700).send().await).filter(|reply| reply.status == 200)
        })
        .await;
    }
}

#[tokio::test]
async fn an_organization_over_its_quota_is_413() {
    let server = TestServer::start_with(|config| {
        config.store.quota_bytes = Some(1000);
        config.store.purge_grace = Duration::from_hours(1);
    })
    .await;

    server.upload(fixtures::noise(1, 600)).temp().ok().await;
    let problem =
        server.upload(fixtures::noise(2, 401)).send().await.problem(413, "quota_exceeded");
    assert_eq!(problem.limit, Some(1000));

    let filling = server.upload(fixtures::noise(3, 400)).ok().await.file_id;
    server.upload("x").send().await.problem(413, "quota_exceeded");
    server.batch().item("x").send().await.problem(413, "quota_exceeded");
    server.delete(&filling).await.expect(200);
    server.upload("x").send().await.problem(413, "quota_exceeded");
    server.upload("x").org("other").ok().await;
}

#[tokio::test]
async fn a_quota_full_of_deleted_files_says_how_to_purge_them_at_once() {
    let grace = Duration::from_hours(24);
    let server = TestServer::start_with(|config| {
        config.store.quota_bytes = Some(1000);
        config.store.quota_files = Some(3);
        config.store.purge_grace = grace;
    })
    .await;
    let over = async |bytes: usize| {
        let reply = server.upload(fixtures::noise(7, bytes)).send().await;
        reply.problem(413, "quota_exceeded").detail
    };
    let hint = "filestore purge run --now --org acme";

    let foreign = server.upload("x").org("other").ok().await.file_id;
    server.delete(&foreign).await.expect(200);
    let filling = server.upload(fixtures::noise(1, 600)).ok().await.file_id;
    let live = over(401).await;
    assert!(!live.contains("purge"), "another organization's deletions are its own: {live}");

    server.delete(&filling).await.expect(200);
    let full = over(401).await;
    assert!(full.contains("quota is 1000 bytes") && full.contains(hint), "{full}");
    server.upload("a").ok().await;
    server.upload("b").ok().await;
    let full = over(1).await;
    assert!(full.contains("quota is 3 files") && full.contains(hint), "{full}");

    let now = json!({"now": true, "organization_id": "acme"});
    server.post("/api/v1/admin/purge/run").json(&now).send().await.expect(200);
    server.upload(fixtures::noise(7, 401)).ok().await;
    server.restore(&foreign).await.expect(200);
}

#[tokio::test]
async fn a_replace_may_not_grow_over_the_quota() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(1000)).await;
    let id = server.upload(fixtures::noise(1, 500)).ok().await.file_id;
    server.upload(fixtures::noise(2, 400)).ok().await;
    server.change(&id).file(fixtures::noise(3, 700)).send().await.problem(413, "quota_exceeded");
    assert_eq!(server.record(&id).await.version, 1);
    server.change(&id).file(fixtures::noise(4, 600)).send().await.expect(200);
}

#[tokio::test]
async fn a_body_that_trickles_is_408_though_it_never_stops() {
    let server = TestServer::start_with(|config| {
        config.body.idle = BRIEF;
        config.body.first_byte = BRIEF;
        // At this rate no number of bytes earns time: the silences add up.
        config.body.least_rate = LeastRate::new(1 << 40, BRIEF);
    })
    .await;
    let form = form().bytes("file", &fixtures::noise(1, 10_000));
    let (content_type, body) = (form.content_type(), form.finish());

    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;

    let mut pause = tokio::time::interval(BRIEF / 10);
    for byte in &body[..5000] {
        pause.tick().await;
        if wire.try_send([*byte]).await.is_err() || wire.has_reply() {
            break;
        }
    }
    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.json()["code"]), (408, &"body_timeout".into()));
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn an_upload_waits_for_no_other_however_long_that_takes() {
    let server = TestServer::start_with(|config| {
        config.store.limits.concurrent_uploads = 1;
        config.body.idle = Duration::from_hours(1);
    })
    .await;
    let slow = form().bytes("file", &fixtures::noise(1, 500_000));
    let (content_type, body) = (slow.content_type(), slow.finish());

    let mut first = server.wire().await;
    first
        .send(format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    first.send(&body[..300_000]).await;
    eventually("a file of the first upload", async || (server.staged() > 0).then_some(())).await;

    let whole = fixtures::noise(2, 1_000_000);
    let id = server.upload(&whole).ok().await.file_id;
    assert!(server.content(&id).send().await.expect(200).body == whole);

    first.send(&body[300_000..]).await;
    assert_eq!(first.reply().await.status, 201);
}

#[tokio::test]
async fn what_arrives_without_being_announced_is_on_the_quota_as_it_arrives() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(1000)).await;
    for key in ["", "Idempotency-Key: k-1\r\n"] {
        let form = form().bytes("file", b"");
        let content_type = form.content_type();
        let mut before = form.cut_off();
        before.truncate(before.len() - 2);

        let mut wire = server.wire().await;
        wire.send(format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n{key}\r\n"
        ))
        .await;
        wire.send(format!("{:x}\r\n", before.len())).await;
        wire.send(&before).await;
        wire.send("\r\n").await;

        // The body never ends: only what has arrived can be the reason for a refusal.
        let piece = [b"8000\r\n".as_slice(), &fixtures::noise(1, 0x8000), b"\r\n"].concat();
        for _ in 0..16 {
            let _ = wire.try_send(&piece).await;
        }
        let reply = wire.reply().await;
        assert_eq!((reply.status, &reply.json()["code"]), (413, &"quota_exceeded".into()), "{key}");
    }
}

#[tokio::test]
async fn a_replace_whose_file_comes_first_is_on_the_quota_once_its_file_id_is_there() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(1000)).await;
    let id = server.upload(fixtures::noise(1, 500)).ok().await.file_id;
    server.upload(fixtures::noise(2, 400)).ok().await;

    let form = Form::new().bytes("file", &fixtures::noise(3, 700)).text("file_id", &id);
    let content_type = form.content_type();
    let mut wire = server.wire().await;
    wire.send(format!(
        "PUT /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: 100000\r\n\r\n"
    ))
    .await;
    // The body never ends: only what has arrived can be the reason for the refusal.
    wire.send(form.text("make_as_ready", "true").cut_off()).await;

    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.json()["code"]), (413, &"quota_exceeded".into()));
    server.wait_for_empty_staging().await;
}

#[tokio::test]
async fn a_batch_is_stored_though_its_metadata_is_longer_than_the_room_that_is_left() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(1000)).await;
    let metadata = format!("{{{}\"note\": \"{}\"}}", " ".repeat(4000), "x".repeat(4000));
    let form = (0..10).fold(form(), |form, item| {
        form.bytes(&format!("items[{item}].file"), &fixtures::noise(item, 100))
            .text(&format!("items[{item}].metadata"), &metadata)
    });

    server.post("/api/v1/files/batch").form(form).send().await.expect(201);
    server.upload("x").send().await.problem(413, "quota_exceeded");
}

#[tokio::test]
async fn a_request_that_was_carried_out_is_answered_again_where_no_room_is_left() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(200_000)).await;
    let bytes = fixtures::noise(1, 200_000);
    let first = server.upload(&bytes).key("k-1").send().await.expect(201);
    let again = server.upload(&bytes).key("k-1").send().await.expect(201);
    assert_eq!(first.json(), again.json());
    server.upload(&bytes).key("k-2").send().await.problem(413, "quota_exceeded");
}

#[tokio::test]
async fn a_request_has_at_most_100_header_fields() {
    let server = TestServer::start().await;
    for (fields, status) in [(99, 200), (100, 431)] {
        let crowd: Vec<_> = (0..fields).map(|n| format!("X-{n}: 1\r\n")).collect();
        let crowd = crowd.concat();
        let request =
            format!("GET /api/v1/health-checks HTTP/1.1\r\nHost: localhost\r\n{crowd}\r\n");
        assert_eq!(server.exchange(&request).await.status, status, "{fields} and Host");
    }
}

#[tokio::test]
async fn batches_larger_than_the_upload_limit_do_not_wait_for_each_other_for_ever() {
    let server = TestServer::start_with(|config| config.store.limits.concurrent_uploads = 2).await;
    let batches = join_all((0..4).map(|_| server.batch().item("a").item("b").item("c").ok())).await;
    assert_eq!(batches.concat().len(), 12);
    assert_eq!(server.listed().await.len(), 12);
}

#[tokio::test]
async fn a_purge_gives_the_room_back() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(1000)).await;
    let id = server.upload(fixtures::noise(1, 1000)).ok().await.file_id;
    server.upload("x").send().await.problem(413, "quota_exceeded");
    server.delete(&id).await.expect(200);
    eventually("room", async || {
        Some(server.upload("x").send().await).filter(|reply| reply.status == 201)
    })
    .await;
}

#[tokio::test]
async fn concurrent_uploads_share_one_quota() {
    let server = TestServer::start_with(|config| config.store.quota_bytes = Some(5000)).await;
    let bytes: Vec<_> = (0..12).map(|seed| fixtures::noise(seed, 1000)).collect();
    let replies = join_all(bytes.iter().map(|bytes| server.upload(bytes).send())).await;
    let stored = replies.iter().filter(|reply| reply.status == 201).count();
    assert!((1..=5).contains(&stored), "{stored} of 1000 bytes each");
    assert!(replies.iter().all(|reply| [201, 413].contains(&reply.status)));
    assert_eq!(server.listed().await.len(), stored);
}

#[tokio::test]
async fn a_full_disk_refuses_uploads_and_still_deletes_and_serves() {
    let server = TestServer::start().await;
    let kept = server.upload("kept").ok().await.file_id;
    let doomed = server.upload("doomed").ok().await.file_id;

    let server = server.restart_with(|config| config.store.reserve_bytes = 1 << 60).await;
    let full = server.upload("x").send().await.problem(507, "storage_full");
    assert!(full.detail.ends_with("filestore purge run --now"), "{}", full.detail);
    server.batch().item("x").send().await.problem(507, "storage_full");
    server.change(&kept).file("x").send().await.problem(507, "storage_full");
    assert_eq!(server.content(&kept).send().await.expect(200).body, "kept");

    server.delete(&doomed).await.expect(200);
    eventually("the purge", async || {
        Some(server.info(&doomed).await).filter(|reply| reply.status == 404)
    })
    .await;
}

/// Begins an upload whose form has its file first, and lets it wait for its end.
async fn begin_with_the_file(server: &TestServer, headers: &str) -> Wire {
    let form = Form::new().bytes("file", &fixtures::noise(1, 500));
    let form = form.text("organization_id", "a").text("sub_system", "s");
    let (content_type, body) = (form.content_type(), form.finish());
    let mut wire = server.wire().await;
    wire.send(format!(
        "POST /api/v1/files/upload HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;
    wire.send(&body[..300]).await;
    wire
}

/// Sends a whole upload with its file first, of `organization`; returns the status.
async fn send_with_the_file(server: &TestServer, organization: &str, header: (&str, &str)) -> u16 {
    let form = Form::new().bytes("file", b"x");
    let form = form.text("organization_id", organization).text("sub_system", "s");
    let call = server.post("/api/v1/files/upload").header(header.0, header.1);
    call.form(form).send().await.status
}

/// A server on which each sender may have two unfinished uploads.
async fn with_room_for_two(adjust: impl FnOnce(&mut filestore_server::Config)) -> TestServer {
    TestServer::start_with(|config| {
        config.store.limits.max_batch_items = 2;
        config.store.limits.staged_files = 1;
        config.store.limits.staged_files_per_organization = 1;
        config.body.idle = Duration::from_hours(1);
        adjust(config);
    })
    .await
}

#[tokio::test]
async fn uploads_that_begin_with_their_file_take_room_from_their_own_key_only() {
    let server = with_room_for_two(|_| {}).await;
    let mut shown = Vec::new();
    for organizations in [&["a"][..], &["b"], &["a", "b"], &["a", "b"]] {
        let of = organizations.iter().map(|name| name.parse().unwrap()).collect();
        let new = NewKey::new("k", Scope::Organizations(of), [KeyScope::Write]);
        let (_, secret) = server.store().keys().create(new).await.unwrap();
        shown.push(format!("Bearer {}", secret.expose()));
    }
    let [of_a, of_b, of_both, of_both_too] = &shown[..] else { unreachable!() };
    let send = async |organization: &str, key: &str| {
        send_with_the_file(&server, organization, ("authorization", key)).await
    };

    for (greedy, others) in [(of_a, [of_b, of_both]), (of_both, [of_b, of_both_too])] {
        let header = format!("Authorization: {greedy}\r\n");
        let begun = [
            begin_with_the_file(&server, &header).await,
            begin_with_the_file(&server, &header).await,
        ];
        eventually("the sender has its part", async || {
            (send("a", greedy).await == 503).then_some(())
        })
        .await;
        for key in others {
            assert_eq!(send("b", key).await, 201);
        }
        drop(begun);
        eventually("the part is free", async || (send("a", greedy).await == 201).then_some(()))
            .await;
    }
}

#[tokio::test]
async fn uploads_without_keys_that_begin_with_their_file_take_room_from_their_own_address_only() {
    let server = with_room_for_two(|config| {
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    })
    .await;
    let begun = [
        begin_with_the_file(&server, "X-Forwarded-For: 192.0.2.1\r\n").await,
        begin_with_the_file(&server, "X-Forwarded-For: 192.0.2.1\r\n").await,
    ];
    let send = async |address| send_with_the_file(&server, "a", ("x-forwarded-for", address)).await;
    eventually("the address has its part", async || (send("192.0.2.1").await == 503).then_some(()))
        .await;
    assert_eq!(send("192.0.2.2").await, 201);
    drop(begun);
}
