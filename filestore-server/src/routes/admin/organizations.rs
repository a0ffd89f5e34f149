//! `/admin/organizations`: erases an organization.

use std::sync::Arc;

use filestore_core::api::EraseReceipt;
use filestore_core::{Error, OrganizationId, Result};
use warp::reply::Response;

use super::long_run::{self, Departure};
use crate::error;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, post_at};
use crate::routes::path::Segment;

/// Builds `/organizations/{organization_id}/erase`.
pub(super) fn routes() -> RouteFilter {
    post_at(warp::path!("organizations" / Segment / "erase"), erase)
}

async fn erase(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let organization: OrganizationId = id.plain().parse()?;
    confirm(&organization, &read_json(&call, body).await?)?;

    let store = call.store().clone();
    long_run::reply_with(&call, Departure::Stop, |stop, acceptance| async move {
        let erased = store
            .admin()
            .erase_organization(&organization, &|| stop.is_wanted(), &*acceptance)
            .await;
        erased.map(EraseReceipt::from)
    })
    .await
}

fn confirm(organization: &OrganizationId, json: &[u8]) -> error::Result<()> {
    let object = Object::parse(json, &["confirm"])?;
    if required("confirm", object.text("confirm")?)? == organization.as_str() {
        return Ok(());
    }
    Err(Error::invalid("confirm", "confirm must name the organization of the path").into())
}
