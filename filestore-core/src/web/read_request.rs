//! A request to read a file.

use http::request::Parts;
use http::{HeaderMap, Method};

use super::caching::Caching;
use crate::domain::error::Error;
use crate::domain::file::disposition::Disposition;

/// A request to read a file, over HTTP: its method and headers, and how the reply is cached and sent.
///
/// Most applications call [`respond`](super::respond()). Use this type to choose a disposition or a cache policy, for
/// example for a link that always saves the file:
///
/// ```
/// use filestore_core::web::{Body, Caching, ReadRequest};
/// use filestore_core::{Disposition, FileId, FileStore, Scope};
/// use http::request::Parts;
///
/// async fn save(store: &FileStore, id: FileId, parts: &Parts) -> http::Response<Body> {
///     let request = ReadRequest::of(parts).with_disposition(Disposition::Attachment);
///     request.respond(store.serving(&Scope::All), id).await
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ReadRequest<'a> {
    /// The method. HEAD gets the headers of a GET, without bytes. Every other method counts as GET without a range.
    pub method: &'a Method,
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// The wanted disposition. `Inline` cannot show a file that browsers could run.
    pub disposition: Option<Disposition>,
    /// How long caches can keep the reply.
    pub caching: Caching<'a>,
    /// The payloads that the connection can send.
    pub sends: Sends,
}

/// The payloads that a connection can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sends {
    /// Bytes only.
    #[default]
    Bytes,
    /// Also files, by the kernel: [`Payload::Sent`](super::Payload::Sent).
    Files,
}

impl<'a> ReadRequest<'a> {
    /// Creates a request from its method and headers.
    pub fn new(method: &'a Method, headers: &'a HeaderMap) -> Self {
        let (caching, sends) = (Caching::default(), Sends::default());
        Self { method, headers, disposition: None, caching, sends }
    }

    /// Creates a request from the head of an HTTP request.
    pub fn of(parts: &'a Parts) -> Self {
        Self::new(&parts.method, &parts.headers)
    }

    /// Sets the wanted disposition.
    #[must_use]
    pub fn with_disposition(mut self, disposition: impl Into<Option<Disposition>>) -> Self {
        self.disposition = disposition.into();
        self
    }

    /// Sets how long caches can keep the reply.
    #[must_use]
    pub fn with_caching(mut self, caching: Caching<'a>) -> Self {
        self.caching = caching;
        self
    }

    /// Sets the payloads that the connection can send.
    #[must_use]
    pub fn with_sends(mut self, sends: Sends) -> Self {
        self.sends = sends;
        self
    }
}

/// The reasons why a request to read gets no bytes.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The store refused the request or failed.
    Core(Error),
    /// The range has none of the bytes: 416.
    RangeNotSatisfiable {
        /// The size of the content.
        size_bytes: u64,
    },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}
