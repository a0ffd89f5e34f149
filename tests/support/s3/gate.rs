//! HTTP in front of S3: counts requests, applies faults.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use s3s::service::S3Service;
use s3s::{Body, S3Error, StdError, s3_error};

use super::faults::{Fault, Faults, On};
use super::operation::Operation;
use super::store::Orders;

/// The pause before a piece of a body that trickles.
const TRICKLE: Duration = Duration::from_millis(300);

/// The gate that every request passes through.
#[derive(Clone)]
pub(super) struct Gate {
    s3: S3Service,
    pub(super) faults: Faults,
    /// All requests so far.
    seen: Arc<Mutex<Vec<(Method, Operation)>>>,
}

impl Gate {
    pub(super) fn new(s3: S3Service) -> Self {
        Self { s3, faults: Faults::default(), seen: Arc::default() }
    }

    /// Counts the requests of this kind that have come.
    pub(super) fn count(&self, on: &On) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().filter(|(method, operation)| on.matches(method, *operation)).count()
    }

    /// Answers one request. An error closes the connection without an answer.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, StdError> {
        let (parts, body) = request.into_parts();
        let operation = Operation::of(&parts);
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((parts.method.clone(), operation));

        let mut orders =
            Orders { ignore_checksums: self.faults.ignores_checksums(), ..Orders::default() };
        let reply = match self.faults.meet(&parts.method, operation) {
            None => self.serve(Request::from_parts(parts, Body::from(body)), orders).await?,
            Some(Fault::Close) => return Err("closed without an answer".into()),
            Some(Fault::InternalError) => refuse(body, internal_error()).await?,
            Some(Fault::AccessDenied) => refuse(body, s3_error!(AccessDenied)).await?,
            Some(Fault::SlowDown) => refuse(body, slow_down()).await?,
            Some(Fault::Hang) => {
                discard(body).await?;
                let never: Infallible = std::future::pending().await;
                match never {}
            }
            Some(Fault::Trickle) => {
                self.serve(Request::from_parts(parts, trickled(body)), orders).await?
            }
            Some(Fault::LoseReply) => {
                let reply =
                    self.serve(Request::from_parts(parts, Body::from(body)), orders).await?;
                discard(reply.into_body()).await?;
                return Err("done, and the answer is lost".into());
            }
            Some(Fault::CorruptBody) => {
                self.serve(Request::from_parts(parts, corrupt(body)), orders).await?
            }
            Some(Fault::StoreHalf) => {
                orders.store_half = true;
                self.serve(Request::from_parts(parts, Body::from(body)), orders).await?
            }
            Some(Fault::CutReply) => {
                let reply =
                    self.serve(Request::from_parts(parts, Body::from(body)), orders).await?;
                cut(reply)?
            }
        };

        Ok(self.dated(reply))
    }

    async fn serve(
        &self,
        mut request: Request<Body>,
        orders: Orders,
    ) -> Result<Response<Body>, StdError> {
        request.extensions_mut().insert(orders);
        Ok(self.s3.call(request).await?)
    }

    /// The reply as of the server's clock. hyper adds the right date where there is none.
    #[expect(clippy::disallowed_methods, reason = "a provider has a clock of its own")]
    fn dated(&self, mut reply: Response<Body>) -> Response<Body> {
        let off = self.faults.clock_off_secs();
        if off != 0 {
            let by = Duration::from_secs(off.unsigned_abs());
            let now = SystemTime::now();
            let date = httpdate::fmt_http_date(if off > 0 { now + by } else { now - by });
            let date = HeaderValue::from_str(&date).expect("an HTTP date is ASCII");
            reply.headers_mut().insert(DATE, date);
        }
        reply
    }
}

fn internal_error() -> S3Error {
    s3_error!(InternalError, "We encountered an internal error. Please try again.")
}

fn slow_down() -> S3Error {
    s3_error!(SlowDown, "Please reduce your request rate.")
}

/// Reads the request and answers with `error`. Answering before the body is read would make a client
/// that still writes see a reset instead of the answer.
async fn refuse(body: Incoming, error: S3Error) -> Result<Response<Body>, StdError> {
    discard(body).await?;
    Ok(error.to_http_response()?)
}

async fn discard<B>(mut body: B) -> Result<(), StdError>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    StdError: From<B::Error>,
{
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// The same body with one bit of its first byte flipped.
fn corrupt(body: Incoming) -> Body {
    let mut is_done = false;
    let bytes = body.into_data_stream().map_ok(move |bytes| {
        if is_done || bytes.is_empty() {
            return bytes;
        }
        is_done = true;
        let mut bytes = Vec::from(bytes);
        bytes[0] ^= 1;
        Bytes::from(bytes)
    });

    streamed(bytes.map_err(StdError::from))
}

/// The same body, with a pause before each of its pieces.
fn trickled(body: Incoming) -> Body {
    let pieces = body.into_data_stream().map_err(StdError::from);
    streamed(pieces.and_then(|bytes| async move {
        tokio::time::sleep(TRICKLE).await;
        Ok(bytes)
    }))
}

/// The same reply, of whose body only half comes. A reply that has none is an error.
fn cut(reply: Response<Body>) -> Result<Response<Body>, StdError> {
    let (mut parts, body) = reply.into_parts();
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());

    let length = announced.or(hyper::body::Body::size_hint(&body).exact()).unwrap_or_default();
    if length == 0 || body.is_end_stream() {
        return Err("no body to cut".into());
    }
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));

    let bytes = stream::try_unfold((body, length / 2), |(mut body, left)| async move {
        if left > 0
            && let Some(mut bytes) = body.try_next().await?
        {
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            let left = left - bytes.len() as u64;
            return Ok(Some((bytes, (body, left))));
        }
        // What came so far is to be sent before the connection goes.
        tokio::task::yield_now().await;
        Err(StdError::from("cut in the middle"))
    });

    Ok(Response::from_parts(parts, streamed(bytes)))
}

fn streamed(bytes: impl Stream<Item = Result<Bytes, StdError>> + Send + 'static) -> Body {
    Body::http_body_unsync(StreamBody::new(bytes.map(|bytes| bytes.map(Frame::data))))
}
