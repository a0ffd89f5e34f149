//! A connection, from its first byte to its last.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::activity::{Activity, PhaseTimeouts};
use super::send_file::SendQueue;
use super::socket::{Peer, Stream};
use super::traffic::Traffic;
use super::watched::{RequestBody, WatchedService, WatchedSocket};
use super::{BoxError, Options};

/// The running connections. A stop is announced to all of them.
pub(super) struct Connections {
    running: Mutex<Registry>,
    traffic: Arc<Traffic>,
}

#[derive(Default)]
struct Registry {
    next: u64,
    stopping: bool,
    activities: HashMap<u64, Arc<Activity>>,
}

impl Connections {
    /// Starts without connections, and counts in `traffic`.
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self { running: Mutex::default(), traffic }
    }

    /// Tells all current and future connections that the server is stopping.
    pub(super) fn stop(&self) {
        let mut running = self.running.lock();
        running.stopping = true;
        running.activities.values().for_each(|activity| activity.stop());
    }

    fn register(&self, activity: &Arc<Activity>) -> Registered<'_> {
        self.traffic.connection_began();
        let mut running = self.running.lock();
        let id = running.next;
        running.next += 1;
        if running.stopping {
            activity.stop();
        }
        running.activities.insert(id, activity.clone());
        Registered { connections: self, id }
    }
}

/// An entry of the registry. Dropping it removes the entry.
struct Registered<'a> {
    connections: &'a Connections,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.connections.running.lock().activities.remove(&self.id);
        self.connections.traffic.connection_ended();
    }
}

/// The end of a connection, or the end of its time with hyper.
enum Ended {
    /// By HTTP's rules. Replies are flushed, and FIN is sent.
    Closed,
    /// With an error of the socket, the service or the parser.
    Failed(hyper::Error),
    /// The client was too slow.
    TimedOut,
    /// Not ended. The client has sent no bytes for a while, and can send another request.
    Resting,
}

/// The maximum time for reading the rest of an unknown caller's request.
const BRIEF_DRAIN: Duration = Duration::from_secs(1);

/// The maximum bytes to read from the rest of an unknown caller's request. Clients usually send this much
/// before they look for a reply.
const BRIEF_DRAIN_BYTES: usize = 256 << 10;

/// Serves the requests of one connection.
///
/// hyper keeps two buffers of 8 KiB for each of its connections. hyper therefore gets the connection only
/// when the first byte has arrived, and returns it when the client has sent no bytes for [`Options::rest`].
/// In between, a connection is little more than its socket.
pub(super) async fn run<S, B>(
    stream: Stream,
    peer: Peer,
    service: S,
    options: Options,
    connections: &Connections,
) where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let activity = Arc::new(Activity::new(Arc::clone(&connections.traffic)));
    let _registered = connections.register(&activity);

    let files = stream.takes_files().then(Arc::<SendQueue>::default);
    let mut service =
        WatchedService { service, peer, activity: activity.clone(), files: files.clone() };
    let mut socket = WatchedSocket::new(stream, activity.clone(), files);
    let mut timeouts = PhaseTimeouts::new(&options);

    let ended = loop {
        if wait_for_bytes(&mut socket, &mut timeouts, &activity, &options).await.is_err() {
            break Ended::TimedOut;
        }

        let mut connection =
            Box::new(builder(&options).serve_connection(TokioIo::new(socket), service));
        let ended = attend(&mut connection, &mut timeouts, &activity, &options).await;

        let parts = connection.into_parts();
        (socket, service) = (parts.io.into_inner(), parts.service);
        if !matches!(ended, Ended::Resting) {
            break ended;
        }
        socket.put_back(parts.read_buf);
    };

    let refused = match ended {
        Ended::Closed | Ended::Resting => false,
        Ended::Failed(error) => {
            tracing::debug!(%error, ?peer, "a connection failed");
            error.is_parse()
        }
        Ended::TimedOut => {
            connections.traffic.connection_timed_out();
            if activity.is_stalled() {
                socket.stream.reset_on_close();
            }
            return;
        }
    };

    if refused || activity.body_unread() {
        let mut options = options;
        if activity.is_drain_brief() {
            options.drain = options.drain.min(BRIEF_DRAIN);
            options.drain_bytes = options.drain_bytes.min(BRIEF_DRAIN_BYTES);
        }
        drain(socket.stream, &options).await;
    }
}

/// The client's time is used up.
struct TimedOut;

/// Waits until hyper has work: bytes from the client, their end, or a stop.
async fn wait_for_bytes(
    socket: &mut WatchedSocket,
    timeouts: &mut PhaseTimeouts,
    activity: &Activity,
    options: &Options,
) -> Result<(), TimedOut> {
    poll_fn(|cx| {
        if activity.poll_stopping(cx) || socket.stream.poll_readable(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        timeouts.poll_timed_out(cx, activity, options).map(|()| Err(TimedOut))
    })
    .await
}

/// Lets hyper serve requests until the connection ends or rests.
async fn attend<S, B>(
    connection: &mut http1::Connection<TokioIo<WatchedSocket>, WatchedService<S>>,
    timeouts: &mut PhaseTimeouts,
    activity: &Activity,
    options: &Options,
) -> Ended
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let mut told = false;
    poll_fn(|cx| {
        loop {
            if !told && (activity.poll_stopping(cx) || activity.is_half_closed()) {
                told = true;
                Pin::new(&mut *connection).graceful_shutdown();
            }

            if let Poll::Ready(ended) = Pin::new(&mut *connection).poll(cx) {
                return Poll::Ready(ended.map_or_else(Ended::Failed, |()| Ended::Closed));
            }
            if told || !activity.is_half_closed() {
                break;
            }
        }

        if timeouts.poll_timed_out(cx, activity, options).is_ready() {
            return Poll::Ready(Ended::TimedOut);
        }
        if told {
            return Poll::Pending;
        }
        timeouts.poll_rested(cx, activity, options).map(|()| Ended::Resting)
    })
    .await
}

fn builder(options: &Options) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // hyper then reads while the service works, and so learns that a client is gone. `WatchedSocket`
    // lets a client that closed its writing side alone wait for a while.
    builder
        .half_close(false)
        .header_read_timeout(None)
        .max_buf_size(options.buffer_bytes.max(8192));
    builder
}

/// Sends FIN, and reads the client's remaining bytes for a limited time. Closing a socket with unread bytes
/// causes a reset, which can overtake the reply or make the client discard it (RFC 9112 section 9.6).
async fn drain(mut stream: Stream, options: &Options) {
    let rest = async {
        stream.shutdown().await?;
        let mut buffer = vec![0; 16 << 10];
        let mut left = options.drain_bytes;

        while left > 0 {
            match stream.read(&mut buffer).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }

        Ok::<(), std::io::Error>(())
    };

    // The result does not matter: the reply is out, and the socket is closed next.
    let _ = timeout(options.drain, rest).await;
}
