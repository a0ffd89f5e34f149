//! The address of a store: a server's URL, or a data directory.

use std::path::PathBuf;

/// The store for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A server, its key, and a file with further trusted certificates.
    Server { url: String, key: Option<String>, ca_cert: Option<PathBuf> },
    /// A data directory and the configuration file with its providers and limits.
    Directory { path: PathBuf, config: Option<PathBuf> },
}
