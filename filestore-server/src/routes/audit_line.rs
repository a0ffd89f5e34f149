//! The audit line of a request.

use crate::audit::{Actor, Entry, Outcome};
use crate::request::call::{Call, Proof};

/// Records the outcome of a request, if its route writes an audit line.
pub(crate) fn put_on_record(call: &Call, status: Option<u16>, result: Outcome) {
    let (Some(notes), Some(route)) = (&call.notes, call.route) else { return };

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

fn actor(call: &Call) -> Actor {
    match (&call.caller.proof, call.client) {
        (Proof::Key(id), _) => Actor::Key { key_id: id.to_string() },
        (Proof::Permit(_), _) => Actor::SignedUrl,
        (Proof::None, None) => Actor::AdminSocket,
        (Proof::None, Some(_)) => Actor::Anonymous,
    }
}
