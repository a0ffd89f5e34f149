//! `/admin/providers`: every provider, and what it can do.

use std::sync::Arc;

use filestore_core::api::{AdminProvider, ProviderCheckReport};
use http::StatusCode;
use percent_encoding::percent_decode_str;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::expect_nothing;
use crate::call::{Call, answer, call, other, reading};
use crate::error::Failure;
use crate::incoming::{Body, body};
use crate::reply;
use crate::routes::path::Segment;

/// `/providers` and `/providers/{code}/check`.
pub(super) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let list = reading().and(call()).map(|call: Arc<Call>| {
        list(&call).unwrap_or_else(|failure| failure.into_response(&call.id))
    });
    let list = warp::path!("providers").and(list.or(other("GET, HEAD")).unify());
    let check = warp::path!("providers" / Segment / "check")
        .and(warp::post())
        .and(call())
        .and(body())
        .then(|code: Segment, call: Arc<Call>, body| {
            answer(Arc::clone(&call), check(code, call, body))
        });
    let not_post = warp::path!("providers" / Segment / "check")
        .and(other("POST"))
        .map(|_: Segment, response: Response| response);
    list.or(check).unify().or(not_post).unify()
}

fn list(call: &Call) -> Result<Response, Failure> {
    let shown: Vec<AdminProvider> =
        call.store().list_providers().into_iter().map(Into::into).collect();
    reply::json(StatusCode::OK, &shown)
}

async fn check(code: Segment, call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let code = percent_decode_str(&code.0).decode_utf8_lossy();
    let check = call.store().check_provider(&code).await?;
    reply::json(StatusCode::OK, &ProviderCheckReport::from(&check))
}
