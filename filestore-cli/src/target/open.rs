//! Opens the target: the server that was named, the data directory, or the server that holds it.

use std::io::ErrorKind as IoErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use filestore_client::Client;
use filestore_core::DataDir;
use filestore_core::{ErrorKind, FileStore, FileStoreBuilder, StoreConfig};

use super::address::Address;
use super::direct::Direct;
use super::operations::Target;
use super::remote::Remote;
use crate::failure::{Failure, Result};

/// The treatment of a data directory that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Create it: the command puts something in it.
    Create,
    /// Refuse the command: it looks for something and was given the wrong path.
    Refuse,
}

/// A target, with its name for people.
pub(crate) struct Opened {
    pub(crate) target: Box<dyn Target>,
    /// The server's URL, or the data directory's path: the same for the same store.
    pub(crate) name: String,
}

/// Opens the target at an address.
pub(crate) async fn open(address: Address, absent: Absent) -> Result<Opened> {
    match address {
        Address::Server { url, key } => open_server(&url, key),
        Address::Directory { path, config } => open_directory(&path, config, absent).await,
    }
}

fn open_server(url: &str, key: Option<String>) -> Result<Opened> {
    let client = build_client(url, key)
        .map_err(|e| Failure::failed(e.message()).hint("see --server and --key"))?;

    let name = url.trim_end_matches('/').to_owned();
    Ok(Opened { target: Box::new(Remote::new(client)), name })
}

fn build_client(url: &str, key: Option<String>) -> filestore_client::Result<Client> {
    let builder = Client::builder(url)?.user_agent(USER_AGENT);
    match key {
        Some(key) => builder.api_key(key).build(),
        None => builder.build(),
    }
}

const USER_AGENT: &str = concat!("filestore-cli/", env!("CARGO_PKG_VERSION"));

/// The socket in its data directory on which a running server listens for us.
const ADMIN_SOCKET: &str = "admin.sock";

async fn open_directory(dir: &Path, config: Option<PathBuf>, absent: Absent) -> Result<Opened> {
    if absent == Absent::Refuse && !DataDir::exists(dir) {
        return Err(Failure::failed(format!("no data directory there: {}", dir.display()))
            .hint("check --data-dir; the first upload into a new directory makes one"));
    }

    if let Some(store) = open_store(dir, config).await? {
        return Ok(Opened { target: Box::new(Direct::new(store)), name: known_as(dir) });
    }
    let target = Box::new(Remote::new(through_socket(dir)?));
    Ok(Opened { target, name: known_as(dir) })
}

/// Opens the store in a data directory; `None` while another process holds the directory.
async fn open_store(dir: &Path, config: Option<PathBuf>) -> Result<Option<FileStore>> {
    if DataDir::is_held(dir) {
        return Ok(None);
    }

    match prepare(dir, config)?.open().await {
        Ok(store) => Ok(Some(store)),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::Locked => Ok(None),
        Err(error) => Err(cannot_open(dir, error)),
    }
}

/// Prepares to open the store by the server's configuration file; without one, by what the server
/// last used.
fn prepare(dir: &Path, config: Option<PathBuf>) -> Result<FileStoreBuilder> {
    let builder = FileStore::builder(dir);
    let Some(path) = config else { return Ok(builder.follow_owner()) };

    let config =
        StoreConfig::load(path).map_err(|e| Failure::failed(e.to_string()).hint("see --config"))?;
    Ok(builder.config(config).as_guest())
}

fn known_as(dir: &Path) -> String {
    let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    path.display().to_string()
}

/// Connects to the server that holds the directory, through the socket in it. The socket's mode is its
/// key.
fn through_socket(dir: &Path) -> Result<Client> {
    let socket = dir.join(ADMIN_SOCKET);
    if !is_served(&socket) {
        return Err(Failure::failed(format!(
            "another process is using the data directory {}",
            dir.display()
        ))
        .hint("wait for the other filestore command to end, then run this one again"));
    }

    let builder = Client::builder("http://localhost")?;
    Ok(builder.unix_socket(socket).user_agent(USER_AGENT).build()?)
}

/// Tells whether a server listens at the socket.
///
/// A server that was killed leaves its socket behind, and the next holder of the directory may be a
/// command. A socket of another user counts as served, so that the refusal to connect is shown.
fn is_served(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == IoErrorKind::PermissionDenied,
    }
}

fn cannot_open(dir: &Path, error: filestore_core::Error) -> Failure {
    Failure::from(error).doing(format!("cannot open the data directory {}", dir.display()))
}
