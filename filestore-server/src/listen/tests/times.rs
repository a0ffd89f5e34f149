//! Connections that take too long: in their first byte, their header, between requests, in taking replies.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::super::{LeastRate, Options};
use super::{BIG, GET, SHORT, Server, generous, one_reply, rest};

#[tokio::test]
async fn a_silent_connection_is_closed_after_the_first_byte_time() {
    let server = Server::start(Options { first_byte: SHORT, ..generous() }).await;
    let start = Instant::now();
    assert_eq!(rest(&mut server.connect().await).await, "");
    assert!(start.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_header_that_trickles_is_cut_though_bytes_keep_coming() {
    let server = Server::start(Options { header: SHORT * 2, ..generous() }).await;
    let mut client = server.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    let start = Instant::now();
    let closed = loop {
        if client.write_all(b"x").await.is_err() {
            break true;
        }
        match timeout(Duration::from_millis(5), client.read(&mut [0; 10])).await {
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => break false,
            Err(_) => {}
        }
    };

    assert!(closed && start.elapsed() >= SHORT, "{closed} after {:?}", start.elapsed());
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_idle_time() {
    let server = Server::start(Options { keep_alive_idle: SHORT, ..generous() }).await;
    let mut client = server.connect().await;
    client.write_all(GET).await.unwrap();
    let start = Instant::now();
    let all = rest(&mut client).await;
    assert!(all.starts_with("HTTP/1.1 200 OK\r\n") && all.ends_with("\r\n\r\nok"), "{all}");
    assert!(start.elapsed() >= SHORT);
}

#[tokio::test]
async fn an_idle_connection_outlives_the_times_for_headers_and_first_bytes() {
    let options = Options { header: SHORT, first_byte: SHORT, write_idle: SHORT, ..generous() };
    let server = Server::start(options).await;
    let mut client = server.connect().await;

    for _ in 0..2 {
        client.write_all(GET).await.unwrap();
        assert!(one_reply(&mut client).await.ends_with("ok"));
        assert!(timeout(SHORT * 3, client.read(&mut [0; 1])).await.is_err(), "closed too early");
    }
}

#[tokio::test]
async fn a_connection_is_idle_after_a_request_whose_body_came_later_than_its_head() {
    let server = Server::start(Options { header: SHORT, ..generous() }).await;
    let mut client = server.connect().await;

    let (plain, chunked) = ("Content-Length: 4", "Transfer-Encoding: chunked");
    for (framing, body) in [(plain, "body"), (chunked, "4\r\nbody\r\n0\r\n\r\n")] {
        let head = format!("POST /read HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        server.signals.begun.notified().await;
        client.write_all(body.as_bytes()).await.unwrap();
        assert!(one_reply(&mut client).await.ends_with('4'));
        assert!(timeout(SHORT * 3, client.read(&mut [0; 1])).await.is_err(), "closed too early");
    }
}

#[tokio::test]
async fn a_request_that_runs_long_is_not_cut() {
    let options = Options {
        header: SHORT,
        first_byte: SHORT,
        keep_alive_idle: SHORT,
        write_idle: SHORT,
        ..generous()
    };

    let server = Server::start(options).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert!(timeout(SHORT * 3, client.read(&mut [0; 1])).await.is_err(), "cut");

    server.signals.go_on.notify_one();
    assert!(one_reply(&mut client).await.ends_with("waited"));
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_after_the_write_idle_time() {
    let server = Server::start(Options { write_idle: SHORT, ..generous() }).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.dropped.notified().await;
    let mut read = Vec::new();
    let ended = client.read_to_end(&mut read).await;
    assert!(read.len() < BIG, "the reply arrived whole");
    assert_eq!(
        ended.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset,
        "the kernel goes on sending"
    );
}

#[tokio::test]
async fn a_client_that_takes_its_reply_in_sips_is_cut_though_it_never_stops() {
    // At this rate no number of bytes earns time: the stalls add up.
    let least_rate = LeastRate::new(1 << 40, SHORT);
    let options = Options { least_rate, write_idle: SHORT * 20, ..generous() };
    let server = Server::start(options).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();

    let (mut sip, mut taken) = (vec![0; 256 << 10], 0);
    let mut pause = tokio::time::interval(SHORT / 2);
    while let Ok(bytes @ 1..) = client.read(&mut sip).await {
        taken += bytes;
        pause.tick().await;
    }
    assert!(taken < BIG, "the reply arrived whole");
}
