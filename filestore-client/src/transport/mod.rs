//! Sends calls, retries them, and reads their replies.

pub(crate) mod random;
pub(crate) mod reply;
pub(crate) mod retry;
pub(crate) mod tls;

use std::time::Duration;

use reqwest::{Request, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::{Error, Result};
use reply::{JSON_LIMIT_BYTES, Received, silent};
use retry::{Attempts, Retry};

impl Client {
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        self.perform(call).await?.json()
    }

    /// Sends a call, retries it if that is safe, and reads the whole reply.
    pub(crate) async fn perform(&self, call: Call) -> Result<Received> {
        let mut attempts = Attempts::new(self.settings().retry, call.retry);
        self.attempt(call, &mut attempts).await
    }

    /// Sends a call like [`perform`](Self::perform). Afterwards, `attempts` contains the failures.
    pub(crate) async fn attempt(&self, call: Call, attempts: &mut Attempts) -> Result<Received> {
        let limit = match call.wait {
            Wait::Idle => Some(self.settings().idle_timeout),
            Wait::Longer(by) => Some(self.settings().idle_timeout + by),
            Wait::Endless => None,
        };

        let request = self.built(call.request)?;

        loop {
            let request = request.try_clone().expect("a call's body is in memory");
            let outcome = match self.execute(request, limit).await {
                Ok(response) => self.finish(response, call.limit_bytes).await,
                Err(error) => Err(error),
            };

            match outcome {
                Ok(reply) => return Ok(reply),
                Err(error) => attempts.pause(error).await?,
            }
        }
    }

    /// Sends one request and returns the head of its reply.
    pub(crate) async fn exchange(
        &self,
        request: RequestBuilder,
        limit: Option<Duration>,
    ) -> Result<Response> {
        self.execute(self.built(request)?, limit).await
    }

    /// Builds a request. Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for an
    /// invalid header value.
    fn built(&self, request: RequestBuilder) -> Result<Request> {
        request.build().map_err(|error| Error::transport(&self.settings().peer, error))
    }

    async fn execute(&self, request: Request, limit: Option<Duration>) -> Result<Response> {
        let peer = &self.settings().peer;
        let sending = self.http().execute(request);

        let sent = match limit {
            Some(limit) => timeout(limit, sending).await.map_err(|_| silent(peer, limit))?,
            None => sending.await,
        };
        sent.map_err(|error| Error::transport(peer, error))
    }
}

/// A request with its body in memory, and the rules to send it.
pub(crate) struct Call {
    request: RequestBuilder,
    retry: Retry,
    wait: Wait,
    limit_bytes: usize,
}

/// The time limit for the head of a reply.
enum Wait {
    Idle,
    Longer(Duration),
    Endless,
}

impl Call {
    /// Creates a call that is safe to send twice.
    pub(crate) fn idempotent(request: RequestBuilder) -> Self {
        Self { request, retry: Retry::Idempotent, wait: Wait::Idle, limit_bytes: JSON_LIMIT_BYTES }
    }

    /// Creates a call that is retried only if the server did not process it.
    pub(crate) fn once(request: RequestBuilder) -> Self {
        Self { retry: Retry::IfUnprocessed, ..Self::idempotent(request) }
    }

    /// Waits longer for the reply, because the server waits on purpose.
    pub(crate) fn and_wait(mut self, time: Duration) -> Self {
        self.wait = Wait::Longer(time);
        self
    }

    /// Waits for the reply without a time limit, for long-running work.
    pub(crate) fn endless(mut self) -> Self {
        self.wait = Wait::Endless;
        self
    }

    pub(crate) fn limit_bytes(mut self, limit: usize) -> Self {
        self.limit_bytes = limit;
        self
    }
}
