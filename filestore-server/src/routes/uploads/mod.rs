//! `/uploads`: resumable uploads, by tus 1.0 and by the drafts of the IETF.
//!
//! | file | holds |
//! |---|---|
//! | `fields` | the fields of a creation, from the query and from `Upload-Metadata` |
//! | `create` | POST `/uploads` |
//! | `session` | HEAD, GET, PATCH and DELETE of one upload |
//! | `receive` | the body of a request, on its way into an upload |
//! | `replies` | the headers of each protocol |

mod create;
mod fields;
mod receive;
mod replies;
mod session;

use std::future::ready;
use std::sync::Arc;

use filestore_core::OrganizationId;
use filestore_core::api::ResumableUploadList;
use filestore_core::uploads::UploadId;
use warp::Filter;
use warp::reply::Response;

use super::path::Segment;
use crate::http::query::Query;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::fields::missing;
use crate::routes::filters::{RouteFilter, call, get_or_head, not_allowed, reply_of, with_body};

/// The uploads of a page of the list, by default and at most.
const PAGE: (usize, usize) = (100, 1000);

/// Builds `/uploads` and `/uploads/{upload}`.
pub(crate) fn routes() -> RouteFilter {
    let list =
        get_or_head().and(call()).then(|call: Arc<Call>| reply_of(Arc::clone(&call), list(call)));
    let options = warp::options()
        .and(call())
        .then(|call: Arc<Call>| reply_of(Arc::clone(&call), ready(Ok(replies::options(&call)))));
    let all = warp::path!("uploads").and(
        warp::post()
            .and(with_body(create::create))
            .or(list)
            .unify()
            .or(options)
            .unify()
            .or(not_allowed("GET, HEAD, POST, OPTIONS"))
            .unify(),
    );
    all.or(one()).unify().boxed()
}

fn one() -> RouteFilter {
    let path = warp::path!("uploads" / Segment).boxed();
    let with_bytes = path.clone().and(warp::patch().or(warp::post()).unify());
    let with_bytes = with_bytes.and(call()).and(crate::request::incoming::body()).then(
        |at: Segment, call: Arc<Call>, body| {
            reply_of(Arc::clone(&call), session::with_body(call, at, body))
        },
    );
    let read =
        path.clone().and(get_or_head()).and(call()).then(|at: Segment, call: Arc<Call>| {
            reply_of(Arc::clone(&call), session::read(call, at))
        });
    let cancel =
        path.clone().and(warp::delete()).and(call()).then(|at: Segment, call: Arc<Call>| {
            reply_of(Arc::clone(&call), session::cancel(call, at))
        });
    let options =
        path.clone().and(warp::options()).and(call()).then(|_: Segment, call: Arc<Call>| {
            reply_of(Arc::clone(&call), ready(Ok(replies::options(&call))))
        });
    let rest =
        path.and(not_allowed("GET, HEAD, POST, PATCH, DELETE, OPTIONS")).map(|_, reply| reply);
    let first = with_bytes.or(read).unify().or(cancel).unify();
    first.or(options).unify().or(rest).unify().boxed()
}

/// Lists the uploads of an organization, without their addresses.
async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["organization_id", "limit", "cursor"])?;
    let organization = query.get("organization_id").ok_or_else(|| missing("organization_id"))?;
    let organization: OrganizationId = organization.parse()?;
    call.caller.scope.check(&organization)?;

    let (after, limit) = page_of(&query)?;
    let uploads = call.store().resumable().list(&organization, after, limit).await?;
    reply::ok(&ResumableUploadList::of(&uploads, limit))
}

/// Reads the position and the length of a page.
pub(super) fn page_of(query: &Query) -> filestore_core::Result<(Option<UploadId>, usize)> {
    let limit = match query.get("limit").map(str::parse::<usize>) {
        None => PAGE.0,
        Some(Ok(limit)) if (1..=PAGE.1).contains(&limit) => limit,
        Some(_) => {
            let message = format!("limit is 1 to {}", PAGE.1);
            return Err(filestore_core::Error::invalid("limit", message));
        }
    };
    let after = query.get("cursor").map(str::parse::<UploadId>).transpose();
    Ok((after.map_err(|error| error.with_field("cursor"))?, limit))
}
