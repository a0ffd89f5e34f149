//! The server's own keys of the configuration file. Every key is optional, unknown keys are refused,
//! names carry the unit. The store's keys are skipped here and read by the core.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Auth, Config, ConfigError};
use crate::body;
use crate::listen::{self, TlsFiles};
use crate::server::cors::{Cors, Origins};
use crate::server::limiter::{Limit, RateLimits};

/// Declares the tables of the file: all keys optional, listed in `KEYS` for the test of the
/// documentation. `..key` is a known key that the store reads.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident { $($key:ident: $type:ty,)* $(..$other:ident,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Default, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub(super) struct $table {
                $($key: Option<$type>,)*
                $($other: IgnoredAny,)*
            }
        )*

        /// Every key of every table.
        #[cfg(test)]
        pub(super) const KEYS: &[&str] = &[$($(stringify!($key),)*)*];
    };
}

tables! {
    /// The whole file. The skipped keys are the store's.
    File {
        listen: SocketAddr,
        data_dir: PathBuf,
        public_url: String,
        trusted_proxies: Vec<String>,
        allowed_hosts: Vec<String>,
        auth: Auth,
        insecure_no_auth: bool,
        first_key_hash_file: PathBuf,
        check_providers: bool,
        http: HttpTable,
        tls: TlsTable,
        metrics_listen: SocketAddr,
        audit_log: PathBuf,
        cors: CorsTable,
        rate_limits: RateLimitsTable,
        ..durability,
        ..metadata,
        ..postgres,
        ..require_binding,
        ..quota_bytes,
        ..quota_files,
        ..reserve_bytes,
        ..limits,
        ..lifetimes,
        ..variants,
        ..sync,
        ..scrub,
        ..signing,
        ..backup,
        ..local,
        ..providers,
    }
    /// The table `[tls]`: two PEM files.
    TlsTable {
        cert: PathBuf,
        key: PathBuf,
    }
    /// The table `[cors]`.
    CorsTable {
        allowed_origins: Vec<String>,
        max_age_secs: u32,
    }
    /// The table `[rate_limits]`: without a key there is no such limit.
    RateLimitsTable {
        window_secs: u32,
        key_requests: u32,
        key_in_flight: u32,
        address_requests: u32,
        address_in_flight: u32,
    }
    /// The table `[http]`: timeouts and sizes.
    HttpTable {
        first_byte_secs: u32,
        header_secs: u32,
        keep_alive_idle_secs: u32,
        write_idle_secs: u32,
        body_first_byte_secs: u32,
        body_idle_secs: u32,
        drain_secs: u32,
        drain_bytes: usize,
        stop_secs: u32,
        max_connections: usize,
        max_connections_per_address: usize,
        min_rate_bytes_per_sec: u64,
        min_rate_grace_secs: u32,
        buffer_bytes: usize,
    }
}

impl File {
    /// Builds the configuration except for the store's part: the defaults, changed where the file
    /// has a key.
    pub(super) fn into_config(self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        put(&mut config.listen, self.listen);
        put(&mut config.data_dir, self.data_dir);
        config.public_url = self.public_url;
        config.metrics_listen = self.metrics_listen;
        config.audit_log = self.audit_log;

        let proxies = self.trusted_proxies.unwrap_or_default();
        config.trusted_proxies =
            proxies.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;

        put(&mut config.allowed_hosts, self.allowed_hosts);
        put(&mut config.auth, self.auth);
        put(&mut config.insecure_no_auth, self.insecure_no_auth);
        config.first_key_hash_file = self.first_key_hash_file;
        put(&mut config.check_providers, self.check_providers);
        self.http.unwrap_or_default().apply(&mut config.http, &mut config.body);
        config.tls = self.tls.map(TlsTable::into_files).transpose()?;
        self.cors.unwrap_or_default().apply(&mut config.cors)?;
        self.rate_limits.unwrap_or_default().apply(&mut config.rate_limits);
        Ok(config)
    }
}

impl TlsTable {
    fn into_files(self) -> Result<TlsFiles, ConfigError> {
        let cert = self.cert.ok_or(missing("tls.cert"))?;
        let key = self.key.ok_or(missing("tls.key"))?;
        Ok(TlsFiles::new(cert, key))
    }
}

impl CorsTable {
    fn apply(self, cors: &mut Cors) -> Result<(), ConfigError> {
        put_secs(&mut cors.max_age, self.max_age_secs);
        let origins = self.allowed_origins.unwrap_or_default();
        cors.origins = match &origins[..] {
            [any] if any == "*" => Origins::Any,
            list => {
                Origins::Listed(list.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
            }
        };
        Ok(())
    }
}

impl RateLimitsTable {
    fn apply(self, limits: &mut RateLimits) {
        put_secs(&mut limits.window, self.window_secs);
        limits.key = Limit { requests: self.key_requests, in_flight: self.key_in_flight };
        limits.address =
            Limit { requests: self.address_requests, in_flight: self.address_in_flight };
    }
}

impl HttpTable {
    fn apply(self, http: &mut listen::Options, body: &mut body::Timeouts) {
        put_secs(&mut http.first_byte, self.first_byte_secs);
        put_secs(&mut http.header, self.header_secs);
        put_secs(&mut http.keep_alive_idle, self.keep_alive_idle_secs);
        put_secs(&mut http.write_idle, self.write_idle_secs);
        put_secs(&mut body.first_byte, self.body_first_byte_secs);
        put_secs(&mut body.idle, self.body_idle_secs);
        put_secs(&mut http.drain, self.drain_secs);
        put(&mut http.drain_bytes, self.drain_bytes);
        put_secs(&mut http.grace, self.stop_secs);
        put(&mut http.max_connections, self.max_connections);
        put(&mut http.max_connections_per_address, self.max_connections_per_address);
        for rate in [&mut http.least_rate, &mut body.least_rate] {
            put(&mut rate.bytes_per_sec, self.min_rate_bytes_per_sec);
            put_secs(&mut rate.grace, self.min_rate_grace_secs);
        }
        put(&mut http.buffer_bytes, self.buffer_bytes);
    }
}

fn missing(key: &'static str) -> ConfigError {
    ConfigError::Value {
        key,
        problem: "is missing: a certificate needs its key, a key its certificate",
    }
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn put_secs(slot: &mut Duration, secs: Option<u32>) {
    put(slot, secs.map(|secs| Duration::from_secs(secs.into())));
}
