//! Chooses the target: the server that was named, the data directory, or the server that holds it.

use std::io::ErrorKind as IoErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use filestore_client::Client;
use filestore_core::FileStore;
use filestore_core::domain::config::StoreConfig;
use filestore_core::domain::error::ErrorKind;
use filestore_core::storage::DataDir;

use super::Target;
use super::direct::Direct;
use super::remote::Remote;
use crate::args::{DEFAULT_SERVER, GlobalArgs};
use crate::failure::{Failure, Result};

/// What to do about a data directory that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Make one: the command puts something in it.
    Create,
    /// Say so: a command that looks for something was given the wrong path.
    Refuse,
}

/// A target, with the name people know it by.
pub(crate) struct Opened {
    pub(crate) target: Box<dyn Target>,
    /// The server's URL, or the data directory's path: the same for the same store.
    pub(crate) name: String,
}

/// Opens the target that the options name.
pub(crate) async fn open(args: &GlobalArgs, absent: Absent) -> Result<Opened> {
    if let Some(dir) = &args.data_dir {
        return open_directory(dir, args.config.clone(), absent).await;
    }
    let from_environment = || std::env::var("FILESTORE_URL").ok().filter(|url| !url.is_empty());

    let url =
        args.server.clone().or_else(from_environment).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
    let build = || {
        let mut builder = Client::builder(&url)?.user_agent(USER_AGENT);
        if let Some(key) = args.key.as_ref().filter(|key| !key.is_empty()) {
            builder = builder.api_key(key);
        }
        builder.build()
    };

    let client =
        build().map_err(|e| Failure::failed(e.message()).hint("see --server and --key"))?;
    let name = url.trim_end_matches('/').to_owned();
    Ok(Opened { target: Box::new(Remote::new(client)), name })
}

const USER_AGENT: &str = concat!("filestore-cli/", env!("CARGO_PKG_VERSION"));

/// Where in its data directory a running server listens for us.
const ADMIN_SOCKET: &str = "admin.sock";

async fn open_directory(dir: &Path, config: Option<PathBuf>, absent: Absent) -> Result<Opened> {
    if absent == Absent::Refuse && !DataDir::exists(dir) {
        return Err(Failure::failed(format!("no data directory there: {}", dir.display()))
            .hint("check --data-dir; the first upload into a new directory makes one"));
    }

    let name = || {
        let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        path.display().to_string()
    };

    if !DataDir::is_held(dir) {
        let config = read_config(config)?;
        match FileStore::builder(dir).config(config).open().await {
            Ok(store) => return Ok(Opened { target: Box::new(Direct::new(store)), name: name() }),
            // Somebody was faster.
            Err(error) if error.kind() == ErrorKind::Locked => {}
            Err(error) => return Err(cannot_open(dir, error)),
        }
    }

    let target = Box::new(Remote::new(through_socket(dir)?));
    Ok(Opened { target, name: name() })
}

/// What the server's configuration file says of the store; the defaults without one.
fn read_config(path: Option<PathBuf>) -> Result<StoreConfig> {
    let from_environment = || std::env::var_os("FILESTORE_CONFIG").filter(|path| !path.is_empty());
    match path.or_else(|| from_environment().map(PathBuf::from)) {
        Some(path) => {
            StoreConfig::load(path).map_err(|e| Failure::failed(e.to_string()).hint("see --config"))
        }
        None => Ok(StoreConfig::default()),
    }
}

/// The server that holds the directory listens in it. The socket's mode is its key.
fn through_socket(dir: &Path) -> Result<Client> {
    let socket = dir.join(ADMIN_SOCKET);
    if !is_served(&socket) {
        return Err(Failure::failed(format!(
            "another process is using the data directory {}",
            dir.display()
        ))
        .hint("wait for the other filestore command to end, then run this one again"));
    }

    let build =
        || Client::builder("http://localhost")?.unix_socket(socket).user_agent(USER_AGENT).build();
    build().map_err(Failure::from)
}

/// Whether a server listens at the socket: one that was killed leaves its socket behind, and the next
/// holder of the directory may be a command. Somebody else's socket counts, so that the refusal to
/// connect is what is shown.
fn is_served(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == IoErrorKind::PermissionDenied,
    }
}

fn cannot_open(dir: &Path, error: filestore_core::Error) -> Failure {
    Failure::from(error).doing(format!("cannot open the data directory {}", dir.display()))
}
