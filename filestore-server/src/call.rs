//! One request, as handlers see it: everything but its path, which warp has matched, and its body.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use filestore_core::FileStore;
use filestore_core::domain::scope::Scope;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ulid::Ulid;
use warp::Filter;
use warp::reply::Response;

use crate::base::Base;
use crate::config::Config;
use crate::error::Failure;
use crate::http::query::Query;

/// The header that carries the request's id on every reply.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    /// The store.
    pub(crate) store: FileStore,
    /// How the server is configured.
    pub(crate) config: Config,
    /// Where clients see the server.
    pub(crate) base: Base,
}

/// The id of a request: a ULID of the server's own, never one that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId([u8; 26]);

impl RequestId {
    /// A new id.
    pub(crate) fn fresh() -> Self {
        let mut text = [0; 26];
        Ulid::generate().array_to_str(&mut text);
        Self(text)
    }

    /// The value of `X-Request-Id`.
    pub(crate) fn to_header(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).expect("a ULID is ASCII letters and digits")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.0).expect("a ULID is ASCII letters and digits"))
    }
}

/// On whose behalf a request acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Whose files it may see.
    pub(crate) scope: Scope,
    /// The key's name; empty without keys. Idempotency keys are scoped to it.
    pub(crate) name: String,
}

impl Caller {
    /// Whoever can reach a server without keys.
    pub(crate) fn anyone() -> Self {
        Self { scope: Scope::All, name: String::new() }
    }
}

/// A request without its path and body.
#[derive(Debug)]
pub(crate) struct Call {
    /// What all requests share.
    pub(crate) app: Arc<App>,
    /// Its id.
    pub(crate) id: RequestId,
    /// On whose behalf it acts.
    pub(crate) caller: Caller,
    /// Where it comes from, seen through trusted proxies; `None` on the admin socket.
    pub(crate) client: Option<IpAddr>,
    /// Its method.
    pub(crate) method: Method,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its query string, still encoded; empty if there is none.
    pub(crate) query: String,
}

impl Call {
    /// The store.
    pub(crate) fn store(&self) -> &FileStore {
        &self.app.store
    }

    /// The query's parameters; see [`Query::parse`].
    pub(crate) fn query(&self, known: &[&str]) -> filestore_core::Result<Query> {
        Query::parse(&self.query, known)
    }

    /// The body's length, if it is announced.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

/// The call that the service around the routes has put beside the request.
pub(crate) fn call() -> impl Filter<Extract = (Arc<Call>,), Error = warp::Rejection> + Copy {
    warp::ext::get::<Arc<Call>>()
}

/// GET and HEAD: HEAD works wherever GET does.
pub(crate) fn reading() -> impl Filter<Extract = (), Error = warp::Rejection> + Copy {
    warp::get().or(warp::head()).unify()
}

/// The end of a resource's filters: whatever comes here has the right path and the wrong method.
/// `allow` is the value of `Allow`.
pub(crate) fn other(
    allow: &'static str,
) -> impl Filter<Extract = (Response,), Error = warp::Rejection> + Clone {
    call().map(move |call: Arc<Call>| Failure::MethodNotAllowed(allow).into_response(&call.id))
}

/// Turns what a handler came to into a reply.
pub(crate) async fn answer(
    call: Arc<Call>,
    handled: impl Future<Output = Result<Response, Failure>>,
) -> Response {
    handled.await.unwrap_or_else(|failure| failure.into_response(&call.id))
}
