//! Routes below `/files`. This file has list, info and the restore of one file.

pub(super) mod variant;
pub(super) mod content;
pub(crate) mod direct;
pub(super) mod upload;
mod change;
mod edit;
pub(super) mod record;
pub(super) mod batch;
pub(super) mod delete;
pub(super) mod restore;
mod many;
pub(super) mod sign;
pub(super) mod receipt;
pub(super) mod explain;

use std::str::FromStr;
use std::sync::Arc;

use filestore_core::api::ListReply;
use filestore_core::{Error, FileId, ListRequest, Result, Timestamp};
use warp::Filter;
use warp::reply::Response;

use super::path::IdSegment;
use crate::http::query::Query;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, any_of, get, get_at, post_at};

/// The parameters of a listing; the last one is followed by a key.
const FILTERS: [&str; 15] = [
    "organization_id",
    "sub_system",
    "status",
    "sync_status",
    "purge_status",
    "limit",
    "cursor",
    "name_prefix",
    "mime_type",
    "created_after",
    "created_before",
    "name_contains",
    "order",
    IDS,
    METADATA,
];

/// The parameter for the records of known files, which goes with no other one.
const IDS: &str = "ids";

/// The prefix of parameters for custom metadata members.
const METADATA: &str = "metadata.";

/// Builds `/files`, `/files/{fileId}/info` and `/files/{fileId}/restore`.
pub(crate) fn routes() -> RouteFilter {
    let info = get_at(warp::path!("files" / IdSegment / "info"), info);
    let list = warp::path!("files").and(get(list));
    let restore = warp::path!("files" / IdSegment / "restore");
    let restore = post_at(restore, |call, id, _unread| restore_file(call, id));

    any_of([info, list.boxed(), restore])
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&FILTERS)?;
    if query.get(IDS).is_some() {
        return known(&call, &query).await;
    }
    let request = list_request(&query)?;
    if let Some(organization) = &request.filter.organization_id {
        call.caller.scope.check(organization)?;
    }
    let page = call.store().scoped(&call.caller.scope).list(&request).await?;
    let items = record::converted(&call, &page.items).await;
    reply::ok_packed(&call.headers, &ListReply::new(items, page.next_cursor)).await
}

/// Replies with the records of the files in `ids`.
async fn known(call: &Call, query: &Query) -> Result<Response, Failure> {
    let files = call.store().scoped(&call.caller.scope);
    let records = files.records(&known_ids(query)?).await?;
    let items = record::converted(call, &records).await;
    reply::ok_packed(&call.headers, &ListReply::new(items, None)).await
}

fn known_ids(query: &Query) -> Result<Vec<FileId>> {
    let is_filter = |name: &str| name != IDS && FILTERS.contains(&name);
    if query.pairs().any(|(name, _)| is_filter(name) || name.starts_with(METADATA)) {
        return Err(Error::invalid(IDS, "ids goes without any other parameter"));
    }
    let text = query.get(IDS).unwrap_or_default();
    let ids = text.split(',').filter(|id| !id.is_empty());
    ids.map(|id| id.parse().map_err(|e: Error| e.with_field(IDS))).collect()
}

fn list_request(query: &Query) -> Result<ListRequest> {
    let mut request = ListRequest::default();
    let filter = &mut request.filter;
    filter.organization_id = query.get("organization_id").map(str::parse).transpose()?;
    filter.sub_system = query.get("sub_system").map(str::parse).transpose()?;
    filter.status = query.get("status").map(str::parse).transpose()?;
    filter.sync_status = query.get("sync_status").map(str::parse).transpose()?;
    filter.purge_status = query.get("purge_status").map(str::parse).transpose()?;

    filter.name_prefix = query.get("name_prefix").map(str::to_owned);
    filter.mime_type = query.get("mime_type").map(str::to_owned);
    filter.created_after = time(query, "created_after")?;
    filter.created_before = time(query, "created_before")?;
    filter.name_contains = query.get("name_contains").map(str::to_owned);
    filter.order = query.get("order").map(str::parse).transpose()?.unwrap_or_default();
    let members =
        query.pairs().filter_map(|(name, value)| Some((name.strip_prefix(METADATA)?, value)));
    filter.metadata = members.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();

    request.limit = query.get("limit").map(limit).transpose()?;
    request.cursor = query.get("cursor").map(str::to_owned);
    Ok(request)
}

fn time(query: &Query, name: &str) -> Result<Option<Timestamp>> {
    query.get(name).map(|text| text.parse().map_err(|e: Error| e.with_field(name))).transpose()
}

/// Reads plain decimal digits. The store checks the range.
pub(super) fn limit<T: FromStr>(text: &str) -> Result<T> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| {
        Error::invalid("limit", "limit is an integer from 1 to 1000").with_limit(1000)
    })
}

async fn info(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let record = call.store().scoped(&call.caller.scope).info(id.id()?).await?;
    record::shown(&call, &record).await
}

async fn restore_file(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let record = call.store().scoped(&call.caller.scope).restore(id.id()?).await?;
    call.report_file(&record);
    record::shown_to(&call, &record).await
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

        let request =
            read("name_prefix=a%20b&created_before=2026-11-21&metadata.k%2Fl=1&metadata.=")
                .unwrap();
        assert_eq!(request.filter.name_prefix.as_deref(), Some("a b"));
        assert_eq!(request.filter.created_before.unwrap().to_string(), "2026-11-21T00:00:00.000Z");
        let members =
            [("k/l", "1"), ("", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(request.filter.metadata, members);
    }

    #[test]
    fn ids_go_without_other_parameters() {
        let (one, two) = ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW");
        let read = |raw: &str| known_ids(&Query::parse(raw, &FILTERS).unwrap());
        let ids = read(&format!("ids={one},{two}&page=2")).unwrap();
        assert_eq!(ids.iter().map(FileId::to_string).collect::<Vec<_>>(), [one, two]);
        assert!(read("ids=").unwrap().is_empty());

        for bad in ["ids=x", "ids=1,2", "limit=1&ids=", "order=newest&ids=", "metadata.k=1&ids="] {
            let error = read(bad).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("ids"), "{bad}");
        }
    }

    #[test]
    fn bad_values_of_known_parameters_are_named() {
        for (raw, field) in [
            ("limit=%2B5", "limit"),
            ("limit=", "limit"),
            ("limit=1e3", "limit"),
            ("status=ready", "status"),
            ("sync_status=failed", "sync_status"),
            ("purge_status=", "purge_status"),
            ("organization_id=007", "organization_id"),
            ("sub_system=..", "sub_system"),
            ("limit=1&limit=1", "limit"),
            ("created_after=yesterday", "created_after"),
            ("created_before=2026-02-30", "created_before"),
            ("metadata.k=1&metadata.k=2", "metadata.k"),
            ("order=name", "order"),
        ] {
            assert_eq!(read(raw).unwrap_err().details().field.as_deref(), Some(field), "{raw}");
        }
    }
}
