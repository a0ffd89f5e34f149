//! Health, providers, and this document.

use filestore_core::api::{HealthReply, MeReply, ProviderReply, ReadyReply, ReceiptKeyReply};
use serde_json::{Value, json};

use crate::operation::{Group, Need, Operation, READ};
use crate::schemas::{Schemas, reply};

pub(crate) fn group() -> Group {
    Group {
        name: "Service",
        description: "Check the health of the service, list providers, and read this document.",
        operations: vec![alive(), ready(), me(), providers(), receipt_keys(), openapi(), docs()],
    }
}

fn alive() -> Operation {
    Operation::get("/health-checks", "checkHealth", Need::Nothing)
        .says("Check that the process answers", "Does not use the database or the disk.")
        .replies(200, "The process answers.", reply::<HealthReply>)
}

fn ready() -> Operation {
    Operation::get("/health-checks/ready", "checkReadiness", Need::Nothing)
        .says(
            "Check that database and storage answer",
            "If a provider does not answer, the service is still ready.",
        )
        .replies(200, "Both answer.", reply::<ReadyReply>)
        .replies(
            503,
            "The database or the storage does not answer. See `database` and `storage`.",
            reply::<ReadyReply>,
        )
}

fn me() -> Operation {
    Operation::get("/me", "getMe", Need::Key)
        .says(
            "Show the key of the caller, and the limits of the service",
            "Needs a key with any scope. On a server without keys, `key` is null.",
        )
        .replies(200, "Key, limits and features.", reply::<MeReply>)
}

fn providers() -> Operation {
    Operation::get("/storage-providers", "listProviders", READ)
        .says("List the providers that accept new files", "")
        .replies_all(200, "The active providers.", reply::<ProviderReply>)
}

fn receipt_keys() -> Operation {
    Operation::get("/receipt-keys", "listReceiptKeys", Need::Nothing)
        .says(
            "List the public keys that verify purge receipts",
            "Oldest first. The list is empty before the first receipt.",
        )
        .replies_all(200, "The keys.", reply::<ReceiptKeyReply>)
}

fn openapi() -> Operation {
    Operation::get("/openapi.json", "describeApi", Need::Nothing)
        .says("Describe the API", "This document: OpenAPI 3.1.")
        .replies(200, "The document.", any_object)
}

fn any_object(_: &mut Schemas) -> Value {
    json!({ "type": "object" })
}

fn docs() -> Operation {
    Operation::get("/docs", "browseApi", Need::Nothing)
        .says("Show this document as a web page", "The page loads no other resources.")
        .replies_bytes(200, "The page.", &["text/html"])
}
