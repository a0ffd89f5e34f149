//! `/admin/providers`: lists all providers with their capabilities, and tests a provider.

use std::sync::Arc;

use filestore_core::api::{AdminProvider, ProviderCheckReport};
use percent_encoding::percent_decode_str;
use warp::Filter;
use warp::reply::Response;

use super::{expect_nothing, long_run};
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::routes::filters::{RouteFilter, any_of, get, post_at};
use crate::routes::path::Segment;

/// Builds `/providers` and `/providers/{code}/check`.
pub(super) fn routes() -> RouteFilter {
    let list = warp::path!("providers").and(get(list));
    let check = post_at(warp::path!("providers" / Segment / "check"), check);

    any_of([list.boxed(), check])
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let (all, now) = (call.store().admin().provider_status().await?, call.store().now());
    let shown: Vec<_> = all.iter().map(|provider| AdminProvider::of(provider, now)).collect();
    reply::ok(&shown)
}

async fn check(call: Arc<Call>, code: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let code = percent_decode_str(&code.0).decode_utf8_lossy().into_owned();
    let store = call.store().clone();
    long_run::reply_once_done(&call, async move {
        let check = store.admin().check_provider(&code).await?;
        Ok(ProviderCheckReport::from(&check))
    })
    .await
}
