//! GET /files/{fileId}/receipt and GET /receipt-keys: proof that a purged file is gone.

use std::sync::Arc;

use filestore_core::api::{ReceiptKeyReply, SignedReceipt};
use warp::Filter;
use warp::reply::Response;

use super::super::path::IdSegment;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, any_of, get, get_at};

/// Builds `/files/{fileId}/receipt` and `/receipt-keys`.
pub(crate) fn routes() -> RouteFilter {
    let receipt = get_at(warp::path!("files" / IdSegment / "receipt"), receipt);
    let keys = warp::path!("receipt-keys").and(get(keys));
    any_of([receipt, keys.boxed()])
}

async fn receipt(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let signed = call.store().scoped(&call.caller.scope).receipt(id.id()?).await?;
    reply::ok(&SignedReceipt::from(signed))
}

/// Answers with all public keys, including retired keys, which verify older receipts.
async fn keys(call: Arc<Call>) -> Result<Response, Failure> {
    shown(&call).await
}

/// Replies with the current public keys.
pub(in crate::routes) async fn shown(call: &Call) -> Result<Response, Failure> {
    let keys = call.store().receipts().keys().await?.into_iter();
    reply::ok(&keys.map(ReceiptKeyReply::from).collect::<Vec<_>>())
}
