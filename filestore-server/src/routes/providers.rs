//! GET /storage-providers: the providers that take new files.

use std::sync::Arc;

use filestore_core::api::ProviderReply;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::get;

/// Builds `/storage-providers`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    warp::path!("storage-providers").and(get(list))
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let shown: Vec<ProviderReply> =
        call.store().providers().active().into_iter().map(ProviderReply::from).collect();
    reply::ok(&shown)
}
