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
    report: Mutex<Report>,
    /// Set if the request writes a line only if the route reports a fact.
    needs_report: bool,
}

/// The facts that the route reported.
#[derive(Debug, Default)]
struct Report {
    facts: Map<String, Value>,
    /// Set if the request ended without a line, because there were no facts.
    is_missed: bool,
}

/// The body of a request, as the audit line shows it.
#[derive(Debug)]
enum Body {
    Whole(Vec<u8>),
    /// The number of bytes of a body over [`BODY_BYTES`].
    TooLong(usize),
}

impl Notes {
    /// Begins the notes of a request. `None` if its route never writes an audit line.
    pub(crate) fn of(route: Option<&Route>, path: &str) -> Option<Self> {
        let needs_report = route?.is_audited_if_reported();
        (needs_report || route?.is_audited()).then(|| Self {
            path: cut(route_table::shown(path)).to_owned(),
            body: OnceLock::new(),
            report: Mutex::default(),
            needs_report,
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
        self.report.lock().facts.insert(name.to_owned(), value.into());
    }

    /// Records facts that a task reports which can outlive its request. Returns true if the request ended without a
    /// line before: the task writes it.
    #[must_use]
    pub(crate) fn keep_late_facts<const N: usize>(&self, facts: [(&str, Value); N]) -> bool {
        let mut report = self.report.lock();
        report.facts.extend(facts.map(|(name, value)| (name.to_owned(), value)));
        std::mem::take(&mut report.is_missed)
    }

    /// Returns true if the end of the request writes a line.
    pub(crate) fn write_a_line(&self) -> bool {
        let mut report = self.report.lock();
        report.is_missed = self.needs_report && report.facts.is_empty();
        !report.is_missed
    }

    /// Returns true if the route has reported a fact.
    pub(crate) fn has_facts(&self) -> bool {
        !self.report.lock().facts.is_empty()
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
        (!report.facts.is_empty()).then(|| report.facts.clone())
    }
}

/// Cuts a path to the maximum length of a path with valid ids, because anyone can send long paths.
fn cut(path: &str) -> &str {
    &path[..path.floor_char_boundary(PATH_BYTES)]
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::http::base::Base;

    #[test]
    fn a_line_is_written_once_whether_the_work_or_the_client_ends_first() {
        let path = "/api/v1/uploads";
        let route = route_table::find(&Method::POST, &Base::default(), path);
        let notes = || Notes::of(route, path).unwrap();
        let fact = || [("change", json!("replace"))];

        let working = notes();
        assert!(!working.keep_late_facts(fact()));
        assert!(working.write_a_line());

        let abandoned = notes();
        assert!(!abandoned.write_a_line());
        assert!(abandoned.keep_late_facts(fact()));
        assert!(abandoned.write_a_line());
        assert!(!abandoned.keep_late_facts(fact()));
    }
}
