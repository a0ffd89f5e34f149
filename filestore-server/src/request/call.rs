//! One request, as handlers see it: everything but its path, which warp has matched, and its body.

use std::net::IpAddr;
use std::sync::Arc;

use filestore_core::FileStore;
use filestore_core::domain::scope::Scope;
use http::{HeaderMap, Method};

use super::base::Base;
use crate::config::Config;
use crate::http::query::Query;
use crate::reply::RequestId;

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
