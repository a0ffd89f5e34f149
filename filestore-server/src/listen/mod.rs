//! The accept loop, in place of warp's own.
//!
//! # Purpose
//!
//! warp's server sets no timer and no connection cap, and hyper's header timer also runs on idle
//! keep-alive connections, which makes a proxy in front race into a 502. Here
//!
//! - every phase of a connection has its own timeout ([`Options`]), with one timer that is reset once
//!   per phase, never per read or write;
//! - at the cap, accepting waits until a connection ends, and no address has more than its share
//!   ([`Shares`]);
//! - a client that takes its reply too slowly is cut ([`LeastRate`]);
//! - a reply that comes before its request was read whole is followed by FIN and a bounded drain, so
//!   that the client reads the reply instead of a reset;
//! - a client that goes away while its request is worked on cancels the request, at once or, where only
//!   its FIN tells, after [`Options::half_closed`];
//! - a connection that waits for a request holds no buffers;
//! - stopping closes idle connections at once and lets running requests finish for a while.
//!
//! A client's silence within a body is not limited here, but where the body is read
//! ([`BodyReader`](crate::body::BodyReader)): the reply to a silent client is a 408, not a cut.
//!
//! # Locking
//!
//! One registry of connections is locked when a connection begins or ends and at the stop, and the
//! count of connections by address when one begins or ends. The
//! activity of a connection is kept in its own atomics, written and read by its task.
//!
//! # Settings of hyper
//!
//! hyper's `pipeline_flush` stays off: with bytes of an unread body in its buffer it flushes nothing,
//! not even before FIN, and the early reply would be lost. `poll_without_shutdown` is not used for a
//! similar reason: it may end before the last bytes are flushed.

mod activity;
mod connection;
mod descriptors;
mod send_file;
mod shares;
mod socket;
mod tls;
#[cfg(test)]
mod tests;
mod traffic;
mod watched;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::service::Service;
use hyper::{Request, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use connection::{Connections, run};
pub use descriptors::{DescriptorBudget, descriptor_limit, raise_descriptor_limit};
pub(crate) use send_file::SentFile;
pub use shares::Shares;
use socket::Stream;
pub use socket::{Listener, Peer};
pub use tls::{BadTlsFiles, Tls, TlsFiles};
pub use traffic::Traffic;
pub(crate) use watched::Held;
pub use watched::{BriefDrain, RequestBody};

pub use crate::least_rate::LeastRate;
use crate::throttle::Throttle;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Timeouts and limits of connections. `Default` has the documented values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The longest wait for the first byte of a new connection.
    pub first_byte: Duration,
    /// The longest time of a request's header block, from its first byte.
    pub header: Duration,
    /// The longest wait for the next request on a connection that has had one.
    pub keep_alive_idle: Duration,
    /// The silence after a reply upon which a connection gives back its buffers, until the next request.
    pub rest: Duration,
    /// The longest wait for a client that takes no byte of its reply.
    pub write_idle: Duration,
    /// The least rate at which a client takes its reply. Only time in which the client makes the server
    /// wait counts.
    pub least_rate: LeastRate,
    /// The longest time of reading the rest of a refused body, after its reply.
    pub drain: Duration,
    /// The most bytes that are read of the rest of a refused body.
    pub drain_bytes: usize,
    /// The longest wait for a reply of a client that has closed its writing side. Most such clients are
    /// gone, and their request is cancelled then.
    pub half_closed: Duration,
    /// The longest wait for running requests when the server stops.
    pub grace: Duration,
    /// The most connections at one time.
    pub max_connections: usize,
    /// The most connections of one address; see [`Shares`].
    pub max_connections_per_address: usize,
    /// The bytes of a connection's read buffer, and so the longest header block. Values below 8192
    /// count as 8192.
    pub buffer_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(30),
            header: Duration::from_secs(10),
            keep_alive_idle: Duration::from_secs(75),
            rest: Duration::from_millis(100),
            write_idle: Duration::from_mins(1),
            least_rate: LeastRate::default(),
            drain: Duration::from_secs(5),
            drain_bytes: 8 << 20,
            half_closed: Duration::from_secs(5),
            grace: Duration::from_secs(30),
            max_connections: 20_000,
            max_connections_per_address: 1000,
            buffer_bytes: 64 << 10,
        }
    }
}

/// Accepts connections and serves requests until `shutdown` is ready; then stops accepting, closes
/// idle connections, and waits for running requests up to [`Options::grace`]. Returns how many
/// connections were cut after that.
///
/// A connection for which its address has no share left in `shares` is answered 503 and closed. A
/// request's body names its [`Peer`]. The service is hyper's; for a warp filter it is
/// `TowerToHyperService::new(warp::service(filter))`. A panic ends only its own connection.
pub async fn serve<S, B>(
    listener: Listener,
    service: S,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> usize
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let shares = Shares::new(options.max_connections_per_address, Vec::new());
    serve_counted(listener, service, options, shares, Arc::default(), shutdown).await
}

/// Serves as [`serve`] does, with shares that other listeners take from as well, and counts connections,
/// requests and bytes in `traffic`.
pub async fn serve_counted<S, B>(
    listener: Listener,
    service: S,
    options: Options,
    shares: Arc<Shares>,
    traffic: Arc<Traffic>,
    shutdown: impl Future<Output = ()>,
) -> usize
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    listener.bound_unsent();
    let mut shutdown = pin!(shutdown);
    let permits = Arc::new(Semaphore::new(options.max_connections));
    let connections = Arc::new(Connections::new(traffic));
    let (failures, crowding) = (Throttle::new(), Throttle::new());
    let mut tasks = JoinSet::new();

    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => log_panic(ended),
            (stream, peer, permit) = accept(&listener, &permits, &failures) => {
                let Some(share) = shares.take(peer) else {
                    log_crowding(&crowding, peer);
                    stream.turn_away();
                    continue;
                };
                let (service, connections) = (service.clone(), connections.clone());
                tasks.spawn(async move {
                    run(stream, peer, service, options, &connections).await;
                    drop((permit, share));
                });
            }
        }
    }

    drop(listener);
    connections.stop();
    finish(tasks, options.grace).await
}

/// Waits until there is room and accepts the next connection. Failures to accept are never fatal: the
/// client is gone again, or the machine is out of descriptors or memory for a while.
async fn accept(
    listener: &Listener,
    permits: &Arc<Semaphore>,
    failures: &Throttle,
) -> (Stream, Peer, OwnedSemaphorePermit) {
    let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");

    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) if is_clients(&error) => {}
            Err(error) => {
                if let Some(before) = failures.admit() {
                    tracing::error!(%error, before, "cannot accept connections, retrying");
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn is_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn log_crowding(crowding: &Throttle, peer: Peer) {
    if let Some(before) = crowding.admit() {
        tracing::warn!(?peer, before, "an address has all the connections it may have");
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a request panicked, its connection is closed");
    }
}

/// Waits for the connections, then cuts those that are left.
async fn finish(mut tasks: JoinSet<()>, grace: Duration) -> usize {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            log_panic(ended);
        }
    };
    if timeout(grace, all).await.is_ok() {
        return 0;
    }

    tasks.abort_all();
    let mut cut = 0;
    while let Some(ended) = tasks.join_next().await {
        cut += usize::from(ended.is_err_and(|error| error.is_cancelled()));
    }
    cut
}
