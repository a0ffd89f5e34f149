//! The store's part of `filestore.toml`, for the server and for the CLI with `--data-dir`. Every
//! key is optional, an unknown key is an error, and units are in the names of keys. A size or
//! duration can also be a text with a unit, for example `max_file_size = "5MiB"`.
//!
//! The server checks its own keys. Here they are ignored. Options of providers can use environment
//! variables, for example `${S3_SECRET_ACCESS_KEY}`. Error messages never contain their values.

mod tables;
mod apply;
mod backup;
mod providers;
mod shown;
mod units;
mod unknown;

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::domain::config::{InvalidSetting, StoreConfig};

pub use self::tables::KEYS;
pub use self::units::{ByteCount, InvalidQuantity, Seconds};
pub use self::unknown::explain_unknown_key;

/// The reason why a configuration is invalid, in one line. Exception: for TOML errors, also the
/// place in the file.
#[derive(Debug, Error)]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        /// File path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not valid TOML, has an unknown key, or a value has the wrong type.
    #[error("the configuration is invalid: {0}")]
    Toml(String),
    /// A value is out of range.
    #[error("the configuration is invalid: {key} {problem}")]
    Value {
        /// Key, with its table.
        key: &'static str,
        /// Explanation.
        problem: &'static str,
    },
    /// A signing secret is invalid.
    #[error("the configuration is invalid: signing secret {at}: {problem}")]
    Secret {
        /// Position of the secret in the file, starting at 1.
        at: usize,
        /// Explanation, without the value.
        problem: String,
    },
    /// A provider is invalid.
    #[error("the configuration is invalid: provider {provider}: {problem}")]
    Provider {
        /// Provider code, or the position in the file if the code is missing.
        provider: String,
        /// Explanation, without values.
        problem: String,
    },
    /// One of the errors above, in this file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// File path.
        path: PathBuf,
        /// Error without the file.
        source: Box<ConfigFileError>,
    },
}

impl From<InvalidSetting> for ConfigFileError {
    fn from(InvalidSetting { key, problem }: InvalidSetting) -> Self {
        Self::Value { key, problem }
    }
}

/// Reads the file's text.
pub fn read(path: &Path) -> Result<String, ConfigFileError> {
    std::fs::read_to_string(path)
        .map_err(|source| ConfigFileError::Unreadable { path: path.to_owned(), source })
}

impl StoreConfig {
    /// Reads the store's part of a TOML file, with the environment of the process. See
    /// [`from_toml`](Self::from_toml). Errors name the file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigFileError> {
        let path = path.as_ref();
        Self::from_toml(&read(path)?, |name| std::env::var(name).ok()).map_err(|source| {
            ConfigFileError::InFile { path: path.to_owned(), source: Box::new(source) }
        })
    }

    /// Reads the store's part of TOML text. Absent keys have their defaults. An unknown key is an
    /// error that names the key. `env` returns the environment variables for provider options.
    ///
    /// ```
    /// # use filestore_core::StoreConfig;
    /// let file = r#"
    ///     listen = "127.0.0.1:9000"    # for the server, ignored here
    ///     [limits]
    ///     max_file_size = 1048576
    ///     [[providers]]
    ///     code = "backup"
    ///     scheme = "fs"
    ///     options.root = "${BACKUP}/files"
    /// "#;
    /// let config = StoreConfig::from_toml(file, |name| (name == "BACKUP").then(|| "/mnt".to_owned()))?;
    /// assert_eq!(config.limits.max_file_size, 1 << 20);
    /// assert_eq!(config.providers[0].code.as_str(), "backup");
    /// # Ok::<(), filestore_core::config_file::ConfigFileError>(())
    /// ```
    pub fn from_toml(
        text: &str,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigFileError> {
        let file = toml::from_str::<tables::File>(text).map_err(|error| {
            ConfigFileError::Toml(explain_unknown_key(&without_secrets(&error, text)))
        })?;
        let config = file.into_config(&env)?;
        config.check()?;
        Ok(config)
    }

    /// Checks the ranges of values, as [`FileStoreBuilder::open`](crate::FileStoreBuilder::open) does.
    /// `Value` names a key if its value would stop the store or make the store useless.
    pub fn check(&self) -> Result<(), ConfigFileError> {
        Ok(self.check_settings()?)
    }
}

/// Words from which a line can contain a secret.
const BEFORE_SECRETS: [&str; 4] = ["provider", "secret", "postgres", "password"];

/// Describes a TOML error with its line. After the first provider, secret or database, the line
/// might contain a secret, and is left out.
fn without_secrets(error: &toml::de::Error, text: &str) -> String {
    let Some(span) = error.span() else { return masked(error.message()) };
    let (before, after) = text.split_at(text.floor_char_boundary(span.start));
    let last_line = after.split('\n').next().unwrap_or_default();
    if !BEFORE_SECRETS.iter().any(|word| before.contains(word) || last_line.contains(word)) {
        return error.to_string();
    }
    let (line, column) = (
        before.split('\n').count(),
        before.split('\n').next_back().map_or(0, |line| line.chars().count()),
    );
    format!("at line {line}, column {}: {}", column + 1, masked(error.message()))
}

/// Masks the values in `message`, which are in double quotes. Key names are in backticks.
fn masked(message: &str) -> String {
    let parts = message.split('"').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part } else { "..." }).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::config::MetadataPlace;
    use crate::domain::file::status::Location;
    use crate::domain::provider::OptionValue;

    fn read(text: &str) -> Result<StoreConfig, ConfigFileError> {
        StoreConfig::from_toml(text, |name| {
            let value = match name {
                "KEY" => "hush",
                "HOST" => "s3.example.org",
                _ => return None,
            };
            Some(value.to_owned())
        })
    }

    #[test]
    fn an_animation_that_memory_cannot_hold_twice_is_refused_if_animations_are_made() {
        let config = |animated: bool, memory: u64| {
            read(&format!(
                "[variants]\nanimated = {animated}\nanimated_max_bytes = 1000000\n\
                 decode_memory_bytes = {memory}"
            ))
        };
        let refused = config(true, 2_000_000).unwrap_err().to_string();
        assert!(refused.contains("variants.animated_max_bytes"), "{refused}");
        assert!(refused.contains("decode_memory_bytes"), "{refused}");
        assert!(config(true, 2_000_001).is_ok() && config(false, 2_000_000).is_ok());
    }

    #[test]
    fn an_error_in_a_file_names_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["x", "[sync]\nconcurrency = 0", "[[providers]]\ncode = \"eu\""] {
            std::fs::write(file.path(), text).unwrap();
            let error = StoreConfig::load(file.path()).unwrap_err().to_string();
            let begin = format!("{}: the configuration is invalid: ", file.path().display());
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn the_backend_of_local_is_one_of_the_providers() {
        let file = |backend: &str, active: bool| {
            read(&format!(
                "[local]\nbackend = \"{backend}\"\n[[providers]]\ncode = \"eu\"\nscheme = \"s3\"\n\
                 [[providers]]\ncode = \"house\"\nscheme = \"s3\"\nactive = {active}"
            ))
        };
        let config = file("house", true).unwrap();
        let locations: Vec<_> = config.providers.iter().map(|provider| provider.location).collect();
        assert_eq!(locations, [Location::Cloud, Location::Local]);
        for (backend, active, problem) in
            [("hose", true, "the code of one of the providers"), ("house", false, "active")]
        {
            let error = file(backend, active).unwrap_err().to_string();
            assert!(error.contains("local.backend") && error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_provider_is_what_the_file_and_the_environment_say() {
        let config = read(
            r#"
            listen = "[::1]:9"
            [[providers]]
            code = "s3-eu"
            scheme = "s3"
            [[providers]]
            code = "old"
            name = "The old one"
            scheme = "s3"
            active = false
            timeout_secs = 1
            io_timeout_secs = 2
            retries = 0
            concurrency = 5
            [providers.options]
            endpoint = "https://${HOST}:443/${HOST}"
            secret_access_key = "${KEY}"
            enable_virtual_host_style = true
            assume_role_duration_seconds = 900
            literal = "$${KEY} $x {}"
            [http]
            "#,
        )
        .unwrap();
        let [first, old] = &config.providers[..] else { panic!("two providers") };

        assert_eq!((first.name.as_str(), first.is_active, first.retries), ("s3-eu", true, 3));
        assert_eq!(
            (first.timeout.as_secs(), first.io_timeout.as_secs(), first.concurrency),
            (30, 10, 64)
        );
        assert_eq!((old.name.as_str(), old.is_active, old.retries), ("The old one", false, 0));
        assert_eq!((old.timeout.as_secs(), old.io_timeout.as_secs(), old.concurrency), (1, 2, 5));

        let option = |name: &str| old.options[name].clone();
        assert!(option("endpoint") == "https://s3.example.org:443/s3.example.org".into());
        assert!(
            option("secret_access_key") == "hush".into()
                && option("literal") == "${KEY} $x {}".into()
        );
        assert!(option("enable_virtual_host_style") == OptionValue::Boolean(true));
        assert!(option("assume_role_duration_seconds") == OptionValue::Integer(900));
    }

    #[test]
    fn the_bounds_of_resumable_uploads_are_checked() {
        for (text, named) in [
            ("lifetime_secs = 0", "uploads.lifetime_secs"),
            ("lifetime_secs = 100\nmax_age_secs = 99", "uploads.max_age_secs"),
            ("max_open = 0", "uploads.max_open"),
            ("max_open_per_organization = 0", "uploads.max_open_per_organization"),
            ("max_size = \"-1\"", "line 2"),
        ] {
            let error = read(&format!("[uploads]\n{text}")).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        let config = read("[uploads]\nmax_size = \"5GiB\"\nlifetime_secs = \"2h\"").unwrap();
        assert_eq!(config.uploads.max_size, 5 << 30);
        assert_eq!(config.uploads.lifetime, Duration::from_hours(2));
    }

    #[test]
    fn the_records_are_where_the_file_says() {
        let read = |text: &str| {
            StoreConfig::from_toml(text, |name| (name == "PASSWORD").then(|| "hush".to_owned()))
        };
        assert_eq!(read("").unwrap().metadata, MetadataPlace::Sqlite);
        let ignored = "metadata = \"sqlite\"\n[postgres]\nconnections = 5";
        assert_eq!(read(ignored).unwrap().metadata, MetadataPlace::Sqlite);

        let text = "metadata = \"postgres://u@h/d\"\n[postgres]\npassword = \"${PASSWORD}\"\nschema = \"a\"\n\
                    connections = 5\nonly_server = true";
        let config = read(text).unwrap();
        let MetadataPlace::Postgres(place) = &config.metadata else { panic!("{config:?}") };
        assert_eq!(
            (place.address.as_str(), place.password.as_deref()),
            ("postgres://u@h/d", Some("hush"))
        );
        assert_eq!((place.schema.as_str(), place.connections, place.only_server), ("a", 5, true));
        assert!(!format!("{config:?}").contains("hush"));

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hush hush\r\n").unwrap();
        let of_file = format!(
            "metadata = \"postgresql://u@h/d\"\n[postgres]\npassword_file = {:?}",
            file.path()
        );
        let config = read(&of_file).unwrap();
        let MetadataPlace::Postgres(place) = &config.metadata else { panic!("{config:?}") };
        assert_eq!(place.password.as_deref(), Some("hush hush"));

        for (wrong, named) in [
            ("metadata = \"postgres://u:${NOWHERE}@h/d\"", "metadata"),
            (
                "metadata = \"postgres://u@h/d\"\n[postgres]\npassword = \"${NOWHERE}\"",
                "postgres.password",
            ),
            (
                "metadata = \"postgres://u@h/d\"\n[postgres]\npassword_file = \"/nowhere\"",
                "postgres.password_file",
            ),
            (
                "metadata = \"postgres://u@h/d\"\n[postgres]\npassword = \"a\"\npassword_file = \"/b\"",
                "exclude",
            ),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(named), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_no_value_is_shown() {
        let provider =
            |rest: &str| format!("[[providers]]\ncode = \"eu\"\nscheme = \"s3\"\n{rest}");
        for (text, named) in [
            (
                provider("options.key = \"${NOWHERE}\""),
                "provider eu: the option key names the environment variable NOWHERE",
            ),
            (provider("options.key = \"a${KEY\""), "provider eu: the option key"),
            (provider("options.key = \"${}hush\""), "provider eu: the option key"),
            (provider("options.key = 1.5"), "line 4"),
            (provider("options.key = hush"), "line 4"),
            (provider("options = \"hush\""), "line 4"),
            (provider("key = \"hush\""), "key"),
            (provider("timeout_secs = 0"), "provider eu: timeout_secs"),
            (provider("retries = \"hush\""), "line 4"),
            (provider("concurrency = 0"), "provider eu: concurrency"),
            ("[[providers]]\nscheme = \"s3\"".to_owned(), "provider 1: the key code is missing"),
            ("[[providers]]\ncode = \"eu\"".to_owned(), "provider eu: the key scheme is missing"),
            (
                "[[providers]]\ncode = \"e u\"\nscheme = \"s3\"".to_owned(),
                "provider 1: a provider code is",
            ),
            ("providers = [{code = \"eu\", options = {key = hush}}]".to_owned(), "line 1"),
            ("[[provider]]".to_owned(), "provider"),
            (
                "[[signing.secrets]]\nkid = \"a\"".to_owned(),
                "signing secret 1: the key secret is missing",
            ),
            ("[[signing.secrets]]\nsecret = \"hush\"".to_owned(), "signing secret 1: the key kid"),
            (
                "[[signing.secrets]]\nkid = \"a\"\nsecret = \"hush\"".to_owned(),
                "signing secret 1: a signing secret has at least 32 bytes",
            ),
            (
                "[[signing.secrets]]\nkid = \"a\"\nsecret = \"${NOWHERE}\"".to_owned(),
                "signing secret 1: the key secret names the environment variable NOWHERE",
            ),
            ("[[signing.secrets]]\nkid = \"a\"\nsecret = hush".to_owned(), "line 3"),
            ("[signing]\nwindow_secs = 0".to_owned(), "signing.window_secs"),
            ("durability = \"none\"".to_owned(), "durability"),
            ("metadata = \"mysql://hush\"".to_owned(), "metadata"),
            ("metadata = \"postgres://u:hush@h/d".to_owned(), "line 1"),
            ("[postgres]\npassword = hush".to_owned(), "line 2"),
            ("[postgres]\npasword = \"hush\"".to_owned(), "pasword"),
        ] {
            let error = read(&text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(error.to_string().contains(named), "{text}: {error}");
            assert!(!shown.contains("hush"), "{text}: {shown}");
        }
    }
}
