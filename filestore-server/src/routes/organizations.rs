//! Organizations: what each of them stores.

use std::sync::Arc;

use filestore_core::OrganizationId;
use filestore_core::api::UsageReply;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::path::Segment;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{READ_ONLY, answer, call, get_or_head, not_allowed};

/// Builds `/organizations/{organization_id}/usage`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("organizations" / Segment / "usage");
    let usage = path
        .and(get_or_head())
        .and(call())
        .then(|id, call: Arc<Call>| answer(Arc::clone(&call), usage(call, id)));
    usage.or(path.and(not_allowed(READ_ONLY)).map(|_, reply| reply)).unify()
}

async fn usage(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let organization: OrganizationId = id.0.parse()?;
    let usage = call.store().usage(&organization, &call.caller.scope).await?;
    reply::ok(&UsageReply::of(&organization, &usage, &call.store().config()))
}
