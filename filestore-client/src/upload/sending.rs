//! Sending a form: attempts, timeouts, and replies that come early.
//!
//! reqwest's read timeout would also run while a long upload is going well, so the side that is
//! waited for is tracked here: the source, the network or the server. A reply that comes before the
//! end stops the sending, is read in peace, and only then is the connection closed; otherwise
//! the broken pipe would hide the server's reason.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::digest::{self, Digest};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::reply::{JSON_LIMIT_BYTES, Received, silent};
use crate::transport::retry::{Attempts, Repeat};
use crate::upload::multipart::{Encoded, Form};

impl Client {
    /// Sends `form` to `target`, again where `repeat` allows. Returns the reply, and the digests of the
    /// files as they were sent.
    pub(crate) async fn send_form(
        &self,
        target: &Target<'_>,
        mut form: Form,
        repeat: Repeat,
    ) -> Result<(Received, Vec<Digest>)> {
        let repeat = if form.is_repeatable() { repeat } else { Repeat::Never };
        let mut attempts = Attempts::new(self.settings().retry, repeat);
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
        // Whatever happens, the encoder must not outlive this call.
        let _over = sending.over.clone().drop_guard();

        let mut request = self.request(target.method.clone(), target.path);
        if let Some((name, value)) = &target.header {
            request = request.header(name, value);
        }
        request = request.header(CONTENT_TYPE, content_type);
        if let Some(len) = content_length {
            request = request.header(CONTENT_LENGTH, len);
        }

        let settings = self.settings();
        let sent = tokio::select! {
            sent = request.body(body).send() => sent,
            waited = sending.stalled(settings.idle_timeout, settings.reply_timeout) => {
                return Err(silent(&settings.peer, waited));
            }
        };
        let response = sent.map_err(|error| sending.explain(&settings.peer, error))?;

        sending.replied.cancel();
        let reply = self.finish(response, JSON_LIMIT_BYTES).await?;
        let digests = std::mem::take(&mut sending.lock().digests);
        if digests.len() < form.files() {
            return Err(Error::protocol("the server answered before it had everything"));
        }
        Ok((reply, digests))
    }
}

/// The endpoint that takes a form, and the header of the request beside those of the form.
pub(crate) struct Target<'a> {
    pub(crate) method: Method,
    /// Segments of the path after `/api/v1`.
    pub(crate) path: &'a [&'a str],
    pub(crate) header: Option<(HeaderName, String)>,
}

/// Fails with [`ErrorKind::Digest`](crate::ErrorKind) unless what is stored is what was sent.
pub(crate) fn check_stored(file_id: &str, stored_hex: &str, sent: &Digest) -> Result<()> {
    if digest::from_hex(stored_hex).as_ref() == Some(sent) {
        return Ok(());
    }
    let message = format!(
        "the stored file does not have the sent bytes, delete it and send again: {file_id}"
    );
    Err(Error::new(ErrorKind::Digest, message))
}

/// The state that the encoder shares with the call that sends.
pub(crate) struct Sending {
    state: Mutex<State>,
    pub(crate) pace: watch::Sender<Pace>,
    /// The reply is there: nothing more needs to be sent.
    pub(crate) replied: CancellationToken,
    /// The call is over: the connection may go.
    pub(crate) over: CancellationToken,
}

#[derive(Default)]
pub(crate) struct State {
    /// Reason why the source could not be read.
    pub(crate) failure: Option<io::Error>,
    /// Digests of the files that were sent whole.
    pub(crate) digests: Vec<Digest>,
}

/// The side that is waited for, and since when.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// The source, to be read. A slow reader is the caller's own affair.
    Reading,
    /// The network, to take the last piece.
    Sending(Instant),
    /// The server, to answer.
    Sent(Instant),
}

impl Sending {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            // Until the first piece is asked for, the connection is made, under its own timeout.
            pace: watch::Sender::new(Pace::Reading),
            replied: CancellationToken::new(),
            over: CancellationToken::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the error for a request that got no reply: the failure of the source, if it failed.
    fn explain(&self, peer: &str, error: reqwest::Error) -> Error {
        match self.lock().failure.take() {
            Some(failed) => Error::io("reading what is to be sent", failed),
            None => Error::transport(peer, error),
        }
    }

    /// Ends when the other side was silent for too long, with how long that is.
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
                // The sender is ours, so it is there.
                _ = pace.changed() => {}
            }
        }
    }
}

/// Ends when `limit` has passed since then; never, if nobody is waited for.
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
