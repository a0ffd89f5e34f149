//! The options of a service without a listener.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Auth, Config, ConfigError};
use crate::admission::cors::Cors;
use crate::admission::limiter::RateLimits;
use crate::http::forwarded::IpRange;
use crate::listen::body;

/// The highest limit of streams of events.
const MOST_EVENT_STREAMS: usize = 100_000;

/// The options of a [`service`](crate::service()). `Default` is a service at the root, without a public URL, that
/// needs a key for every request.
///
/// The struct can gain fields: start with `Default` or with a [`Config`], and set the fields that differ.
///
/// ```
/// let mut options = filestore_server::ServiceOptions::default();
/// options.path_prefix = Some("/storage".to_owned());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// The URL under which clients reach the service, for example `https://example.org/storage`. `Location`,
    /// signed URLs and the OpenAPI document name it.
    pub public_url: Option<String>,
    /// The path prefix below which the service is mounted, for example `/storage`. Set this prefix if you
    /// have no `public_url`. The service answers requests with the prefix and without it, because a router
    /// might strip the prefix.
    pub path_prefix: Option<String>,
    /// The address on which your listener accepts connections, if there is one. A service without keys answers
    /// requests that name this host.
    pub own_address: Option<IpAddr>,
    /// Proxies with a trusted `X-Forwarded-For`.
    pub trusted_proxies: Vec<IpRange>,
    /// Host names and addresses, without ports, that lead to the service. A service without keys answers only
    /// to these hosts, to loopback, to `own_address` and to the host of `public_url`.
    pub allowed_hosts: Vec<String>,
    /// Which callers need a key (default [`Auth::Keys`]). The service does not know who can reach your
    /// listener. Set [`Auth::Auto`] or [`Auth::None`] only if no other machine or account can reach the
    /// service, or if your own code checks each caller.
    pub auth: Auth,
    /// Limits for a client's silence while the service reads its body.
    pub body: body::Timeouts,
    /// The audit log file. Without a file, audit lines go to the log.
    pub audit_log: Option<PathBuf>,
    /// The origins of other web pages with scripts that can use the API.
    pub cors: Cors,
    /// Rate limits by key and by address.
    pub rate_limits: RateLimits,
    /// The maximum number of streams of events, and of pages that wait (default 1000).
    pub max_event_streams: usize,
    /// If true (the default), the web console is at `/console/`, and `/` leads browsers to it. Ignored by a build
    /// without the feature `console`.
    pub console: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self { auth: Auth::Keys, own_address: None, ..Self::from(&Config::default()) }
    }
}

impl From<&Config> for ServiceOptions {
    /// Copies the settings that need no listener and no store.
    fn from(config: &Config) -> Self {
        Self {
            public_url: config.public_url.clone(),
            path_prefix: None,
            own_address: Some(config.listen.ip()),
            trusted_proxies: config.trusted_proxies.clone(),
            allowed_hosts: config.allowed_hosts.clone(),
            auth: config.auth,
            body: config.body,
            audit_log: config.audit_log.clone(),
            cors: config.cors.clone(),
            rate_limits: config.rate_limits,
            max_event_streams: config.max_event_streams,
            console: config.console,
        }
    }
}

impl ServiceOptions {
    /// Checks values beyond their types.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.allowed_hosts.iter().any(|host| !is_host(host)) {
            let problem = "must be names or addresses, without scheme and port";
            return Err(ConfigError::Value { key: "allowed_hosts", problem });
        }
        for (key, time) in [
            ("http.body_first_byte_secs", self.body.first_byte),
            ("http.body_idle_secs", self.body.idle),
            ("http.min_rate_grace_secs", self.body.least_rate.grace),
        ] {
            if time.is_zero() {
                return Err(ConfigError::Value { key, problem: "must be at least 1" });
            }
        }
        if self.max_event_streams > MOST_EVENT_STREAMS {
            let problem = "must be 0 to 100000";
            return Err(ConfigError::Value { key: "events.max_streams", problem });
        }
        self.check_rate_limits()
    }

    /// Refuses a window of zero, and limits that admit no request.
    fn check_rate_limits(&self) -> Result<(), ConfigError> {
        let RateLimits { window, key, address } = self.rate_limits;
        if !(Duration::from_secs(1)..=Duration::from_hours(24)).contains(&window) {
            let problem = "must be 1 to 86400";
            return Err(ConfigError::Value { key: "rate_limits.window_secs", problem });
        }
        let all = [key.requests, key.in_flight, address.requests, address.in_flight];
        if all.contains(&Some(0)) {
            let problem = "must be at least 1 (omit the key for no limit)";
            return Err(ConfigError::Value { key: "rate_limits", problem });
        }
        Ok(())
    }
}

fn is_host(text: &str) -> bool {
    let is_address = text.parse::<IpAddr>().is_ok();
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    is_address || (!text.is_empty() && is_name)
}
