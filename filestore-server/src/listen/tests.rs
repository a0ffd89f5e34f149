//! The accept loop against raw sockets.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use warp::Filter as _;

use crate::body::Timeouts;
use crate::multipart::{Limits, MultipartReader, boundary_of};

use super::{LeastRate, Listener, Options, Peer, RequestBody, serve};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SHORT: Duration = Duration::from_millis(60);
const BIG: usize = 32 << 20;

/// Timeouts that no test reaches, except those that the test sets itself.
fn generous() -> Options {
    let hour = Duration::from_hours(1);
    Options {
        first_byte: hour,
        header: hour,
        keep_alive_idle: hour,
        rest: hour,
        write_idle: hour,
        half_closed: hour,
        drain: hour,
        grace: hour,
        ..Options::default()
    }
}

/// The signals between the test and the handler.
#[derive(Default)]
struct Signals {
    /// `/wait` has begun.
    begun: Notify,
    /// `/wait` may answer.
    go_on: Notify,
    /// The body of a reply, or the work on one, was dropped.
    dropped: Notify,
}

struct Server {
    address: SocketAddr,
    signals: Arc<Signals>,
    stop: oneshot::Sender<()>,
    stopped: JoinHandle<usize>,
}

impl Server {
    async fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let signals = Arc::new(Signals::default());
        let (stop, stopping) = oneshot::channel();
        let handler = signals.clone();
        let service = service_fn(move |request| answer(request, handler.clone()));
        let stopped = tokio::spawn(serve(listener.into(), service, options, async {
            stopping.await.unwrap();
        }));
        Self { address, signals, stop, stopped }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// Notifies when dropped.
struct OnDrop(Arc<Signals>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

type Reply = Response<BoxBody<Bytes, io::Error>>;

fn reply(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    Response::builder().status(status).body(body).unwrap()
}

async fn answer(request: Request<RequestBody>, signals: Arc<Signals>) -> Result<Reply, Infallible> {
    Ok(match request.uri().path() {
        "/wait" => {
            signals.begun.notify_one();
            signals.go_on.notified().await;
            reply(StatusCode::OK, "waited")
        }
        "/hold" => {
            let _guard = OnDrop(Arc::clone(&signals));
            signals.begun.notify_one();
            std::future::pending().await
        }
        "/refuse" => reply(StatusCode::PAYLOAD_TOO_LARGE, "too large"),
        "/read" => {
            signals.begun.notify_one();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            reply(StatusCode::OK, body.len().to_string())
        }
        "/big" => {
            let guard = OnDrop(signals);
            let chunk = Bytes::from(vec![7; 64 << 10]);
            let chunks = (0..BIG / chunk.len()).map(move |_| {
                let _ = &guard;
                Ok(Frame::data(chunk.clone()))
            });
            Response::new(BodyExt::boxed(StreamBody::new(stream::iter(chunks))))
        }
        "/whole" => reply(StatusCode::OK, vec![7; BIG]),
        "/fails" => {
            let chunks = [Ok(Frame::data(Bytes::from("half"))), Err(io::Error::other("disk"))];
            Response::new(BodyExt::boxed(StreamBody::new(stream::iter(chunks))))
        }
        "/panics" => panic!("as the test wants"),
        _ => reply(StatusCode::OK, "ok"),
    })
}

/// Reads the next reply on a connection that stays open, with a Content-Length.
async fn one_reply(client: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8(read.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return text;
            }
        }
        assert_ne!(client.read_buf(&mut read).await.unwrap(), 0, "closed after {text:?}");
    }
}

/// Reads until the server closes.
async fn rest(client: &mut (impl AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    client.read_to_end(&mut read).await.unwrap();
    String::from_utf8(read).unwrap()
}

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
    timeout(Duration::from_mins(1), client.read_exact(&mut body))
        .await
        .expect("all of it")
        .unwrap();

    client.write_all(GET).await.unwrap();
    assert!(one_reply(&mut client).await.ends_with("ok"));
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
    client
        .write_all(
            b"GET /big HTTP/1.1
Host: a

",
        )
        .await
        .unwrap();

    let (mut sip, mut taken) = (vec![0; 256 << 10], 0);
    let mut pause = tokio::time::interval(SHORT / 2);
    while let Ok(bytes @ 1..) = client.read(&mut sip).await {
        taken += bytes;
        pause.tick().await;
    }
    assert!(taken < BIG, "the reply arrived whole");
}

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
    timeout(Duration::from_secs(20), again).await.expect("a share given back is given again");
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
    timeout(Duration::from_secs(20), server.signals.dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn a_reset_cancels_the_request_at_once() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    server.signals.begun.notified().await;
    client.set_zero_linger().unwrap();
    drop(client);
    timeout(Duration::from_secs(20), server.signals.dropped.notified()).await.unwrap();
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

#[tokio::test]
async fn a_warp_filter_is_served_and_sees_its_peer() {
    let filter = warp::path!("peer").and(warp::ext::get::<Peer>()).map(|peer| format!("{peer:?}"));
    let service = TowerToHyperService::new(warp::service(filter));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = Listener::from(UnixListener::bind(&path).unwrap());
    let (stop, stopping) = oneshot::channel::<()>();
    let served = tokio::spawn(serve(listener, service, generous(), async {
        stopping.await.unwrap();
    }));
    let mut client = UnixStream::connect(&path).await.unwrap();
    client.write_all(b"GET /peer HTTP/1.0\r\n\r\n").await.unwrap();
    let reply = rest(&mut client).await;
    assert!(reply.starts_with("HTTP/1.0 200 OK\r\n") && reply.ends_with("\r\n\r\nUnix"), "{reply}");

    stop.send(()).unwrap();
    assert_eq!(served.await.unwrap(), 0);
}

#[tokio::test]
async fn a_form_read_through_warp_leaves_the_connection_open_for_the_next() {
    let filter = warp::header::<String>("content-type").and(warp::body::stream()).then(
        |content_type: String, body| async move {
            let boundary = boundary_of(&content_type).unwrap();
            let mut form =
                MultipartReader::new(body, &boundary, Limits::default(), Timeouts::default());
            let mut names = String::new();
            while let Some(part) = form.next_part().await.unwrap() {
                names.push_str(part.name());
            }
            names
        },
    );

    let service = TowerToHyperService::new(warp::service(filter));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener.into(), service, generous(), std::future::pending()));
    let part = |name, data: &str| {
        format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{data}\r\n")
    };
    let body = format!("{}{}--b--\r\n", part("one", &"x".repeat(300_000)), part("two", ""));
    let mut client = TcpStream::connect(address).await.unwrap();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());

    for (framing, body) in [
        (format!("Content-Length: {}", body.len()), &body),
        ("Transfer-Encoding: chunked".to_owned(), &chunk),
        (format!("Content-Length: {}", body.len()), &body),
    ] {
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n";
        client.write_all(format!("{head}{framing}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let reply = one_reply(&mut client).await;
        assert!(
            reply.ends_with("\r\n\r\nonetwo") && !reply.contains("connection: close"),
            "{reply}"
        );
    }
}
