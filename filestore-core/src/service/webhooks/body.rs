//! The bodies of deliveries: the same JSON as in pages of the log.

use crate::api;
use crate::domain::error::{Error, Result};
use crate::domain::event::Event;
use crate::domain::time::clock::Timestamp;

/// Writes the body of an event's delivery.
pub(crate) fn body_of(event: &Event) -> Result<String> {
    serde_json::to_string(&api::Event::from(event))
        .map_err(|error| Error::internal("writing an event", error))
}

/// Writes the body of a ping.
pub(super) fn of_ping(id: &str, at: Timestamp) -> String {
    format!(r#"{{"id":"{id}","type":"webhook.ping","timestamp":"{at}","data":{{}}}}"#)
}
