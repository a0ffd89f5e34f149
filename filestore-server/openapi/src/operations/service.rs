//! Health, providers, and this document.

use filestore_core::api::{HealthReply, ProviderReply, ReadyReply, ReceiptKeyReply};
use serde_json::{Value, json};

use crate::operation::{Group, Need, Operation, READ};
use crate::schemas::{Schemas, reply};

pub(crate) fn group() -> Group {
    Group {
        name: "Service",
        description: "Health of the service, its providers, its description.",
        operations: vec![alive(), ready(), providers(), receipt_keys(), openapi(), docs()],
    }
}

fn alive() -> Operation {
    Operation::get("/health-checks", "checkHealth", Need::Nothing)
        .says("Tell that the process answers", "Touches nothing.")
        .replies(200, "The process answers.", reply::<HealthReply>)
}

fn ready() -> Operation {
    Operation::get("/health-checks/ready", "checkReadiness", Need::Nothing)
        .says(
            "Tell that database and storage answer",
            "A provider that does not answer makes nothing unready.",
        )
        .replies(200, "Both answer.", reply::<ReadyReply>)
        .replies(503, "One of them does not; the document says which.", reply::<ReadyReply>)
}

fn providers() -> Operation {
    Operation::get("/storage-providers", "listProviders", READ)
        .says("List the providers that take new files", "")
        .replies_all(200, "The active providers.", reply::<ProviderReply>)
}

fn receipt_keys() -> Operation {
    Operation::get("/receipt-keys", "listReceiptKeys", Need::Nothing)
        .says(
            "List the public keys of receipts",
            "The oldest first; none before the first receipt.",
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
        .says("Show this document as a page", "The page loads nothing from elsewhere.")
        .replies_bytes(200, "The page.", &["text/html"])
}
