//! `/admin/sync`: the queue of files that wait for their provider.

use std::sync::Arc;

use filestore_core::api::{OrganizationSyncStatus, SyncQueueReport, SyncReport, SyncStatusReport};
use filestore_core::{OrganizationNumber, Result};
use warp::Filter;
use warp::reply::Response;

use super::long_run::{self, Departure};
use super::{expect_nothing, organization};
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::{read_json, read_optional_json};
use crate::request::object::Object;
use crate::routes::filters::{RouteFilter, any_of, get, post};

/// Builds `/sync/run`, `/enqueue`, `/retry` and `/status`.
pub(super) fn routes() -> RouteFilter {
    let run = warp::path!("sync" / "run").and(post(run));
    let enqueue = warp::path!("sync" / "enqueue").and(post(enqueue));
    let retry = warp::path!("sync" / "retry").and(post(retry));
    let status = warp::path!("sync" / "status").and(get(status));

    any_of([run.boxed(), enqueue.boxed(), retry.boxed(), status.boxed()])
}

async fn run(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let store = call.store().clone();
    long_run::reply_with(&call, Departure::Stop, |stop, acceptance| async move {
        store.admin().sync_until(&|| stop.is_wanted(), acceptance).await.map(SyncReport::from)
    })
    .await
}

async fn enqueue(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let organization = named(&read_json(&call, body).await?)?;
    let store = call.store().clone();
    long_run::reply_once_done(&call, async move {
        store.admin().sync_enqueue(organization).await.map(SyncQueueReport::new)
    })
    .await
}

fn named(json: &[u8]) -> error::Result<OrganizationNumber> {
    Ok(organization(&Object::parse(json, &["organizationId"])?)?)
}

async fn retry(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let organization = json.as_deref().map_or(Ok(None), maybe_named)?;
    let store = call.store().clone();
    long_run::reply_once_done(&call, async move {
        store.admin().sync_retry(organization).await.map(SyncQueueReport::new)
    })
    .await
}

fn maybe_named(json: &[u8]) -> error::Result<Option<OrganizationNumber>> {
    let object = Object::parse(json, &["organizationId"])?;
    Ok(object.integer("organizationId")?.map(|_| organization(&object)).transpose()?)
}

async fn status(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["organizationId"])?;
    if let Some(organization) = query.get("organizationId") {
        let status = call.store().admin().sync_status_of(organization.parse()?).await?;
        return reply::ok(&OrganizationSyncStatus::from(status));
    }
    reply::ok(&SyncStatusReport::from(call.store().admin().sync_status().await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::api::ErrorCode;

    #[test]
    fn an_organization_is_required_to_enqueue_and_not_to_retry() {
        assert_eq!(named(br#"{"organizationId":7}"#).unwrap().get(), 7);
        assert_eq!(named(b"{}").unwrap_err().code(), ErrorCode::MissingField);
        assert_eq!(
            maybe_named(br#"{"organizationId":7}"#).unwrap().map(OrganizationNumber::get),
            Some(7)
        );
        assert_eq!(maybe_named(b"{}").unwrap(), None);

        for bad in
            [r#"{"organizationId":0}"#, r#"{"organizationId":"7"}"#, r#"{"organizationId":null}"#]
        {
            assert_eq!(
                maybe_named(bad.as_bytes()).unwrap_err().code(),
                ErrorCode::InvalidField,
                "{bad}"
            );
        }

        let error = maybe_named(br#"{"organization_id":7}"#).unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("organization_id"));
    }
}
