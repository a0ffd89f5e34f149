//! The state that all requests share.

pub(crate) mod detached;
pub(crate) mod shared_check;

use std::sync::Arc;

use filestore_core::FileStore;
use filestore_core::admin::Health;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use self::detached::DetachedRuns;
use self::shared_check::SharedCheck;
use crate::admission::guard::Guard;
use crate::admission::limiter::Limits;
use crate::audit::Audit;
use crate::config::ServiceOptions;
use crate::http::base::Base;
use crate::metrics::Metrics;
use crate::streams::Streams;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct App {
    /// The store of files, opened at the start.
    pub(crate) store: FileStore,
    /// The options of the service.
    pub(crate) options: ServiceOptions,
    /// The path prefix that clients see.
    pub(crate) base: Base,
    /// The server's own hosts and origins.
    pub(crate) guard: Guard,
    /// The counters that monitoring reads.
    pub(crate) metrics: Metrics,
    /// The audit log.
    pub(crate) audit: Audit,
    /// The rate limits.
    pub(crate) limits: Limits,
    /// The streams of events.
    pub(crate) streams: Arc<Streams>,
    /// The check of readiness.
    pub(crate) readiness: SharedCheck<Health>,
    /// The task that exchanges rate limits with other servers, if there can be any.
    pub(crate) sharing: Mutex<JoinSet<()>>,
    /// The runs that continue without a client.
    pub(crate) detached: DetachedRuns,
}

impl App {
    /// Creates the state of a new service at `base`.
    pub(crate) fn new(store: FileStore, options: ServiceOptions, base: Base, audit: Audit) -> Self {
        let public = options.public_url.as_deref();
        let guard = Guard::new(options.own_address, public, &options.allowed_hosts)
            .trusting(&options.trusted_proxies, &options.cors);
        let limits = Limits::default();
        limits.set(&options.rate_limits);
        let streams = Arc::new(Streams::new(options.max_event_streams));
        Self {
            store,
            options,
            base,
            guard,
            metrics: Metrics::new(),
            audit,
            limits,
            streams,
            readiness: SharedCheck::default(),
            sharing: Mutex::default(),
            detached: DetachedRuns::default(),
        }
    }
}
