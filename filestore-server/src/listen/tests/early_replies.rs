//! Replies that come before their request is there.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::Options;
use super::{GET, SHORT, Server, generous, one_reply, rest};

/// Sends `head` and then 20 MiB in small pieces, reading meanwhile; returns what came back.
async fn upload(server: &Server, head: &str, piece: &[u8]) -> String {
    let (mut read, mut write) = server.connect().await.into_split();
    write.write_all(head.as_bytes()).await.unwrap();
    let piece = piece.to_vec();
    let sent = tokio::spawn(async move {
        for _ in 0..(20 << 20) / piece.len() {
            if write.write_all(&piece).await.is_err() {
                break;
            }
        }
        write
    });

    let mut reply = Vec::new();
    let mut buffer = [0; 4096];

    // A reset after the whole reply is the drain's end, as the client goes on sending regardless.
    while let Ok(count @ 1..) = read.read(&mut buffer).await {
        reply.extend_from_slice(&buffer[..count]);
    }

    drop(sent.await.unwrap());
    String::from_utf8(reply).unwrap()
}

#[tokio::test]
async fn an_early_reply_is_read_whole_while_the_body_is_still_being_sent() {
    let server = Server::start(Options { drain: Duration::from_secs(5), ..generous() }).await;
    let length = 20 << 20;
    let known = format!("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let chunked = "POST /refuse HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [b"10000\r\n", vec![b'x'; 1 << 16].as_slice(), b"\r\n"].concat();

    for (head, piece) in [(known.as_str(), vec![b'x'; 1 << 16]), (chunked, chunk)] {
        let reply = upload(&server, head, &piece).await;
        assert!(reply.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{reply}");
        assert!(
            reply.contains("connection: close\r\n") && reply.ends_with("\r\n\r\ntoo large"),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_is_not_reset_within_the_drain() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    let body = vec![b'x'; 6 << 20];
    let head =
        format!("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&body).await.unwrap();
    client.shutdown().await.unwrap();

    assert!(rest(&mut client).await.ends_with("too large"));
}

#[tokio::test]
async fn the_drain_ends_after_its_bytes_and_after_its_time() {
    let by_time = Options { drain: SHORT, drain_bytes: usize::MAX, ..generous() };
    for options in [Options { drain_bytes: 1, ..generous() }, by_time] {
        let server = Server::start(options).await;
        let mut client = server.connect().await;
        let head = "POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        assert!(rest(&mut client).await.ends_with("too large"));
        // The server reads on (or does not), then closes: only then does a write fail.
        while client.write_all(b"x").await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn an_oversized_header_block_is_answered_before_the_close() {
    let server = Server::start(Options { drain: Duration::from_secs(5), ..generous() }).await;
    let reply = upload(&server, "GET / HTTP/1.1\r\nX: ", &vec![b'x'; 1 << 16]).await;
    assert!(reply.starts_with("HTTP/1.1 431 "), "{reply}");
}

#[tokio::test]
async fn no_100_continue_is_sent_unless_the_body_is_read() {
    let server = Server::start(Options { drain: SHORT, ..generous() }).await;
    let head = |path| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
    };
    let mut client = server.connect().await;
    client.write_all(head("/refuse").as_bytes()).await.unwrap();
    let reply = rest(&mut client).await;
    assert!(reply.starts_with("HTTP/1.1 413 ") && !reply.contains("100 Continue"), "{reply}");

    let mut client = server.connect().await;
    client.write_all(head("/read").as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"abc").await.unwrap();
    let reply = one_reply(&mut client).await;
    assert!(reply.ends_with("\r\n\r\n3") && !reply.contains("connection: close"), "{reply}");
    client.write_all(GET).await.unwrap();
    assert!(one_reply(&mut client).await.ends_with("ok"));
}
