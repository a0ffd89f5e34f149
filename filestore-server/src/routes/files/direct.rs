//! Reads of files without a walk through the filters.
//!
//! The table of routes has already found the row, and the filters lead to the same handlers.
//! [`crate::routes`] explains why both exist.

use std::pin::Pin;
use std::sync::Arc;

use filestore_core::variants::VariantSize;
use warp::reply::Response;

use super::super::path::IdSegment;
use super::content::content;
use super::variant::variant;
use crate::request::call::Call;
use crate::route_table::Read;
use crate::routes::filters::reply_of;

/// The future of a reply.
pub(crate) type Reading = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Begins a read. `None` if the request is not a read, or if the filters must check it. `path` can have the
/// public prefix.
pub(crate) fn read(call: &Arc<Call>, path: &str) -> Option<Reading> {
    let kind = call.route?.read?;
    // A slash at the end changes nothing.
    let mut from_the_end = path.strip_suffix('/').unwrap_or(path).rsplit('/');
    let call = Arc::clone(call);

    Some(match kind {
        Read::Content => {
            let id: IdSegment = from_the_end.next()?.parse().ok()?;
            Box::pin(reply_of(Arc::clone(&call), content(call, id)))
        }
        Read::Variant => {
            let (height, width) = (from_the_end.next()?, from_the_end.next()?);
            let size = VariantSize::from_path(width, height);
            let id: IdSegment = from_the_end.next()?.parse().ok()?;
            Box::pin(reply_of(Arc::clone(&call), variant(call, id, size)))
        }
    })
}
