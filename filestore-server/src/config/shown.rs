//! The inverse of `file.rs`: a configuration as the file that would make it, without secrets.
//!
//! Each table is written as a whole literal, so that a new key does not compile without its line here.

use std::time::Duration;

use filestore_core::config_file::{ByteCount, Seconds};

use super::file::{
    CorsTable, EventsTable, File, HttpTable, ListenAddress, RateLimitsTable, TlsTable,
};
use super::{Config, ConfigError};
use crate::admission::cors::{Cors, Origins};
use crate::admission::limiter::RateLimits;

impl Config {
    /// Writes the configuration as TOML, with the keys of `filestore.toml` and all default values.
    /// Secrets are `***`, see [`StoreConfig::to_toml`](filestore_core::StoreConfig::to_toml).
    ///
    /// ```
    /// let text = filestore_server::Config::default().to_toml()?;
    /// assert!(text.contains("listen = \"127.0.0.1:8080\""));
    /// # Ok::<(), filestore_server::ConfigError>(())
    /// ```
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let unwritable = |error: &dyn std::fmt::Display| ConfigError::Toml(error.to_string());
        let own = toml::Table::try_from(File::from(self)).map_err(|error| unwritable(&error))?;
        let mut all: toml::Table =
            toml::from_str(&self.store.to_toml()?).map_err(|error| unwritable(&error))?;
        for (name, value) in own {
            join(&mut all, name, value);
        }
        Ok(all.to_string())
    }
}

/// Adds a key of the server. A table can have keys of both the store and the server.
fn join(all: &mut toml::Table, name: String, value: toml::Value) {
    match (all.get_mut(&name), value) {
        (Some(toml::Value::Table(of_store)), toml::Value::Table(own)) => of_store.extend(own),
        (_, value) => _ = all.insert(name, value),
    }
}

impl From<&Config> for File {
    /// Leaves out the store's keys.
    fn from(config: &Config) -> Self {
        let tls = config.tls.as_ref();
        Self {
            listen: Some(ListenAddress(config.listen)),
            data_dir: Some(config.data_dir.clone()),
            public_url: config.public_url.clone(),
            trusted_proxies: Some(texts(&config.trusted_proxies)),
            allowed_hosts: Some(config.allowed_hosts.clone()),
            auth: Some(config.auth),
            insecure_no_auth: Some(config.insecure_no_auth),
            first_key_hash_file: config.first_key_hash_file.clone(),
            check_providers: Some(config.check_providers),
            console: Some(config.console),
            http: Some(HttpTable::from(config)),
            tls: tls
                .map(|tls| TlsTable { cert: Some(tls.cert.clone()), key: Some(tls.key.clone()) }),
            metrics_listen: config.metrics_listen.map(ListenAddress),
            audit_log: config.audit_log.clone(),
            cors: Some(CorsTable::from(&config.cors)),
            rate_limits: Some(RateLimitsTable::from(&config.rate_limits)),
            events: Some(EventsTable {
                max_streams: Some(config.max_event_streams),
                ..EventsTable::default()
            }),
            ..Self::default()
        }
    }
}

impl From<&Cors> for CorsTable {
    fn from(cors: &Cors) -> Self {
        let origins = match &cors.origins {
            Origins::Any => vec!["*".to_owned()],
            Origins::Listed(list) => texts(list),
        };
        Self {
            allowed_origins: Some(origins),
            max_age_secs: secs(cors.max_age),
            allowed_headers: Some(texts(&cors.headers)),
        }
    }
}

impl From<&RateLimits> for RateLimitsTable {
    fn from(limits: &RateLimits) -> Self {
        Self {
            window_secs: secs(limits.window),
            key_requests: limits.key.requests,
            key_in_flight: limits.key.in_flight,
            address_requests: limits.address.requests,
            address_in_flight: limits.address.in_flight,
        }
    }
}

impl From<&Config> for HttpTable {
    fn from(Config { http, body, .. }: &Config) -> Self {
        Self {
            first_byte_secs: secs(http.first_byte),
            header_secs: secs(http.header),
            keep_alive_idle_secs: secs(http.keep_alive_idle),
            write_idle_secs: secs(http.write_idle),
            body_first_byte_secs: secs(body.first_byte),
            body_idle_secs: secs(body.idle),
            drain_secs: secs(http.drain),
            drain_bytes: Some(bytes(http.drain_bytes)),
            stop_secs: secs(http.grace),
            max_connections: Some(http.max_connections),
            max_connections_per_address: Some(http.max_connections_per_address),
            min_rate_bytes_per_sec: Some(ByteCount::new(http.least_rate.bytes_per_sec)),
            min_rate_grace_secs: secs(http.least_rate.grace),
            buffer_bytes: Some(bytes(http.buffer_bytes)),
        }
    }
}

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn bytes(count: usize) -> ByteCount {
    ByteCount::new(u64::try_from(count).unwrap_or(u64::MAX))
}

#[expect(clippy::unnecessary_wraps, reason = "every key of a table is optional")]
fn secs(time: Duration) -> Option<Seconds> {
    Some(Seconds::from(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_configuration_reads_back_as_it_was() {
        let text = r#"
            listen = "[::1]:9"
            auth = "keys"
            trusted_proxies = ["10.0.0.0/8", "::1"]
            metrics_listen = "127.0.0.1:9464"
            audit_log = "/a"
            quota_bytes = 7
            [http]
            stop_secs = 5
            min_rate_bytes_per_sec = 0
            [tls]
            cert = "c"
            key = "k"
            [cors]
            allowed_origins = ["https://a.b"]
            [rate_limits]
            key_requests = 5
            [events]
            max_streams = 7
        "#;
        for config in [Config::default(), Config::from_toml(text).unwrap()] {
            let printed = config.to_toml().unwrap();
            let read = Config::from_toml(&printed).unwrap();
            assert_eq!(format!("{read:?}"), format!("{config:?}"), "{printed}");
        }

        let any = Config::from_toml("cors.allowed_origins = [\"*\"]").unwrap();
        assert!(any.to_toml().unwrap().contains("allowed_origins = [\"*\"]"));
    }

    #[test]
    fn every_documented_key_with_a_default_is_printed() {
        let readme = include_str!("../../README.md");
        let example = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let documented: toml::Table = toml::from_str(example).unwrap();
        let printed: toml::Table = toml::from_str(&Config::default().to_toml().unwrap()).unwrap();
        assert_eq!(printed, documented);
    }
}
