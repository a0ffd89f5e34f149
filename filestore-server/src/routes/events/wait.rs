//! Waits for the first event of a page.
//!
//! A wait counts as a stream. It looks at the newest events, which all readers share, and reads the log again only if
//! there can be an event for it.

use std::sync::Arc;

use filestore_core::Scope;
use filestore_core::events::{After, EventFilter, EventPage};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::query::EventsQuery;
use super::stream::take_seat;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::log_sight::LogSight;
use crate::streams::Newest;

/// Reads a page behind `after`. Waits for its first event as long as the client wants, but not for longer than the
/// server runs, or than the client has its rights.
pub(super) async fn page(
    call: &Arc<Call>,
    query: &EventsQuery,
    sight: &LogSight,
    filter: &EventFilter,
    mut after: After,
) -> Result<EventPage, Failure> {
    let until = Instant::now() + query.wait;
    let seat = take_seat(call, sight.clone())?;
    let (mut end, mut changes) = (seat.end(), seat.newest().changes());
    let scope: &Scope = &call.caller.scope;
    loop {
        // Seen before the read: a change during the read wakes the reader again.
        changes.mark_unchanged();
        let turn = call.app.streams.turn().await;
        let page = call.store().events(scope).page(filter, after, query.limit).await?;
        drop(turn);
        if !page.events.is_empty() || page.has_more {
            return Ok(page);
        }

        let news = news(seat.newest(), &mut changes, page.looked_at, scope, filter);
        let has_news = tokio::select! {
            biased;
            // An error would mean that the reader is no longer counted, which is an end as well.
            _ = end.wait_for(|over| *over) => false,
            waited = timeout_at(until, news) => waited.is_ok(),
        };
        if !has_news {
            return Ok(page);
        }
        after = page.next;
    }
}

/// Returns when the log can have an event for the reader behind the position `seen`.
async fn news(
    newest: &Newest,
    changes: &mut watch::Receiver<()>,
    mut seen: u64,
    scope: &Scope,
    filter: &EventFilter,
) {
    // The sender lives as long as `newest`.
    while changes.changed().await.is_ok() {
        let told = newest.behind(seen).and_then(|number| newest.from(number, usize::MAX));
        // Without the events in between, only the log knows.
        let Some(told) = told else { return };
        if told.iter().any(|told| LogSight::shows(scope, &told.event) && filter.passes(&told.event))
        {
            return;
        }
        seen = told.last().map_or(seen, |told| told.position);
    }
}
