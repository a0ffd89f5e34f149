//! The filters that resources are made of: a method, its handler, and 405 for every other method.
//!
//! A resource reads `warp::path!("files" / "batch").and(post(create))`. Handlers answer through
//! `then`, so that a refusal is a reply at once and a rejection means only "not my path".

use std::sync::Arc;

use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::{Body, body};

/// The value of `Allow` where only reading is possible.
pub(super) const READ_ONLY: &str = "GET, HEAD";

/// Extracts the call that the service around the routes has put beside the request.
pub(super) fn call() -> impl Filter<Extract = (Arc<Call>,), Error = Rejection> + Copy {
    warp::ext::get::<Arc<Call>>()
}

/// Matches GET and HEAD: HEAD works wherever GET does.
pub(super) fn get_or_head() -> impl Filter<Extract = (), Error = Rejection> + Copy {
    warp::get().or(warp::head()).unify()
}

/// Ends a resource's filters: a request that comes here has the right path and the wrong method.
/// `allow` is the value of `Allow`.
pub(super) fn not_allowed(
    allow: &'static str,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    call().map(move |call: Arc<Call>| Failure::MethodNotAllowed(allow).into_response(&call.id))
}

/// Turns the result of a handler into a reply. A request that is in no row of the table of routes is
/// not handled: nobody has said what right it needs.
pub(super) async fn answer(
    call: Arc<Call>,
    handled: impl Future<Output = Result<Response, Failure>>,
) -> Response {
    if call.route.is_none() {
        return Failure::UnknownPath.into_response(&call.id);
    }
    handled.await.unwrap_or_else(|failure| failure.into_response(&call.id))
}

/// Answers GET and HEAD with `handle`, every other method with 405.
pub(super) fn get<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    let read = get_or_head()
        .and(call())
        .then(move |call: Arc<Call>| answer(Arc::clone(&call), handle(call)));
    read.or(not_allowed(READ_ONLY)).unify()
}

/// Answers POST with `handle`, every other method with 405.
pub(super) fn post<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    warp::post().and(with_body(handle)).or(not_allowed("POST")).unify()
}

/// Answers PUT with `handle`, every other method with 405.
pub(super) fn put<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    warp::put().and(with_body(handle)).or(not_allowed("PUT")).unify()
}

/// Hands the call and the body to `handle`, whatever the method is.
pub(super) fn with_body<H, F>(
    handle: H,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    call()
        .and(body())
        .then(move |call: Arc<Call>, body| answer(Arc::clone(&call), handle(call, body)))
}
