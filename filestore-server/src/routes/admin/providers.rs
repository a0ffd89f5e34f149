//! `/admin/providers`: every provider with its abilities, and a check of one.

use std::sync::Arc;

use filestore_core::api::{AdminProvider, ProviderCheckReport};
use percent_encoding::percent_decode_str;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::{expect_nothing, long_run};
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::{Body, body};
use crate::routes::filters::{answer, call, get, not_allowed};
use crate::routes::path::Segment;

/// Builds `/providers` and `/providers/{code}/check`.
pub(super) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let list = warp::path!("providers").and(get(list));

    let path = warp::path!("providers" / Segment / "check");
    let check = path.and(warp::post()).and(call()).and(body()).then(
        |code: Segment, call: Arc<Call>, body| answer(Arc::clone(&call), check(code, call, body)),
    );
    let not_post = path.and(not_allowed("POST")).map(|_: Segment, reply: Response| reply);

    list.or(check).unify().or(not_post).unify()
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let (all, now) = (call.store().admin().provider_status().await?, call.store().now());
    let shown: Vec<_> = all.iter().map(|provider| AdminProvider::of(provider, now)).collect();
    reply::ok(&shown)
}

async fn check(code: Segment, call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let code = percent_decode_str(&code.0).decode_utf8_lossy().into_owned();
    let store = call.store().clone();
    long_run::reply_once_done(&call, async move {
        let check = store.admin().check_provider(&code).await?;
        Ok(ProviderCheckReport::from(&check))
    })
    .await
}
