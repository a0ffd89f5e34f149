//! Replies with a record, or with the part that the caller can see.

use filestore_core::FileRecord;
use filestore_core::api::{self, ChangeReply, FileIdReply};
use warp::reply::Response;

use crate::reply::{self, Failure};
use crate::request::call::Call;

/// Converts records for a reply, with at most one query of bindings for all of them. If the bindings are
/// unreadable, the reply does not tell which files wait for a copy, because the request has already
/// succeeded.
pub(super) async fn converted(call: &Call, records: &[FileRecord]) -> Vec<api::FileRecord> {
    let config = call.store().config();
    let mut shown: Vec<_> =
        records.iter().map(|record| api::FileRecord::of(record, &config)).collect();

    match call.store().bindings().awaits_copy(records).await {
        Ok(awaited) => {
            for (shown, awaits) in shown.iter_mut().zip(awaited) {
                shown.awaits_copy = Some(awaits);
            }
        }
        Err(error) => {
            tracing::warn!(request_id = %call.id, error = %error.chain(), "the bindings of files cannot be read");
        }
    }
    shown
}

/// Converts one record as [`converted`] does.
pub(in crate::routes) async fn converted_one(call: &Call, record: &FileRecord) -> api::FileRecord {
    let mut all = converted(call, std::slice::from_ref(record)).await;
    all.pop().expect("a record for each record")
}

/// Replies 200 with the record, to a caller who may read files.
pub(super) async fn shown(call: &Call, record: &FileRecord) -> Result<Response, Failure> {
    let shown = converted_one(call, record).await;
    Ok(reply::with_etag(reply::ok(&shown)?, record))
}

/// Replies 200 with the record if the caller may read files, else with the id alone: the tag would tell the
/// digest.
pub(super) async fn shown_to(call: &Call, record: &FileRecord) -> Result<Response, Failure> {
    if call.may_read() {
        return shown(call, record).await;
    }
    reply::ok(&FileIdReply::new(record.file_id.to_string()))
}

/// Replies 200 to a caller who changed a file: with the record if the caller may read files, else with id,
/// sync status and time of the change, and without the tag.
pub(super) async fn changed_to(call: &Call, record: &FileRecord) -> Result<Response, Failure> {
    if call.may_read() {
        return shown(call, record).await;
    }
    reply::ok(&ChangeReply::new(
        record.file_id.to_string(),
        record.state.sync(),
        record.updated_at.to_string(),
    ))
}
