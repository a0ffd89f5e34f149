//! Administration: purge and sync runs, migrations, providers, the variant cache.

mod long_run;
mod migrate;
mod providers;
mod sync;

use std::sync::Arc;

use filestore_core::api::{PurgeReport, PurgeRunRequest, VariantCacheReport};
use filestore_core::domain::binding::check_organization;
use filestore_core::worker::NoProgress;
use filestore_core::{Error, Result};
use http::StatusCode;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::call::{Call, answer, call, other, reading};
use crate::error::Failure;
use crate::incoming::{Body, body, read_optional_json};
use crate::json::{Object, required};
use crate::reply;

/// Everything under `/admin`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let purge = warp::post()
        .and(call())
        .and(body())
        .then(|call: Arc<Call>, body| answer(Arc::clone(&call), purge_run(call, body)));
    let purge = warp::path!("purge" / "run").and(purge.or(other("POST")).unify());
    let variants = reading()
        .and(call())
        .then(|call: Arc<Call>| answer(Arc::clone(&call), variants_status(call)));
    let variants = warp::path!("variants" / "status").and(variants.or(other("GET, HEAD")).unify());
    let prune = warp::post()
        .and(call())
        .and(body())
        .then(|call: Arc<Call>, body| answer(Arc::clone(&call), variants_prune(call, body)));
    let prune = warp::path!("variants" / "prune").and(prune.or(other("POST")).unify());
    let all = purge
        .or(sync::routes())
        .unify()
        .or(migrate::routes())
        .unify()
        .or(providers::routes())
        .unify()
        .or(variants)
        .unify()
        .or(prune)
        .unify();
    warp::path!("admin" / ..).and(all)
}

async fn purge_run(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let request = json.as_deref().map_or(Ok(PurgeRunRequest::default()), purge_request)?;
    let store = call.store().clone();
    let report = to_the_end(async move {
        if request.dry_run { store.purge_plan().await } else { store.purge_run(&NoProgress).await }
    });
    reply::json(StatusCode::OK, &PurgeReport::from(report.await?))
}

fn purge_request(json: &[u8]) -> Result<PurgeRunRequest> {
    let object = Object::parse(json, &["dry_run"])?;
    Ok(PurgeRunRequest { dry_run: object.flag("dry_run")?.unwrap_or(false) })
}

async fn variants_status(call: Arc<Call>) -> Result<Response, Failure> {
    reply::json(StatusCode::OK, &VariantCacheReport::from(call.store().variant_cache().await))
}

async fn variants_prune(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let store = call.store().clone();
    let report = to_the_end(async move { Ok(store.prune_variants().await) }).await?;
    reply::json(StatusCode::OK, &VariantCacheReport::from(report))
}

/// A body that may only be absent, empty or `{}`.
async fn expect_nothing(call: &Call, body: Body) -> Result<(), Failure> {
    if let Some(json) = read_optional_json(call, body).await? {
        Object::parse(&json, &[])?;
    }
    Ok(())
}

/// The organization a request must name.
fn organization(object: &Object) -> Result<i64> {
    let number = required("organizationId", object.integer("organizationId")?)?;
    check_organization(number).map(|()| number)
}

/// Runs the work in a task of its own: a caller that goes away does not leave it half done, with
/// claims that nobody can take until they expire.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await.map_err(|e| Error::internal("running background work", e))?
}
