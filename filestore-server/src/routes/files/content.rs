//! GET, PATCH and DELETE /files/{fileId}: reads, edits and deletes a file. The handlers of PATCH and DELETE
//! are in [`super::edit`] and [`super::delete`].
//!
//! For a CLOUD file, the provider creates a URL that grants reading this single object, with its type and
//! disposition: 302. If the provider cannot create such a URL, or with `redirect=false`, the server streams the
//! bytes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::signing::PresignMethod;
use filestore_core::web::serving::{self, Serving};
use filestore_core::{
    ByteStream, Disposition, Error, ErrorKind, FileId, FileRecord, LocalBlob, Opened, SendFile,
};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use warp::reply::Response;
use warp::{Filter, Rejection, Reply};

use super::super::path::IdSegment;
use crate::http::conditional::{LastModified, Outcome, Validators, evaluate, if_range_holds};
use crate::http::date;
use crate::http::etag::{EntityTag, repr_digest};
use crate::http::query::Query;
use crate::http::range::ByteRange;
use crate::http::values::Values;
use crate::listen::SentFile;
use crate::reply::{self, Failure, NOSNIFF, RequestId, cache_control, shared};
use crate::request::call::Call;
use crate::request::fields::flag;
use crate::request::incoming::body;
use crate::routes::filters::{any_of, call, get_or_head, not_allowed, reply_of};

/// The size of a reply's own header values, for a file name of usual length.
const VALUES_BYTES: usize = 512;

/// The size from which the kernel sends a file faster than this process copies it: by 2 % at 20 KB, and by a
/// fifth at 40 KB.
const SENT_FROM: u64 = 16 << 10;

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

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

        let request = ContentRequest { call, record: &record, query, requested };
        request.reply().await
    });
    answered.await
}

/// Redirects to a presigned URL. The reply has no validators, because conditions apply to the bytes, which
/// are elsewhere (RFC 9110 section 13.2.1).
///
/// Caches can keep the redirect for at most a minute, at most half of the URL's lifetime, and not beyond the
/// window of a signed URL.
fn redirect(call: &Call, url: &str) -> Result<Response, Failure> {
    let life = (call.store().config().presign_ttl / 2).min(Duration::from_mins(1));
    let cached = match call.window() {
        Some(window) => shared(window.min(life)),
        None => HeaderValue::try_from(format!("private, max-age={}", life.as_secs()))
            .expect("it is ASCII"),
    };

    let url =
        HeaderValue::try_from(url).map_err(|error| Error::internal("writing a location", error))?;
    let mut response = reply::found(url);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, cached);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// A request for one record's bytes.
struct ContentRequest<'a> {
    call: &'a Call,
    record: &'a FileRecord,
    query: &'a Query,
    requested: Option<Disposition>,
}

impl ContentRequest<'_> {
    /// Creates the reply in the order of RFC 9110 section 13.2.2. `None` if the record changed.
    async fn reply(&self) -> Result<Option<Response>, Failure> {
        let blob = &self.record.blob;
        let current = Validators {
            etag: EntityTag::of(&blob.sha256),
            last_modified: Some(LastModified::new(blob.stored_at, self.call.store().now())),
        };
        let headers = &self.call.headers;
        match evaluate(headers, &current) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Ok(Some(self.not_modified(&current))),
            Outcome::PreconditionFailed => {
                let message = "the file's content is not the one the request is about";
                return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
            }
        }

        let ranged = self.call.method == Method::GET && if_range_holds(headers, &current);
        let range = if ranged { ByteRange::of(headers, blob.size_bytes) } else { ByteRange::Whole };
        let Some(span) = Span::of(range, blob.size_bytes) else {
            return Err(Failure::RangeNotSatisfiable(blob.size_bytes));
        };

        let Some(mut response) = self.bytes(span).await? else { return Ok(None) };
        let mut values = Values::with_capacity(VALUES_BYTES);
        self.describe(response.headers_mut(), &mut values, &current);
        if let Some(value) = range.content_range(blob.size_bytes) {
            response = reply::partial_content(response, value);
        }
        let length = values.format(format_args!("{}", span.len())).expect("digits are ASCII");
        response.headers_mut().insert(CONTENT_LENGTH, length);
        Ok(Some(response))
    }

    /// Sends the bytes of `span`. `None` if the record changed. HEAD opens no file.
    async fn bytes(&self, span: Span) -> Result<Option<Response>, Failure> {
        if self.call.method == Method::HEAD {
            return Ok(Some(Response::default()));
        }
        Ok(send(self.call, self.record, span).await?)
    }

    fn not_modified(&self, current: &Validators) -> Response {
        let mut response = reply::not_modified();
        let headers = response.headers_mut();
        let mut values = Values::with_capacity(VALUES_BYTES);
        self.add_validators(headers, &mut values, current);
        // An edit changes what a cache stored beside the bytes, and not their validators (RFC 9111
        // section 4.3.4). So did the first version that sends types in one form only.
        let how = self.serving();
        if self.record.edited_at.is_some() || !how.is_of_every_version(&self.record.mime_type) {
            self.add_handling(headers, &mut values, &how);
        }
        response
    }

    fn serving(&self) -> Serving<'_> {
        let sniffed = self.record.blob.sniffed_type.as_deref();
        serving::decide(&self.record.mime_type, sniffed, self.requested)
    }

    /// Adds the headers that tell a browser how to handle the bytes.
    fn add_handling(&self, headers: &mut HeaderMap, values: &mut Values, how: &Serving<'_>) {
        let content_type = values.join(&[&how.content_type]).expect("it is ASCII");
        headers.insert(CONTENT_TYPE, content_type);
        let disposition = how.disposition.to_value(&self.record.original_name);
        let disposition = values.join(&[&disposition]).expect("it is ASCII");
        headers.insert(CONTENT_DISPOSITION, disposition);
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(how.csp));
    }

    /// Adds the headers that a 200 and a 304 have in common (section 15.4.5).
    fn add_validators(&self, headers: &mut HeaderMap, values: &mut Values, current: &Validators) {
        let blob = &self.record.blob;
        headers.insert(ETAG, current.etag.write(values));
        let cached = cache_control(self.call.window(), self.query.get("v"), &blob.sha256);
        headers.insert(CACHE_CONTROL, cached);
        if let Some(date) = current.last_modified.and_then(LastModified::date) {
            let modified = values.format(format_args!("{}", date::format(date)));
            headers.insert(LAST_MODIFIED, modified.expect("a date is ASCII"));
        }
    }

    fn describe(&self, headers: &mut HeaderMap, values: &mut Values, current: &Validators) {
        // All of a reply's headers, and those of the service around the routes: one growth of the map.
        headers.reserve(14);
        self.add_validators(headers, values, current);
        let blob = &self.record.blob;

        self.add_handling(headers, values, &self.serving());
        headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(REPR_DIGEST, repr_digest(&blob.sha256, values));
    }
}

/// A range of bytes. The end is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    end: u64,
}

impl Span {
    /// Returns all `size` bytes.
    pub(super) fn whole(size: u64) -> Self {
        Self { start: 0, end: size }
    }

    fn of(range: ByteRange, size: u64) -> Option<Self> {
        match range {
            ByteRange::Whole => Some(Self::whole(size)),
            ByteRange::Part { first, last } => Some(Self { start: first, end: last + 1 }),
            ByteRange::Unsatisfiable => None,
        }
    }

    fn len(self) -> u64 {
        self.end - self.start
    }
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

/// Sends `range` of a file, by the kernel if possible, and otherwise as a stream. A failure is logged and
/// cuts the connection.
fn send_blob(call: &Call, blob: LocalBlob, range: Range<u64>) -> Response {
    let sending = if call.takes_files { blob.into_send_file(range.clone()) } else { Err(blob) };
    match sending {
        Ok(file) => sent(call, file),
        Err(blob) => cut_if_broken(call, blob.into_stream(range)),
    }
}

/// Lets the kernel send a file. A failure is logged and cuts the connection.
pub(super) fn sent(call: &Call, file: SendFile) -> Response {
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

/// Sends bytes of a record: few bytes in one piece, otherwise as a stream. `None` if the record changed. A
/// failing stream cuts the connection, so that the sent bytes cannot look complete.
pub(super) async fn send(
    call: &Call,
    record: &FileRecord,
    span: Span,
) -> Result<Option<Response>, Error> {
    let range = span.start..span.end;
    let serving = call.store().serving(&call.caller.scope);
    if call.takes_files
        && span.len() >= SENT_FROM
        && let Some(file) = serving.send_file(record, range.clone())
    {
        return Ok(Some(sent(call, file)));
    }

    Ok(match serving.open(record, range.clone()).await? {
        Opened::Small(bytes) => Some(Response::new(bytes.into())),
        Opened::Local(blob) => Some(send_blob(call, blob, range)),
        Opened::Remote(bytes) => Some(cut_if_broken(call, shareable(bytes))),
        Opened::Changed => None,
    })
}
