//! The blocks of `text/event-stream` (WHATWG HTML section 9.2.5). An empty line ends each block.

use bytes::Bytes;
use filestore_core::api::Event as Shown;
use filestore_core::events::{Event, EventId};

/// The first block: a client waits two seconds before it connects again.
pub(crate) const BEGIN: Bytes = Bytes::from_static(b"retry: 2000\n\n");

/// A comment. It tells proxies and clients that the connection is alive.
pub(crate) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Encodes an event.
pub(crate) fn of_event(event: &Event) -> Bytes {
    let shown = Shown::from(event);
    // JSON has no raw line feeds, so one line of data is enough.
    let json = serde_json::to_string(&shown).expect("an event has string keys and plain values");
    Bytes::from(format!("id: {}\nevent: {}\ndata: {json}\n\n", shown.id, shown.kind))
}

/// Encodes a place in the log. A client remembers the id, and tells its program nothing.
pub(crate) fn of_place(id: EventId) -> Bytes {
    Bytes::from(format!("id: {id}\n\n"))
}
