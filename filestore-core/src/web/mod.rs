//! Files over HTTP: rules that servers and clients of a store share with it.
//!
//! | for | see |
//! |---|---|
//! | media types of bytes and names | [`media`] |
//! | the headers that keep browsers from running a file | [`serving`] |
//! | replies for your own routes, with the feature `http` | `respond`, `respond_with_variant`, `problem` |
//!
//! # Replies for your own routes
//!
//! With the feature `http` (default), [`respond()`] answers a request for a file in the way of the filestore server, by
//! the same code: ranges, `If-Match` and the other conditions, entity tags, `HEAD`, and headers that make every file safe
//! to open in a browser. [`Body`] implements `http_body::Body`, so axum, hyper, tonic and warp can send the reply. For
//! example, with axum:
//!
//! ```
//! # #[cfg(feature = "http")]
//! # mod example {
//! use filestore_core::web::{Body, problem, respond};
//! use filestore_core::{FileStore, Scope};
//! use http::request::Parts;
//! use http::Response;
//!
//! // `Parts` is an axum extractor, and the result an axum reply.
//! async fn download(store: FileStore, id: String, parts: Parts) -> Response<Body> {
//!     match id.parse() {
//!         Ok(id) => respond(&parts, store.serving(&Scope::All), id).await,
//!         Err(error) => problem(&error),
//!     }
//! }
//! # }
//! ```

pub use crate::domain::file::{media, serving};

#[cfg(feature = "http")]
pub mod date;
#[cfg(feature = "http")]
pub mod values;
#[cfg(feature = "http")]
pub mod etag;
#[cfg(feature = "http")]
pub mod conditional;
#[cfg(feature = "http")]
pub mod range;
#[cfg(feature = "http")]
mod caching;
#[cfg(feature = "http")]
mod payload;
#[cfg(feature = "http")]
mod read_request;
#[cfg(feature = "http")]
mod content;
#[cfg(feature = "http")]
mod picture;
#[cfg(feature = "http")]
mod body;
#[cfg(feature = "http")]
mod problems;
#[cfg(feature = "http")]
mod respond;

#[cfg(feature = "http")]
pub use self::{
    body::Body,
    caching::Caching,
    payload::Payload,
    problems::problem,
    read_request::{ReadRequest, Refusal, Sends},
    respond::{respond, respond_with_variant},
};

/// Returns the value of a header that can occur once. `None` if the header is absent, repeated or not text.
#[cfg(feature = "http")]
pub fn single(headers: &http::HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
