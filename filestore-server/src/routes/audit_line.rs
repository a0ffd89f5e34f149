//! The audit line of a request.

use filestore_core::FileId;
use serde_json::json;

use crate::audit::{Actor, Entry, Outcome};
use crate::request::call::{Call, Proof};

/// Records the outcome of a request, if its route writes an audit line.
pub(crate) fn put_on_record(call: &Call, status: Option<u16>, result: Outcome) {
    let (Some(notes), Some(route)) = (&call.notes, call.route) else { return };
    if !notes.write_a_line() {
        return;
    }

    let entry = Entry {
        time: call.store().now().to_string(),
        request_id: call.id.to_string(),
        trace_id: call.id.trace_id(),
        actor: actor(call),
        client: call.client.map(|client| client.to_string()),
        action: format!("{} {}", route.method, route.template),
        path: notes.path(),
        request: notes.body(),
        report: notes.report(),
        status,
        result,
    };
    match call.client {
        Some(client) if call.caller.is_nobody() => {
            call.app.audit.write_of_stranger(&entry, client.address());
        }
        _ => call.app.audit.write(&entry),
    }
}

/// Notes the file that a resumable upload is about to replace. If the client is gone by now, writes the audit line.
pub(crate) fn note_replacement(call: &Call, file_id: FileId) {
    let Some(notes) = &call.notes else { return };
    let facts = [("change", json!("replace")), ("file_id", json!(file_id.to_string()))];
    if notes.keep_late_facts(facts) {
        put_on_record(call, None, Outcome::Abandoned);
    }
}

fn actor(call: &Call) -> Actor {
    match (&call.caller.proof, call.client) {
        (Proof::Key(id), _) => Actor::Key { key_id: id.to_string() },
        (Proof::Permit(_), _) => Actor::SignedUrl,
        (Proof::None, None) => Actor::AdminSocket,
        (Proof::None, Some(_)) => Actor::Anonymous,
    }
}
