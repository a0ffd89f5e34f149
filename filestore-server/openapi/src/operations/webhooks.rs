//! Webhooks: their administration, and the requests that receivers get.

use filestore_core::api::{
    CreateWebhook, DeletedWebhookReply, EditWebhook, EnableWebhook, NewWebhookReply,
    RedeliverReply, RedeliverWebhook, RotateWebhook, WebhookFailures, WebhookPingReply,
    WebhookReply,
};
use serde_json::{Value, json};

use crate::operation::{Group, Need, Operation};
use crate::schemas::{Schemas, reply, request};
use crate::shared::query;

pub(crate) fn group() -> Group {
    Group {
        name: "Webhooks",
        description: "Send events to a URL, signed by Standard Webhooks.",
        operations: [settings(), work()].into_iter().flatten().collect(),
    }
}

fn get(path: &'static str, id: &'static str) -> Operation {
    Operation::get(path, id, Need::ServiceAdmin)
}

fn post(path: &'static str, id: &'static str) -> Operation {
    Operation::post(path, id, Need::ServiceAdmin)
}

/// A body that says nothing, which may be left out.
fn nothing(_: &mut Schemas) -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

fn settings() -> Vec<Operation> {
    vec![
        get("/webhooks", "listWebhooks")
            .says("List webhooks, oldest first, without their secrets", "")
            .replies_all(200, "The webhooks.", reply::<WebhookReply>),
        post("/webhooks", "createWebhook")
            .says(
                "Create a webhook",
                "From then on, the server sends each event that fits to the URL. It sends nothing before the first \
                 event: use the ping for a test.",
            )
            .json(request::<CreateWebhook>)
            .replies(
                201,
                "The webhook with its secret. No other reply shows the secret.",
                reply::<NewWebhookReply>,
            )
            .refuses([409, 410, 422]),
        get("/webhooks/{webhook_id}", "showWebhook")
            .says("Show a webhook, and how its deliveries go", "")
            .replies(200, "The webhook.", reply::<WebhookReply>)
            .refuses([410]),
        Operation::patch("/webhooks/{webhook_id}", "editWebhook", Need::ServiceAdmin)
            .says(
                "Change the settings of a webhook",
                "Secret and place in the log stay as they are.",
            )
            .json(request::<EditWebhook>)
            .replies(200, "The webhook.", reply::<WebhookReply>)
            .refuses([422]),
        Operation::delete("/webhooks/{webhook_id}", "deleteWebhook", Need::ServiceAdmin)
            .says("Delete a webhook, with its secret and its failures", "")
            .replies(200, "The id of the webhook.", reply::<DeletedWebhookReply>),
        post("/webhooks/{webhook_id}/rotate", "rotateWebhook")
            .says(
                "Rotate a webhook: create a new secret",
                "Until the end of the overlap, each delivery has a signature of both secrets.",
            )
            .optional_json(request::<RotateWebhook>)
            .replies(
                200,
                "The webhook with its secret. No other reply shows the secret.",
                reply::<NewWebhookReply>,
            ),
    ]
}

fn work() -> Vec<Operation> {
    vec![
        post("/webhooks/{webhook_id}/ping", "pingWebhook")
            .says(
                "Send a test event, and wait for the answer",
                "The type is `webhook.ping`. The event is not in the log. Once in 5 seconds.",
            )
            .optional_json(nothing)
            .replies(200, "What came of it.", reply::<WebhookPingReply>),
        get("/webhooks/{webhook_id}/failures", "listWebhookFailures")
            .says("List the events that the endpoint did not accept at once", "")
            .asks([
                query("state", "Only this state.", states()),
                query("after", "`next` of the page before.", json!({ "type": "string", "pattern": "^[0-9]{1,18}$" })),
                query(
                    "limit",
                    "Maximum number of failures in a page.",
                    json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
                ),
            ])
            .replies(200, "A page of failures.", reply::<WebhookFailures>),
        post("/webhooks/{webhook_id}/redeliver", "redeliverWebhook")
            .says(
                "Send events again",
                "One event (`event_id`), a range (`after` and `until`), or all failed events (`failed`). \
                 The events have their old ids, and can arrive out of order.",
            )
            .json(request::<RedeliverWebhook>)
            .replies(200, "The number of events.", reply::<RedeliverReply>)
            .refuses([409, 410]),
        post("/webhooks/{webhook_id}/enable", "enableWebhook")
            .says("Send events again after a webhook was disabled", "")
            .optional_json(request::<EnableWebhook>)
            .replies(200, "The webhook.", reply::<WebhookReply>)
            .refuses([409, 410]),
        post("/webhooks/{webhook_id}/disable", "disableWebhook")
            .says("Stop sending events", "The webhook keeps its place in the log.")
            .optional_json(nothing)
            .replies(200, "The webhook.", reply::<WebhookReply>),
    ]
}

fn states() -> Value {
    json!({ "type": "string", "enum": ["waiting", "held", "failed"] })
}

/// Describes the request that a receiver gets (the member `webhooks` of the document).
pub(crate) fn deliveries(event: &Value) -> Value {
    let header = |name: &str, says: &str, schema: Value| json!({ "name": name, "in": "header", "required": true, "description": says, "schema": schema });
    let body = json!({ "application/json": { "schema": event } });
    json!({
        "event": {
            "post": {
                "operationId": "receiveEvent",
                "summary": "Receive an event",
                "description": "The server sends this request to the URL of a webhook. Verify the signature by \
                    Standard Webhooks 1.0.0, and answer with 2xx within 15 seconds. The same event can come more \
                    than once, with the same `webhook-id`. The type `webhook.ping` is a test.",
                "security": [],
                "parameters": [
                    header("webhook-id", "Id of the event.", json!({ "type": "string" })),
                    header("webhook-timestamp", "Seconds since 1970, of this attempt.", json!({ "type": "integer" })),
                    header(
                        "webhook-signature",
                        "`v1,` with the HMAC-SHA-256 of `id.timestamp.body` in base64. During a rotation two of \
                         these, separated by a space.",
                        json!({ "type": "string" }),
                    ),
                ],
                "requestBody": { "required": true, "content": body },
                "responses": {
                    "2XX": { "description": "The receiver has the event." },
                    "410": { "description": "The receiver wants no more events: the webhook is disabled." },
                    "default": { "description": "The server tries again for 75 hours." },
                },
            },
        },
    })
}
