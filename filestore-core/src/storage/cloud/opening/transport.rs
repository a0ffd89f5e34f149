//! Sends requests, and limits their silence instead of their duration.
//!
//! # Purpose
//! Slow connections are fine: a request can take as long as its bytes move. The limit applies to the time
//! without movement. While a body is sent, each piece that the socket accepts is a movement. Bytes in the
//! kernel's buffers move unseen. Their time limit depends on how long the socket took to accept them, and on
//! their length.
//!
//! This replaces OpenDAL's own transport, which can only limit whole requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{Method, Request, Response};
use opendal::ErrorKind as Theirs;
use opendal::raw::{parse_content_encoding, parse_content_length};
use opendal::{Buffer, HttpBody, HttpTransport};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

/// The largest piece of a body for one write to the socket.
const PIECE_BYTES: usize = 64 << 10;

/// The minimum rate at which a provider processes a received body before it replies.
const INTAKE_BYTES_PER_SECOND: u64 = 512 << 10;

/// The factor by which sending the kernel's buffers can take longer than filling them.
const BUFFERED_FACTOR: u32 = 4;

/// The message for a redirect. The message does not contain the address, because the provider chose it.
const REDIRECTED: &str =
    "the provider redirects to another address, and redirects are not followed";

/// A transport that abandons a request after `silence` without movement.
pub(super) struct Timed {
    pub(in crate::storage::cloud) client: reqwest::Client,
    pub(in crate::storage::cloud) silence: Duration,
}

/// The movement of a request's body.
struct Movement {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    last: Instant,
    taken: u64,
}

impl HttpTransport for Timed {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let (parts, body) = request.into_parts();
        let is_head = parts.method == Method::HEAD;
        let movement = Arc::new(Movement::begin());

        let mut sending = self.client.request(parts.method, parts.uri.to_string());
        if !body.is_empty() {
            if !parts.headers.contains_key(CONTENT_LENGTH) {
                sending = sending.header(CONTENT_LENGTH, body.len());
            }
            let pieces = watched(body, Arc::clone(&movement));
            sending = sending.body(reqwest::Body::wrap_stream(pieces));
        }
        let sending = sending.headers(parts.headers).version(parts.version).send();

        let reply = tokio::select! {
            biased;
            reply = sending => reply.map_err(|error| failed("send http request", error))?,
            () = movement.silent_for(self.silence) => return Err(silent()),
        };
        // S3's answer for another region has no location, and says in its body what to configure.
        if reply.status().is_redirection() && reply.headers().contains_key(LOCATION) {
            return Err(opendal::Error::new(Theirs::Unexpected, REDIRECTED));
        }
        self.taken_in(reply, is_head, &parts.uri)
    }
}

impl Timed {
    fn taken_in(
        &self,
        mut reply: reqwest::Response,
        is_head: bool,
        uri: &http::Uri,
    ) -> opendal::Result<Response<HttpBody>> {
        // The length of a HEAD's reply, or of an encoded one, is not that of the bytes to come.
        let is_encoded = parse_content_encoding(reply.headers())?.is_some();
        let length =
            if is_head || is_encoded { None } else { parse_content_length(reply.headers())? };

        let mut taken = Response::builder()
            .status(reply.status())
            .version(reply.version())
            // Where OpenDAL looks for the address when it describes an error.
            .extension(uri.clone());
        if let Some(headers) = taken.headers_mut() {
            std::mem::swap(headers, reply.headers_mut());
        }

        let body = HttpBody::new(arriving(reply, self.silence), length);
        taken.body(body).map_err(|error| {
            opendal::Error::new(Theirs::Unexpected, "read http response").set_source(error)
        })
    }
}

impl Movement {
    fn begin() -> Self {
        let began = Instant::now();
        Self { began, state: Mutex::new(State { last: began, taken: 0 }) }
    }

    fn take(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.last = Instant::now();
        state.taken += bytes as u64;
    }

    /// Resolves after `silence` without movement, plus the time that the kernel can need for its buffers.
    async fn silent_for(&self, silence: Duration) {
        loop {
            let State { last, taken } = *self.state.lock();
            // What the kernel holds moves unseen.
            let intake_ms = taken * 1000 / INTAKE_BYTES_PER_SECOND;
            let buffered = (last - self.began) * BUFFERED_FACTOR + Duration::from_millis(intake_ms);

            sleep_until(last + silence + buffered).await;
            if self.state.lock().taken == taken {
                return;
            }
        }
    }
}

/// Yields a body in pieces. When the socket asks for the next piece, this counts as a movement.
fn watched(
    body: Buffer,
    movement: Arc<Movement>,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    stream::unfold((body, Bytes::new()), move |(mut body, mut piece)| {
        let movement = Arc::clone(&movement);
        async move {
            while piece.is_empty() {
                piece = Iterator::next(&mut body)?;
            }
            let part = piece.split_to(piece.len().min(PIECE_BYTES));
            movement.take(part.len());
            Some((Ok(part), (body, piece)))
        }
    })
}

/// Yields a reply's body. Ends with an error after `silence` without bytes.
fn arriving(reply: reqwest::Response, silence: Duration) -> Unshared {
    let pieces = stream::unfold(Some(reply), move |reply| async move {
        let mut reply = reply?;
        match timeout(silence, reply.chunk()).await {
            Ok(Ok(Some(bytes))) => Some((Ok(Buffer::from(bytes)), Some(reply))),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some((Err(failed("read data from http response", error)), None)),
            Err(_) => Some((Err(silent()), None)),
        }
    });

    // OpenDAL takes an empty piece for the end.
    let pieces = pieces.filter(|piece| {
        let is_empty = piece.as_ref().is_ok_and(Buffer::is_empty);
        std::future::ready(!is_empty)
    });
    Unshared(Mutex::new(pieces.boxed()))
}

/// A stream that OpenDAL could share among threads, but never does.
struct Unshared(Mutex<BoxStream<'static, opendal::Result<Buffer>>>);

impl Stream for Unshared {
    type Item = opendal::Result<Buffer>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.get_mut().poll_next_unpin(context)
    }
}

fn failed(doing: &'static str, error: reqwest::Error) -> opendal::Error {
    let is_temporary = error.is_request() || error.is_body() || error.is_decode();
    opendal::Error::new(Theirs::Unexpected, doing)
        .with_temporary(is_temporary)
        .set_source(error.without_url())
}

fn silent() -> opendal::Error {
    opendal::Error::new(Theirs::Unexpected, "silence timeout reached").set_temporary()
}
