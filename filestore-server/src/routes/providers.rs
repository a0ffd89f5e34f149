//! GET /storage-providers: where files can be stored.

use std::sync::Arc;

use filestore_core::api::ProviderReply;
use http::StatusCode;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::call::{Call, call, other, reading};
use crate::error::Failure;
use crate::reply;

/// `/storage-providers`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let list = reading().and(call()).map(|call: Arc<Call>| {
        list(&call).unwrap_or_else(|failure| failure.into_response(&call.id))
    });
    warp::path!("storage-providers").and(list.or(other("GET, HEAD")).unify())
}

fn list(call: &Call) -> Result<Response, Failure> {
    let shown: Vec<ProviderReply> =
        call.store().providers().active().into_iter().map(ProviderReply::from).collect();
    reply::json(StatusCode::OK, &shown)
}
