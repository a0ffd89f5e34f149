//! The filestore HTTP server: requests in, replies out, over warp and the core library.
//!
//! [`Server::start`] runs the whole service inside another program. The binary `filestore-server` adds
//! arguments, logging and signals to that call.
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
//! [`Config::load`] reads the same configuration from a TOML file, and [`Server::store`] gives the
//! core's `FileStore` beneath the running server.
//!
//! # Building blocks
//!
//! Parts that know no route, and serve other programs as well:
//!
//! | module | contents |
//! |---|---|
//! | [`http`] | HTTP semantics as pure functions: entity tags, conditions, ranges, dates, queries |
//! | [`body`] | request bodies, read under a time limit |
//! | [`multipart`] | a strict, streaming, bounded multipart/form-data parser |
//! | [`listen`] | the accept loop: timeouts, connection cap, early replies, graceful stop |
//!
//! # Inside
//!
//! From the socket inwards: `server` starts everything and gives each request its id; `routes` has a
//! filter for each resource and its handler beneath, which calls the core's `FileStore`; `request`
//! reads the fields and bodies that clients send; `reply` writes the answers and owns every HTTP
//! status.

mod deadline;
mod least_rate;
mod throttle;

pub mod http;
pub mod body;
pub mod multipart;
pub mod listen;

mod audit;
mod config;
mod metrics;
mod reply;
mod request;
mod routes;
mod server;

pub use crate::http::forwarded::{BadIpRange, IpRange};
pub use crate::least_rate::LeastRate;
pub use config::{Auth, Config, ConfigError};
pub use request::base::BadPublicUrl;
pub use server::cors::{BadOrigin, Cors, Origin, Origins};
pub use server::limiter::{Limit, RateLimits};
pub use server::{Server, StartError};
