//! Organizations: what each of them stores.

use std::sync::Arc;

use filestore_core::OrganizationId;
use filestore_core::api::UsageReply;
use warp::reply::Response;

use super::path::Segment;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{Route, get_at};

/// Builds `/organizations/{organization_id}/usage`.
pub(crate) fn routes() -> Route {
    get_at(warp::path!("organizations" / Segment / "usage"), usage)
}

async fn usage(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let organization: OrganizationId = id.0.parse()?;
    let usage = call.store().usage(&organization, &call.caller.scope).await?;
    reply::ok(&UsageReply::of(&organization, &usage, &call.store().config()))
}
