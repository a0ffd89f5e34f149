//! Opens the target: a server, a data directory, or the server that uses the data directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_client::{Client, ClientBuilder, RetryPolicy};
use filestore_core::DataDir;
use filestore_core::config::warn_of_others;
use filestore_core::{ErrorKind, FileStore, FileStoreBuilder, StoreConfig};

use super::address::Address;
use super::direct::Direct;
use super::mask::make_private;
use super::operations::Target;
use super::remote::Remote;
use super::socket::AdminSocket;
use crate::failure::{Failure, Result};

/// The treatment of a missing data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Create it, because the command stores something.
    Create,
    /// Refuse the command, because the path is probably wrong.
    Refuse,
}

/// A target and its name.
pub(crate) struct Opened {
    pub(crate) target: Box<dyn Target>,
    /// The URL of the server or the path of the data directory. The same store has the same name.
    pub(crate) name: String,
}

/// Opens the target at an address.
pub(crate) async fn open(address: Address, absent: Absent) -> Result<Opened> {
    match address {
        Address::Server { url, key, ca_cert } => open_server(&url, key, ca_cert.as_deref()),
        Address::Directory { path, config } => open_directory(&path, config, absent).await,
    }
}

fn open_server(url: &str, key: Option<String>, ca_cert: Option<&Path>) -> Result<Opened> {
    let client = build_client(url, key, ca_cert)?;
    let name = url.trim_end_matches('/').to_owned();
    Ok(Opened { target: Box::new(Remote::new(client)), name })
}

fn build_client(url: &str, key: Option<String>, ca_cert: Option<&Path>) -> Result<Client> {
    let unusable = |error: filestore_client::Error| {
        let hint = match url.split_once("://") {
            None => format!("use --server http://{url}"),
            Some(_) => "check --server, --key and --ca-cert".to_owned(),
        };
        Failure::failed(error.message()).hint(hint)
    };

    let mut builder = Client::builder(url).map_err(unusable)?;
    if let Some(path) = ca_cert {
        builder = trusting(builder, path)?;
    }
    if let Some(key) = key {
        builder = builder.api_key(key);
    }
    builder.user_agent(USER_AGENT).retry(impatient()).build().map_err(unusable)
}

/// Trusts the certificates in a file.
fn trusting(builder: ClientBuilder, path: &Path) -> Result<ClientBuilder> {
    let doing = format!("cannot read the certificates in {}", path.display());
    let pem = std::fs::read(path).map_err(|e| Failure::io(doing.clone(), &e))?;
    builder.extra_root_certificates(&pem).map_err(|e| {
        let hint = "--ca-cert needs a file with certificates in PEM";
        Failure::failed(e.message()).doing(doing).hint(hint)
    })
}

/// Returns the policy of a command: a user who has mistyped the address must not wait for a server that
/// might return.
fn impatient() -> RetryPolicy {
    RetryPolicy::default().max_outage(Duration::ZERO)
}

const USER_AGENT: &str = concat!("filestore-cli/", env!("CARGO_PKG_VERSION"));

async fn open_directory(dir: &Path, config: Option<PathBuf>, absent: Absent) -> Result<Opened> {
    if absent == Absent::Refuse && !DataDir::exists(dir) {
        return Err(Failure::failed(format!("no data directory found: {}", dir.display()))
            .hint("check --data-dir. The first upload creates a new data directory"));
    }

    if let Some(store) = open_store(dir, config).await? {
        return Ok(Opened { target: Box::new(Direct::new(store)), name: known_as(dir) });
    }
    let target = Box::new(through_socket(dir)?);
    Ok(Opened { target, name: known_as(dir) })
}

/// Opens the store in a data directory. Returns `None` if another process uses the directory.
async fn open_store(dir: &Path, config: Option<PathBuf>) -> Result<Option<FileStore>> {
    if DataDir::is_held(dir) {
        return Ok(None);
    }

    let builder = prepare(dir, config)?;
    make_private();
    match builder.open().await {
        Ok(store) => Ok(Some(store)),
        // Another process opened the directory first.
        Err(error) if error.kind() == ErrorKind::Locked => Ok(None),
        Err(error) => Err(cannot_open(dir, error)),
    }
}

/// Prepares to open the store with the server's configuration file. Without a file, uses the
/// settings of the last server.
fn prepare(dir: &Path, config: Option<PathBuf>) -> Result<FileStoreBuilder> {
    let builder = FileStore::builder(dir);
    let Some(path) = config else { return Ok(builder.follow_owner()) };

    warn_of_others("the configuration", &path);
    let config = StoreConfig::load(path)
        .map_err(|e| Failure::failed(e.to_string()).hint("check --config"))?;
    Ok(builder.config(config).as_guest())
}

fn known_as(dir: &Path) -> String {
    let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    path.display().to_string()
}

/// Connects to the server that uses the directory, through its admin socket. The file mode of the
/// socket replaces the key.
fn through_socket(dir: &Path) -> Result<Remote> {
    let doing = format!("cannot use the admin socket in {}", dir.display());
    let socket = AdminSocket::of(dir).map_err(|e| Failure::io(doing, &e))?;
    if !socket.is_served() {
        let problem = format!("another process is using the data directory {}", dir.display());
        return Err(Failure::failed(problem).hint(
            "if it is another filestore command, wait until it ends. If it is a server without an admin \
             socket (see its log), use --server with its URL",
        ));
    }

    let builder = Client::builder("http://localhost")?;
    let builder = builder.unix_socket(socket.address()).user_agent(USER_AGENT).retry(impatient());
    Ok(Remote::through(builder.build()?, socket))
}

fn cannot_open(dir: &Path, error: filestore_core::Error) -> Failure {
    Failure::from(error).doing(format!("cannot open the data directory {}", dir.display()))
}
