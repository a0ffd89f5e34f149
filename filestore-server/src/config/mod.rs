//! The configuration of the server, with its defaults.

mod file;
mod service;
mod shown;
mod missing;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use filestore_core::StoreConfig;
use filestore_core::config_file::{self, ConfigFileError};
use filestore_core::keys::KeyDigest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::admission::cors::{BadOrigin, BadRequestHeader, Cors};
use crate::admission::limiter::RateLimits;
use crate::http::forwarded::{BadIpRange, IpRange};
use crate::listen::{self, TlsFiles, body};

pub use service::ServiceOptions;

/// The proof that callers must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// All callers need a key once the first key exists.
    #[default]
    Auto,
    /// All callers always need a key. Create the first key through the admin socket.
    Keys,
    /// No caller needs a key. The server refuses to start if there are keys.
    None,
}

/// The server's configuration. `Default` is the documented default: loopback only, with SQLite and the
/// local disk under `./filestore-data`.
///
/// The struct can gain fields. Create it with [`new`](Self::new), [`load`](Self::load) or `Default`, and set
/// the fields that differ.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The data directory, relative to the working directory. The server creates a missing directory.
    pub data_dir: PathBuf,
    /// The URL under which a proxy publishes the server, if any. The URL can have a path.
    pub public_url: Option<String>,
    /// Proxies with a trusted `X-Forwarded-For`. The server uses that header for logs, rate limits, and
    /// administration from this machine. Connections of these proxies are not limited by address.
    pub trusted_proxies: Vec<IpRange>,
    /// The server's own host names and addresses, without ports. Loopback, the listening address and the
    /// public URL's host are always included. A server without keys refuses all other hosts.
    pub allowed_hosts: Vec<String>,
    /// Which callers need a key.
    pub auth: Auth,
    /// A file with the SHA-256 of the first key's secret, in hexadecimal digits. If no key ever existed, the
    /// server creates this key at startup, with the scope `admin` for all organizations.
    pub first_key_hash_file: Option<PathBuf>,
    /// The hash itself, instead of the file.
    pub first_key_hash: Option<KeyDigest>,
    /// If true, other machines can reach a server without keys, at the address or the public URL.
    pub insecure_no_auth: bool,
    /// If true, the server tests each active provider at startup, and logs a warning for a provider that
    /// fails. The test writes and removes an object under `.filestore-check/`.
    pub check_providers: bool,
    /// The store's configuration.
    pub store: StoreConfig,
    /// Timeouts and limits for connections.
    pub http: listen::Options,
    /// Limits for a client's silence while its body is read.
    pub body: body::Timeouts,
    /// The address on which `GET /metrics` needs no key. Without this address, the metrics are only on
    /// [`listen`](Self::listen).
    pub metrics_listen: Option<SocketAddr>,
    /// The audit log file. Without a file, audit lines go to the log.
    pub audit_log: Option<PathBuf>,
    /// The origins of other web pages with scripts that can use the API.
    pub cors: Cors,
    /// Rate limits by key and by address.
    pub rate_limits: RateLimits,
    /// The maximum number of streams of events, and of pages that wait. Each also uses a connection.
    pub max_event_streams: usize,
    /// If true, the web console is at `/console/`. Ignored by a build without the feature `console`.
    pub console: bool,
    /// The certificate and key for TLS. With `None`, the server speaks plain HTTP, to a proxy or on loopback.
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
            max_event_streams: 1000,
            console: true,
            tls: None,
        }
    }
}

/// The reasons why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, is not TOML, has an unknown key or a value of the wrong type, or contains
    /// invalid settings of the store.
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
        /// The rule that the value violates.
        problem: &'static str,
    },
    /// An allowed origin is invalid.
    #[error("the configuration is invalid: cors.allowed_origins: {0}")]
    AllowedOrigins(#[from] BadOrigin),
    /// An allowed header is none.
    #[error("the configuration is invalid: cors.allowed_headers: {0}")]
    AllowedHeaders(#[from] BadRequestHeader),
    /// A trusted proxy is no address.
    #[error("the configuration is invalid: trusted_proxies: {0}")]
    TrustedProxies(#[from] BadIpRange),
    /// One of the errors above, in this file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file's path.
        path: PathBuf,
        /// The error without the file.
        source: Box<ConfigError>,
    },
}

impl Config {
    /// Returns the default configuration with another address and data directory. Port 0 selects a free port.
    pub fn new(listen: SocketAddr, data_dir: impl Into<PathBuf>) -> Self {
        Self { listen, data_dir: data_dir.into(), ..Self::default() }
    }

    /// Reads a TOML file. Missing keys have their defaults. An unknown key is an error that names the key.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        Self::from_toml(&config_file::read(path)?).map_err(|source| ConfigError::InFile {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Reads TOML text and the process's environment. See [`load`](Self::load).
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
        let file = toml::from_str::<file::File>(text).map_err(|error| {
            ConfigError::Toml(config_file::explain_unknown_key(&error.to_string()))
        })?;

        let config = Self { store, ..file.into_config()? };
        config.check()?;
        Ok(config)
    }

    /// Checks values beyond their types. Refuses values that would make the server useless.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.store.check()?;

        ServiceOptions::from(self).check()?;
        for (key, count) in [
            ("http.max_connections", self.http.max_connections),
            ("http.max_connections_per_address", self.http.max_connections_per_address),
        ] {
            if !(1..=1_000_000).contains(&count) {
                return Err(ConfigError::Value { key, problem: "must be 1 to 1000000" });
            }
        }
        self.check_addresses()?;
        self.check_times()?;
        if self.http.buffer_bytes < 8192 {
            let problem = "must be at least 8192";
            return Err(ConfigError::Value { key: "http.buffer_bytes", problem });
        }
        Ok(())
    }
}

impl Config {
    /// Refuses one address for both listeners. An unspecified address (`0.0.0.0`) includes all others.
    fn check_addresses(&self) -> Result<(), ConfigError> {
        let Some(metrics) = self.metrics_listen else { return Ok(()) };
        let (one, other) = (self.listen.ip(), metrics.ip());
        let meet = one == other || one.is_unspecified() || other.is_unspecified();
        if meet && metrics.port() == self.listen.port() && metrics.port() != 0 {
            let problem = "must have another port than listen";
            return Err(ConfigError::Value { key: "metrics_listen", problem });
        }
        Ok(())
    }

    /// Refuses limits of no time at all. "0" means "off" elsewhere, and here would cut every connection.
    fn check_times(&self) -> Result<(), ConfigError> {
        let http = &self.http;
        let times = [
            ("http.first_byte_secs", http.first_byte),
            ("http.header_secs", http.header),
            ("http.keep_alive_idle_secs", http.keep_alive_idle),
            ("http.write_idle_secs", http.write_idle),
            ("http.drain_secs", http.drain),
            ("http.min_rate_grace_secs", http.least_rate.grace),
        ];

        match times.into_iter().find(|(_, time)| time.is_zero()) {
            Some((key, _)) => Err(ConfigError::Value { key, problem: "must be at least 1" }),
            None => Ok(()),
        }
    }
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
    fn a_key_of_the_server_in_another_table_leads_to_its_own() {
        for key in file::KEYS {
            let error = Config::from_toml(&format!("[local]\n{key} = 1")).unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}`: it belongs to ")), "{error}");
        }
    }

    #[test]
    fn times_and_sizes_of_the_server_can_have_a_unit() {
        let text = "[http]\nheader_secs = \"1m\"\nbuffer_bytes = \"16KiB\"\nmin_rate_bytes_per_sec = \"2kB\"";
        let http = Config::from_toml(text).unwrap().http;
        assert_eq!((http.header.as_secs(), http.buffer_bytes), (60, 16 << 10));
        assert_eq!(http.least_rate.bytes_per_sec, 2000);
    }

    #[test]
    fn an_error_names_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["x", "[http]\nheder_secs = 1", "[http]\nbuffer_bytes = 1"] {
            std::fs::write(file.path(), text).unwrap();
            let error = Config::load(file.path()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}: ", file.path().display())), "{error}");
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
            ("listen = \"localhost:8080\"", "instead of the name localhost: 127.0.0.1:8080"),
            ("metrics_listen = \"9464\"", "for example 127.0.0.1:8080"),
            ("[http]\nheder_secs = 1", "did you mean `header_secs`?"),
            ("[http]\nheader_secs = \"soon\"", "10m"),
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
            ("[cors]\nallowed_origins = [\"https://*\"]", "cors.allowed_origins: an origin is"),
            ("[cors]\nallowed_origins = [\"https://*.a.b\"]", "use [\"*\"] alone"),
            ("[cors]\nallowed_headers = [\"X Tenant\"]", "cors.allowed_headers"),
            ("[cors]\nallowed_headers = [\"*\"]", "cors.allowed_headers"),
            ("[rate_limits]\nwindow_secs = 0", "rate_limits.window_secs"),
            ("[rate_limits]\nkey_requests = 0", "rate_limits"),
            ("[tls]\nkey = \"k.pem\"", "tls.cert"),
            ("metrics_listen = \"127.0.0.1:8080\"", "metrics_listen"),
            ("metrics_listen = \"0.0.0.0:8080\"", "metrics_listen"),
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
