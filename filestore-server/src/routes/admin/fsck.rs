//! `/admin/fsck`: checks of the whole store.

use std::sync::Arc;

use filestore_core::admin::{FsckDepth, FsckMode, FsckOptions, FsckStart};
use filestore_core::api::{FsckReport, FsckStatus};
use filestore_core::{FileStore, Result};
use warp::Filter;
use warp::reply::Response;

use super::expect_nothing;
use super::long_run::{self, Acceptance, Departure, Stop};
use super::migrate::rate;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_optional_json;
use crate::request::object::Object;
use crate::routes::filters::{RouteFilter, any_of, get, post};
use crate::state::detached::AtStop;

/// Builds `/fsck/run`, `/stop` and `/status`.
pub(super) fn routes() -> RouteFilter {
    let run = warp::path!("fsck" / "run").and(post(run));
    let stop = warp::path!("fsck" / "stop").and(post(stop));
    let status = warp::path!("fsck" / "status").and(get(status));

    any_of([run.boxed(), stop.boxed(), status.boxed()])
}

async fn run(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let keys = ["repair", "deep", "restart", "bytes_per_second", "provider_code", "detach"];
    let object = Object::parse(json.as_deref().unwrap_or(b"{}"), &keys)?;
    let options = options(call.store(), &object)?;

    let store = call.store().clone();
    let work = |stop: Stop, acceptance: Arc<Acceptance>| async move {
        store.admin().fsck(options, &|| stop.is_wanted(), &*acceptance).await.map(FsckReport::from)
    };
    if object.flag("detach")?.unwrap_or(false) {
        let admin = call.store().admin();
        let shown = async { admin.fsck_status().await.map(FsckStatus::from) };
        return long_run::reply_detached(&call, AtStop::Wait, work, shown).await;
    }
    long_run::reply_with(&call, Departure::Stop, work).await
}

fn options(store: &FileStore, object: &Object) -> error::Result<FsckOptions> {
    let is_set = |key| Ok::<_, filestore_core::Error>(object.flag(key)?.unwrap_or(false));

    let mut options = FsckOptions::default();
    if is_set("repair")? {
        options.mode = FsckMode::Repair;
    }
    if is_set("deep")? {
        options.depth = FsckDepth::Deep;
    }
    if is_set("restart")? {
        options.start = FsckStart::Anew;
    }
    options.bytes_per_second = rate(object)?;
    let code = object.text("provider_code")?;
    let provider = code.map(|code| store.admin().provider_code(&code)).transpose();
    options.provider = provider.map_err(|error| error.with_field("provider_code"))?;
    Ok(options)
}

async fn stop(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    call.store().admin().fsck_stop().await?;
    shown(&call).await
}

async fn status(call: Arc<Call>) -> Result<Response, Failure> {
    shown(&call).await
}

async fn shown(call: &Call) -> Result<Response, Failure> {
    reply::ok(&FsckStatus::from(call.store().admin().fsck_status().await?))
}
