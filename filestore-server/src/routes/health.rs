//! Health checks of the process, the database and the storage.

use std::sync::Arc;

use filestore_core::api::{FsckSummary, HealthReply, ReadyProvider, ReadyReply};
use filestore_core::{Location, Result, Scope};
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, any_of, get};

/// The sentence of a process that answers.
const RUNNING: &str = "filestore is running";

/// Builds `/health-checks` and `/health-checks/ready`.
pub(crate) fn routes() -> RouteFilter {
    let alive = warp::path!("health-checks").and(get(alive));
    let ready = warp::path!("health-checks" / "ready").and(get(ready));

    any_of([alive.boxed(), ready.boxed()])
}

async fn alive(_: Arc<Call>) -> Result<Response, Failure> {
    reply::ok(&HealthReply::new(RUNNING))
}

async fn ready(call: Arc<Call>) -> Result<Response, Failure> {
    let health = call.app.readiness.run(|| call.store().check()).await;
    let well = health.is_good();
    let mut shown = ReadyReply::new(
        if well { "ready" } else { "not ready" },
        state(&call, &health.database, "the database"),
        state(&call, &health.storage, "the storage"),
    );

    shown.providers = providers(&call).await;
    shown.scrub = last_scrub(&call).await;

    if well { reply::ok(&shown) } else { reply::not_ready(&shown, &call.id) }
}

/// Shows the providers of location CLOUD. Providers do not affect the status. Without them, an instance still
/// serves all other files, and another instance could not reach them either.
async fn providers(call: &Call) -> Vec<ReadyProvider> {
    let all = match call.store().admin().provider_status().await {
        Ok(all) => all,
        Err(error) => {
            tracing::error!(request_id = %call.id, trace_id = call.id.trace_id(), error = %error.chain(), "what waits was not counted");
            return Vec::new();
        }
    };

    let now = call.store().now();
    let clouds = all.iter().filter(|provider| provider.info.location == Location::Cloud);
    let shown = clouds.map(|provider| ReadyProvider::of(provider, now));

    // Where keys tell callers apart, anybody may ask for readiness, and errors name places.
    if *call.caller.scope == Scope::All {
        shown.collect()
    } else {
        shown.map(ReadyProvider::without_details).collect()
    }
}

/// Shows the last scrub to callers with access to all organizations, because its findings concern all of
/// them.
async fn last_scrub(call: &Call) -> Option<FsckSummary> {
    if *call.caller.scope != Scope::All {
        return None;
    }
    let checks = call.store().admin().fsck_status().await.ok()?;
    checks.scrub.map(Into::into)
}

/// Describes a part's state. The reason of a failure goes to the log.
fn state(call: &Call, checked: &Result<()>, name: &str) -> String {
    match checked {
        Ok(()) => "ok".to_owned(),
        Err(error) => {
            tracing::error!(request_id = %call.id, trace_id = call.id.trace_id(), error = %error.chain(), "{name} is not ready");
            error.message().to_owned()
        }
    }
}
