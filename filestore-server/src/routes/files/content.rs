//! GET, PATCH and DELETE /files/{fileId}: reads, edits and deletes a file. The handlers of PATCH and DELETE
//! are in [`super::edit`] and [`super::delete`].
//!
//! For a CLOUD file, the provider creates a URL that grants reading this single object, with its type and
//! disposition: 302. If the provider cannot create such a URL, or with `redirect=false`, the server streams the
//! bytes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::signing::PresignMethod;
use filestore_core::web::{Caching, Payload, ReadRequest, Sends};
use filestore_core::{ByteStream, Error, FileId, SendFile};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use http::{HeaderValue, Method};
use parking_lot::Mutex;
use warp::reply::Response;
use warp::{Filter, Rejection, Reply};

use super::super::path::IdSegment;
use crate::listen::SentFile;
use crate::reply::{self, Failure, RequestId};
use crate::request::call::Call;
use crate::request::fields::flag;
use crate::request::incoming::body;
use crate::routes::filters::{any_of, call, get_or_head, not_allowed, reply_of};

/// Builds `/files/{fileId}`.
pub(crate) fn routes() -> impl Filter<Extract = (Response,), Error = Rejection> + Clone {
    let path = warp::path!("files" / IdSegment);

    let read = path
        .and(get_or_head())
        .and(call())
        .then(|id, call: Arc<Call>| reply_of(Arc::clone(&call), content(call, id)));
    let delete = path
        .and(warp::delete())
        .and(call())
        .then(|id, call: Arc<Call>| reply_of(Arc::clone(&call), super::delete::one(call, id)));
    let edit = path.and(warp::patch()).and(call()).and(body()).then(|id, call: Arc<Call>, body| {
        reply_of(Arc::clone(&call), super::edit::edit(call, id, body))
    });
    let rest = path.and(not_allowed("GET, HEAD, PATCH, DELETE")).map(|_, reply| reply);
    read.or(any_of([delete.boxed(), edit.boxed(), rest.boxed()])).unify()
}

pub(super) async fn content(call: Arc<Call>, id: IdSegment) -> Result<Response, Failure> {
    let query = call.query(&["disposition", "v", "redirect"])?;
    let may_redirect = query.get("redirect").map(flag).transpose();
    let may_redirect = may_redirect.map_err(|error| error.with_field("redirect"))?.unwrap_or(true);
    let requested = query.get("disposition").map(str::parse).transpose()?;
    let id: FileId = id.id()?;

    let (call, query) = (&call, &query);
    let serving = call.store().serving(&call.caller.scope);
    let answered = serving.with_record(id, |record| async move {
        let method = match call.method {
            Method::HEAD => PresignMethod::Head,
            _ => PresignMethod::Get,
        };
        if may_redirect && let Some(url) = serving.redirect(&record, method, requested).await? {
            return redirect(call, &url).map(Some);
        }

        let request = read_request(call, query.get("v")).with_disposition(requested);
        Ok(request.content(serving, &record).await?.map(|reply| carried(call, reply)))
    });
    answered.await
}

/// Redirects to a presigned URL. The reply has no validators, because conditions apply to the bytes, which
/// are elsewhere (RFC 9110 section 13.2.1).
///
/// Caches can keep the redirect for at most a minute, at most half of the URL's lifetime, and not beyond the
/// window of a signed URL. If the signed URL forbids shared caches, no cache keeps the redirect.
fn redirect(call: &Call, url: &str) -> Result<Response, Failure> {
    let life = (call.store().config().presign_ttl / 2).min(Duration::from_mins(1));
    let cached = match call.window() {
        Some(window) => format!("public, max-age={}", window.min(life).as_secs()),
        None if call.is_unshared() => "private, no-store".to_owned(),
        None => format!("private, max-age={}", life.as_secs()),
    };
    let cached = HeaderValue::try_from(cached).expect("it is ASCII");

    let url =
        HeaderValue::try_from(url).map_err(|error| Error::internal("writing a location", error))?;
    let mut response = reply::found(url);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, cached);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// Describes the request to the core, which decides the reply. `version` is the content that the URL names.
pub(super) fn read_request<'a>(call: &'a Call, version: Option<&'a str>) -> ReadRequest<'a> {
    let caching = match (call.window(), version) {
        (Some(window), _) => Caching::Shared(window),
        (None, Some(version)) => Caching::Named(version),
        (None, None) => Caching::Checked,
    };
    let sends = if call.takes_files { Sends::Files } else { Sends::Bytes };
    ReadRequest::new(&call.method, &call.headers).with_caching(caching).with_sends(sends)
}

/// Makes the body of a reply. A failing stream is logged and cuts the connection, so that the sent bytes cannot look
/// complete.
pub(super) fn carried(call: &Call, reply: http::Response<Payload>) -> Response {
    let (head, payload) = reply.into_parts();
    let mut response = match payload {
        Payload::Empty => Response::default(),
        Payload::Bytes(bytes) => Response::new(bytes.into()),
        Payload::Blob(blob, range) => cut_if_broken(call, blob.into_stream(range)),
        Payload::Sent(file) => sent(call, file),
        Payload::Stream(bytes) => cut_if_broken(call, shareable(bytes)),
    };
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Streams bytes of a record. A failure is logged and cuts the connection.
fn cut_if_broken(
    call: &Call,
    bytes: impl Stream<Item = Result<Bytes, Error>> + Send + Sync + 'static,
) -> Response {
    let id = call.id;
    let chunks = bytes.inspect_err(move |error| log_cut(&id, &error.chain()));
    warp::reply::stream(chunks).into_response()
}

/// Lets the kernel send a file. A failure is logged and cuts the connection.
fn sent(call: &Call, file: SendFile) -> Response {
    let id = call.id;
    let mut response = Response::default();
    let file = SentFile::new(file, move |error| log_cut(&id, error));
    response.extensions_mut().insert(file);
    response
}

fn log_cut(id: &RequestId, error: &dyn fmt::Display) {
    tracing::error!(request_id = %id, trace_id = id.trace_id(), %error, "a reply was cut");
}

/// Makes the stream `Sync` with an uncontended lock, because warp requires it.
fn shareable(
    bytes: ByteStream,
) -> impl Stream<Item = Result<Bytes, Error>> + Send + Sync + 'static {
    let mut bytes = Mutex::new(bytes);
    stream::poll_fn(move |cx| bytes.get_mut().poll_next_unpin(cx))
}
