//! GET /files/{fileId}/{width}/{height}: a gallery variant.
//!
//! This is the most frequent request. If the record and the variant are in memory, it is answered on the same
//! thread. A conditional request is answered before any pixel is read.

use std::sync::Arc;

use filestore_core::Result;
use filestore_core::variants::{Motion, VariantSize};
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::super::path::{IdSegment, Segment};
use super::content::{carried, read_request};
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::fields::flag;
use crate::routes::filters::{READ_ONLY, call, get_or_head, not_allowed, reply_of};

/// Builds `/files/{fileId}/{width}/{height}`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("files" / IdSegment / Segment / Segment);
    let read =
        path.and(get_or_head()).and(call()).then(|id, width: Segment, height: Segment, call| {
            let call: Arc<Call> = call;
            let size = VariantSize::from_path(&width.0, &height.0);
            reply_of(Arc::clone(&call), variant(call, id, size))
        });
    let rest = path.and(not_allowed(READ_ONLY)).map(|_, _, _, reply| reply);
    read.or(rest.boxed()).unify()
}

pub(super) async fn variant(
    call: Arc<Call>,
    id: IdSegment,
    size: Result<VariantSize>,
) -> Result<Response, Failure> {
    let size = size?;
    let query = call.query(&["fit", "animated", "v"])?;
    let fit = query.get("fit").map(str::parse).transpose()?.unwrap_or_default();
    let motion = motion(&call, query.get("animated"))?;
    let id = id.id()?;

    let (call, version) = (&call, query.get("v"));
    let (serving, request) =
        (call.store().serving(&call.caller.scope), read_request(call, version));
    let answered = serving.with_record(id, |record| async move {
        let reply = request.variant(serving, &record, (size, fit, motion)).await?;
        Ok(reply.map(|reply| carried(call, reply)))
    });
    answered.await
}

/// Reads whether the variant is still or animated. Refuses animated variants if they are switched off.
fn motion(call: &Call, text: Option<&str>) -> Result<Motion> {
    let animated = text.map(flag).transpose().map_err(|error| error.with_field("animated"))?;
    let motion = Motion::from(animated.unwrap_or(false));
    call.store().serving(&call.caller.scope).expect_motion(motion)?;
    Ok(motion)
}
