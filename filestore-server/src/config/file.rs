//! The server's own keys in the configuration file. Every key is optional, and names include the unit.
//! Unknown keys are refused. The core reads the store's keys, which are skipped here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use filestore_core::config_file::{ByteCount, Seconds};
use serde::de::{Deserializer, Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{Auth, Config, ConfigError};
use crate::admission::cors::{Cors, Origins};
use crate::admission::limiter::{Limit, RateLimits};
use crate::listen::{self, TlsFiles, body};

/// Declares the tables of the file. All keys are optional, and are listed in `KEYS` for a test of the
/// documentation. `..key` is a key of the store.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident { $($key:ident: $type:ty,)* $(..$other:ident,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Default, Deserialize, Serialize)]
            #[serde(deny_unknown_fields, default)]
            pub(super) struct $table {
                $(
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub(super) $key: Option<$type>,
                )*
                $(
                    #[serde(skip_serializing)]
                    pub(super) $other: IgnoredAny,
                )*
            }
        )*

        /// Every key of every table.
        #[cfg(test)]
        pub(super) const KEYS: &[&str] = &[$($(stringify!($key),)*)*];
    };
}

tables! {
    /// The whole file. The store's keys are skipped.
    File {
        listen: ListenAddress,
        data_dir: PathBuf,
        public_url: String,
        trusted_proxies: Vec<String>,
        allowed_hosts: Vec<String>,
        auth: Auth,
        insecure_no_auth: bool,
        first_key_hash_file: PathBuf,
        check_providers: bool,
        console: bool,
        http: HttpTable,
        tls: TlsTable,
        metrics_listen: ListenAddress,
        audit_log: PathBuf,
        cors: CorsTable,
        rate_limits: RateLimitsTable,
        events: EventsTable,
        ..durability,
        ..metadata,
        ..postgres,
        ..require_binding,
        ..quota_bytes,
        ..quota_files,
        ..reserve_bytes,
        ..limits,
        ..uploads,
        ..lifetimes,
        ..variants,
        ..sync,
        ..scrub,
        ..webhooks,
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
        allowed_headers: Vec<String>,
        max_age_secs: Seconds,
    }
    /// The table `[rate_limits]`. A missing key means no limit.
    RateLimitsTable {
        window_secs: Seconds,
        key_requests: u32,
        key_in_flight: u32,
        address_requests: u32,
        address_in_flight: u32,
    }
    /// The server's part of the table `[events]`.
    EventsTable {
        max_streams: usize,
        ..enabled,
        ..keep_days,
        ..keep_max,
    }
    /// The table `[http]`: timeouts and sizes.
    HttpTable {
        first_byte_secs: Seconds,
        header_secs: Seconds,
        keep_alive_idle_secs: Seconds,
        write_idle_secs: Seconds,
        body_first_byte_secs: Seconds,
        body_idle_secs: Seconds,
        drain_secs: Seconds,
        drain_bytes: ByteCount,
        stop_secs: Seconds,
        max_connections: usize,
        max_connections_per_address: usize,
        min_rate_bytes_per_sec: ByteCount,
        min_rate_grace_secs: Seconds,
        buffer_bytes: ByteCount,
    }
}

/// An IP address and a port, as a text.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ListenAddress(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::custom(address_rule(&text)))
    }
}

/// Explains why a text is not an address to listen on. A name can have several addresses.
fn address_rule(text: &str) -> String {
    match text.rsplit_once(':') {
        Some(("localhost", port)) if port.parse::<u16>().is_ok() => {
            format!("use an IP address instead of the name localhost: 127.0.0.1:{port}")
        }
        _ => "use an IP address and a port, for example 127.0.0.1:8080 or [::]:8080".to_owned(),
    }
}

impl File {
    /// Creates the configuration, except for the store's part, from the defaults and the keys in the file.
    pub(super) fn into_config(self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        put(&mut config.listen, self.listen.map(|ListenAddress(address)| address));
        put(&mut config.data_dir, self.data_dir);
        config.public_url = self.public_url;
        config.metrics_listen = self.metrics_listen.map(|ListenAddress(address)| address);
        config.audit_log = self.audit_log;

        let proxies = self.trusted_proxies.unwrap_or_default();
        config.trusted_proxies =
            proxies.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;

        put(&mut config.allowed_hosts, self.allowed_hosts);
        put(&mut config.auth, self.auth);
        put(&mut config.insecure_no_auth, self.insecure_no_auth);
        config.first_key_hash_file = self.first_key_hash_file;
        put(&mut config.check_providers, self.check_providers);
        put(&mut config.console, self.console);
        self.http.unwrap_or_default().apply(&mut config.http, &mut config.body);
        config.tls = self.tls.map(TlsTable::into_files).transpose()?;
        self.cors.unwrap_or_default().apply(&mut config.cors)?;
        self.rate_limits.unwrap_or_default().apply(&mut config.rate_limits);
        put(&mut config.max_event_streams, self.events.unwrap_or_default().max_streams);
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

        let headers = self.allowed_headers.unwrap_or_default();
        cors.headers = headers.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
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
        put_bytes(&mut http.drain_bytes, self.drain_bytes);
        put_secs(&mut http.grace, self.stop_secs);
        put(&mut http.max_connections, self.max_connections);
        put(&mut http.max_connections_per_address, self.max_connections_per_address);
        for rate in [&mut http.least_rate, &mut body.least_rate] {
            put(&mut rate.bytes_per_sec, self.min_rate_bytes_per_sec.map(ByteCount::get));
            put_secs(&mut rate.grace, self.min_rate_grace_secs);
        }
        put_bytes(&mut http.buffer_bytes, self.buffer_bytes);
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

fn put_secs(slot: &mut Duration, secs: Option<Seconds>) {
    put(slot, secs.map(|secs| Duration::from_secs(secs.get())));
}

fn put_bytes(slot: &mut usize, bytes: Option<ByteCount>) {
    // No machine has more memory than it can count.
    put(slot, bytes.map(|bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX)));
}
