//! Administration: overview, purge and sync runs, migrations, checks, providers, resumable uploads, and the variant
//! cache.

mod long_run;
mod backups;
mod keys;
mod fsck;
mod organizations;
mod migrate;
mod providers;
mod signing;
mod sync;
mod uploads;

use std::sync::Arc;

use filestore_core::admin::PurgeOptions;
use filestore_core::api::{PurgeReport, PurgeRunRequest, StatusReply, VariantCacheReport};
use filestore_core::{OrganizationNumber, Result};
use warp::Filter;
use warp::reply::Response;

use self::long_run::Departure;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_optional_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, any_of, get, post};

/// Builds all resources under `/admin`.
pub(crate) fn routes() -> RouteFilter {
    let purge = warp::path!("purge" / "run").and(post(purge_run));
    let variants = warp::path!("variants" / "status").and(get(variants_status));
    let prune = warp::path!("variants" / "prune").and(post(variants_prune));

    let status = warp::path!("status").and(get(status));

    let all = any_of([
        purge.boxed(),
        sync::routes(),
        migrate::routes(),
        fsck::routes(),
        backups::routes(),
        organizations::routes(),
        providers::routes(),
        signing::routes(),
        keys::routes(),
        uploads::routes(),
        variants.boxed(),
        prune.boxed(),
        status.boxed(),
    ]);
    warp::path!("admin" / ..).and(all).boxed()
}

async fn purge_run(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let request = json.as_deref().map_or(Ok(PurgeRunRequest::default()), purge_request)?;
    let options = PurgeOptions::try_from(&request)?;
    if request.dry_run {
        let plan = call.store().admin().purge_plan_of(&options).await?;
        return reply::ok(&PurgeReport::from(plan));
    }

    let store = call.store().clone();
    long_run::reply_with(&call, Departure::Stop, |stop, acceptance| async move {
        let purge = store.admin().purge_with(&options, &|| stop.is_wanted(), &*acceptance).await;
        purge.map(PurgeReport::from)
    })
    .await
}

fn purge_request(json: &[u8]) -> error::Result<PurgeRunRequest> {
    let object = Object::parse(json, &["dry_run", "now", "organization_id"])?;
    let mut request = PurgeRunRequest::default();
    request.dry_run = object.flag("dry_run")?.unwrap_or(false);
    request.now = object.flag("now")?.unwrap_or(false);
    request.organization_id = object.text("organization_id")?;
    Ok(request)
}

async fn status(call: Arc<Call>) -> Result<Response, Failure> {
    let admin = call.store().admin();
    let (overview, variants) = (admin.overview().await, admin.variant_cache().await);
    reply::ok_packed(&call.headers, &StatusReply::of(&overview, variants)).await
}

async fn variants_status(call: Arc<Call>) -> Result<Response, Failure> {
    reply::ok(&VariantCacheReport::from(call.store().admin().variant_cache().await))
}

async fn variants_prune(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let store = call.store().clone();
    long_run::reply_once_done(&call, async move {
        Ok(VariantCacheReport::from(store.admin().prune_variants().await))
    })
    .await
}

/// Reads a body that must be absent, empty or `{}`.
pub(super) async fn expect_nothing(call: &Call, body: Body) -> Result<(), Failure> {
    if let Some(json) = read_optional_json(call, body).await? {
        Object::parse(&json, &[])?;
    }
    Ok(())
}

/// Reads the organization that a request must name.
fn organization(object: &Object) -> Result<OrganizationNumber> {
    required("organizationId", object.integer("organizationId")?)?.try_into()
}
