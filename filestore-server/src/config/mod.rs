//! The configuration of the server, with its defaults.

mod file;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::StoreConfig;
use filestore_core::config_file::{self, ConfigFileError};
use filestore_core::keys::KeyDigest;
use serde::Deserialize;
use thiserror::Error;

use crate::body;
use crate::http::forwarded::{BadIpRange, IpRange};
use crate::listen::{self, TlsFiles};
use crate::server::cors::{BadOrigin, Cors};
use crate::server::limiter::RateLimits;

/// The proof that callers must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// A key, from the moment when the first one was made.
    #[default]
    Auto,
    /// A key, also while there is none yet: it is made through the admin socket.
    Keys,
    /// None. Refused at the start if there are keys.
    None,
}

/// The configuration of a server. `Default` is the documented one: loopback only, SQLite and local disk
/// under `./filestore-data`.
///
/// The struct may gain fields: make one with [`new`](Self::new), [`load`](Self::load) or `Default`, and
/// set the fields that differ.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// The data directory, relative to the working directory. A missing one is created.
    pub data_dir: PathBuf,
    /// The URL under which a proxy publishes the server, if there is one; it may have a path.
    pub public_url: Option<String>,
    /// Proxies whose `X-Forwarded-For` is believed: in logs, in limits of requests, and where only this
    /// machine may administrate. Their connections are not counted by address.
    pub trusted_proxies: Vec<IpRange>,
    /// Host names and addresses, without ports, that are the server's own besides loopback, the address
    /// it listens on and that of the public URL. A server without keys answers to no other.
    pub allowed_hosts: Vec<String>,
    /// The proof that callers must give.
    pub auth: Auth,
    /// A file with the SHA-256 of the first key's text, in hexadecimal digits: a key of that text, with
    /// the scope `admin` for all organizations, is made at the start if no key was ever made.
    pub first_key_hash_file: Option<PathBuf>,
    /// The hash itself, in the place of the file.
    pub first_key_hash: Option<KeyDigest>,
    /// Permission to be reached by others without keys, at the address or the public URL.
    pub insecure_no_auth: bool,
    /// A check of each active provider at the start, with a warning for one that cannot serve. The
    /// check writes and removes an object under `.filestore-check/`.
    pub check_providers: bool,
    /// The configuration of the store.
    pub store: StoreConfig,
    /// Timeouts and limits of connections.
    pub http: listen::Options,
    /// Limits on a client's silence while its body is read.
    pub body: body::Timeouts,
    /// The address on which `GET /metrics` asks for no key; without one the metrics are on
    /// [`listen`](Self::listen) alone.
    pub metrics_listen: Option<SocketAddr>,
    /// The file of the audit log; without one its lines go to the log.
    pub audit_log: Option<PathBuf>,
    /// The web pages of other origins whose scripts may use the API.
    pub cors: Cors,
    /// Limits of requests by key and by address.
    pub rate_limits: RateLimits,
    /// The certificate and key of TLS; `None` speaks plain HTTP, to a proxy or on loopback.
    pub tls: Option<TlsFiles>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            data_dir: PathBuf::from("./filestore-data"),
            public_url: None,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            auth: Auth::default(),
            first_key_hash_file: None,
            first_key_hash: None,
            insecure_no_auth: false,
            check_providers: true,
            store: StoreConfig::default(),
            http: listen::Options::default(),
            body: body::Timeouts::default(),
            metrics_listen: None,
            audit_log: None,
            cors: Cors::default(),
            rate_limits: RateLimits::default(),
            tls: None,
        }
    }
}

/// Reasons why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, is no TOML, has an unknown key or a value of the wrong type, or the
    /// store's part of it cannot be used.
    #[error(transparent)]
    Store(#[from] ConfigFileError),
    /// A key of the server has a value of the wrong type.
    #[error("the configuration is invalid: {0}")]
    Toml(String),
    /// A value is out of its range.
    #[error("the configuration is invalid: {key} {problem}")]
    Value {
        /// The key, with its table.
        key: &'static str,
        /// The rule that the value breaks.
        problem: &'static str,
    },
    /// An allowed origin is none.
    #[error("the configuration is invalid: cors.allowed_origins: {0}")]
    AllowedOrigins(#[from] BadOrigin),
    /// A trusted proxy is no address.
    #[error("the configuration is invalid: trusted_proxies: {0}")]
    TrustedProxies(#[from] BadIpRange),
}

impl Config {
    /// Makes the default configuration with another address and data directory. Port 0 takes any free
    /// port.
    pub fn new(listen: SocketAddr, data_dir: impl Into<PathBuf>) -> Self {
        Self { listen, data_dir: data_dir.into(), ..Self::default() }
    }

    /// Reads a TOML file. Keys that are absent have their defaults; an unknown key is an error that
    /// names the key.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_toml(&config_file::read(path.as_ref())?)
    }

    /// Reads TOML and the process's environment; see [`load`](Self::load).
    ///
    /// ```
    /// let config = filestore_server::Config::from_toml(
    ///     r#"
    ///     listen = "127.0.0.1:9000"
    ///     [limits]
    ///     max_file_size = 1048576
    ///     "#,
    /// )?;
    /// assert_eq!(config.store.limits.max_file_size, 1 << 20);
    /// assert!(filestore_server::Config::from_toml("listen = 1").is_err());
    /// # Ok::<(), filestore_server::ConfigError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::from_toml_and(text, |name| std::env::var(name).ok())
    }

    fn from_toml_and(
        text: &str,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        // The store first: its errors leave out lines that may hold a secret, also where TOML itself
        // ends.
        let store = StoreConfig::from_toml(text, env)?;
        // As text: the error itself holds the whole file.
        let file = toml::from_str::<file::File>(text)
            .map_err(|error| ConfigError::Toml(error.to_string()))?;

        let config = Self { store, ..file.into_config()? };
        config.check()?;
        Ok(config)
    }

    /// Checks what types cannot: refuses values that would make the server useless or stop it.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.store.check()?;

        if self.allowed_hosts.iter().any(|host| !is_host(host)) {
            let problem = "must be names or addresses, without scheme and port";
            return Err(ConfigError::Value { key: "allowed_hosts", problem });
        }
        for (key, count) in [
            ("http.max_connections", self.http.max_connections),
            ("http.max_connections_per_address", self.http.max_connections_per_address),
        ] {
            if !(1..=1_000_000).contains(&count) {
                return Err(ConfigError::Value { key, problem: "must be 1 to 1000000" });
            }
        }
        self.check_times()?;
        self.check_rate_limits()?;
        if self.http.buffer_bytes < 8192 {
            let problem = "must be at least 8192";
            return Err(ConfigError::Value { key: "http.buffer_bytes", problem });
        }
        Ok(())
    }
}

impl Config {
    /// Refuses a window of no time, and limits that let nobody in.
    fn check_rate_limits(&self) -> Result<(), ConfigError> {
        let RateLimits { window, key, address } = self.rate_limits;
        if !(Duration::from_secs(1)..=Duration::from_hours(24)).contains(&window) {
            let problem = "must be 1 to 86400";
            return Err(ConfigError::Value { key: "rate_limits.window_secs", problem });
        }
        let all = [key.requests, key.in_flight, address.requests, address.in_flight];
        if all.contains(&Some(0)) {
            let problem = "must be at least 1 where it is set; without it there is no limit";
            return Err(ConfigError::Value { key: "rate_limits", problem });
        }
        Ok(())
    }

    /// Refuses limits of no time at all. "0" means "off" elsewhere, and here would cut every connection.
    fn check_times(&self) -> Result<(), ConfigError> {
        let (http, body) = (&self.http, &self.body);
        let times = [
            ("http.first_byte_secs", http.first_byte),
            ("http.header_secs", http.header),
            ("http.keep_alive_idle_secs", http.keep_alive_idle),
            ("http.write_idle_secs", http.write_idle),
            ("http.body_first_byte_secs", body.first_byte),
            ("http.body_idle_secs", body.idle),
            ("http.drain_secs", http.drain),
            ("http.min_rate_grace_secs", http.least_rate.grace.min(body.least_rate.grace)),
        ];

        match times.into_iter().find(|(_, time)| time.is_zero()) {
            Some((key, _)) => Err(ConfigError::Value { key, problem: "must be at least 1" }),
            None => Ok(()),
        }
    }
}

fn is_host(text: &str) -> bool {
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    is_address || (!text.is_empty() && is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::Durability;
    use filestore_core::Fit;
    use filestore_core::config::MetadataPlace;
    use filestore_core::config::ProviderRegistry;
    use filestore_core::config_file;

    #[test]
    fn a_file_changes_what_it_names_and_nothing_else() {
        let config = Config::from_toml(
            r#"
            listen = "[::1]:9"
            durability = "process"
            metadata = "postgres://filestore@db.example.org/filestore"
            quota_bytes = 7
            trusted_proxies = ["10.0.0.0/8"]
            [lifetimes]
            temp_ttl_secs = 60
            [variants]
            eager = ["200", "1000/inside", "200/cover"]
            [http]
            max_connections = 5
            [postgres]
            only_server = true
            "#,
        )
        .unwrap();
        assert_eq!(config.listen, "[::1]:9".parse().unwrap());
        assert_eq!(config.store.durability, Durability::Process);
        assert!(
            matches!(&config.store.metadata, MetadataPlace::Postgres(place) if place.only_server)
        );
        assert_eq!((config.store.quota_bytes, config.store.temp_ttl.as_secs()), (Some(7), 60));

        let eager: Vec<_> =
            config.store.variants.eager.iter().map(|(size, fit)| (size.pixels(), *fit)).collect();
        assert_eq!(
            eager,
            [(200, Fit::Cover), (1000, Fit::Inside)],
            "each once, cover unless said otherwise"
        );
        assert_eq!((config.http.max_connections, config.trusted_proxies.len()), (5, 1));
        assert_eq!(config.store.limits, StoreConfig::default().limits);
        assert_eq!(config.http.header, listen::Options::default().header);
    }

    #[test]
    fn the_documented_file_is_the_default() {
        let readme = include_str!("../../README.md");
        let example = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let uncommented: String = example
            .lines()
            .map(|line| line.strip_prefix("#= ").unwrap_or(line).to_owned() + "\n")
            .collect();

        let documented = Config::from_toml(example).unwrap();
        assert_eq!(format!("{documented:?}"), format!("{:?}", Config::default()));

        let optional =
            Config::from_toml_and(&uncommented, |name| Some(format!("value of {name}"))).unwrap();
        assert!(optional.public_url.is_some() && optional.store.quota_bytes.is_some());

        ProviderRegistry::open(&optional.store.providers).unwrap();

        for key in file::KEYS.iter().chain(config_file::KEYS) {
            let documented =
                [format!("{key} = "), format!("[{key}]"), format!(".{key}]"), format!("[{key}.")];
            assert!(
                documented.iter().any(|text| uncommented.contains(text)),
                "{key} is not documented"
            );
        }
    }

    #[test]
    fn no_secret_is_in_an_error_even_for_developers() {
        let secret = "[[providers]]\ncode = \"s3\"\nscheme = \"s3\"\noptions.secret_access_key = \"hunter2\"\n";
        for bad in [
            "[http]\nbuffer_bytes = 1",
            "[http]\nheader_secs = -1",
            "listen = 1",
            "[limits]\nx = 1",
            "x",
        ] {
            let text = if bad.starts_with('[') {
                format!("{secret}{bad}")
            } else {
                format!("{bad}\n{secret}")
            };
            let error = Config::from_toml(&text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        for (text, named) in [
            ("lisen = \"x\"", "lisen"),
            ("[limits]\nmax_file_siz = 1", "max_file_siz"),
            ("[limit]\n", "limit"),
            ("listen = 8080", "listen"),
            ("durability = \"none\"", "durability"),
            ("trusted_proxies = [\"x\"]", "trusted_proxies"),
            ("allowed_hosts = [\"http://x\"]", "allowed_hosts"),
            ("allowed_hosts = [\"x:80\"]", "allowed_hosts"),
            ("[limits]\nmax_batch_items = 0", "limits.max_batch_items"),
            ("[limits]\nmax_file_size = -1", "max_file_size"),
            ("[http]\nbuffer_bytes = 1", "http.buffer_bytes"),
            ("[http]\nwrite_idle_secs = 0", "http.write_idle_secs"),
            ("[http]\nbody_idle_secs = 0", "http.body_idle_secs"),
            ("[http]\nmin_rate_grace_secs = 0", "http.min_rate_grace_secs"),
            ("[http]\nmax_connections_per_address = 0", "http.max_connections_per_address"),
            ("[tls]\ncert = \"c.pem\"", "tls.key"),
            ("[cors]\nallowed_origins = [\"app.example.org\"]", "cors.allowed_origins"),
            ("[cors]\nallowed_origins = [\"*\", \"https://a.b\"]", "cors.allowed_origins"),
            ("[rate_limits]\nwindow_secs = 0", "rate_limits.window_secs"),
            ("[rate_limits]\nkey_requests = 0", "rate_limits"),
            ("[tls]\nkey = \"k.pem\"", "tls.cert"),
            ("[variants]\nquality = 101.0", "variants.quality"),
            ("[variants]\nanimated_max_frames = 0", "variants.animated_max_frames"),
            ("[variants]\nanimated_max_pixels = 0", "variants.animated_max_pixels"),
            ("[variants]\nanimated_cpu_secs = 0", "variants.animated_cpu_secs"),
            ("[variants]\nanimated_max_bytes = 67108865", "variants.animated_max_bytes"),
            ("[sync]\nconcurrency = 0", "sync.concurrency"),
            ("[sync]\nmax_attempts = 0", "sync.max_attempts"),
            ("[lifetimes]\npresign_ttl_secs = 604801", "lifetimes.presign_ttl_secs"),
            ("[variants]\neager = [\"201\"]", "variants.eager"),
            ("[variants]\neager = [\"200/both\"]", "variants.eager"),
        ] {
            let error = Config::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
