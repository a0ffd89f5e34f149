//! The routes: a filter for each resource, its handler beneath.
//!
//! A resource's filter matches the path, then the method; another method is a 405 with `Allow`. A
//! handler's refusal is a reply at once, so that a rejection means only "not my path". A path that no
//! resource has is a 404.

pub(crate) mod table;
mod filters;
mod path;
mod files;
mod bindings;
mod sheets;
mod organizations;
mod providers;
mod health;
mod description;
mod admin;
pub(crate) mod metrics;

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::Failure;
use crate::request::base::Base;
use crate::request::call::Call;
use crate::routes::filters::call;

/// Builds the whole API, and `/metrics` beside it. It answers every request that carries a [`Call`], and rejects others.
///
/// Paths may start with the base's prefix or not: a proxy in front may strip it or leave it.
pub(crate) fn routes(base: &Base) -> BoxedFilter<(Response,)> {
    let unknown = call().map(|call: Arc<Call>| Failure::UnknownPath.into_response(&call.id));
    let mut prefix = warp::any().boxed();
    if base.segments().next().is_none() {
        return all().or(unknown).unify().boxed();
    }
    for segment in base.segments() {
        prefix = prefix.and(warp::path(segment.to_owned())).boxed();
    }
    all().or(prefix.and(all())).unify().or(unknown).unify().boxed()
}

/// Joins the API and what is beside it.
fn all() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    api().or(metrics::routes().boxed()).unify()
}

/// Joins the resources. `/files/upload` and the like are no file ids.
///
/// Reads of files come first. The others are behind a box, so that the future of a read, which warp
/// moves a few times, is no larger than a read needs.
fn api() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let reads = files::variant::routes().or(files::content::routes()).unify();
    let files = files::upload::routes()
        .or(files::batch::routes())
        .unify()
        .or(files::delete::routes())
        .unify()
        .or(files::routes())
        .unify()
        .or(files::sign::routes())
        .unify()
        .or(files::receipt::routes())
        .unify();

    let rest = health::routes()
        .or(providers::routes())
        .unify()
        .or(bindings::routes())
        .unify()
        .or(sheets::routes())
        .unify()
        .or(organizations::routes())
        .unify()
        .or(description::routes())
        .unify()
        .or(admin::routes())
        .unify();

    warp::path!("api" / "v1" / ..).and(reads.or(files.or(rest).unify().boxed()).unify())
}
