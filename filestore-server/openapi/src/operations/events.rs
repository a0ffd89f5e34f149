//! The log of events.

use filestore_core::api::{EventOrder, EventPage, EventType};
use serde_json::{Value, json};

use crate::operation::{Group, Operation, READ};
use crate::schemas::reply;
use crate::shared::{organization_id, query};

/// The id of an event: 16 bytes in base64url. The last character has four unused bits, which are 0.
const EVENT_ID: &str = "[A-Za-z0-9_-]{21}[AQgw]";

pub(crate) fn group() -> Group {
    Group {
        name: "Events",
        description: "Read what happened to files, in order and without gaps.",
        operations: vec![events()],
    }
}

fn events() -> Operation {
    Operation::get("/events", "listEvents", READ)
        .says(
            "Read the log of events, or follow it",
            "Returns a page of events after `after`. To read on, pass `next` as `after`. With `Accept: \
             text/event-stream`, the reply is a stream that stays open (WHATWG HTML, server-sent events): the `data` \
             of each event is the same JSON object as in a page, and `id` is its id. After a broken connection, send \
             the last id in `Last-Event-ID`. Keys of an organization see the events of its files. Other types need \
             `admin` for all organizations.",
        )
        .asks([
            query(
                "after",
                "Only events after this one: an id, `start` (the oldest that is kept), or `end` (only later ones).",
                place("^(start|end|{id})$", "start"),
            ),
            query(
                "before",
                "With `order=desc`: only events before this one, an id or `end`.",
                place("^(end|{id})$", "end"),
            ),
            query("order", "Oldest first, or newest first. A stream has the order `asc`.", orders()),
            query(
                "types",
                "Only these types, separated by commas. `file.*` stands for all types that begin with `file.`.",
                types(),
            ),
            query("organization_id", "Only events of this organization.", organization_id()),
            query(
                "limit",
                "Maximum number of events in a page. A stream ignores it.",
                json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
            ),
            query(
                "wait",
                "Seconds to wait for the first event, if there is none. A stream ignores it.",
                json!({ "type": "integer", "minimum": 0, "maximum": 30, "default": 0 }),
            ),
        ])
        .takes(["LastEventId"])
        .replies_bytes_or_json(200, "A page, or a stream.", "text/event-stream", reply::<EventPage>)
        .with(["Cache-Control"])
        .refuses([409, 410])
}

/// Describes a place in the log.
fn place(pattern: &str, default: &str) -> Value {
    json!({ "type": "string", "pattern": pattern.replace("{id}", EVENT_ID), "default": default })
}

/// Describes a list of types and groups of types.
fn types() -> Value {
    let words: Vec<_> =
        EventType::KNOWN.iter().map(|kind| kind.as_str().replace('.', r"\.")).collect();
    let word = format!(r"({}|file\.\*)", words.join("|"));
    json!({ "type": "string", "pattern": format!("^{word}(,{word})*$"), "examples": ["file.ready,file.replaced"] })
}

fn orders() -> Value {
    let words: Vec<_> = EventOrder::ALL.iter().map(|order| order.as_str()).collect();
    json!({ "type": "string", "enum": words, "default": "asc" })
}
