//! A running server: the store, the sockets, the workers, from start to stop.

mod admin_socket;
pub(crate) mod cors;
mod dispatch;
mod first_key;
mod gate;
pub(crate) mod guard;
pub(crate) mod limiter;
mod metrics_address;
mod reload;
pub(crate) mod shared_check;
mod shared_limits;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::CheckOutcome;
use filestore_core::{Durability, FileStore, StoreConfig, Workers};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use self::guard::Guard;
use self::limiter::Limits;
use self::shared_check::SharedCheck;
use crate::audit::Audit;
use crate::config::{Auth, Config, ConfigError};
use crate::listen::{self, BadTlsFiles, DescriptorBudget, Listener, Options, Shares, Tls};
use crate::metrics::Metrics;
use crate::request::base::{BadPublicUrl, Base};
use crate::request::call::App;

/// A running server. Dropping it stops accepting; [`stop`](Self::stop) waits until all is done.
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
    /// The task that tells other servers of uses of limits.
    sharing: JoinSet<()>,
    /// The checks of providers, dropped with the server: a stop does not wait for a silent provider.
    probes: JoinSet<()>,
    admin_socket: Option<PathBuf>,
    tls: Option<Tls>,
    app: Arc<App>,
}

/// The least time of the workers at a stop, even if the requests took the whole grace period.
const AT_LEAST: Duration = Duration::from_secs(1);

/// Reasons why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The public URL cannot be used.
    #[error(transparent)]
    PublicUrl(#[from] BadPublicUrl),
    /// Others could reach the server, which has no keys to ask for.
    #[error(
        "refusing to listen on {address} without keys: everybody who can reach it could read and delete all \
         files; make the first key with {}, or say --insecure-no-auth if something in front authenticates",
        first_key::command(.data_dir)
    )]
    Exposed {
        /// The address to listen on.
        address: SocketAddr,
        /// The data directory that has no keys.
        data_dir: PathBuf,
    },
    /// A public URL leads others to the server, which has no keys to ask for.
    #[error(
        "refusing to be published as {url} without keys: everybody who can reach it could read and delete \
         all files; make the first key with {}, or say --insecure-no-auth if something in front authenticates",
        first_key::command(.data_dir)
    )]
    Published {
        /// The public URL.
        url: String,
        /// The data directory that has no keys.
        data_dir: PathBuf,
    },
    /// The configuration asks for no keys, and there are some.
    #[error("auth = \"none\" while there are keys: remove it, as a server with keys asks for them")]
    KeysBesideNone,
    /// The file with the hash of the first key cannot be used.
    #[error("the configuration is invalid: first_key_hash_file {}: {problem}", .path.display())]
    FirstKey {
        /// The path of the file.
        path: PathBuf,
        /// The reason why it cannot be used.
        problem: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address to listen on.
        address: SocketAddr,
        /// The refusal of the operating system.
        source: io::Error,
    },
    /// The certificate or the key of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] BadTlsFiles),
    /// The configuration of a provider cannot be used.
    #[error("the configuration is invalid: {}", .0.chain())]
    Providers(filestore_core::Error),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log {}: {source}", path.display())]
    AuditLog {
        /// The file that is configured.
        path: PathBuf,
        /// The refusal of the operating system.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the data directory: {}", .0.chain())]
    Store(#[from] filestore_core::Error),
}

impl StartError {
    /// Tests whether the configuration is at fault rather than the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::PublicUrl(_)
            | Self::Exposed { .. }
            | Self::Published { .. }
            | Self::KeysBesideNone
            | Self::FirstKey { .. }
            | Self::Tls(_)
            | Self::Providers(_) => true,
            Self::Bind { .. } | Self::AuditLog { .. } | Self::Store(_) => false,
        }
    }
}

impl Server {
    /// Binds the address, opens the store (which completes or discards work that a crash interrupted),
    /// starts the workers, and accepts connections.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::check_config(&config)?;
        let base = Base::of(config.public_url.as_deref())?;
        let tls = config.tls.as_ref().map(Tls::open).transpose()?;

        let (listener, address) = bind(config.listen)
            .await
            .map_err(|source| StartError::Bind { address: config.listen, source })?;
        let wanted = config.http.max_connections;
        let config = within_descriptors(config);
        warn_of_descriptors(wanted, config.http.max_connections);
        let metrics_listener = bind_metrics(config.metrics_listen).await?;
        let audit = open_audit_log(config.audit_log.as_deref())?;
        let store =
            FileStore::builder(&config.data_dir).config(config.store.clone()).open().await?;
        warn_of_risks(&config.store);
        first_key::adopt(&config, &store).await?;
        if config.auth != Auth::Keys && !store.keys().exist() {
            guard::check_exposure(&config)?;
        }

        let options = config.http;
        let shares =
            Shares::new(options.max_connections_per_address, config.trusted_proxies.clone());
        let check_providers = config.check_providers;
        let guard = Guard::of(&config);
        let metrics = Metrics::new();
        let limits = Limits::default();
        limits.set(&config.rate_limits);
        let app = Arc::new(App {
            store: store.clone(),
            config,
            base,
            guard,
            metrics,
            audit,
            limits,
            readiness: SharedCheck::default(),
        });

        let (stopping, stopped) = watch::channel(false);
        let listener = match &tls {
            Some(tls) => Listener::Tls(listener, tls.clone()),
            None => listener.into(),
        };
        let mut accepting = vec![accept(listener, &app, options, &shares, stopped.clone())];
        let admin_socket = bind_admin_socket(&store);
        let admin_socket = admin_socket.map(|(listener, path)| {
            accepting.push(accept(listener, &app, options, &shares, stopped.clone()));
            path
        });
        let metrics_address = metrics_listener.map(|(listener, address)| {
            accepting.push(accept_scrapes(listener, &app, options, stopped));
            address
        });

        let workers = Workers::start(&store);
        let sharing = shared_limits::share(&store, &app);
        let probes = if check_providers { probe_providers(&store) } else { JoinSet::new() };

        Ok(Self {
            store,
            address,
            metrics_address,
            stopping,
            accepting,
            workers,
            sharing,
            probes,
            admin_socket,
            tls,
            app,
        })
    }

    /// Returns the address of the server; with port 0 configured, the port is the one it got.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address on which the metrics ask for no key, if one is configured.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Returns the URL of the server, without a slash at the end.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the store of the server.
    pub fn store(&self) -> &FileStore {
        &self.store
    }

    /// Stops accepting, lets running requests finish ([`Options::grace`]), stops the workers between
    /// two pieces of work, and closes the store.
    pub async fn stop(self) {
        let end = Instant::now() + self.app.config.http.grace;
        self.stopping.send_replace(true);
        // Their clients receive the report before the grace period is over.
        self.store.admin().migrate_stop_all();
        self.store.admin().fsck_stop_here();

        for task in self.accepting {
            match task.await {
                Ok(0) => {}
                Ok(cut) => tracing::warn!(cut, "connections were cut at the stop"),
                Err(error) => tracing::error!(%error, "accepting ended badly"),
            }
        }

        drop((self.sharing, self.probes));
        self.workers.stop(end.saturating_duration_since(Instant::now()).max(AT_LEAST)).await;
        if let Some(path) = &self.admin_socket {
            admin_socket::unlink(path);
        }
        self.store.close().await;
    }
}

async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Lowers the numbers of connections, of uploads with open files, and of files that stay open, to what the process's limit of
/// descriptors leaves room for. The limit itself is the process's own to raise
/// ([`listen::raise_descriptor_limit`]).
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

/// Warns if the limit of open files allows fewer connections than were `wanted`.
fn warn_of_descriptors(wanted: usize, connections: usize) {
    if connections < wanted {
        let limit = listen::descriptor_limit();
        tracing::warn!(
            limit,
            connections,
            wanted,
            "the limit of open files allows fewer connections"
        );
    }
}

/// Warns of settings that are allowed and give up a promise.
fn warn_of_risks(config: &StoreConfig) {
    if config.durability == Durability::Process {
        tracing::warn!("durability is \"process\": acknowledged files do not survive a power loss");
    }
    if !config.providers.is_empty() && config.blob_grace < config.presign_ttl {
        tracing::warn!(
            "blob_grace_secs is less than presign_ttl_secs: URLs may outlive what they lead to"
        );
    }
}

fn accept(
    listener: Listener,
    app: &Arc<App>,
    options: Options,
    shares: &Arc<Shares>,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<usize> {
    let service = dispatch::service(Arc::clone(app));
    let (shares, traffic) = (Arc::clone(shares), Arc::clone(&app.metrics.traffic));
    let over = is_over(stopped);
    tokio::spawn(listen::serve_counted(listener, service, options, shares, traffic, over))
}

/// Serves the metrics alone. Scrapes are not counted among the requests of clients.
fn accept_scrapes(
    listener: TcpListener,
    app: &Arc<App>,
    options: Options,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<usize> {
    let service = metrics_address::service(Arc::clone(app));
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
    let bound = bind(address).await.map_err(|source| StartError::Bind { address, source })?;
    Ok(Some(bound))
}

fn open_audit_log(path: Option<&Path>) -> Result<Audit, StartError> {
    Audit::open(path).map_err(|source| StartError::AuditLog {
        path: path.map(Path::to_owned).unwrap_or_default(),
        source,
    })
}

/// Checks the active providers in the background. A provider that fails is a warning in the log: files
/// at other places can be served all the same.
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

/// Binds the admin socket. Serving files matters more than administration by socket: a failure is a
/// warning.
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
