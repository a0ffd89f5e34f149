//! One connection, from its first byte to its last.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::Body;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::activity::{Activity, PhaseTimeouts};
use super::socket::{Peer, Stream};
use super::traffic::Traffic;
use super::watched::{RequestBody, WatchedService, WatchedSocket};
use super::{BoxError, Options};

/// The running connections, so that a stop can be announced to them.
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
    /// Starts without any, counting in `traffic`.
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self { running: Mutex::default(), traffic }
    }

    /// Tells every connection, and those still to be registered, that the server stops.
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

/// An entry of the registry, gone when this is dropped.
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

/// The end of a connection.
enum Ended {
    /// By HTTP's rules: replies are flushed and FIN is sent.
    Closed,
    /// With an error of the socket, the service or the parser.
    Failed(hyper::Error),
    /// The client was too slow.
    TimedOut,
}

/// The longest time of reading what is left of a stranger's request.
const BRIEF_DRAIN: Duration = Duration::from_secs(1);

/// The most bytes that are read of what is left of a stranger's request: as much as a client has sent
/// by habit before it looks for a reply.
const BRIEF_DRAIN_BYTES: usize = 256 << 10;

/// Serves the requests of one connection.
pub(super) async fn run<S, B>(
    stream: Stream,
    peer: Peer,
    service: S,
    options: Options,
    connections: &Connections,
) where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    let activity = Arc::new(Activity::new(Arc::clone(&connections.traffic)));
    let _registered = connections.register(&activity);

    let service = WatchedService { service, peer, activity: activity.clone() };
    let socket = TokioIo::new(WatchedSocket { stream, activity: activity.clone() });

    let mut connection = builder(&options).serve_connection(socket, service);
    let mut timeouts = PhaseTimeouts::new(&options);
    let mut told = false;

    let ended = poll_fn(|cx| {
        loop {
            if !told && (activity.poll_stopping(cx) || activity.is_half_closed()) {
                told = true;
                Pin::new(&mut connection).graceful_shutdown();
            }

            if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(ended.map_or_else(Ended::Failed, |()| Ended::Closed));
            }
            if told || !activity.is_half_closed() {
                break;
            }
        }

        timeouts.poll_timed_out(cx, &activity, &options).map(|()| Ended::TimedOut)
    })
    .await;

    let refused = match ended {
        Ended::Closed => false,
        Ended::Failed(error) => {
            tracing::debug!(%error, ?peer, "a connection failed");
            error.is_parse()
        }
        Ended::TimedOut => {
            connections.traffic.connection_timed_out();
            if activity.is_stalled() {
                connection.into_parts().io.into_inner().stream.reset_on_close();
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
        drain(connection.into_parts().io.into_inner().stream, &options).await;
    }
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

/// Sends FIN and reads for a limited time what the client still sends. Closing a socket with unread
/// bytes is a reset, which may overtake the reply or discard it at the client (RFC 9112 section 9.6).
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
