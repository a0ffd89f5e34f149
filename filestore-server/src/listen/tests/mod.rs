//! The accept loop against raw sockets.

mod times;
mod resting;
mod limits;
mod early_replies;
mod replies;
mod files;
mod filters;

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
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::{Options, RequestBody, serve};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A time short enough to wait for, and long enough for a client of a busy machine.
const SHORT: Duration = Duration::from_millis(400);

/// The end of a test that hangs.
const HANG: Duration = Duration::from_mins(10);

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
