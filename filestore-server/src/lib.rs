//! The filestore HTTP server: requests in, replies out, over warp and the core library.
//!
//! [`Server::start`] runs the whole service from a [`Config`]; the binary `filestore-server` is little
//! more than that call.
//!
//! The building blocks, none of which knows a route:
//!
//! | module | what it holds |
//! |---|---|
//! | [`body`] | request bodies, read with a clock beside them |
//! | [`multipart`] | a strict, streaming, bounded multipart/form-data parser |
//! | [`http`] | HTTP semantics as pure functions: ranges, conditionals, dispositions, safe serving |
//! | [`listen`] | the accept loop: timeouts, connection cap, early replies, graceful stop |
//!
//! On them, from the socket inwards: `server` starts all of it and gives each request its id;
//! `routes` has a filter for each resource and its handler beneath, which speaks to the core's
//! `FileStore`; `request` reads what is sent, `reply` writes what is answered.

mod deadline;

pub mod http;
pub mod body;
pub mod multipart;
pub mod listen;

mod config;
mod reply;
mod request;
mod routes;
mod server;

pub use crate::http::forwarded::{BadIpRange, IpRange};
pub use config::{Config, ConfigError};
pub use request::base::BadPublicUrl;
pub use server::{Server, StartError};
