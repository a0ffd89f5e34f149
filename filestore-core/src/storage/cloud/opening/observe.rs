//! The HTTP transport of a provider. It logs every request, and reads the provider's clock from the replies.
//!
//! Each provider has its own transport instead of OpenDAL's transport for the whole process, because
//! connections belong to the runtime that made them. The log line replaces OpenDAL's tracing layer. That
//! layer logs whole requests, and the query of a URL can be a SAS token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use opendal::ErrorKind as Theirs;
use opendal::raw::{Layer, Servicer};
use opendal::{Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator};

use super::cancelling::{CANCELLED, cancelled};
use super::client::Client;
use super::remote_clock::RemoteClock;
use super::transport::Timed;
use crate::domain::provider::{ProviderCode, ProviderConfig};

/// The OpenDAL layer that sends a provider's requests and observes them.
#[derive(Debug, Clone)]
pub(super) struct Observe {
    pub(in crate::storage::cloud) provider: ProviderCode,
    pub(in crate::storage::cloud) clock: Arc<RemoteClock>,
    pub(in crate::storage::cloud) client: Client,
    pub(in crate::storage::cloud) silence: Duration,
    /// Set from replies that show that removed objects are kept.
    pub(in crate::storage::cloud) keeps_versions: Arc<AtomicBool>,
}

impl Observe {
    /// Creates the layer for the provider of `config`.
    pub(super) fn new(
        client: &Client,
        config: &ProviderConfig,
        clock: &Arc<RemoteClock>,
        keeps_versions: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            provider: config.code.clone(),
            clock: Arc::clone(clock),
            client: client.clone(),
            silence: config.io_timeout,
            keeps_versions: Arc::clone(keeps_versions),
        }
    }

    /// Returns the operator with this layer, which sends its requests.
    pub(super) fn over(self, operator: Operator) -> Operator {
        operator.layer(self)
    }

    /// Creates the transport for the provider's requests.
    pub(in crate::storage::cloud) fn transport(&self) -> HttpTransporter {
        let timed = Timed { client: self.client.0.clone(), silence: self.silence };
        let inner = HttpTransporter::new(timed);
        HttpTransporter::new(Observed { inner, layer: self.clone() })
    }
}

impl Layer for Observe {
    fn apply_context(&self, _service: Servicer, context: OperationContext) -> OperationContext {
        context.with_http_transport(self.transport())
    }
}

struct Observed {
    inner: HttpTransporter,
    layer: Observe,
}

impl HttpTransport for Observed {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let started = Instant::now();
        let reply = tokio::select! {
           biased;
            // Only what sends bytes: the reply to another request may name what is to be undone.
            () = cancelled(), if method == Method::PUT => Err(opendal::Error::new(Theirs::Unexpected, CANCELLED)),
            reply = self.inner.fetch(request) => reply,
        };

        if let Ok(reply) = &reply {
            self.layer.clock.hear(reply.headers());
            // "null" is the version of an object from before versions were kept.
            let version = reply.headers().get("x-amz-version-id");
            if version.is_some_and(|version| version != "null") {
                self.layer.keeps_versions.store(true, Ordering::Relaxed);
            }
        }

        let status = reply.as_ref().map_or(0, |reply| reply.status().as_u16());
        let (host, path) = (uri.host().unwrap_or_default(), uri.path());
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(provider = %self.layer.provider, %method, host, path, status, elapsed_ms, "request");
        reply
    }
}
