//! The HTTP transport of a provider, which observes every request: a line in the log, and the time
//! of the provider's clock.
//!
//! Each provider has a transport of its own instead of OpenDAL's one for the whole process, because
//! connections belong to the runtime they were made in. The log line replaces OpenDAL's tracing
//! layer, which puts whole requests into its spans: the query of a URL may be a SAS token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::DATE;
use http::{HeaderMap, Method, Request, Response};
use opendal::ErrorKind as Theirs;
use opendal::raw::{Layer, Servicer};
use opendal::{Buffer, HttpBody, HttpTransport, HttpTransporter, OperationContext};
use tokio::sync::watch;

use super::transport::Timed;
use crate::domain::provider::ProviderCode;

/// Difference between a provider's clock and ours, by the `Date` of its last reply.
#[derive(Debug)]
pub(super) struct RemoteClock(AtomicI64);

impl RemoteClock {
    const UNKNOWN: i64 = i64::MIN;

    pub(super) fn new() -> Self {
        Self(AtomicI64::new(Self::UNKNOWN))
    }

    /// Returns how many seconds the provider is ahead of us; `None` before a reply told.
    pub(super) fn ahead_secs(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|secs| *secs != Self::UNKNOWN)
    }

    /// Takes the time from the headers of a reply, if they hold one.
    #[expect(clippy::disallowed_methods, reason = "compares the clocks of two machines")]
    pub(super) fn hear(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
            return;
        };

        let ahead = match theirs.duration_since(SystemTime::now()) {
            Ok(ahead) => i64::try_from(ahead.as_secs()),
            Err(behind) => i64::try_from(behind.duration().as_secs()).map(|secs| -secs),
        };
        self.0.store(ahead.unwrap_or(Self::UNKNOWN), Ordering::Relaxed);
    }
}

tokio::task_local! {
    /// Closed when nobody waits for the requests of this task any more.
    static WANTED: watch::Receiver<()>;
}

const CANCELLED: &str = "cancelled: nobody waits for it";

/// Does `work`, whose requests are cancelled when the sender of `wanted` is dropped. OpenDAL learns
/// of it as of a permanent error, which leaves what sent the request usable.
pub(super) async fn cancelled_with<T>(
    wanted: watch::Receiver<()>,
    work: impl Future<Output = T>,
) -> T {
    WANTED.scope(wanted, work).await
}

/// Recognizes the error of a request that was cancelled, which says nothing of the provider.
pub(super) fn is_cancelled(error: &opendal::Error) -> bool {
    error.message() == CANCELLED
}

/// Resolves when the request of this task should be cancelled.
async fn cancelled() {
    match WANTED.try_with(Clone::clone) {
        Ok(mut wanted) => while wanted.changed().await.is_ok() {},
        Err(_) => std::future::pending().await,
    }
}

/// OpenDAL layer that sends a provider's requests and observes them.
#[derive(Debug, Clone)]
pub(super) struct Observe {
    pub(super) provider: ProviderCode,
    pub(super) clock: Arc<RemoteClock>,
    pub(super) client: reqwest::Client,
    pub(super) silence: Duration,
    /// Told of replies, which tell whether removed objects are kept.
    pub(super) keeps_versions: Arc<AtomicBool>,
}

impl Observe {
    /// Makes the transport of the provider's requests.
    pub(super) fn transport(&self) -> HttpTransporter {
        let timed = Timed { client: self.client.clone(), silence: self.silence };
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
