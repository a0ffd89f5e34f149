//! `/metrics`, outside the API, for a Prometheus server.

use std::sync::Arc;

use http::HeaderMap;
use http::header::ACCEPT;
use warp::Filter;
use warp::reply::Response;

use crate::metrics::Format;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, get};
use crate::state::App;

/// Builds `/metrics`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("metrics").and(get(metrics)).boxed()
}

async fn metrics(call: Arc<Call>) -> Result<Response, Failure> {
    Ok(exposed(&call.app, &call.headers).await)
}

/// Replies with the metrics, in the format that the request accepts.
pub(crate) async fn exposed(app: &App, headers: &HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    reply::metrics(app.metrics.expose(&app.store, &app.streams, format).await, format)
}
