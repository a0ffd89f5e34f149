//! One request, as handlers see it: everything but its path, which warp has matched, and its body.

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::Health;
use filestore_core::keys::{ApiKey, KeyId};
use filestore_core::receipts::DeletedBy;
use filestore_core::{FileStore, OrganizationId, Scope};
use http::{HeaderMap, Method};

use super::base::Base;
use super::signed::{Signed, UploadTerms};
use crate::audit::{Audit, Audited};
use crate::config::Config;
use crate::http::query::Query;
use crate::listen::Peer;
use crate::metrics::Metrics;
use crate::reply::RequestId;
use crate::routes::table::Route;
use crate::server::guard::Guard;
use crate::server::limiter::Limits;
use crate::server::shared_check::SharedCheck;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct App {
    /// The store of files, opened at the start.
    pub(crate) store: FileStore,
    /// The configuration of the server.
    pub(crate) config: Config,
    /// The path prefix that clients see.
    pub(crate) base: Base,
    /// The hosts and origins that are the server's own.
    pub(crate) guard: Guard,
    /// The counters that monitoring reads.
    pub(crate) metrics: Metrics,
    /// The audit log.
    pub(crate) audit: Audit,
    /// The limits of requests.
    pub(crate) limits: Limits,
    /// The check of readiness.
    pub(crate) readiness: SharedCheck<Health>,
}

/// The caller on whose behalf a request acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The organizations whose files the caller may see.
    pub(crate) scope: Sight,
    /// The proof that the caller gave.
    pub(crate) proof: Proof,
}

/// The proof of a caller's right. Idempotency keys are scoped to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// None: there are no keys, or the route needs none, or the request came through the admin socket.
    None,
    /// A key.
    Key(KeyId),
    /// The signed URL of one upload, with this nonce.
    Permit(String),
}

/// The scope of a caller. The two common ones are counted nowhere: a count that all threads share costs
/// each request more than the rest of its admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everybody's while there are no keys.
    Everything,
    /// The right of a caller who showed no key where keys are asked for.
    Nothing,
    /// The right of a key or a signed URL.
    Of(Arc<Scope>),
}

impl Deref for Sight {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        static EVERYTHING: Scope = Scope::All;
        static NOTHING: Scope = Scope::Organizations(Vec::new());

        match self {
            Self::Everything => &EVERYTHING,
            Self::Nothing => &NOTHING,
            Self::Of(scope) => scope,
        }
    }
}

impl Caller {
    /// Returns the caller of a server without keys: everybody who can reach it.
    pub(crate) fn anyone() -> Self {
        Self { scope: Sight::Everything, proof: Proof::None }
    }

    /// Returns a caller without a key, where others have one.
    pub(crate) fn nobody() -> Self {
        Self { scope: Sight::Nothing, proof: Proof::None }
    }

    /// Returns the caller who showed a key.
    pub(crate) fn of(key: &ApiKey) -> Self {
        Self { scope: Sight::Of(Arc::clone(&key.organizations)), proof: Proof::Key(key.id) }
    }

    /// Returns the caller who shows the signed URL of one upload.
    pub(crate) fn with_permit(organization: OrganizationId, nonce: &str) -> Self {
        let scope = Arc::new(Scope::Organizations(vec![organization]));
        Self { scope: Sight::Of(scope), proof: Proof::Permit(nonce.to_owned()) }
    }

    /// Writes the text to which idempotency keys are scoped: each key and each signed URL has its own.
    pub(crate) fn idempotency_scope(&self) -> String {
        match &self.proof {
            Proof::None => String::new(),
            Proof::Key(id) => id.to_string(),
            Proof::Permit(nonce) => format!("signed:{nonce}"),
        }
    }
}

/// A request without its path and body.
pub(crate) struct Call {
    /// The state that all requests share.
    pub(crate) app: Arc<App>,
    /// The id, fresh for each request.
    pub(crate) id: RequestId,
    /// The row of the table of routes; `None` for a path or a method that is not served.
    pub(crate) route: Option<&'static Route>,
    /// The caller on whose behalf the request acts.
    pub(crate) caller: Caller,
    /// The right that a signed URL gives, if the request shows one.
    pub(crate) signed: Option<Signed>,
    /// The other end of the connection.
    pub(crate) peer: Peer,
    /// The client's address, seen through trusted proxies; `None` on the admin socket.
    pub(crate) client: Option<IpAddr>,
    /// True if the reply may be a [`SentFile`](crate::listen::SentFile).
    pub(crate) takes_files: bool,
    /// The method of the request.
    pub(crate) method: Method,
    /// The headers of the request.
    pub(crate) headers: HeaderMap,
    /// The query string, still encoded; empty if there is none.
    pub(crate) query: String,
    /// What the audit log needs; `None` for requests that leave nothing there.
    pub(crate) audited: Option<Audited>,
}

/// Leaves out headers and query, which hold keys and signatures.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("route", &self.route)
            .field("caller", &self.caller)
            .field("client", &self.client)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Returns the store of files.
    pub(crate) fn store(&self) -> &FileStore {
        &self.app.store
    }

    /// Names the caller, for the receipts of what it deletes.
    pub(crate) fn deleter(&self) -> DeletedBy {
        match (&self.caller.proof, self.client) {
            (Proof::Key(id), _) => {
                let key = self.store().keys().get(*id);
                DeletedBy::Key {
                    id: *id,
                    name: key.map(|key| key.name.clone()).unwrap_or_default(),
                }
            }
            (Proof::None, None) => DeletedBy::AdminSocket,
            (Proof::None, Some(_)) => DeletedBy::OpenMode,
            // No signed URL deletes.
            (Proof::Permit(_), _) => DeletedBy::Unknown,
        }
    }

    /// Parses the query's parameters; see [`Query::parse`].
    pub(crate) fn query(&self, known: &[&str]) -> filestore_core::Result<Query> {
        Query::parse(&self.query, known)
    }

    /// Returns how long caches may share the reply: what is left of the window of a signed URL, if the
    /// request shows one.
    pub(crate) fn window(&self) -> Option<Duration> {
        let signed = self.signed.as_ref()?;
        Some(self.store().signing().cacheable_for(signed.expires_at))
    }

    /// Returns what the signer of an upload has fixed, if the request shows a signature.
    pub(crate) fn upload_terms(&self) -> Option<&UploadTerms> {
        self.signed.as_ref()?.upload.as_ref()
    }

    /// Returns the length of the body, if it is announced.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;

    #[tokio::test]
    async fn a_call_is_not_printed_with_its_key_or_its_signature() {
        let dir = tempfile::tempdir().unwrap();
        let app = App {
            store: FileStore::open(dir.path()).await.unwrap(),
            config: Config::default(),
            base: Base::default(),
            guard: Guard::default(),
            metrics: Metrics::new(),
            audit: Audit::default(),
            limits: Limits::default(),
            readiness: SharedCheck::default(),
        };
        let call = Call {
            app: Arc::new(app),
            id: RequestId::within(None),
            route: None,
            caller: Caller::nobody(),
            signed: None,
            peer: Peer::Unix,
            takes_files: false,
            client: None,
            method: Method::GET,
            headers: HeaderMap::from_iter([(AUTHORIZATION, "Bearer secret".parse().unwrap())]),
            query: "sig=secret".to_owned(),
            audited: None,
        };
        let shown = format!("{call:?}");
        assert!(shown.contains("GET") && !shown.contains("secret"), "{shown}");
    }
}
