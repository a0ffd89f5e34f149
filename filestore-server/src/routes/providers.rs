//! GET /storage-providers: the providers for new files.

use std::sync::Arc;

use filestore_core::api::ProviderReply;
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, get};

/// Builds `/storage-providers`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("storage-providers").and(get(list)).boxed()
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let shown: Vec<ProviderReply> =
        call.store().providers().active().into_iter().map(ProviderReply::from).collect();
    reply::ok(&shown)
}
