//! Sends a form, with retries, timeouts, and early replies.
//!
//! The read timeout of reqwest would also run during a healthy long upload. This module therefore
//! tracks the side that it waits for: the source, the network or the server. If the reply arrives
//! before the end, the client stops sending, reads the reply, and then closes the connection.
//! Otherwise a broken pipe would hide the reason of the server.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use reqwest::{Body, Method, RequestBuilder};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::digest::{self, Digest};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::reply::{JSON_LIMIT_BYTES, Received, silent};
use crate::transport::retry::{Attempts, Retry};
use crate::upload::multipart::{Encoded, Form};

impl Client {
    /// Sends `form` to `target`, and again if `retry` allows. Returns the reply, and the digests of
    /// the bytes as they were sent.
    pub(crate) async fn send_form(
        &self,
        target: &Target<'_>,
        mut form: Form,
        retry: Retry,
    ) -> Result<(Received, Vec<Digest>)> {
        let retry = if form.is_repeatable() { retry } else { Retry::Never };
        let mut attempts = Attempts::new(self.settings().retry, retry);
        loop {
            match self.try_form(target, &mut form).await {
                Ok(sent) => return Ok(sent),
                Err(error) => attempts.pause(error).await?,
            }
        }
    }

    async fn try_form(
        &self,
        target: &Target<'_>,
        form: &mut Form,
    ) -> Result<(Received, Vec<Digest>)> {
        let Encoded { content_type, content_length, body, sending } = form.encode().await?;
        let mut request = self.request(target.method.clone(), target.path);
        if let Some((name, value)) = &target.header {
            request = request.header(name, value);
        }
        request = request.header(CONTENT_TYPE, content_type);
        if let Some(len) = content_length {
            request = request.header(CONTENT_LENGTH, len);
        }

        let reply = self.send_body(request, body, &sending).await?;
        let hashers = std::mem::take(&mut sending.lock().hashers);
        if hashers.len() < form.files() {
            return Err(Error::protocol("the server answered before it received all files"));
        }
        let digests = hashers.into_iter().map(|hasher| hasher.finalize().into()).collect();
        Ok((reply, digests))
    }

    /// Sends a request with a body, and reads the reply. The body must stop with `sending`.
    pub(super) async fn send_body(
        &self,
        request: RequestBuilder,
        body: Body,
        sending: &Sending,
    ) -> Result<Received> {
        // The encoder must not outlive this call, even after an error.
        let _over = sending.over.clone().drop_guard();
        let settings = self.settings();
        let sent = tokio::select! {
            sent = request.body(body).send() => sent,
            waited = sending.stalled(settings.idle_timeout, settings.reply_timeout) => {
                return Err(silent(&settings.peer, waited));
            }
        };
        let response = sent.map_err(|error| sending.explain(&settings.peer, error))?;

        sending.replied.cancel();
        self.finish(response, JSON_LIMIT_BYTES).await
    }
}

/// The endpoint for a form, and an additional header.
pub(crate) struct Target<'a> {
    pub(crate) method: Method,
    /// Segments of the path after `/api/v1`.
    pub(crate) path: &'a [&'a str],
    pub(crate) header: Option<(HeaderName, String)>,
}

/// Fails with [`ErrorKind::Digest`](crate::ErrorKind) if the stored bytes differ from the sent
/// bytes.
pub(crate) fn check_stored(file_id: &str, stored_hex: &str, sent: &Digest) -> Result<()> {
    if digest::from_hex(stored_hex).as_ref() == Some(sent) {
        return Ok(());
    }
    let message = format!(
        "the stored bytes differ from the sent bytes, so delete the file and send it again: {file_id}"
    );
    Err(Error::new(ErrorKind::Digest, message))
}

/// The state that the encoder shares with the sending call.
pub(crate) struct Sending {
    state: Mutex<State>,
    pub(crate) pace: watch::Sender<Pace>,
    /// Set when the reply has arrived, so that the encoder stops.
    pub(crate) replied: CancellationToken,
    /// Set at the end of the call, so that the connection can close.
    pub(crate) over: CancellationToken,
}

#[derive(Default)]
pub(crate) struct State {
    /// The error of the source.
    pub(crate) failure: Option<io::Error>,
    /// Digests of the completely sent files. That of a part has seen the bytes before it too.
    pub(crate) hashers: Vec<Sha256>,
}

/// The side that the call waits for, and the start of the wait.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// The source. A slow source has no timeout.
    Reading,
    /// The network, to accept the last piece.
    Sending(Instant),
    /// The server, to answer.
    Sent(Instant),
}

impl Sending {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            // Before the first piece, the connection has its own timeout.
            pace: watch::Sender::new(Pace::Reading),
            replied: CancellationToken::new(),
            over: CancellationToken::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error for a request without a reply: the error of the source, if there is one.
    fn explain(&self, peer: &str, error: reqwest::Error) -> Error {
        match self.lock().failure.take() {
            Some(failed) => Error::io("reading the source", failed),
            None => Error::transport(peer, error),
        }
    }

    /// Ends when the other side is silent for too long. Returns the exceeded limit.
    async fn stalled(&self, idle: Duration, reply: Duration) -> Duration {
        let mut pace = self.pace.subscribe();
        loop {
            let now = *pace.borrow_and_update();
            let (since, limit) = match now {
                Pace::Reading => (None, idle),
                Pace::Sending(since) => (Some(since), idle),
                Pace::Sent(since) => (Some(since), reply),
            };

            tokio::select! {
                () = passed(since, limit) => return limit,
                // `self` owns the sender, so it exists.
                _ = pace.changed() => {}
            }
        }
    }
}

/// Ends `limit` after `since`, or never without a start.
async fn passed(since: Option<Instant>, limit: Duration) {
    match since {
        Some(since) => sleep_until(since + limit).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_of_the_stored_digest_names_the_file() {
        let error = check_stored("01F", &"0".repeat(64), &[1; 32]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Digest);
        assert!(error.to_string().contains("01F"));
    }
}
