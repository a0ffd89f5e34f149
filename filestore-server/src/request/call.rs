//! A request, as handlers see it: everything except its path, which warp has matched, and its body.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::keys::{ApiKey, KeyId, KeyScope};
use filestore_core::receipts::DeletedBy;
use filestore_core::uploads::{Arrival, Era, ResumableUploads, UploadSession};
use filestore_core::{FileRecord, FileStore, OrganizationId, Scope};
use http::{HeaderMap, Method};
use serde_json::Value;

use super::notes::Notes;
use super::signed::{Signed, UploadTerms};
use crate::http::forwarded::{ClientAddress, subscriber};
use crate::http::query::Query;
use crate::listen::Peer;
use crate::reply::RequestId;
use crate::route_table::Route;
use crate::state::App;

/// The caller for whom a request acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The organizations with files that the caller can access.
    pub(crate) scope: Sight,
    /// The caller's proof.
    pub(crate) proof: Proof,
}

/// The proof of a caller's right. The proof scopes idempotency keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// No proof: there are no keys, the route needs none, or the request came through the admin socket.
    None,
    /// A key.
    Key(KeyId),
    /// The signed URL of one upload, with this nonce.
    Permit(String),
}

/// The scope of a caller. The two common scopes have no reference count, because a count that all threads
/// share costs each request more than the rest of its admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// All files, for all callers while there are no keys.
    Everything,
    /// No files, for a caller without a key on a server that requires keys.
    Nothing,
    /// The scope of a key or a signed URL.
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
    /// Returns the caller of a server without keys.
    pub(crate) fn anyone() -> Self {
        Self { scope: Sight::Everything, proof: Proof::None }
    }

    /// Returns a caller without a key on a server that requires keys.
    pub(crate) fn nobody() -> Self {
        Self { scope: Sight::Nothing, proof: Proof::None }
    }

    /// Returns the caller with this key.
    pub(crate) fn of(key: &ApiKey) -> Self {
        Self { scope: Sight::Of(Arc::clone(&key.organizations)), proof: Proof::Key(key.id) }
    }

    /// Returns the caller with the signed URL of one upload.
    pub(crate) fn with_permit(organization: OrganizationId, nonce: &str) -> Self {
        let scope = Arc::new(Scope::Organizations(vec![organization]));
        Self { scope: Sight::Of(scope), proof: Proof::Permit(nonce.to_owned()) }
    }

    /// Returns the caller's key.
    pub(crate) fn key(&self) -> Option<KeyId> {
        match self.proof {
            Proof::Key(id) => Some(id),
            Proof::None | Proof::Permit(_) => None,
        }
    }

    /// Returns true if the caller has no rights: no key and no signature, on a server that requires them, or
    /// a request that was refused before.
    pub(crate) fn is_nobody(&self) -> bool {
        self.scope == Sight::Nothing && self.proof == Proof::None
    }

    /// Returns the scope of idempotency keys. Each key and each signed URL has its own.
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
    /// The id, new for each request.
    pub(crate) id: RequestId,
    /// The row in the route table. `None` for an unknown path or method.
    pub(crate) route: Option<&'static Route>,
    /// The caller for whom the request acts.
    pub(crate) caller: Caller,
    /// The right of a signed URL, if the request has one.
    pub(crate) signed: Option<Signed>,
    /// The peer of the connection. `None` if the program around the service does not report it.
    pub(crate) peer: Option<Peer>,
    /// The client, determined through trusted proxies. `None` on the admin socket.
    pub(crate) client: Option<ClientAddress>,
    /// True if the reply can be a [`SentFile`](crate::listen::SentFile).
    pub(crate) takes_files: bool,
    /// The method of the request.
    pub(crate) method: Method,
    /// The request's headers.
    pub(crate) headers: HeaderMap,
    /// The query string, still encoded. Empty if there is none.
    pub(crate) query: String,
    /// The notes for the audit log. `None` for requests without an audit line.
    pub(crate) notes: Option<Notes>,
    /// The era in which the request began. A later erasure ends its uploads.
    pub(crate) era: Era,
    /// The order in which requests arrived, so that a delayed one ends no newer one of its upload.
    pub(crate) arrived: Arrival,
}

/// Omits headers and query, because they contain keys and signatures.
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

    /// Returns the resumable uploads, for this request.
    pub(crate) fn resumable(&self) -> ResumableUploads<'_> {
        self.store().resumable().with_arrival(self.arrived)
    }

    /// Returns the caller's name for purge receipts.
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

    /// Returns true if the caller can read files. Only then a reply shows their records.
    pub(crate) fn may_read(&self) -> bool {
        match &self.caller.proof {
            Proof::None => true,
            Proof::Key(id) => {
                self.store().keys().get(*id).is_some_and(|key| key.allows(KeyScope::Read))
            }
            Proof::Permit(_) => false,
        }
    }

    /// Begins an upload with an unknown organization. Until it is known, the bytes count for the only
    /// organization of the key, for the key, or for the client's address.
    pub(crate) fn begin_upload(&self) -> UploadSession {
        let uploads = self.store().uploads().begun_in(self.era);
        let only = match &*self.caller.scope {
            Scope::Organizations(list) if list.len() == 1 => list.first(),
            Scope::Organizations(_) | Scope::All => None,
        };
        let uploads = match (only, &self.caller.proof, self.client) {
            (Some(organization), ..) => uploads.of(organization),
            (None, Proof::Key(key), _) => uploads.by_key(*key),
            (None, _, Some(client)) => uploads.by_address(subscriber(client.address())),
            (None, _, None) => uploads,
        };
        uploads.begin_unclaimed()
    }

    /// Parses the parameters of the query. See [`Query::parse`].
    pub(crate) fn query(&self, known: &[&str]) -> filestore_core::Result<Query> {
        Query::parse(&self.query, known)
    }

    /// Returns how long caches can share the reply: the remaining window of a signed URL, if the request has
    /// one that does not forbid this.
    pub(crate) fn window(&self) -> Option<Duration> {
        let signed = self.signed.as_ref()?;
        if self.is_unshared() {
            return None;
        }
        Some(self.store().signing().cacheable_for(signed.url.expires_at))
    }

    /// Returns true if the request has a signed URL that forbids shared caches.
    pub(crate) fn is_unshared(&self) -> bool {
        let mut parameters = self.query.split('&');
        self.signed.is_some() && parameters.any(|parameter| parameter == "cache=private")
    }

    /// Returns the terms of a signed upload, if the request has a signature.
    pub(crate) fn upload_terms(&self) -> Option<&UploadTerms> {
        self.signed.as_ref()?.upload.as_ref()
    }

    /// Records a fact for the `report` of the audit line, if the request writes one. The call is for facts
    /// that are not in the path or a JSON body. A fact that is recorded before the work starts is kept even
    /// if the work fails.
    pub(crate) fn report(&self, name: &str, value: impl Into<Value>) {
        if let Some(notes) = &self.notes {
            notes.keep_fact(name, value);
        }
    }

    /// Records the organization and the version of the changed file.
    pub(crate) fn report_file(&self, record: &FileRecord) {
        self.report("organization_id", record.organization_id.as_str());
        self.report("version", record.version);
    }

    /// Returns the announced length of the body.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.headers.get(http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;
    use crate::audit::Audit;
    use crate::config::ServiceOptions;
    use crate::http::base::Base;

    #[tokio::test]
    async fn a_call_is_not_printed_with_its_key_or_its_signature() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let options = ServiceOptions::default();
        let arrived = store.resumable().arrive();
        let app = App::new(store, options, Base::default(), Audit::default());
        let call = Call {
            app: Arc::new(app),
            id: RequestId::within(None),
            route: None,
            caller: Caller::nobody(),
            signed: None,
            peer: Some(Peer::Unix),
            takes_files: false,
            client: None,
            method: Method::GET,
            headers: HeaderMap::from_iter([(AUTHORIZATION, "Bearer secret".parse().unwrap())]),
            query: "sig=secret".to_owned(),
            notes: None,
            era: Era::default(),
            arrived,
        };
        let shown = format!("{call:?}");
        assert!(shown.contains("GET") && !shown.contains("secret"), "{shown}");
    }
}
