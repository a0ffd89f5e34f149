//! The API as a tower service, without a listener, signals or state of the process.

mod dispatch;
mod reply_body;
mod shared_limits;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use filestore_core::FileStore;
use http::{Request, Response};
use hyper::body::Body;
use thiserror::Error;
use tokio::task::JoinSet;
use tower_service::Service;

pub(crate) use self::dispatch::Connection;
use self::reply_body::Exclusive;
pub use self::reply_body::ReplyBody;
use crate::admission::limiter::RateLimits;
use crate::audit::Audit;
use crate::config::{ConfigError, ServiceOptions};
use crate::http::base::{BadPrefix, BadPublicUrl, Base};
use crate::listen::Peer;
use crate::listen::body::BoxError;
use crate::routes::{RouteFilter, routes};
use crate::state::App;

/// Creates the whole API as a tower service over `store`, so that you can mount it in your own server.
///
/// The service answers below any path prefix: set [`path_prefix`](ServiceOptions::path_prefix) or
/// [`public_url`](ServiceOptions::public_url), and let your router strip or keep the prefix. Links,
/// `Location`, signed URLs and the OpenAPI document then have the prefix.
///
/// Insert the [`Peer`] of the connection into the extensions of each request. Without a peer the service
/// knows no client address: the audit log shows `unknown`, all callers without a key share one rate limit,
/// and a service without keys refuses administration. A request with [`Peer::Unix`] needs no key, so insert
/// this peer only for a socket that only your account can open.
///
/// The service runs no background work. Start `filestore_core::Workers` for the store. If several servers
/// share the records, call this function within a tokio runtime, because a task then exchanges rate limits.
///
/// For example, below `/storage` of a hyper server:
///
/// ```
/// use filestore_core::FileStore;
/// use filestore_server::listen::Peer;
/// use filestore_server::{ServiceOptions, service};
/// use http::Request;
/// use hyper::server::conn::http1;
/// use hyper::service::service_fn;
/// use hyper_util::rt::TokioIo;
/// use tower_service::Service as _;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// let store = FileStore::open(dir.path()).await?;
/// let mut options = ServiceOptions::default();
/// options.path_prefix = Some("/storage".to_owned());
/// let files = service(store, options)?;
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let address = listener.local_addr()?;
/// # let client = tokio::net::TcpStream::connect(address).await?;
/// let (stream, peer) = listener.accept().await?;
/// let serve = service_fn(move |mut request: Request<hyper::body::Incoming>| {
///     request.extensions_mut().insert(Peer::Tcp(peer));
///     files.clone().call(request)
/// });
/// let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), serve);
/// # drop(client);
/// # let _ = connection.await;
/// # Ok(())
/// # }
/// ```
///
/// Fails if an option is invalid, or if the audit log cannot be opened.
pub fn service(store: FileStore, options: ServiceOptions) -> Result<FileService, ServiceError> {
    Ok(Prepared::of(options)?.over(store))
}

/// The reasons why a service cannot be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// An option is invalid.
    #[error(transparent)]
    Options(#[from] ConfigError),
    /// The public URL is invalid.
    #[error(transparent)]
    PublicUrl(#[from] BadPublicUrl),
    /// The path prefix is invalid.
    #[error(transparent)]
    PathPrefix(#[from] BadPrefix),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log {}: {source}", path.display())]
    AuditLog {
        /// The configured file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Checked options, with an open audit log.
pub(crate) struct Prepared {
    options: ServiceOptions,
    base: Base,
    audit: Audit,
}

impl Prepared {
    /// Checks options and opens the audit log.
    pub(crate) fn of(options: ServiceOptions) -> Result<Self, ServiceError> {
        options.check()?;
        let base = base_of(&options)?;
        let audit = open_audit_log(options.audit_log.as_deref())?;
        Ok(Self { options, base, audit })
    }

    /// Creates the service.
    pub(crate) fn over(self, store: FileStore) -> FileService {
        let routes = routes(&self.base);
        let app = Arc::new(App::new(store, self.options, self.base, self.audit));
        shared_limits::share(&app);
        FileService { app, routes }
    }
}

fn base_of(options: &ServiceOptions) -> Result<Base, ServiceError> {
    let public = Base::of(options.public_url.as_deref())?;
    let Some(prefix) = &options.path_prefix else { return Ok(public) };

    let below = Base::below(prefix)?;
    if options.public_url.is_none() {
        return Ok(below);
    }
    if public.has_prefix_of(&below) { Ok(public) } else { Err(BadPrefix(prefix.clone()).into()) }
}

fn open_audit_log(path: Option<&Path>) -> Result<Audit, ServiceError> {
    Audit::open(path).map_err(|source| ServiceError::AuditLog {
        path: path.map(Path::to_owned).unwrap_or_default(),
        source,
    })
}

/// The API as a tower service, created by [`service`]. All clones are handles of the same service.
///
/// The service is always ready, and never fails, because a refusal is a reply.
#[derive(Clone)]
pub struct FileService {
    app: Arc<App>,
    routes: RouteFilter,
}

impl FileService {
    /// Returns the service's store.
    pub fn store(&self) -> &FileStore {
        &self.app.store
    }

    /// Sets the rate limits. Unchanged limits keep their counts.
    pub fn set_rate_limits(&self, limits: &RateLimits) {
        self.app.limits.set(limits);
    }

    /// Sets the maximum number of streams of events, and of pages that wait. Running streams continue.
    pub fn set_max_event_streams(&self, most: usize) {
        self.app.streams.set_most(most);
    }

    /// Ends all streams of events, and all waits for one. Call it when your server begins to stop, because a stream
    /// has no end of its own. A stream that begins later ends at once.
    pub fn end_event_streams(&self) {
        self.app.streams.stop();
    }

    /// Ends the runs that continue without a client (`"detach": true`), and waits for them, at most for `patience`. Call
    /// it when your server has answered its last request, before you close the store. Backup runs are cancelled, and a
    /// later run continues their work. To stop migrations and checks of the store, first call
    /// `Admin::migrate_stop_all` and `Admin::fsck_stop_here`.
    pub async fn end_detached_runs(&self, patience: Duration) {
        self.cancel_detached();
        let left = self.app.detached.wait(patience).await;
        if left > 0 {
            tracing::warn!(runs = left, "detached runs were left at the stop");
        }
    }

    /// Cancels the detached runs that cannot be told to stop.
    pub(crate) fn cancel_detached(&self) {
        self.app.detached.cancel();
    }

    /// Stops the exchange of rate limits with other servers, before the store is closed.
    pub(crate) fn end_sharing(&self) {
        *self.app.sharing.lock() = JoinSet::new();
    }

    /// Returns the state that all requests share.
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Answers a request of a connection.
    pub(crate) fn answer<B>(
        &self,
        request: Request<B>,
        connection: Connection,
    ) -> impl Future<Output = warp::reply::Response> + Send + 'static + use<B>
    where
        B: Body + Send + Sync + 'static,
        B::Error: Into<BoxError>,
    {
        dispatch::answer(&self.app, &self.routes, request, connection)
    }
}

impl fmt::Debug for FileService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileService").field("base", &self.app.base).finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for FileService
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().copied();
        let connection = Connection { peer, takes_files: false };
        let reply = self.answer(request.map(Exclusive::new), connection);
        Box::pin(async move { Ok(ReplyBody::take_over(reply.await)) })
    }
}
