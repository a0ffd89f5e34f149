//! The records: list, info, delete, restore.

pub(super) mod variant;
pub(super) mod content;
pub(super) mod upload;
mod change;
pub(super) mod batch;

use std::str::FromStr;
use std::sync::Arc;

use filestore_core::api::{self, DeleteReply, ListReply};
use filestore_core::{Error, FileRecord, ListRequest, Result};
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::path::IdSegment;
use crate::http::query::Query;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::preconditions::preconditions;
use crate::routes::filters::{READ_ONLY, answer, call, get, get_or_head, not_allowed};

const FILTERS: [&str; 6] =
    ["organization_id", "sub_system", "status", "purge_status", "limit", "cursor"];

/// Builds `/files`, `/files/{fileId}/info` and `/files/{fileId}/restore`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let list = warp::path!("files").and(get(list));

    let path = warp::path!("files" / IdSegment / "info");
    let info = path
        .and(get_or_head())
        .and(call())
        .then(|id, call: Arc<Call>| answer(Arc::clone(&call), info(call, id)));
    let info = info.or(path.and(not_allowed(READ_ONLY)).map(|_, reply| reply)).unify();

    let path = warp::path!("files" / IdSegment / "restore");
    let restore = path
        .and(warp::post())
        .and(call())
        .then(|id, call: Arc<Call>| answer(Arc::clone(&call), restore(call, id)));
    let restore = restore.or(path.and(not_allowed("POST")).map(|_, reply| reply)).unify();

    list.or(info).unify().or(restore).unify()
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let request = list_request(&call.query(&FILTERS)?)?;
    let page = call.store().list(&request, &call.caller.scope).await?;
    let items = page.items.iter().map(Into::into).collect();
    reply::ok(&ListReply::new(items, page.next_cursor))
}

fn list_request(query: &Query) -> Result<ListRequest> {
    let mut request = ListRequest::default();
    request.filter.organization_id = query.get("organization_id").map(str::parse).transpose()?;
    request.filter.sub_system = query.get("sub_system").map(str::parse).transpose()?;
    request.filter.status = query.get("status").map(str::parse).transpose()?;
    request.filter.purge_status = query.get("purge_status").map(str::parse).transpose()?;

    request.limit = query.get("limit").map(limit).transpose()?;
    request.cursor = query.get("cursor").map(str::to_owned);
    Ok(request)
}

/// Reads plain decimal digits. The store checks the range.
fn limit<T: FromStr>(text: &str) -> Result<T> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| {
        Error::invalid("limit", "limit is an integer from 1 to 1000").with_limit(1000)
    })
}

async fn info(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let record = call.store().info(id.id()?, &call.caller.scope).await?;
    shown(&record)
}

async fn restore(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let record = call.store().restore(id.id()?, &call.caller.scope).await?;
    shown(&record)
}

fn shown(record: &FileRecord) -> Result<Response, Failure> {
    Ok(reply::with_etag(reply::ok(&api::FileRecord::from(record))?, record))
}

/// Answers DELETE on `/files/{fileId}`.
pub(super) async fn delete(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let conditions = preconditions(&call.headers);
    let record = call.store().delete_if(id.id()?, &call.caller.scope, conditions).await?;
    let shown = DeleteReply::pending(record.file_id.to_string(), record.state.location());
    reply::ok(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Result<ListRequest> {
        list_request(&Query::parse(raw, &FILTERS)?)
    }

    #[test]
    fn filters_are_read_and_unknown_parameters_ignored() {
        let request =
            read("organization_id=7&status=READY&limit=5&cursor=c&page=2&page=3").unwrap();
        assert_eq!(request.filter.organization_id, Some("7".parse().unwrap()));
        assert_eq!((request.limit, request.cursor.as_deref()), (Some(5), Some("c")));
        assert_eq!(read("").unwrap(), ListRequest::default());
    }

    #[test]
    fn bad_values_of_known_parameters_are_named() {
        for (raw, field) in [
            ("limit=%2B5", "limit"),
            ("limit=", "limit"),
            ("limit=1e3", "limit"),
            ("status=ready", "status"),
            ("purge_status=", "purge_status"),
            ("organization_id=007", "organization_id"),
            ("sub_system=..", "sub_system"),
            ("limit=1&limit=1", "limit"),
        ] {
            assert_eq!(read(raw).unwrap_err().details().field.as_deref(), Some(field), "{raw}");
        }
    }
}
