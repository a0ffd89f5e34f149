//! GET /files/{fileId}/explain: where a file is and why, and what comes next.

use std::sync::Arc;

use filestore_core::api::Explanation;
use filestore_core::explain::Reader;
use warp::reply::Response;

use super::super::path::IdSegment;
use crate::reply::{self, Failure};
use crate::request::call::{Call, Proof};
use crate::routes::filters::{RouteFilter, get_at};

/// Builds `/files/{fileId}/explain`.
pub(crate) fn routes() -> RouteFilter {
    get_at(warp::path!("files" / IdSegment / "explain"), explain)
}

async fn explain(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let files = call.store().scoped(&call.caller.scope);
    let explained = files.explain(id.id()?, reader(&call)).await?;
    reply::ok(&Explanation::from(explained))
}

/// Returns the reader. Error texts of providers are for operators: a key with the scope `admin` for all
/// organizations, or the admin socket. A server without keys does not know its callers.
fn reader(call: &Call) -> Reader {
    let is_operator = match &call.caller.proof {
        Proof::Key(id) => {
            call.store().keys().get(*id).is_some_and(|key| key.administers_the_service())
        }
        Proof::None => call.client.is_none(),
        Proof::Permit(_) => false,
    };
    if is_operator { Reader::Operator } else { Reader::Organization }
}
