//! Organizations: their storage usage.

use std::sync::Arc;

use filestore_core::api::{OrganizationsReply, SubSystemsReply, UsageReply};
use filestore_core::{OrganizationId, PageRequest};
use warp::Filter;
use warp::reply::Response;

use super::files::limit;
use super::path::Segment;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, any_of, get, get_at};

/// Builds `/organizations`, `/organizations/{organization_id}/usage` and `…/sub-systems`.
pub(crate) fn routes() -> RouteFilter {
    let list = warp::path!("organizations").and(get(list));
    let usage = get_at(warp::path!("organizations" / Segment / "usage"), usage);
    let parts = get_at(warp::path!("organizations" / Segment / "sub-systems"), sub_systems);

    any_of([usage, list.boxed(), parts])
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let page = call.store().scoped(&call.caller.scope).organizations(&page_request(&call)?).await?;
    let config = call.store().config();
    let reply = OrganizationsReply::of(page.items, page.next_cursor, &config);
    reply::ok_packed(&call.headers, &reply).await
}

async fn usage(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let organization: OrganizationId = id.plain().parse()?;
    let usage = call.store().scoped(&call.caller.scope).usage(&organization).await?;
    let reply = UsageReply::of(&organization, &usage, &call.store().config());
    reply::ok_packed(&call.headers, &reply).await
}

async fn sub_systems(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let organization: OrganizationId = id.plain().parse()?;
    let request = page_request(&call)?;
    let page = call.store().scoped(&call.caller.scope).sub_systems(&organization, &request).await?;
    reply::ok_packed(&call.headers, &SubSystemsReply::of(page.items, page.next_cursor)).await
}

fn page_request(call: &Call) -> filestore_core::Result<PageRequest> {
    let query = call.query(&["limit", "cursor"])?;
    let mut request = PageRequest::new();
    request.limit = query.get("limit").map(limit).transpose()?;
    request.cursor = query.get("cursor").map(str::to_owned);
    Ok(request)
}
