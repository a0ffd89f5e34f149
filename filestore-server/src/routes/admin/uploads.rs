//! `/admin/uploads`: lists, shows and cancels the resumable uploads of all callers.

use std::sync::Arc;

use filestore_core::api::{ResumableUpload, ResumableUploadList};
use filestore_core::uploads::UploadId;
use filestore_core::{OrganizationId, Result};
use warp::Filter;
use warp::reply::Response;

use super::expect_nothing;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::routes::filters::{RouteFilter, any_of, get, get_at, post_at};
use crate::routes::path::Segment;
use crate::routes::uploads::page_of;

/// Builds `/uploads`, `/uploads/{upload_id}` and `/uploads/{upload_id}/cancel`.
pub(super) fn routes() -> RouteFilter {
    let all = warp::path!("uploads").and(get(list));
    let one = get_at(warp::path!("uploads" / Segment), show);
    let cancel = post_at(warp::path!("uploads" / Segment / "cancel"), cancel);

    any_of([all.boxed(), one, cancel])
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["organization_id", "limit", "cursor"])?;
    let organization =
        query.get("organization_id").map(str::parse::<OrganizationId>).transpose()?;
    let (after, limit) = page_of(&query)?;
    let uploads = call.store().admin().uploads(organization.as_ref(), after, limit).await?;
    reply::ok(&ResumableUploadList::of(&uploads, limit))
}

async fn show(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let upload = call.store().admin().upload(id.plain().parse::<UploadId>()?).await?;
    reply::ok(&ResumableUpload::from(&upload))
}

/// Cancels an upload, and returns its last state.
async fn cancel(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let id = id.plain().parse::<UploadId>()?;
    let last = call.store().admin().cancel_upload(id).await?;
    call.report("organization_id", last.organization_id.as_str());
    reply::ok(&ResumableUpload::from(&last))
}
