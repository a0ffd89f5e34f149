//! POST /files/restore: many deleted files come back.

use std::sync::Arc;

use filestore_core::api::{MAX_RESTORED_AT_ONCE, RestoreFileResult, RestoreFilesReply};
use warp::Filter;
use warp::reply::Response;

use super::many::{self, Asked, Outcome};
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::routes::filters::{RouteFilter, post};

/// Builds `/files/restore`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("files" / "restore").and(post(many)).boxed()
}

/// Answers POST on `/files/restore` with an independent result for each id.
async fn many(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let asked = Asked::parse(&read_json(&call, body).await?, MAX_RESTORED_AT_ONCE)?;
    let scope = call.recheck().await?;
    let outcomes = call.store().scoped(&scope).restore_many(&asked.known()).await;

    let outcomes = asked.join(&call, outcomes);
    many::report(&call, "restored", &outcomes);
    let results = outcomes.into_iter().map(|(id, outcome)| result_of(id, outcome)).collect();
    reply::ok(&RestoreFilesReply::new(results))
}

fn result_of(id: String, outcome: Outcome) -> RestoreFileResult {
    match outcome {
        Ok(_) => RestoreFileResult::restored(id),
        Err((code, detail)) => RestoreFileResult::failed(id, code, detail),
    }
}
