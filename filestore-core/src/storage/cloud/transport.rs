//! Sending requests, and timing their silence rather than their length.
//!
//! # Purpose
//! A slow line is no fault: a request may take as long as bytes move. What is bounded is the time in
//! which none does. While a body is sent, each piece that the socket takes is a movement. What the
//! kernel has taken into its buffers moves unseen: the time for that is bounded by how long the
//! socket took for it, and by its length.
//!
//! Stands in for OpenDAL's own transport, which knows only whole requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use opendal::ErrorKind as Theirs;
use opendal::raw::{parse_content_encoding, parse_content_length};
use opendal::{Buffer, HttpBody, HttpTransport};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

/// Largest piece of a body that the socket is given at once.
const PIECE_BYTES: usize = 64 << 10;

/// Rate at which a provider takes in at least what it has received before it replies.
const INTAKE_BYTES_PER_SECOND: u64 = 512 << 10;

/// Factor by which the kernel may need longer to send its buffers than it took to fill them.
const BUFFERED_FACTOR: u32 = 4;

/// Transport that gives up a request after `silence` without a movement.
pub(super) struct Timed {
    pub(super) client: reqwest::Client,
    pub(super) silence: Duration,
}

/// The movement of one request's body.
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

    /// Resolves when nothing has moved for `silence`, and for what the kernel may need besides.
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

/// Yields a body in pieces, each of which is a movement when the socket asks for the next.
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

/// Yields the body of a reply; ends with an error after `silence` without bytes.
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

/// Stream that OpenDAL may share among threads, which it never does.
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
