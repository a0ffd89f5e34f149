//! What a request leaves in the audit log.

use std::sync::OnceLock;

use filestore_core::keys::KeyScope;
use serde_json::Value;

use super::{Actor, Entry, Outcome};
use crate::request::call::{Call, Proof};
use crate::routes::table::{Need, Route};

/// The most bytes of a path in an audit line.
const PATH_BYTES: usize = 256;

/// The parts of a request that its audit line needs after the routes consumed them.
#[derive(Debug)]
pub(crate) struct Audited {
    path: String,
    /// The body, where a route took it as JSON.
    body: OnceLock<Vec<u8>>,
    /// The result of each part, where a route tells.
    report: OnceLock<Value>,
}

impl Audited {
    /// Notes a request; `None` if its route leaves nothing in the audit log.
    pub(crate) fn of(route: Option<&Route>, path: &str) -> Option<Self> {
        route.filter(|route| is_audited(route)).map(|_| Self {
            path: cut(path).to_owned(),
            body: OnceLock::new(),
            report: OnceLock::new(),
        })
    }

    /// Keeps the body of the request.
    pub(crate) fn note_body(&self, json: &[u8]) {
        // A body is read once.
        let _ = self.body.set(json.to_vec());
    }

    /// Keeps the results of the request's parts.
    pub(crate) fn note_report(&self, report: Value) {
        // A request is carried out once.
        let _ = self.report.set(report);
    }
}

/// Cuts a path to the length that a path with good ids can have: anybody may send long ones.
fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(PATH_BYTES)]
}

/// Tests whether a route deletes, takes a deletion back, or administrates. Reading leaves nothing.
fn is_audited(route: &Route) -> bool {
    if route.method.is_safe() {
        return false;
    }
    match route.need {
        Need::ServiceAdmin | Need::Scope(KeyScope::Delete | KeyScope::Admin) => true,
        Need::Scope(_) | Need::Nothing => route.template.ends_with("/restore"),
    }
}

impl Call {
    /// Puts the outcome of the request on record, if it is of that kind.
    pub(crate) fn audit(&self, status: Option<u16>, result: Outcome) {
        let (Some(audited), Some(route)) = (&self.audited, self.route) else { return };
        let body = audited.body.get();

        self.app.audit.write(&Entry {
            time: self.store().now().to_string(),
            request_id: self.id.to_string(),
            trace_id: self.id.trace_id(),
            actor: self.actor(),
            client: self.client.map(|address| address.to_string()),
            action: format!("{} {}", route.method, route.template),
            path: &audited.path,
            request: body.and_then(|json| serde_json::from_slice(json).ok()),
            report: audited.report.get(),
            status,
            result,
        });
    }

    fn actor(&self) -> Actor {
        match (&self.caller.proof, self.client) {
            (Proof::Key(id), _) => Actor::Key { key_id: id.to_string() },
            (Proof::Permit(_), _) => Actor::SignedUrl,
            (Proof::None, None) => Actor::AdminSocket,
            (Proof::None, Some(_)) => Actor::Anonymous,
        }
    }
}
