//! A running server: the store, the sockets and the workers, from start to stop.

mod admin_socket;
mod checks;
mod exposure;
mod first_key;
mod metrics_address;
mod reload;
mod start_error;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::CheckOutcome;
use filestore_core::{Durability, FileStore, StoreConfig, Workers};
use http::Request;
use hyper::service::{Service as HyperService, service_fn};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use warp::reply::Response;

use self::checks::HaveKeys;
pub use self::start_error::StartError;
use crate::config::{Config, ServiceOptions};
use crate::listen::{self, DescriptorBudget, Listener, Options, RequestBody, Shares, Tls};
use crate::service::{Connection, FileService, Prepared};

/// A running server. Dropping it stops accepting. [`stop`](Self::stop) waits until all work is done.
///
/// ```no_run
/// # async fn example() -> Result<(), filestore_server::StartError> {
/// let any_port = "127.0.0.1:0".parse().expect("an address");
/// let config = filestore_server::Config::new(any_port, "/tmp/files");
/// let server = filestore_server::Server::start(config).await?;
/// println!("{}/api/v1/health-checks", server.url());
/// server.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    store: FileStore,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    stopping: watch::Sender<bool>,
    accepting: Vec<JoinHandle<usize>>,
    workers: Workers,
    /// The provider tests. The tests are dropped with the server, so that a stop does not wait for a silent
    /// provider.
    probes: JoinSet<()>,
    admin_socket: Option<PathBuf>,
    tls: Option<Tls>,
    config: Config,
    service: FileService,
}

/// The minimum time for the workers during a stop, even if the requests used the whole grace period.
const AT_LEAST: Duration = Duration::from_secs(1);

impl Server {
    /// Opens the store, which completes or discards work that a crash interrupted. Then binds the address,
    /// starts the workers, and accepts connections. If other machines or accounts could reach a server
    /// without keys, the call fails before it binds the address.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let tls = checks::refuse(&config)?;
        checks::warn_of_missing(&config);

        let wanted = config.http.max_connections;
        let config = within_descriptors(config);
        tell_of_descriptors(wanted, config.http.max_connections);
        let prepared = Prepared::of(ServiceOptions::from(&config))?;
        let store = checks::builder(&config).open().await?;
        warn_of_risks(&config.store);
        let ((listener, address), metrics_listener) = match take_addresses(&config, &store).await {
            Ok(taken) => taken,
            Err(refused) => {
                store.close().await;
                return Err(refused);
            }
        };

        let options = config.http;
        let shares =
            Shares::new(options.max_connections_per_address, config.trusted_proxies.clone());
        let service = prepared.over(store.clone());
        if let Some(tls) = &tls {
            service.app().metrics.show_certificate(tls.clone());
        }

        let (stopping, stopped) = watch::channel(false);
        let listener = match &tls {
            Some(tls) => Listener::Tls(listener, tls.clone()),
            None => listener.into(),
        };
        let mut accepting = vec![accept(listener, &service, options, &shares, stopped.clone())];
        let admin_socket = bind_admin_socket(&store);
        let admin_socket = admin_socket.map(|(listener, path)| {
            accepting.push(accept(listener, &service, options, &shares, stopped.clone()));
            path
        });
        let metrics_address = metrics_listener.map(|(listener, address)| {
            accepting.push(accept_scrapes(listener, &service, options, stopped));
            address
        });

        let workers = Workers::start(&store);
        let probes = if config.check_providers { probe_providers(&store) } else { JoinSet::new() };

        Ok(Self {
            store,
            address,
            metrics_address,
            stopping,
            accepting,
            workers,
            probes,
            admin_socket,
            tls,
            config,
            service,
        })
    }

    /// Returns the server's address. If port 0 is configured, the address contains the selected port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address on which the metrics need no key, if configured.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Returns the server's URL, without a trailing slash.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the server's store.
    pub fn store(&self) -> &FileStore {
        &self.store
    }

    /// Stops accepting, lets running requests finish ([`Options::grace`]), stops the workers between two
    /// pieces of work, and closes the store.
    pub async fn stop(self) {
        let end = Instant::now() + self.config.http.grace;
        self.stopping.send_replace(true);
        self.service.end_event_streams();
        // Their clients receive the report before the grace period is over.
        self.store.admin().migrate_stop_all();
        self.store.admin().fsck_stop_here();
        self.service.cancel_detached();
        self.store.resumable().stop();

        for task in self.accepting {
            match task.await {
                Ok(0) => {}
                Ok(cut) => tracing::warn!(cut, "connections were cut at the stop"),
                Err(error) => tracing::error!(%error, "accepting ended badly"),
            }
        }

        let rest = end.saturating_duration_since(Instant::now());
        self.service.end_detached_runs(rest).await;
        self.service.end_sharing();
        drop(self.probes);
        self.workers.stop(end.saturating_duration_since(Instant::now()).max(AT_LEAST)).await;
        if let Some(path) = &self.admin_socket {
            admin_socket::unlink(path);
        }
        self.store.close().await;
    }
}

/// Binds the addresses, unless others would reach a server without keys there. This check comes first, so
/// that it is reported even if an address is in use.
async fn take_addresses(
    config: &Config,
    store: &FileStore,
) -> Result<(Bound, Option<Bound>), StartError> {
    first_key::adopt(config, store).await?;
    let keys = if store.keys().exist() { HaveKeys::Yes } else { HaveKeys::No };
    checks::access(config, keys)?;

    let address = config.listen;
    let bound = bind(address).await.map_err(|source| StartError::Bind { address, source })?;
    Ok((bound, bind_metrics(config.metrics_listen).await?))
}

/// A listener, and its address.
type Bound = (TcpListener, SocketAddr);

async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Reduces the limits of connections, uploads with open files, and files kept open. The sum then fits the
/// process's descriptor limit. The process itself can raise the limit ([`listen::raise_descriptor_limit`]).
fn within_descriptors(mut config: Config) -> Config {
    let limit = listen::descriptor_limit();
    let limits = &mut config.store.limits;
    let connections = config.http.max_connections;
    let budget =
        DescriptorBudget::divide(limit, connections, limits.concurrent_uploads, limits.open_files);

    config.http.max_connections = budget.connections;
    (limits.concurrent_uploads, limits.open_files) = (budget.uploads, budget.files);
    config
}

/// The connections at one time that are enough for most servers. A limit of 1024 open files leaves about 300.
const AMPLE: usize = 1000;

/// Says that the limit of open files allows fewer connections than were `wanted`. That is a warning if few are left,
/// or if the operator asked for a number of their own.
fn tell_of_descriptors(wanted: usize, connections: usize) {
    if connections >= wanted {
        return;
    }
    let limit = listen::descriptor_limit();
    let is_default = wanted == Options::default().max_connections;
    if is_default && connections >= AMPLE {
        tracing::info!(
            limit,
            "at most {connections} connections at the same time, because of the limit of open files"
        );
    } else {
        tracing::warn!(
            limit,
            wanted,
            "at most {connections} connections at the same time, because of the limit of open files: raise it with \
             `ulimit -n` or LimitNOFILE="
        );
    }
}

/// Warns about settings that give up a guarantee.
fn warn_of_risks(config: &StoreConfig) {
    if config.durability == Durability::Process {
        tracing::warn!("durability is \"process\": acknowledged files do not survive a power loss");
    }
    if !config.providers.is_empty() && config.blob_grace < config.presign_ttl {
        tracing::warn!(
            "blob_grace_secs is less than presign_ttl_secs: signed URLs can outlive their files"
        );
    }
}

fn accept(
    listener: Listener,
    service: &FileService,
    options: Options,
    shares: &Arc<Shares>,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<usize> {
    let traffic = Arc::clone(&service.app().metrics.traffic);
    let (service, shares) = (answering(service.clone()), Arc::clone(shares));
    let over = is_over(stopped);
    tokio::spawn(listen::serve_counted(listener, service, options, shares, traffic, over))
}

/// Answers the requests of our own listener, which reports their connection itself.
fn answering(
    service: FileService,
) -> impl HyperService<
    Request<RequestBody>,
    Response = Response,
    Error = Infallible,
    Future: Future<Output = Result<Response, Infallible>> + Send + 'static,
> + Clone
+ Send
+ 'static {
    service_fn(move |request: Request<RequestBody>| {
        let body = request.body();
        let connection = Connection { peer: Some(body.peer()), takes_files: body.takes_files() };
        let reply = service.answer(request, connection);
        async move { Ok(reply.await) }
    })
}

/// Serves only the metrics. Scrapes are not counted as requests of clients.
fn accept_scrapes(
    listener: TcpListener,
    service: &FileService,
    options: Options,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<usize> {
    let service = metrics_address::service(service.clone());
    let options = metrics_address::options(options);
    tokio::spawn(listen::serve(listener.into(), service, options, is_over(stopped)))
}

/// Ends when the server stops.
async fn is_over(mut stopped: watch::Receiver<bool>) {
    // An error means that the server was dropped, which is a stop as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn bind_metrics(
    address: Option<SocketAddr>,
) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    let Some(address) = address else { return Ok(None) };
    if !address.ip().to_canonical().is_loopback() {
        tracing::warn!(%address, "metrics_listen asks for no key: let only the monitoring reach it");
    }
    let bound = bind(address).await.map_err(|source| StartError::Bind { address, source })?;
    Ok(Some(bound))
}

/// Tests the active providers in the background. A failing provider causes a warning, because files at other
/// places can still be served.
fn probe_providers(store: &FileStore) -> JoinSet<()> {
    let mut probes = JoinSet::new();

    let providers = store.providers();
    for code in providers.active_clouds().into_iter().chain(providers.backend().cloned()) {
        let store = store.clone();
        probes.spawn(async move {
            match store.admin().check_provider(code.as_str()).await {
                Ok(report) if report.can_serve => tracing::debug!(provider = %code, "the provider can serve"),
                Ok(report) => {
                    let failed = report.steps.iter().filter(|step| step.outcome == CheckOutcome::Failed);
                    let failed: Vec<_> =
                        failed.map(|step| format!("{}: {}", step.name, step.detail)).collect();
                    let failed = failed.join("; ");
                    tracing::warn!(provider = %code, %failed, "the provider cannot serve");
                }
                Err(error) => {
                    tracing::warn!(provider = %code, error = %error.chain(), "the provider was not tried");
                }
            }
        });
    }

    probes
}

/// Binds the admin socket. A failure causes a warning, because serving files is more important than the
/// socket.
fn bind_admin_socket(store: &FileStore) -> Option<(Listener, PathBuf)> {
    let path = store.data_dir().admin_socket();
    match admin_socket::bind(&path) {
        Ok(listener) => Some((listener.into(), path)),
        Err(error) => {
            tracing::warn!(%error, "no admin socket: administer this server over HTTP");
            None
        }
    }
}
