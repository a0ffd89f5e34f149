//! GET /api/v1/events as a stream (reference §4.17).

use std::time::Duration;

use filestore_client::{Client, EventQuery, EventType};
use filestore_core::keys::{ApiKey, KeyScope, NewKey};
use filestore_core::{NewUpload, Scope};
use filestore_server::{Limit, RateLimits};
use filestore_workspace::wire::Wire;
use filestore_workspace::{EventReader, HANG, TestServer, eventually};
use futures_util::{StreamExt as _, TryStreamExt as _, future};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

const PATH: &str = "/api/v1/events";

async fn key(server: &TestServer) -> (ApiKey, String) {
    let new = NewKey::new("reader", Scope::All, [KeyScope::Read]);
    let (key, secret) = server.store().keys().create(new).await.expect("a key");
    (key, secret.expose().to_owned())
}

/// Uploads without a key, and returns the id.
async fn upload(server: &TestServer) -> String {
    let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    server.store().upload(new, &b"bytes"[..]).await.expect("an upload").file_id.to_string()
}

/// Reads the metric of open streams, over the admin socket, which needs no key.
async fn open_streams(server: &TestServer) -> u64 {
    sample(server, "filestore_event_streams ").await
}

async fn sample(server: &TestServer, name: &str) -> u64 {
    let socket = server.data_dir().join("admin.sock");
    let stream = UnixStream::connect(socket).await.expect("the admin socket");
    let mut wire = Wire::over(stream);
    wire.send("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    let text = String::from_utf8(wire.reply().await.body).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    value.trim().parse().unwrap()
}

#[tokio::test]
async fn a_stream_tells_old_events_and_then_each_new_one() {
    let server = TestServer::start().await;
    let old = server.upload("old").ok().await.file_id;
    let mut stream = server.get(PATH).events().await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.header("cache-control"), Some("no-store, no-transform"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("content-encoding"), None);
    assert_eq!(stream.block().await.as_deref(), Some("retry: 2000"));

    assert_eq!(stream.event().await["data"]["file_id"], old);
    for number in 0..5 {
        let new = server.upload(format!("{number}")).ok().await.file_id;
        let event = stream.event().await;
        assert_eq!(
            (&event["type"], &event["data"]["file_id"]),
            (&"file.uploaded".into(), &new.into())
        );
    }
    drop(stream);
    eventually("the end of the stream", async || (open_streams(&server).await == 0).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_whatever_its_address_says() {
    let server = TestServer::start().await;
    for text in ["1", "2", "3"] {
        server.upload(text).ok().await;
    }
    let mut stream = server.get(PATH).events().await;
    let first = stream.event().await;
    let id = first["id"].as_str().unwrap();
    let second = stream.event().await;

    let again = server.get(&format!("{PATH}?after=end")).header("last-event-id", id);
    assert_eq!(again.events().await.event().await, second);
    let mut from_end = server.get(&format!("{PATH}?after=end")).events().await;
    from_end.block().await;
    let place = from_end.block().await.expect("a place at once");
    let newest = stream.event().await;
    assert_eq!(place, format!("id: {}", newest["id"].as_str().unwrap()));
    let fourth = server.upload("4").ok().await.file_id;
    assert_eq!(from_end.event().await["data"]["file_id"], fourth);
}

#[tokio::test]
async fn a_stream_that_is_refused_has_a_status() {
    let server = TestServer::start().await;
    let asked = |query: &str| {
        server.get(&format!("{PATH}?{query}")).header("accept", "text/event-stream").send()
    };
    asked("types=x").await.problem(400, "invalid_field");
    asked("order=desc").await.problem(400, "invalid_field");
    asked("after=AAAAAAAAAAAAAAAAAAAAAA").await.problem(410, "events_gone");
    let call = server.get(PATH).header("accept", "text/event-stream").header("last-event-id", "x");
    let problem = call.send().await.problem(400, "invalid_field");
    assert_eq!(problem.field.as_deref(), Some("Last-Event-ID"));

    let head = server.head(PATH).header("accept", "text/event-stream").send().await.expect(200);
    assert_eq!(head.only("content-type"), "text/event-stream");
    assert_eq!(open_streams(&server).await, 0, "HEAD opens no stream");
}

#[tokio::test]
async fn a_revoked_key_ends_its_streams_and_no_others() {
    let server = TestServer::start().await;
    let (revoked, secret) = key(&server).await;
    let (_, other) = key(&server).await;
    let server = server.with_key(&secret);
    let stream = server.get(PATH).events().await;
    let server = server.with_key(&other);
    let mut stays = server.get(PATH).events().await;

    server.store().keys().revoke(revoked.id).await.unwrap();
    stream.ends().await;
    let file = upload(&server).await;
    assert_eq!(stays.event().await["data"]["file_id"], file);
}

#[tokio::test]
async fn a_stop_ends_streams_at_once_and_in_good_order() {
    let server = TestServer::start_with(|config| config.http.grace = HANG).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = server.get(PATH).events().await;
        stream.block().await;
        streams.push(stream);
    }
    server.stop().await;
    for stream in streams {
        stream.ends().await;
    }
}

#[tokio::test]
async fn an_address_without_a_key_has_a_limited_number_of_streams() {
    let server = TestServer::start().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(server.get(PATH).events().await);
    }
    let refused = server.get(PATH).header("accept", "text/event-stream").send().await;
    let problem = refused.problem(429, "rate_limited");
    assert_eq!((problem.limit, refused.only("retry-after")), (Some(16), "5"));
    assert_eq!(sample(&server, "filestore_event_streams_refused_total ").await, 1);
    server.get(PATH).send().await.expect(200);

    streams.pop();
    let again = async || {
        let call = server.get(PATH).header("accept", "text/event-stream");
        let status = call.open().await.status();
        (status == 200).then_some(())
    };
    eventually("the freed place", again).await;
}

#[tokio::test]
async fn a_page_that_waits_counts_as_a_stream() {
    let server = TestServer::start().await;
    let mut streams = Vec::new();
    for _ in 0..15 {
        streams.push(server.get(PATH).events().await);
    }
    let waiting = tokio::spawn(server.get(&format!("{PATH}?wait=30")).send());
    let readers = async |count| {
        eventually("the readers", async || (open_streams(&server).await == count).then_some(()))
            .await;
    };
    readers(16).await;
    let refused = server.get(&format!("{PATH}?wait=1")).send().await;
    assert_eq!(refused.problem(429, "rate_limited").limit, Some(16));
    server.get(PATH).send().await.expect(200);

    let file = server.upload("1").ok().await.file_id;
    let reply = waiting.await.unwrap().expect(200).json();
    assert_eq!(reply["events"][0]["data"]["file_id"], file);
    readers(15).await;
}

#[tokio::test]
async fn a_page_waits_past_events_that_are_not_for_it() {
    let server = TestServer::start().await;
    let path = format!("{PATH}?organization_id=7&wait=30");
    let waiting = tokio::spawn(server.get(&path).send());
    eventually("the reader", async || (open_streams(&server).await == 1).then_some(())).await;
    for text in ["1", "2", "3"] {
        server.upload(text).org("8").ok().await;
    }
    let file = server.upload("4").org("7").ok().await.file_id;
    let reply = waiting.await.unwrap().expect(200).json();
    assert_eq!(reply["events"].as_array().unwrap().len(), 1);
    assert_eq!(reply["events"][0]["data"]["file_id"], file);
}

#[tokio::test]
async fn a_stream_does_not_count_as_a_running_request() {
    let server = TestServer::start_with(|config| {
        let mut limit = Limit::default();
        limit.in_flight = Some(1);
        let mut limits = RateLimits::default();
        limits.address = limit;
        config.rate_limits = limits;
    })
    .await;
    let mut stream = server.get(PATH).events().await;
    let file = server.upload("1").ok().await.file_id;
    assert_eq!(stream.event().await["data"]["file_id"], file);
}

#[tokio::test]
async fn a_client_that_closes_its_side_has_left_its_stream() {
    let server = TestServer::start_with(|config| {
        config.http.half_closed = Duration::from_millis(10);
    })
    .await;
    let mut client = TcpStream::connect(server.addr()).await.unwrap();
    client.write_all(request(&server, "").as_bytes()).await.unwrap();
    eventually("a stream", async || (open_streams(&server).await == 1).then_some(())).await;
    client.shutdown().await.unwrap();
    eventually("its end", async || (open_streams(&server).await == 0).then_some(())).await;
}

/// A request for a stream, as it is sent.
fn request(server: &TestServer, headers: &str) -> String {
    format!(
        "GET {PATH} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n{headers}\r\n",
        server.addr()
    )
}

/// A client that asks for a stream and takes nothing of it, over the admin socket, whose buffers are small.
async fn lazy_client(server: &TestServer) -> UnixStream {
    let mut client = UnixStream::connect(server.data_dir().join("admin.sock")).await.unwrap();
    client.write_all(request(server, "").as_bytes()).await.unwrap();
    client
}

#[tokio::test]
async fn a_slow_reader_is_cut_and_others_are_not() {
    let server = TestServer::start_with(|config| {
        config.http.write_idle = Duration::from_millis(200);
    })
    .await;
    let _slow = lazy_client(&server).await;
    let mut quick = server.get(PATH).events().await;

    let cut = "filestore_http_connections_timed_out_total ";
    while sample(&server, cut).await == 0 {
        tell_a_hundred(&server, &mut quick).await;
    }
    let alone = async || (open_streams(&server).await == 1).then_some(());
    eventually("the end of the slow one", alone).await;
    tell_a_hundred(&server, &mut quick).await;
}

/// Makes a hundred events, about 35 KB, and waits until a reader has them.
async fn tell_a_hundred(server: &TestServer, reader: &mut EventReader) {
    let mut batch = server.batch();
    for item in 0..100 {
        batch = batch.named(&item.to_string(), "x");
    }
    batch.ok().await;
    for _ in 0..100 {
        reader.event().await;
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_reader_that_takes_nothing() {
    let server = TestServer::start_with(|config| {
        config.http.write_idle = HANG * 2;
        config.http.grace = HANG * 2;
    })
    .await;
    let _slow = lazy_client(&server).await;
    let mut quick = server.get(PATH).events().await;
    let both = async || (open_streams(&server).await == 2).then_some(());
    eventually("both streams", both).await;
    // More than the buffers between the server and the slow reader hold.
    for _ in 0..10 {
        tell_a_hundred(&server, &mut quick).await;
    }
    tokio::time::timeout(HANG, server.stop()).await.expect("the stop waits for nobody");
    quick.ends().await;
}

#[tokio::test]
async fn a_thousand_streams_hear_of_one_event() {
    let server = TestServer::start_with(|config| {
        config.http.max_connections_per_address = 2000;
        config.max_event_streams = 1000;
    })
    .await;
    let mut readers = Vec::new();
    for _ in 0..32 {
        let (_, secret) = key(&server).await;
        let request = request(&server, &format!("authorization: Bearer {secret}\r\n"));
        for _ in 0..32 {
            if readers.len() < 1000 {
                let mut client = TcpStream::connect(server.addr()).await.unwrap();
                client.write_all(request.as_bytes()).await.unwrap();
                readers.push(client);
            }
        }
    }
    eventually("all streams", async || (open_streams(&server).await == 1000).then_some(())).await;

    let (_, secret) = key(&server).await;
    let server = server.with_key(&secret);
    let refused = server.get(PATH).header("accept", "text/event-stream").send().await;
    assert_eq!(refused.problem(429, "rate_limited").limit, Some(1000));

    let file = upload(&server).await;
    let told = readers.into_iter().map(|mut reader| {
        let file = &file;
        async move {
            let mut text = String::new();
            let mut piece = [0; 4096];
            while !text.contains(file.as_str()) {
                let read = reader.read(&mut piece).await.unwrap();
                assert!(read > 0, "a stream ended: {text}");
                text += &String::from_utf8_lossy(&piece[..read]);
            }
            text.matches("event: file.uploaded").count()
        }
    });
    let told = tokio::time::timeout(HANG, future::join_all(told)).await.unwrap();
    assert_eq!(told, [1; 1000]);
}

#[tokio::test]
async fn the_client_follows_over_a_restart_and_misses_and_repeats_nothing() {
    let server = TestServer::start().await;
    let addr = server.addr();
    let client = Client::builder(server.url("")).unwrap().build().unwrap();
    let query = EventQuery::new().types([EventType::FileUploaded]);
    let mut events = client.events().follow(query);

    let first = server.upload("1").ok().await.file_id;
    let event = events.try_next().await.unwrap().expect("an event");
    assert_eq!(event.data.file_id.as_deref(), Some(&*first));

    let follower = tokio::spawn(events.take(2).try_collect::<Vec<_>>());
    let server = server.restart_with(|config| config.listen = addr).await;
    let second = server.upload("2").ok().await.file_id;
    let third = server.upload("3").ok().await.file_id;
    let told: Vec<_> = follower.await.unwrap().unwrap();
    let files: Vec<_> = told.iter().filter_map(|event| event.data.file_id.clone()).collect();
    assert_eq!(files, [second, third]);
}

#[tokio::test]
async fn the_client_stops_following_what_it_may_not_see() {
    let server = TestServer::start().await;
    let (revoked, secret) = key(&server).await;
    let client = Client::builder(server.url("")).unwrap().api_key(&secret).build().unwrap();
    let mut events = client.events().follow(EventQuery::new());
    let file = upload(&server).await;
    let event = events.try_next().await.unwrap().expect("an event");
    assert_eq!(event.data.file_id, Some(file));
    server.store().keys().revoke(revoked.id).await.unwrap();
    let error = events.try_next().await.unwrap_err();
    assert_eq!(error.kind(), filestore_client::ErrorKind::Unauthorized);
    assert!(events.next().await.is_none());
}
