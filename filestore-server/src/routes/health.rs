//! Health checks: of the process, and of the database and the storage beneath it.

use std::sync::Arc;

use filestore_core::Result;
use filestore_core::api::{HealthReply, ReadyReply};
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::get;

/// Builds `/health-checks` and `/health-checks/ready`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let alive = warp::path!("health-checks").and(get(alive));
    let ready = warp::path!("health-checks" / "ready").and(get(ready));

    alive.or(ready).unify()
}

async fn alive(_: Arc<Call>) -> Result<Response, Failure> {
    reply::ok(&HealthReply::new("ok"))
}

async fn ready(call: Arc<Call>) -> Result<Response, Failure> {
    let health = call.store().check().await;
    let well = health.is_good();
    let shown = ReadyReply::new(
        if well { "ready" } else { "not ready" },
        state(&call, health.database, "the database"),
        state(&call, health.storage, "the storage"),
    );

    if well { reply::ok(&shown) } else { reply::not_ready(&shown) }
}

/// Describes the state of a part; the reason of a failure goes to the log.
fn state(call: &Call, checked: Result<()>, name: &str) -> String {
    match checked {
        Ok(()) => "ok".to_owned(),
        Err(error) => {
            tracing::error!(request_id = %call.id, error = %error.chain(), "{name} is not ready");
            error.message().to_owned()
        }
    }
}
