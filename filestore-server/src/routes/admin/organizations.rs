//! `/admin/organizations`: erasing an organization.

use std::sync::Arc;

use filestore_core::api::EraseReceipt;
use filestore_core::{Error, OrganizationId, Result};
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::long_run::{self, Departure};
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::{Body, body};
use crate::request::json::read_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{answer, call, not_allowed};
use crate::routes::path::Segment;

/// Builds `/organizations/{organization_id}/erase`.
pub(super) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("organizations" / Segment / "erase");
    let erase = path.and(warp::post()).and(call()).and(body()).then(
        |id: Segment, call: Arc<Call>, body| answer(Arc::clone(&call), erase(id, call, body)),
    );
    erase.or(path.and(not_allowed("POST")).map(|_, reply| reply)).unify()
}

async fn erase(id: Segment, call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let organization: OrganizationId = id.0.parse()?;
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

fn confirm(organization: &OrganizationId, json: &[u8]) -> Result<()> {
    let object = Object::parse(json, &["confirm"])?;
    if required("confirm", object.text("confirm")?)? == organization.as_str() {
        return Ok(());
    }
    Err(Error::invalid("confirm", "confirm must name the organization of the path"))
}
