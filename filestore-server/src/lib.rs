//! The filestore HTTP server. The server receives requests with warp, and answers them with the core library.
//!
//! [`Server::start`] runs the whole service inside another program. The binary `filestore-server` adds
//! arguments, logging and signals to this call.
//!
//! ```
//! use filestore_server::{Config, Server};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let data_dir = dir.path();
//! let any_port = "127.0.0.1:0".parse()?;
//! let mut config = Config::new(any_port, data_dir);
//! config.store.limits.max_file_size = 10 << 20;
//!
//! let server = Server::start(config).await?;
//! println!("upload to {}/api/v1/files/upload", server.url());
//!
//! server.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! To mount the API in your own server, below any path prefix, use [`service()`]. The result is a tower
//! `Service` without listener, signals or process state. [`Server`] combines this service with the listener
//! of [`listen`].
//!
//! [`Config::load`] reads the configuration from a TOML file. [`Server::store`] returns the core's
//! `FileStore` of the running server.
//!
//! # Building blocks
//!
//! These modules know no routes, and can serve other programs:
//!
//! | module | contents |
//! |---|---|
//! | [`http`] | HTTP semantics as pure functions: entity tags, conditions, ranges, dates, queries |
//! | [`multipart`] | a strict, streaming, bounded multipart/form-data parser |
//! | [`listen`] | the accept loop: timeouts, connection limit, early replies, graceful stop. Bodies with a time limit |
//!
//! # Inside
//!
//! A request passes through the modules in this order. `server` starts everything. `service` gives each
//! request an id and passes it through all checks. `admission` checks where a request comes from, and counts
//! requests. `route_table` lists each route with the right that it needs. `routes` contains a filter for each
//! resource, with a handler that calls the core's `FileStore`. `request` reads the fields and bodies. `reply`
//! writes the answers and decides every HTTP status. Each module uses only the modules above it in the list
//! below, and a test checks the imports.

mod error;

pub mod http;
pub mod listen;
pub mod multipart;

mod resumable;
mod route_table;
mod admission;
mod streams;
mod config;
mod metrics;
mod audit;
mod reply;
mod state;
mod request;
mod routes;
mod service;
mod server;
#[cfg(test)]
mod module_order;

pub use crate::http::base::{BadPrefix, BadPublicUrl};
pub use crate::http::forwarded::{BadIpRange, IpRange};
pub use crate::listen::LeastRate;
pub use admission::cors::{BadOrigin, BadRequestHeader, Cors, Origin, Origins, RequestHeader};
pub use admission::limiter::{Limit, RateLimits};
pub use config::{Auth, Config, ConfigError, ServiceOptions};
pub use error::{Error, Refusal, RefusalKind, Result};
#[doc(hidden)]
pub use resumable::judge;
pub use server::{Server, StartError};
pub use service::{FileService, ReplyBody, ServiceError, service};
