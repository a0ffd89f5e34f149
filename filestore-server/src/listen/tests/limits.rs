//! Numbers of connections, and the stop.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::Options;
use super::{GET, HANG, SHORT, Server, generous, one_reply, rest};

#[tokio::test]
async fn an_address_has_its_share_of_connections_and_another_one_its_own() {
    let server = Server::start(Options { max_connections_per_address: 2, ..generous() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for client in [&mut first, &mut second] {
        client.write_all(GET).await.unwrap();
        one_reply(client).await;
    }

    let turned_away = rest(&mut server.connect().await).await;
    assert!(turned_away.starts_with("HTTP/1.1 503 ") && turned_away.contains("retry-after: "));

    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(server.address).await.unwrap();
    other.write_all(GET).await.unwrap();
    assert!(one_reply(&mut other).await.ends_with("ok"));

    drop(first);
    let again = async {
        loop {
            let mut third = server.connect().await;
            third.write_all(GET).await.unwrap();
            let mut head = [0; 12];
            if third.read_exact(&mut head).await.is_ok() && head == *b"HTTP/1.1 200" {
                break;
            }
        }
    };
    timeout(HANG, again).await.expect("a share given back is given again");
}

#[tokio::test]
async fn at_the_cap_the_next_connection_waits_until_one_ends() {
    let server = Server::start(Options { max_connections: 2, ..generous() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);

    for client in [&mut first, &mut second] {
        client.write_all(GET).await.unwrap();
        one_reply(client).await;
    }

    let mut third = server.connect().await;
    third.write_all(GET).await.unwrap();
    assert!(timeout(SHORT * 2, third.read(&mut [0; 1])).await.is_err(), "served over the cap");

    drop(first);
    assert!(one_reply(&mut third).await.ends_with("ok"));

    second.write_all(GET).await.unwrap();
    assert!(one_reply(&mut second).await.ends_with("ok"));
}

#[tokio::test]
async fn a_stop_closes_idle_connections_and_finishes_running_requests() {
    let server = Server::start(generous()).await;
    let (mut fresh, mut idle, mut busy) =
        (server.connect().await, server.connect().await, server.connect().await);
    idle.write_all(GET).await.unwrap();
    one_reply(&mut idle).await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.begun.notified().await;

    server.stop.send(()).unwrap();
    assert_eq!(rest(&mut idle).await, "");
    assert_eq!(rest(&mut fresh).await, "");
    assert!(TcpStream::connect(server.address).await.is_err(), "still accepting");

    server.signals.go_on.notify_one();
    let reply = rest(&mut busy).await;
    assert!(reply.contains("connection: close\r\n") && reply.ends_with("waited"), "{reply}");
    assert_eq!(server.stopped.await.unwrap(), 0);
}

#[tokio::test]
async fn what_still_runs_after_the_grace_is_cut_and_counted() {
    let server = Server::start(Options { grace: SHORT, ..generous() }).await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.begun.notified().await;
    server.stop.send(()).unwrap();
    assert_eq!(server.stopped.await.unwrap(), 1);
    assert_eq!(rest(&mut busy).await, "");
}
