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

pub(crate) use files::direct;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::Failure;
use crate::request::base::Base;
use crate::request::call::Call;
use crate::routes::filters::{Route, any_of, call};

/// Builds the whole API, and `/metrics` beside it. It answers every request that carries a [`Call`],
/// and rejects others.
///
/// Paths may start with the base's prefix or not: a proxy in front may strip it or leave it.
pub(crate) fn routes(base: &Base) -> Route {
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
fn all() -> Route {
    api().or(metrics::routes()).unify().boxed()
}

/// Joins the resources. `/files/upload` and the like are no file ids.
///
/// Reads of files come first, in a box of their own: they are most of what is asked, and the future of
/// a read, which warp moves a few times, is no larger than a read needs. The others are tried one after
/// the other, each in a box: what is asked most comes first.
fn api() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let reads = files::variant::routes().or(files::content::routes()).unify().boxed();
    let rest = any_of([
        files::routes(),
        files::upload::routes(),
        files::batch::routes(),
        files::delete::routes(),
        files::sign::routes(),
        files::receipt::routes(),
        health::routes(),
        providers::routes(),
        bindings::routes(),
        sheets::routes(),
        organizations::routes(),
        description::routes(),
        admin::routes(),
    ]);

    warp::path!("api" / "v1" / ..).and(reads.or(rest).unify())
}
