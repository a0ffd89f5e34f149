//! The reasons why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use super::first_key;
use crate::config::ConfigError;
use crate::http::base::{BadPrefix, BadPublicUrl};
use crate::listen::BadTlsFiles;
use crate::service::ServiceError;

/// The reasons why a server did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The public URL cannot be used.
    #[error(transparent)]
    PublicUrl(#[from] BadPublicUrl),
    /// The path prefix cannot be used.
    #[error(transparent)]
    PathPrefix(#[from] BadPrefix),
    /// Other machines or accounts could reach the server, which has no keys.
    #[error(
        "refusing to listen on {address} without keys: anyone who can reach it could read and delete all \
         files. Create the first key with {}, or use --insecure-no-auth if a proxy authenticates",
        first_key::command(.data_dir)
    )]
    Exposed {
        /// The address to listen on.
        address: SocketAddr,
        /// The data directory that has no keys.
        data_dir: PathBuf,
    },
    /// Anyone could reach the server through a public URL, and it has no keys.
    #[error(
        "refusing to be published as {url} without keys: anyone who can reach it could read and delete \
         all files. Create the first key with {}, or use --insecure-no-auth if a proxy authenticates",
        first_key::command(.data_dir)
    )]
    Published {
        /// The public URL.
        url: String,
        /// The data directory that has no keys.
        data_dir: PathBuf,
    },
    /// Scripts of every web page could use the server, which has no keys.
    #[error(
        "refusing to allow every origin without keys: each web page in a browser of this machine could read and \
         delete all files. Name the origins in cors.allowed_origins, create the first key with {}, or use \
         --insecure-no-auth",
        first_key::command(.data_dir)
    )]
    OpenToPages {
        /// The data directory that has no keys.
        data_dir: PathBuf,
    },
    /// The configuration disables keys, but there are keys.
    #[error("auth = \"none\" while there are keys: remove it, as a server with keys asks for them")]
    KeysBesideNone,
    /// The file with the hash of the first key cannot be used.
    #[error("the configuration is invalid: first_key_hash_file {}: {problem}", .path.display())]
    FirstKey {
        /// The file's path.
        path: PathBuf,
        /// The reason why it cannot be used.
        problem: String,
    },
    /// Listening on the address failed.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The certificate or the key of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] BadTlsFiles),
    /// The store cannot be opened with this configuration: a provider, the database or a converter.
    #[error("the configuration is invalid: {}", .0.chain())]
    StoreConfig(filestore_core::Error),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log {}: {source}", path.display())]
    AuditLog {
        /// The configured file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the data directory: {}", .0.chain())]
    Store(#[from] filestore_core::Error),
}

impl From<ServiceError> for StartError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Options(error) => Self::Config(error),
            ServiceError::PublicUrl(error) => Self::PublicUrl(error),
            ServiceError::PathPrefix(error) => Self::PathPrefix(error),
            ServiceError::AuditLog { path, source } => Self::AuditLog { path, source },
        }
    }
}

impl StartError {
    /// Returns true if the configuration is at fault, and not the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::PublicUrl(_)
            | Self::PathPrefix(_)
            | Self::Exposed { .. }
            | Self::Published { .. }
            | Self::OpenToPages { .. }
            | Self::KeysBesideNone
            | Self::FirstKey { .. }
            | Self::Tls(_)
            | Self::StoreConfig(_) => true,
            Self::Bind { .. } | Self::AuditLog { .. } | Self::Store(_) => false,
        }
    }
}
