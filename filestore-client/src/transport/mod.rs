//! The way a call takes: how it is sent, sent again, and answered.

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
use retry::{Attempts, Repeat};

impl Client {
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        self.perform(call).await?.json()
    }

    /// Sends a call, again where that is safe, and reads its whole reply.
    pub(crate) async fn perform(&self, call: Call) -> Result<Received> {
        let mut attempts = Attempts::new(self.settings().retry, call.repeat);
        self.attempt(call, &mut attempts).await
    }

    /// Sends a call as [`perform`](Self::perform) does. Afterwards `attempts` tells how it went.
    pub(crate) async fn attempt(&self, call: Call, attempts: &mut Attempts) -> Result<Received> {
        let limit = match call.wait {
            Wait::Idle => Some(self.settings().idle_timeout),
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

    /// Finishes a request. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if no header can hold one
    /// of its values.
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

/// A request whose body is in memory, and the rules for sending it.
pub(crate) struct Call {
    request: RequestBuilder,
    repeat: Repeat,
    wait: Wait,
    limit_bytes: usize,
}

/// The limit of waiting for the head of a reply.
enum Wait {
    Idle,
    Endless,
}

impl Call {
    /// Makes a call that does twice what it does once.
    pub(crate) fn repeatable(request: RequestBuilder) -> Self {
        Self { request, repeat: Repeat::Always, wait: Wait::Idle, limit_bytes: JSON_LIMIT_BYTES }
    }

    /// Makes a call that is repeated only while it surely changed nothing.
    pub(crate) fn once(request: RequestBuilder) -> Self {
        Self { repeat: Repeat::IfNothingChanged, ..Self::repeatable(request) }
    }

    /// Waits for the reply without limit: the server works for as long as it takes.
    pub(crate) fn endless(mut self) -> Self {
        self.wait = Wait::Endless;
        self
    }

    pub(crate) fn limit_bytes(mut self, limit: usize) -> Self {
        self.limit_bytes = limit;
        self
    }
}
