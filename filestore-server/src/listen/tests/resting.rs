//! Connections that wait for a request without hyper.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::super::Options;
use super::{BIG, GET, HANG, SHORT, Server, generous, one_reply, rest};

/// Options with which a connection rests as soon as it may.
fn restless() -> Options {
    Options { rest: Duration::ZERO, ..generous() }
}

#[tokio::test]
async fn a_connection_that_rests_serves_the_next_request() {
    let server = Server::start(restless()).await;
    let mut client = server.connect().await;
    for path in ["/", "/x"] {
        client
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
            .await
            .unwrap();
        assert!(one_reply(&mut client).await.ends_with("ok"));
        assert!(timeout(SHORT, client.read(&mut [0; 1])).await.is_err(), "closed too early");
    }
}

#[tokio::test]
async fn the_start_of_a_request_is_kept_while_its_connection_rests() {
    let server = Server::start(restless()).await;
    let mut client = server.connect().await;

    // The start of the second request comes with the end of the first one's body.
    let head = b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    client.write_all(head).await.unwrap();
    server.signals.begun.notified().await;
    client.write_all(b"bodyGET / HT").await.unwrap();
    assert!(one_reply(&mut client).await.ends_with('4'));
    assert!(timeout(SHORT, client.read(&mut [0; 1])).await.is_err(), "closed too early");

    client.write_all(b"TP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert!(one_reply(&mut client).await.ends_with("ok"));
}

#[tokio::test]
async fn a_connection_that_rests_is_closed_after_the_idle_time_and_by_a_stop() {
    let server = Server::start(Options { keep_alive_idle: SHORT, ..restless() }).await;
    let mut client = server.connect().await;
    client.write_all(GET).await.unwrap();
    let start = Instant::now();
    assert!(rest(&mut client).await.ends_with("\r\n\r\nok"));
    assert!(start.elapsed() >= SHORT);

    let server = Server::start(restless()).await;
    let mut client = server.connect().await;
    client.write_all(GET).await.unwrap();
    one_reply(&mut client).await;
    assert!(timeout(SHORT, client.read(&mut [0; 1])).await.is_err(), "closed too early");
    server.stop.send(()).unwrap();
    assert_eq!(rest(&mut client).await, "");
    assert_eq!(server.stopped.await.unwrap(), 0);
}

#[tokio::test]
async fn a_connection_rests_after_its_reply_is_taken_and_not_before() {
    let server = Server::start(restless()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /whole HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();

    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let mut body = vec![0; BIG];
    timeout(HANG, client.read_exact(&mut body)).await.expect("all of it").unwrap();

    client.write_all(GET).await.unwrap();
    assert!(one_reply(&mut client).await.ends_with("ok"));
}
