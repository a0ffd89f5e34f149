//! The filters of resources: a method with its handler, and 405 for every other method.
//!
//! For example, a resource is `warp::path!("files" / "batch").and(post(create))`. With a segment for its
//! handler, it is `post_at(warp::path!("files" / IdSegment / "sign"), sign)`. Handlers answer through `then`,
//! so that a refusal is a reply at once, and a rejection means only "another path".

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::{Body, body};

/// The value of `Allow` for read-only resources.
pub(super) const READ_ONLY: &str = "GET, HEAD";

/// A resource with all its methods.
pub(crate) type RouteFilter = BoxedFilter<(Response,)>;

/// A path that extracts one value.
pub(super) trait At<T>:
    Filter<Extract = (T,), Error = Rejection> + Clone + Send + Sync + 'static
{
}

impl<T, P> At<T> for P where
    P: Filter<Extract = (T,), Error = Rejection> + Clone + Send + Sync + 'static
{
}

/// Tries one resource after the other.
///
/// All resources have the same type. Otherwise the types of nested filters would grow, and slow down the
/// compiler.
pub(super) fn any_of<const N: usize>(resources: [RouteFilter; N]) -> RouteFilter {
    let joined = resources.into_iter().rev().reduce(|rest, one| one.or(rest).unify().boxed());
    joined.expect("at least one resource")
}

/// Extracts the call that the service has added to the request.
pub(super) fn call() -> impl Filter<Extract = (Arc<Call>,), Error = Rejection> + Copy {
    warp::ext::get::<Arc<Call>>()
}

/// Matches GET and HEAD. HEAD works wherever GET works.
pub(super) fn get_or_head() -> impl Filter<Extract = (), Error = Rejection> + Copy {
    warp::get().or(warp::head()).unify()
}

/// Ends a resource's filters. The remaining requests have the right path and the wrong method. `allow` is the
/// value of `Allow`.
pub(super) fn not_allowed(
    allow: &'static str,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    call().map(move |call: Arc<Call>| Failure::MethodNotAllowed(allow).into_response(&call.id))
}

/// Converts the result of a handler to a reply. A request without a row in the table of routes is not
/// handled, because its required right is unknown.
pub(super) async fn reply_of(
    call: Arc<Call>,
    handled: impl Future<Output = Result<Response, Failure>>,
) -> Response {
    if call.route.is_none() {
        return Failure::UnknownPath.into_response(&call.id);
    }
    handled.await.unwrap_or_else(|failure| failure.into_response(&call.id))
}

/// Answers GET and HEAD with `handle`, and every other method with 405.
pub(super) fn get<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    let read = get_or_head()
        .and(call())
        .then(move |call: Arc<Call>| reply_of(Arc::clone(&call), handle(call)));
    read.or(not_allowed(READ_ONLY)).unify()
}

/// Answers GET and HEAD below `path` with `handle`, which gets the segment from `path`. Answers every other
/// method with 405.
pub(super) fn get_at<T, H, F>(path: impl At<T>, handle: H) -> RouteFilter
where
    T: Send + 'static,
    H: Fn(Arc<Call>, T) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    let read = path
        .clone()
        .and(get_or_head())
        .and(call())
        .then(move |at, call: Arc<Call>| reply_of(Arc::clone(&call), handle(call, at)));
    read.or(path.and(not_allowed(READ_ONLY)).map(|_, reply| reply)).unify().boxed()
}

/// Answers POST below `path` with `handle`, which gets the segment from `path`. Answers every other method
/// with 405.
pub(super) fn post_at<T, H, F>(path: impl At<T>, handle: H) -> RouteFilter
where
    T: Send + 'static,
    H: Fn(Arc<Call>, T, Body) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    let path = path.boxed();
    let write =
        path.clone().and(warp::post()).and(call()).and(body()).then(
            move |at, call: Arc<Call>, body| reply_of(Arc::clone(&call), handle(call, at, body)),
        );
    write.or(path.and(not_allowed("POST")).map(|_, reply| reply)).unify().boxed()
}

/// Answers POST with `handle`, and every other method with 405.
pub(super) fn post<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    warp::post().and(with_body(handle)).or(not_allowed("POST")).unify()
}

/// Answers PUT with `handle`, and every other method with 405.
pub(super) fn put<H, F>(handle: H) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    warp::put().and(with_body(handle)).or(not_allowed("PUT")).unify()
}

/// Passes the call and the body to `handle` for every method.
pub(super) fn with_body<H, F>(
    handle: H,
) -> impl Filter<Extract = (Response,), Error = Rejection> + Clone
where
    H: Fn(Arc<Call>, Body) -> F + Clone + Send,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    call()
        .and(body())
        .then(move |call: Arc<Call>, body| reply_of(Arc::clone(&call), handle(call, body)))
}
