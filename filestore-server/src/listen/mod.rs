//! The accept loop, which replaces warp's.
//!
//! # Purpose
//!
//! warp's server has no timers and no connection limit. hyper's header timer also runs on idle keep-alive
//! connections, which can cause 502 errors in a proxy. This module has these rules:
//!
//! - Every phase of a connection has its own timeout ([`Options`]). One timer serves all phases, and is reset
//!   once for each phase, never for each read or write.
//! - At the connection limit, the server accepts no connection until another one ends. An address cannot
//!   exceed its share ([`Shares`]).
//! - A client that accepts its reply too slowly is disconnected ([`LeastRate`]).
//! - If a reply is sent before its request was completely read, FIN and a limited drain follow, so that the
//!   client sees the reply instead of a reset.
//! - If a client disconnects during its request, the request is cancelled: at once, or after
//!   [`Options::half_closed`] if only FIN was received.
//! - A connection that waits for a request uses no buffers.
//! - A stop closes idle connections at once, and lets running requests finish for a while.
//!
//! The limit for a client's silence within a body is in [`BodyReader`](body::BodyReader), which replies with
//! 408 instead of cutting the connection.
//!
//! # Locking
//!
//! The registry of connections is locked when a connection begins or ends and during a stop. The count of
//! connections by address is locked when a connection begins or ends. The activity of a connection is in its
//! own atomics, which its task writes and reads.
//!
//! # Settings of hyper
//!
//! hyper's `pipeline_flush` is off. If its buffer contains bytes of an unread body, it flushes no output, not
//! even before FIN, and the early reply would be lost. `poll_without_shutdown` is not used for a similar
//! reason: it can end before the last bytes are flushed.

mod activity;
pub mod body;
mod connection;
mod deadline;
mod descriptors;
mod least_rate;
mod lengths;
mod send_file;
mod shares;
mod socket;
pub(crate) mod throttle;
mod tls;
#[cfg(test)]
mod tests;
mod traffic;
mod validity;
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

use body::BoxError;
use connection::{Connections, run};
pub use descriptors::{DescriptorBudget, descriptor_limit, raise_descriptor_limit};
pub use least_rate::LeastRate;
pub(crate) use send_file::SentFile;
pub use shares::Shares;
use socket::Stream;
pub use socket::{Listener, Peer};
use throttle::Throttle;
pub use tls::{BadTlsFiles, Tls, TlsFiles};
pub use traffic::Traffic;
pub(crate) use validity::Validity;
pub use watched::{BriefDrain, RequestBody};
pub(crate) use watched::{Endless, Held};

/// Timeouts and limits for connections. `Default` has the documented values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The maximum wait for the first byte of a new connection.
    pub first_byte: Duration,
    /// The maximum duration of a request's header block, from its first byte.
    pub header: Duration,
    /// The maximum wait for the next request on a used connection.
    pub keep_alive_idle: Duration,
    /// The silence after a reply after which a connection frees its buffers, until the next request.
    pub rest: Duration,
    /// The maximum wait for a client that accepts no byte of its reply.
    pub write_idle: Duration,
    /// The minimum rate at which a client accepts its reply. Only time in which the server waits for the
    /// client counts.
    pub least_rate: LeastRate,
    /// The maximum time to read the rest of a refused body, after its reply.
    pub drain: Duration,
    /// The maximum bytes to read from the rest of a refused body.
    pub drain_bytes: usize,
    /// The maximum wait for the reply to a client that has closed its writing side. Most such clients have
    /// disconnected, and their requests are then cancelled.
    pub half_closed: Duration,
    /// The maximum wait for running requests when the server stops.
    pub grace: Duration,
    /// The maximum number of connections.
    pub max_connections: usize,
    /// The maximum number of connections from one address. See [`Shares`].
    pub max_connections_per_address: usize,
    /// The size of a connection's read buffer, in bytes. This size is also the maximum header size
    /// block. Values below 8192 count as 8192.
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

/// Accepts connections and serves requests until `shutdown` is ready. Then the call stops accepting, closes
/// idle connections, and waits up to [`Options::grace`] for running requests. Returns the number of
/// connections that were cut after that.
///
/// If an address has no share left in `shares`, its new connection gets status 503 and is closed. A request's
/// body names its [`Peer`]. The service is hyper's. For a warp filter, use
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

/// Serves like [`serve`], with shares that other listeners also use. Counts connections, requests and bytes
/// in `traffic`.
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

/// Waits until there is room, and accepts the next connection. Failures are never fatal: the client has
/// disconnected, or the machine temporarily lacks descriptors or memory.
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

/// Waits for the connections, then cuts the remaining connections.
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
