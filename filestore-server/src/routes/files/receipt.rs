//! GET /files/{fileId}/receipt and GET /receipt-keys: proof that a purged file is gone.

use std::sync::Arc;

use filestore_core::api::{ReceiptKeyReply, SignedReceipt};
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::super::path::IdSegment;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::routes::filters::{READ_ONLY, answer, call, get, get_or_head, not_allowed};

/// Builds `/files/{fileId}/receipt` and `/receipt-keys`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("files" / IdSegment / "receipt");
    let receipt = path
        .and(get_or_head())
        .and(call())
        .then(|id, call: Arc<Call>| answer(Arc::clone(&call), receipt(call, id)));
    let receipt = receipt.or(path.and(not_allowed(READ_ONLY)).map(|_, reply| reply)).unify();

    let keys = warp::path!("receipt-keys").and(get(keys));
    receipt.or(keys).unify()
}

async fn receipt(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let signed = call.store().receipts().get(id.id()?, &call.caller.scope).await?;
    reply::ok(&SignedReceipt::from(signed))
}

/// Answers with all public keys: also those that sign nothing more, for what they have signed.
async fn keys(call: Arc<Call>) -> Result<Response, Failure> {
    shown(&call).await
}

/// Replies with the public keys as they are now.
pub(in crate::routes) async fn shown(call: &Call) -> Result<Response, Failure> {
    let keys = call.store().receipts().keys().await?.into_iter();
    reply::ok(&keys.map(ReceiptKeyReply::from).collect::<Vec<_>>())
}
