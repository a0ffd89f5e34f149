//! The address of a store: a server's URL, or a data directory.

use std::path::PathBuf;

/// The store that a command is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A server, with the key for it.
    Server { url: String, key: Option<String> },
    /// A data directory, with the configuration file that names its providers and limits.
    Directory { path: PathBuf, config: Option<PathBuf> },
}
