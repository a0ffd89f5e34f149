//! `/metrics`, beside the API: what a Prometheus server reads.

use std::sync::Arc;

use http::header::ACCEPT;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::metrics::Format;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::get;

/// Builds `/metrics`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    warp::path!("metrics").and(get(metrics))
}

async fn metrics(call: Arc<Call>) -> Result<Response, Failure> {
    let accept = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    Ok(reply::metrics(call.app.metrics.expose(call.store(), format).await, format))
}
