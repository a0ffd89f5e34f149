//! GET /events: pages of the log of events, and the same as a stream.

mod query;
mod stream;
mod wait;

use std::sync::Arc;

use filestore_core::api::EventPage as Shown;
use filestore_core::events::{EventFilter, EventPage};
use warp::Filter;
use warp::reply::Response;

use self::query::{Direction, EventsQuery};
use crate::http::accept::preferred;
use crate::reply::{self, EVENT_STREAM, Failure};
use crate::request::call::Call;
use crate::request::log_sight::LogSight;
use crate::routes::filters::{RouteFilter, get};

/// Builds `/events`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("events").and(get(events)).boxed()
}

async fn events(call: Arc<Call>) -> Result<Response, Failure> {
    let query = EventsQuery::of(&call.query(&query::PARAMETERS)?)?;
    let sight = LogSight::of(&call);
    let filter = sight.narrow(query.filter.clone())?;

    if preferred(&call.headers, ["application/json", EVENT_STREAM]) == EVENT_STREAM {
        return stream::open(call, &query, sight, filter).await;
    }
    let page = page(&call, &query, &sight, &filter).await?;
    if !query.wait.is_zero() {
        sight.recheck(&call).await?;
    }
    reply::ok(&Shown::from(&page))
}

async fn page(
    call: &Arc<Call>,
    query: &EventsQuery,
    sight: &LogSight,
    filter: &EventFilter,
) -> Result<EventPage, Failure> {
    let events = call.store().events(&call.caller.scope);
    Ok(match query.direction {
        Direction::Backward(before) => events.page_back(filter, before, query.limit).await?,
        Direction::Forward(after) if query.wait.is_zero() => {
            events.page(filter, after, query.limit).await?
        }
        Direction::Forward(after) => wait::page(call, query, sight, filter, after).await?,
    })
}
