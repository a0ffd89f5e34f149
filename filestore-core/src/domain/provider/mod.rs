//! Providers: stores for blobs, and their configuration.

pub mod binding;
pub mod backlog;
pub mod health;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{Error, Result};
use super::file::status::Location;

/// Names of the options whose values logs and printed configurations can show.
pub(crate) const PUBLIC_OPTIONS: [&str; 14] = [
    "account_name",
    "assume_role_duration_seconds",
    "atomic_write_dir",
    "bucket",
    "checksum_algorithm",
    "container",
    "default_acl",
    "default_storage_class",
    "endpoint",
    "predefined_acl",
    "profile",
    "region",
    "root",
    "server_side_encryption",
];

/// A provider code, for example `LOCAL` or `s3-eu`: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderCode(Box<str>);

impl ProviderCode {
    /// Returns `LOCAL`, the code of the data directory.
    pub fn local() -> Self {
        Self("LOCAL".into())
    }

    /// Tests whether this is `LOCAL`.
    pub fn is_local(&self) -> bool {
        &*self.0 == "LOCAL"
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProviderCode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > 64 || !text.bytes().all(is_code_byte) {
            return Err(Error::invalid(
                "provider",
                "a provider code is 1 to 64 characters of A-Z a-z 0-9 . _ -",
            ));
        }
        Ok(Self(text.into()))
    }
}

fn is_code_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
}

impl fmt::Display for ProviderCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Provider code, unique in the store.
    pub code: ProviderCode,
    /// Display name.
    pub name: String,
    /// Location that serves the provider's bytes.
    pub location: Location,
    /// `true` if the provider accepts new files. An inactive provider still serves reads,
    /// migrations and purges.
    pub is_active: bool,
}

/// A provider's configuration. `Debug` shows the names of the options, but no values.
///
/// ```
/// use filestore_core::config::ProviderConfig;
///
/// # fn main() -> filestore_core::Result<()> {
/// let s3 = ProviderConfig::new("s3-eu".parse()?, "s3")
///     .with_option("bucket", "files")
///     .with_option("region", "eu-central-1");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Provider code: unique, and not `LOCAL`.
    pub code: ProviderCode,
    /// Display name.
    pub name: String,
    /// Kind of service: `s3`, `azblob`, `gcs`, `fs` or `memory`.
    pub scheme: String,
    /// Service options, for example bucket, endpoint and credentials.
    pub options: BTreeMap<String, OptionValue>,
    /// `true` if the provider accepts new files. An inactive provider still serves reads,
    /// migrations and purges.
    pub is_active: bool,
    /// Location of its files. [`Location::Local`] makes this provider the backend: it stores
    /// `LOCAL` files instead of the data directory. Only one provider can be the backend.
    pub location: Location,
    /// Time limit for an attempt that moves no bytes, for example a look-up (default 30 s).
    pub timeout: Duration,
    /// Maximum time without a byte in an attempt that moves bytes (default 10 s). For the scheme
    /// `fs`, the time limit for one file system call.
    pub io_timeout: Duration,
    /// Number of retries after a temporary failure (default 3).
    pub retries: usize,
    /// Number of operations of each kind at the same time: puts, removals, reads by clients, copies
    /// (default 64). More operations wait. One organization gets at most a quarter of the reads.
    pub concurrency: usize,
    /// Minimum rate of a client that reads a stream from the provider, in bytes per second. If the
    /// client is slower, the store ends the stream, so that other clients can read. 0 means no
    /// minimum.
    pub min_read_rate: u64,
}

impl ProviderConfig {
    /// Configures an active provider without options. The display name is the code.
    pub fn new(code: ProviderCode, scheme: impl Into<String>) -> Self {
        Self {
            name: code.to_string(),
            code,
            scheme: scheme.into(),
            options: BTreeMap::new(),
            is_active: true,
            location: Location::Cloud,
            timeout: Duration::from_secs(30),
            io_timeout: Duration::from_secs(10),
            retries: 3,
            concurrency: 64,
            min_read_rate: 8 << 10,
        }
    }

    /// Makes the provider the backend for `LOCAL` files.
    #[must_use]
    pub fn as_local_backend(mut self) -> Self {
        self.location = Location::Local;
        self
    }

    /// Sets a service option.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<OptionValue>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("code", &self.code)
            .field("name", &self.name)
            .field("scheme", &self.scheme)
            .field("options", &self.options.keys())
            .field("is_active", &self.is_active)
            .field("location", &self.location)
            .field("timeout", &self.timeout)
            .field("io_timeout", &self.io_timeout)
            .field("retries", &self.retries)
            .field("concurrency", &self.concurrency)
            .field("min_read_rate", &self.min_read_rate)
            .finish()
    }
}

/// An option value. `Debug` hides the value, because it might be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// Text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// True or false.
    Boolean(bool),
}

impl OptionValue {
    /// Returns the value as text, as services expect it.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(answer) => answer.to_string(),
        }
    }
}

impl fmt::Debug for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

impl<T: Into<String>> From<T> for OptionValue {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_names_options_and_shows_no_value() {
        let config = ProviderConfig::new("s3-eu".parse().unwrap(), "s3")
            .with_option("secret_access_key", "hush");
        let shown = format!("{config:?} {:#?} {:?}", config, config.options);
        assert!(shown.contains("secret_access_key") && !shown.contains("hush"), "{shown}");
    }
}
