//! Providers: the places that can hold bytes, and their configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{Error, Result};
use super::status::Location;

/// The code of a provider, such as `LOCAL`: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderCode(Box<str>);

impl ProviderCode {
    /// Returns the code of the built-in provider: the service's own data directory.
    pub fn local() -> Self {
        Self("LOCAL".into())
    }

    /// Tells if this is the built-in provider.
    pub fn is_local(&self) -> bool {
        &*self.0 == "LOCAL"
    }

    /// Returns the code's text.
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

/// A provider, as the service shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// The provider's code, unique in the store.
    pub code: ProviderCode,
    /// The provider's name, for people.
    pub name: String,
    /// The location that serves the provider's bytes.
    pub location: Location,
    /// `true` if the provider takes new files. An inactive one still serves reads, migration and
    /// purge.
    pub is_active: bool,
}

/// The configuration of a provider. `Debug` shows the names of its options, never a value.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// The provider's code: unique, and not `LOCAL`.
    pub code: ProviderCode,
    /// The provider's name, for people.
    pub name: String,
    /// The kind of service: `s3`, `azblob`, `gcs`, `fs` or `memory`.
    pub scheme: String,
    /// The options of that service: bucket, endpoint, credentials.
    pub options: BTreeMap<String, OptionValue>,
    /// `true` if the provider takes new files. An inactive one still serves reads, migration and
    /// purge.
    pub is_active: bool,
    /// The location of its files. [`Location::Local`] for the backend of LOCAL: the place of all files that
    /// the service serves itself, in the place of the data directory. One provider at most is that.
    pub location: Location,
    /// The time limit of one attempt of an operation that moves no bytes (a look-up, a signature).
    pub timeout: Duration,
    /// The longest silence of an attempt that moves bytes: no byte sent or received. The time limit of
    /// one call into the file system for the scheme `fs`.
    pub io_timeout: Duration,
    /// The number of retries of an attempt that failed temporarily.
    pub retries: usize,
    /// The number of operations of each kind (puts, removals, reads by clients, copies) that may run
    /// at once; more wait, and no organization has more than a quarter of the reads.
    pub concurrency: usize,
    /// The rate in bytes per second at which a client must take a stream from the provider; 0 for
    /// any. The stream of a slower client is cut, so that its turn is free for others.
    pub min_read_rate: u64,
}

impl ProviderConfig {
    /// Configures a provider of `scheme` without options, active, named as its code.
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

    /// Makes the provider the backend of LOCAL.
    #[must_use]
    pub fn as_local_backend(mut self) -> Self {
        self.location = Location::Local;
        self
    }

    /// Sets an option of the service.
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

/// The value of an option. The value may be a secret, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A value of text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A yes or no.
    Boolean(bool),
}

impl OptionValue {
    /// Returns the value as services take it.
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
