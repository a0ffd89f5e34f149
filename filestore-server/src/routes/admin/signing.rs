//! The names and lifetimes of signing secrets, never the secrets themselves. Also the key that signs
//! receipts.

use std::sync::Arc;

use filestore_core::api::SigningSecretReply;
use warp::Filter;
use warp::reply::Response;

use super::super::path::Segment;
use super::expect_nothing;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::routes::files::receipt;
use crate::routes::filters::{RouteFilter, any_of, get, post, post_at};

/// Builds `/signing-secrets`, its `/rotate` and `/{kid}/revoke`, and `/receipt-keys/rotate`.
pub(super) fn routes() -> RouteFilter {
    let list = warp::path!("signing-secrets").and(get(list));
    let rotate = warp::path!("signing-secrets" / "rotate").and(post(rotate));

    let revoke = post_at(warp::path!("signing-secrets" / Segment / "revoke"), revoke);

    let receipts = warp::path!("receipt-keys" / "rotate").and(post(rotate_receipts));
    any_of([list.boxed(), rotate.boxed(), revoke, receipts.boxed()])
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
    call.store().signing().revoke(&kid.plain()).await?;
    shown(&call)
}

async fn rotate_receipts(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    call.store().receipts().rotate_key().await?;
    receipt::shown(&call).await
}

/// Replies with the current secrets.
fn shown(call: &Call) -> Result<Response, Failure> {
    let secrets = call.store().signing().secrets().into_iter();
    reply::ok(&secrets.map(SigningSecretReply::from).collect::<Vec<_>>())
}
