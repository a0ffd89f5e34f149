//! DELETE /files/{fileId} and POST /files/delete: the end of one file, and of many.

use std::sync::Arc;

use filestore_core::api::{DeleteFileResult, DeleteFilesReply, DeleteReply, MAX_DELETED_AT_ONCE};
use filestore_core::{Error, ErrorKind, FileId, FileRecord, Result};
use serde_json::{Value, json};
use warp::Filter;
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::request::object::{Object, required};
use crate::request::preconditions::preconditions;
use crate::routes::filters::{Route, post};
use crate::routes::path::IdSegment;

/// Builds `/files/delete`.
pub(crate) fn routes() -> Route {
    warp::path!("files" / "delete").and(post(many)).boxed()
}

/// Answers DELETE on `/files/{fileId}`.
pub(super) async fn one(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let conditions = preconditions(&call.headers);
    let (id, by) = (id.id()?, call.deleter());
    let record = call.store().delete_by(id, &call.caller.scope, conditions, &by).await?;
    let shown = DeleteReply::pending(record.file_id.to_string(), record.state.location());
    reply::ok(&shown)
}

/// Answers POST on `/files/delete`: a result for each id, whatever becomes of the others.
async fn many(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let ids = asked_for(&read_json(&call, body).await?)?;
    let parsed: Vec<Result<FileId>> = ids.iter().map(|id| id.parse()).collect();
    let known: Vec<FileId> = parsed.iter().filter_map(|id| id.as_ref().ok().copied()).collect();
    let outcomes = call.store().delete_many_by(&known, &call.caller.scope, &call.deleter()).await;
    let mut outcomes = outcomes.into_iter();

    let mut results = Vec::with_capacity(ids.len());
    for (id, parsed) in ids.into_iter().zip(parsed) {
        let outcome = match parsed {
            Ok(_) => outcomes.next().expect("each id that is one has an outcome"),
            Err(error) => Err(error),
        };
        results.push(result_of(&call, id, outcome));
    }
    if let Some(audited) = &call.audited {
        audited.note_report(report(&results));
    }
    reply::ok(&DeleteFilesReply::new(results))
}

/// Writes for the audit log how many files were deleted, and why the others were not.
fn report(results: &[DeleteFileResult]) -> Value {
    let failed: serde_json::Map<_, _> = results
        .iter()
        .filter_map(|result| {
            let problem = result.error.as_ref()?;
            Some((result.id.clone(), Value::from(problem.code.as_str())))
        })
        .collect();
    let deleted = results.iter().filter(|result| result.error.is_none()).count();
    json!({"deleted": deleted, "failed": failed})
}

fn result_of(call: &Call, id: String, outcome: Result<Arc<FileRecord>>) -> DeleteFileResult {
    match outcome {
        Ok(record) => DeleteFileResult::pending(id, record.state.location()),
        Err(error) => {
            let (code, detail) = Failure::from(error).told(&call.id);
            DeleteFileResult::failed(id, code, detail)
        }
    }
}

fn asked_for(json: &[u8]) -> Result<Vec<String>> {
    let ids = required("ids", Object::parse(json, &["ids"])?.texts("ids")?)?;
    if ids.is_empty() {
        return Err(Error::invalid("ids", "ids are the ids of one file at least"));
    }
    if ids.len() > MAX_DELETED_AT_ONCE {
        let message = format!("ids are at most {MAX_DELETED_AT_ONCE}");
        return Err(Error::new(ErrorKind::TooManyItems, message)
            .with_field("ids")
            .with_limit(MAX_DELETED_AT_ONCE as u64));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_to_a_thousand_ids() {
        let of = |count: usize| format!("{{\"ids\":{:?}}}", vec!["x"; count]);
        assert_eq!(asked_for(of(1000).as_bytes()).unwrap().len(), 1000);
        for (json, kind) in [
            (of(1001), ErrorKind::TooManyItems),
            (of(0), ErrorKind::InvalidField),
            ("{}".to_owned(), ErrorKind::MissingField),
            ("{\"ids\":\"x\"}".to_owned(), ErrorKind::InvalidField),
            ("{\"id\":[]}".to_owned(), ErrorKind::UnknownField),
            ("[]".to_owned(), ErrorKind::MalformedBody),
        ] {
            assert_eq!(asked_for(json.as_bytes()).unwrap_err().kind(), kind, "{json}");
        }
    }
}
