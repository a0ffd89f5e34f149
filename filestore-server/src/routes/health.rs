//! Whether the process answers, and whether what it stands on does.

use std::sync::Arc;

use bytes::Bytes;
use filestore_core::Result;
use filestore_core::api::ReadyReply;
use http::StatusCode;
use warp::reply::Response;
use warp::{Filter, Rejection};

use crate::call::{Call, answer, call, other, reading};
use crate::error::Failure;
use crate::reply;

/// `/health-checks` and `/health-checks/ready`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let alive =
        reading().map(|| reply::plain(StatusCode::OK, Bytes::from_static(br#"{"message":"ok"}"#)));
    let alive = warp::path!("health-checks").and(alive.or(other("GET, HEAD")).unify());
    let ready =
        reading().and(call()).then(|call: Arc<Call>| answer(Arc::clone(&call), ready(call)));
    let ready = warp::path!("health-checks" / "ready").and(ready.or(other("GET, HEAD")).unify());
    alive.or(ready).unify()
}

async fn ready(call: Arc<Call>) -> Result<Response, Failure> {
    let (database, storage) = call.store().check().await;
    let well = database.is_ok() && storage.is_ok();
    let word = |part: Result<()>, name: &str| match part {
        Ok(()) => "ok".to_owned(),
        Err(error) => {
            tracing::error!(request_id = %call.id, error = %error.chain(), "{name} is not ready");
            error.message().to_owned()
        }
    };
    let shown = ReadyReply {
        message: if well { "ready" } else { "not ready" }.to_owned(),
        database: word(database, "the database"),
        storage: word(storage, "the storage"),
    };
    reply::json(if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &shown)
}
