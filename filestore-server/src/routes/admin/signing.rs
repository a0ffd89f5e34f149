//! The secrets that sign URLs: their names and lives, never the secrets themselves. The key that signs
//! receipts.

use std::sync::Arc;

use filestore_core::api::SigningSecretReply;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::super::path::Segment;
use super::expect_nothing;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::{Body, body};
use crate::routes::files::receipt;
use crate::routes::filters::{answer, call, get, not_allowed, post};

/// Builds `/signing-secrets`, its `/rotate` and `/{kid}/revoke`, and `/receipt-keys/rotate`.
pub(super) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let list = warp::path!("signing-secrets").and(get(list));
    let rotate = warp::path!("signing-secrets" / "rotate").and(post(rotate));

    let path = warp::path!("signing-secrets" / Segment / "revoke");
    let revoke = path
        .and(warp::post())
        .and(call())
        .and(body())
        .then(|kid, call: Arc<Call>, body| answer(Arc::clone(&call), revoke(call, kid, body)));
    let revoke = revoke.or(path.and(not_allowed("POST")).map(|_, reply| reply)).unify();

    let receipts = warp::path!("receipt-keys" / "rotate").and(post(rotate_receipts));
    list.or(rotate).unify().or(revoke).unify().or(receipts).unify()
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    shown(&call)
}

async fn rotate(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    call.store().signing().rotate().await?;
    shown(&call)
}

async fn revoke(call: Arc<Call>, kid: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    call.store().signing().revoke(&kid.0).await?;
    shown(&call)
}

async fn rotate_receipts(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    call.store().receipts().rotate_key().await?;
    receipt::shown(&call).await
}

/// Replies with all secrets as they are now.
fn shown(call: &Call) -> Result<Response, Failure> {
    let secrets = call.store().signing().secrets().into_iter();
    reply::ok(&secrets.map(SigningSecretReply::from).collect::<Vec<_>>())
}
