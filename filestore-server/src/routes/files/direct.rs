//! Reads of files, without a walk through the filters.
//!
//! The table of routes has found the row already. For what is asked most, the filters would find the same once
//! more, at the cost of boxes, moves and counts that threads share. So these reads go to their handlers at
//! once; the filters, which are there for them as well, lead to the very same handlers.

use std::pin::Pin;
use std::sync::Arc;

use filestore_core::variants::VariantSize;
use warp::reply::Response;

use super::super::path::IdSegment;
use super::content::content;
use super::variant::variant;
use crate::request::call::Call;
use crate::routes::filters::answer;
use crate::routes::table::Read;

/// A reply that is being made.
pub(crate) type Reading = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Begins the read that a request is; `None` if it is none, or one that the filters must look at. `path` is
/// the request's, with the public prefix or without.
pub(crate) fn read(call: &Arc<Call>, path: &str) -> Option<Reading> {
    let kind = call.route?.read?;
    // A slash at the end changes nothing.
    let mut from_the_end = path.strip_suffix('/').unwrap_or(path).rsplit('/');
    let call = Arc::clone(call);

    Some(match kind {
        Read::Content => {
            let id: IdSegment = from_the_end.next()?.parse().ok()?;
            Box::pin(answer(Arc::clone(&call), content(call, id)))
        }
        Read::Variant => {
            let (height, width) = (from_the_end.next()?, from_the_end.next()?);
            let size = VariantSize::from_path(width, height);
            let id: IdSegment = from_the_end.next()?.parse().ok()?;
            Box::pin(answer(Arc::clone(&call), variant(call, id, size)))
        }
    })
}
