//! File storage for organizations, as a library.
//!
//! With the default feature `store` this crate is the whole service without HTTP: [`FileStore`]
//! uploads, serves, changes and purges files, with metadata in SQLite and bytes on the local disk.
//! With only the feature `api` it is the wire contract: the serde types of the HTTP API, and
//! nothing that touches a disk.
//!
//! The strata, each of which may use those below it (adapters never each other):
//!
//! | module | what it holds |
//! |---|---|
//! | `worker` | background work: purge, expiry, sync settling, recovery |
//! | `service` | [`FileStore`]: the use cases, one file each |
//! | `metadata` | all SQL behind one trait |
//! | `storage` | the data directory and its blobs, and the registry of providers |
//! | `variant` | all pixels |
//! | `config_file` | the store's part of the configuration file |
//! | `domain` | ids, states, paths, limits, errors: pure, no I/O |
//! | `api` | the wire contract |

#[cfg(feature = "api")]
pub mod api;

#[cfg(feature = "store")]
pub mod config_file;
#[cfg(feature = "store")]
pub mod domain;
#[cfg(feature = "store")]
pub mod metadata;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod storage;
#[cfg(feature = "store")]
pub mod variant;
#[cfg(feature = "store")]
pub mod worker;

#[cfg(feature = "store")]
pub use domain::error::{Error, ErrorKind, Result};
#[cfg(feature = "store")]
pub use service::FileStore;

/// Compiles the README's example.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
