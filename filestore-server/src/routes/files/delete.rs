//! DELETE /files/{fileId} and POST /files/delete: delete one or many files.

use std::sync::Arc;

use filestore_core::api::{DeleteFileResult, DeleteFilesReply, DeleteReply, MAX_DELETED_AT_ONCE};
use warp::Filter;
use warp::reply::Response;

use super::many::{self, Asked, Outcome};
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::request::preconditions::preconditions;
use crate::routes::filters::{RouteFilter, post};
use crate::routes::path::IdSegment;

/// Builds `/files/delete`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("files" / "delete").and(post(many)).boxed()
}

/// Answers DELETE on `/files/{fileId}`.
pub(super) async fn one(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let conditions = preconditions(&call.headers);
    let (id, by) = (id.id()?, call.deleter());
    let files = call.store().scoped(&call.caller.scope).deleting_as(&by);
    let record = files.delete_if(id, conditions).await?;
    let shown = DeleteReply::pending(record.file_id.to_string(), record.state.location());
    reply::ok(&shown)
}

/// Answers POST on `/files/delete` with a separate result for each id.
async fn many(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let asked = Asked::parse(&read_json(&call, body).await?, MAX_DELETED_AT_ONCE)?;
    let scope = call.recheck().await?;
    let by = call.deleter();
    let files = call.store().scoped(&scope).deleting_as(&by);
    let outcomes = files.delete_many(&asked.known()).await;

    let outcomes = asked.join(&call, outcomes);
    many::report(&call, "deleted", &outcomes);
    let results = outcomes.into_iter().map(|(id, outcome)| result_of(id, outcome)).collect();
    reply::ok(&DeleteFilesReply::new(results))
}

fn result_of(id: String, outcome: Outcome) -> DeleteFileResult {
    match outcome {
        Ok(record) => DeleteFileResult::pending(id, record.state.location()),
        Err((code, detail)) => DeleteFileResult::failed(id, code, detail),
    }
}
