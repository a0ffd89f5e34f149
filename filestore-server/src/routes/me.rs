//! GET /me: the caller's key, and the limits and features of the service.

use std::sync::Arc;

use filestore_core::api::{AccessMode, MeReply};
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::gate;
use crate::routes::filters::{RouteFilter, get};

/// Builds `/me`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("me").and(get(me)).boxed()
}

async fn me(call: Arc<Call>) -> Result<Response, Failure> {
    let mode = if gate::is_closed(&call.app) { AccessMode::Keys } else { AccessMode::Open };
    let store = call.store();
    let key = call.caller.key().and_then(|id| store.keys().get(id));
    reply::ok(&MeReply::of(mode, key.as_deref(), store.id(), &store.config()))
}
