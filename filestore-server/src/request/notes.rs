//! Notes of a request for its audit line.

use std::sync::OnceLock;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::route_table::{self, Route};

/// The maximum bytes of a path in an audit line.
const PATH_BYTES: usize = 256;
/// The maximum bytes of a body in an audit line. Of a longer body, the line has only the number of bytes.
const BODY_BYTES: usize = 4096;

/// The parts of a request that its audit line needs after the routes have consumed them.
#[derive(Debug)]
pub(crate) struct Notes {
    path: String,
    /// The body, if a route accepted it as JSON.
    body: OnceLock<Body>,
    /// The facts that the route reported.
    report: Mutex<Map<String, Value>>,
}

/// The body of a request, as the audit line shows it.
#[derive(Debug)]
enum Body {
    Whole(Vec<u8>),
    /// The number of bytes of a body over [`BODY_BYTES`].
    TooLong(usize),
}

impl Notes {
    /// Begins the notes of a request. `None` if its route writes no audit line.
    pub(crate) fn of(route: Option<&Route>, path: &str) -> Option<Self> {
        route.filter(|route| route.is_audited()).map(|_| Self {
            path: cut(route_table::shown(path)).to_owned(),
            body: OnceLock::new(),
            report: Mutex::default(),
        })
    }

    /// Records the request's body.
    pub(crate) fn keep_body(&self, json: &[u8]) {
        let body = match json.len() {
            0..=BODY_BYTES => Body::Whole(json.to_vec()),
            bytes => Body::TooLong(bytes),
        };
        // A body is read once.
        let _ = self.body.set(body);
    }

    /// Records a fact that a route reports.
    pub(crate) fn keep_fact(&self, name: &str, value: impl Into<Value>) {
        self.report.lock().insert(name.to_owned(), value.into());
    }

    /// Returns the requested path, without its query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the request's body, if it was JSON. Returns the number of bytes of a long body.
    pub(crate) fn body(&self) -> Option<Value> {
        match self.body.get()? {
            Body::Whole(json) => serde_json::from_slice(json).ok(),
            Body::TooLong(bytes) => Some(json!({"bytes": bytes})),
        }
    }

    /// Returns true if the body is too long for the audit line.
    pub(crate) fn has_long_body(&self) -> bool {
        matches!(self.body.get(), Some(Body::TooLong(_)))
    }

    /// Returns the facts that the route has reported, if any.
    pub(crate) fn report(&self) -> Option<Map<String, Value>> {
        let report = self.report.lock();
        (!report.is_empty()).then(|| report.clone())
    }
}

/// Cuts a path to the maximum length of a path with valid ids, because anyone can send long paths.
fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(PATH_BYTES)]
}
