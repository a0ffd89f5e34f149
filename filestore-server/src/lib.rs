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
//! On them, from the socket inwards: `service` gives each request its id and its call; `routes` has a
//! filter for each resource and its handler beneath, which speaks to the core's `FileStore`;
//! `form`, `json` and `incoming` read what is sent; `error` and `reply` write what is answered.

mod deadline;

pub mod body;
pub mod multipart;
pub mod http;
pub mod listen;

mod config;
mod base;
mod proxy;
mod call;
mod error;
mod reply;
mod caching;
mod incoming;
mod form;
mod json;
mod admission;
mod routes;
mod service;
mod admin_socket;
mod server;

pub use base::BadPublicUrl;
pub use config::{Config, ConfigError};
pub use proxy::{BadIpRange, IpRange};
pub use server::{Server, StartError};
