//! The routes: a filter for each resource, with its handler.
//!
//! A resource's filter matches the path, then the method. Another method gets 405 with `Allow`. A handler's
//! refusal is a reply at once, so a rejection means only "another path". An unknown path gets 404.
//!
//! # Three routers
//! A request passes through up to three routers, in this order:
//!
//! | router | question | used for |
//! |---|---|---|
//! | the rows of `crate::route_table` | Is the method served at this path, and which right does it need? | the key check, rate limits, metrics, the audit log |
//! | [`files::direct`] | Is this a read of a file or a variant without a body? | calling the read's handler at once |
//! | the filters of this module | Which handler answers, and does it read a body? | every other request, 404 and 405 |
//!
//! The table comes first, because a caller without a key must not learn which paths exist. The table is data,
//! so that metrics, the OpenAPI document and the reference can be compared with it. Filters do not reveal
//! their paths. `files::direct` exists for speed: most requests are reads, and a walk through the filters
//! would cost boxes, moves and shared counts.
//!
//! To add a route, add a row to the table and a filter here. `files::direct` needs no change, unless the
//! route is a very frequent read. The tests of this module compare the table, the filters and the direct
//! reads. The filters must answer exactly the methods in the table. A direct read must answer like the
//! filters. A handler without a row must not answer.

mod filters;
mod path;
mod files;
mod bindings;
mod sheets;
mod uploads;
mod organizations;
mod events;
mod webhooks;
mod providers;
mod health;
mod description;
mod me;
mod root;
mod console;
mod admin;
pub(crate) mod metrics;
pub(crate) mod audit_line;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use files::direct;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::http::base::Base;
use crate::reply::Failure;
use crate::request::call::Call;
pub(crate) use crate::routes::filters::RouteFilter;
use crate::routes::filters::{any_of, call};

/// Creates the whole API, and `/metrics` and the console outside it. The API answers every request with a [`Call`], and
/// rejects all others.
///
/// Paths can have the base's prefix, because a proxy can remove or keep it.
pub(crate) fn routes(base: &Base) -> RouteFilter {
    let unknown = call().map(|call: Arc<Call>| Failure::UnknownPath.into_response(&call.id));
    let mut prefix = warp::any().boxed();
    if base.segments().next().is_none() {
        return any_of([all(), console::routes(), unknown.boxed()]);
    }
    for segment in base.segments() {
        prefix = prefix.and(warp::path(segment.to_owned())).boxed();
    }
    any_of([
        all(),
        prefix.clone().and(all()).boxed(),
        // The console last, like in the table of routes.
        prefix.and(console::routes()).boxed(),
        console::routes(),
        unknown.boxed(),
    ])
}

/// Combines the API and the routes outside it, without the console.
fn all() -> RouteFilter {
    any_of([api().boxed(), metrics::routes(), root::routes()])
}

/// Combines the resources. `/files/upload` and similar paths are not file ids.
///
/// Reads of files come first, in a separate box. Reads are the most frequent requests, and warp moves their
/// future several times. In its own box, this future is as small as a read needs. The other resources are
/// tried one by one, each in a box, most frequent first.
fn api() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let reads = files::variant::routes().or(files::content::routes()).unify().boxed();
    let rest = any_of([
        files::routes(),
        files::upload::routes(),
        files::batch::routes(),
        files::delete::routes(),
        files::restore::routes(),
        files::sign::routes(),
        files::receipt::routes(),
        files::explain::routes(),
        health::routes(),
        providers::routes(),
        bindings::routes(),
        sheets::routes(),
        uploads::routes(),
        organizations::routes(),
        events::routes(),
        webhooks::routes(),
        me::routes(),
        description::routes(),
        admin::routes(),
    ]);

    warp::path!("api" / "v1" / ..).and(reads.or(rest).unify())
}
