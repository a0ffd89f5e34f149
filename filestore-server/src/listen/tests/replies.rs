//! Replies that are large, fail, or have nobody who waits for them.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::super::Options;
use super::{BIG, GET, HANG, SHORT, Server, generous, one_reply, rest};

#[tokio::test]
async fn a_large_reply_is_whole_before_the_connection_closes() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /big HTTP/1.0\r\n\r\n").await.unwrap();
    let mut read = Vec::new();
    client.read_to_end(&mut read).await.unwrap();
    let head = read.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(read.len() - head, BIG);
}

#[tokio::test]
async fn a_reply_that_fails_in_the_middle_is_cut_not_ended() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /fails HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let reply = rest(&mut client).await;
    assert!(!reply.contains("\r\n0\r\n"), "{reply}");
}

#[tokio::test]
async fn a_client_that_closes_its_writing_side_still_gets_its_reply() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    server.signals.begun.notified().await;
    server.signals.go_on.notify_one();
    assert!(rest(&mut client).await.ends_with("waited"));
}

#[tokio::test]
async fn a_half_closed_client_gets_all_of_a_large_reply() {
    let server = Server::start(Options { half_closed: Duration::ZERO, ..generous() }).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).await.unwrap();
    assert!(reply.len() > BIG, "{} bytes", reply.len());
}

#[tokio::test]
async fn a_client_that_is_gone_cancels_its_request() {
    let server = Server::start(Options { half_closed: SHORT, ..generous() }).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.begun.notified().await;
    drop(client);
    timeout(HANG, server.signals.dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn a_reset_cancels_the_request_at_once() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.begun.notified().await;
    client.set_zero_linger().unwrap();
    drop(client);
    timeout(HANG, server.signals.dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn a_panic_ends_its_connection_only() {
    let server = Server::start(generous()).await;
    let (mut other, mut client) = (server.connect().await, server.connect().await);
    client.write_all(b"GET /panics HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(rest(&mut client).await, "");

    other.write_all(GET).await.unwrap();
    assert!(one_reply(&mut other).await.ends_with("ok"));

    server.stop.send(()).unwrap();
    assert_eq!(server.stopped.await.unwrap(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    let two = [GET, b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"].concat();
    client.write_all(&two).await.unwrap();
    assert_eq!(rest(&mut client).await.matches("200 OK").count(), 2);
}
