//! Providers: where bytes can be stored, and how one is configured.

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
    /// The built-in provider: the service's own data directory.
    pub fn local() -> Self {
        Self("LOCAL".into())
    }

    /// Whether this is the built-in provider.
    pub fn is_local(&self) -> bool {
        &*self.0 == "LOCAL"
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProviderCode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > 64 || !text.bytes().all(known) {
            return Err(Error::invalid(
                "provider",
                "a provider code is 1 to 64 characters of A-Z a-z 0-9 . _ -",
            ));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ProviderCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A provider as the service knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its code, unique.
    pub code: ProviderCode,
    /// Its name, for people.
    pub name: String,
    /// Who serves the bytes it holds.
    pub location: Location,
    /// Whether it takes new files. An inactive one still serves reads, migration and purge.
    pub is_active: bool,
}

/// A provider as it is configured. `Debug` shows the names of its options, never a value.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Its code: unique, and not `LOCAL`.
    pub code: ProviderCode,
    /// Its name, for people.
    pub name: String,
    /// Which kind of service it is: `s3`, `azblob`, `gcs`, `fs` or `memory`.
    pub scheme: String,
    /// What that service wants to know: bucket, endpoint, credentials.
    pub options: BTreeMap<String, OptionValue>,
    /// Whether it takes new files. An inactive one still serves reads, migration and purge.
    pub is_active: bool,
    /// How long one attempt of an operation without bytes (a look-up, a signature) may take.
    pub timeout: Duration,
    /// How long one attempt of sending or receiving a piece of bytes may take.
    pub io_timeout: Duration,
    /// How often an attempt that failed for now is repeated.
    pub retries: usize,
    /// How many operations may run at once, and as many reads beside them; more wait.
    pub concurrency: usize,
}

impl ProviderConfig {
    /// A provider of `scheme` without options, active, named as its code.
    pub fn new(code: ProviderCode, scheme: impl Into<String>) -> Self {
        Self {
            name: code.to_string(),
            code,
            scheme: scheme.into(),
            options: BTreeMap::new(),
            is_active: true,
            timeout: Duration::from_secs(30),
            io_timeout: Duration::from_secs(10),
            retries: 3,
            concurrency: 64,
        }
    }

    /// Sets an option.
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
            .field("timeout", &self.timeout)
            .field("io_timeout", &self.io_timeout)
            .field("retries", &self.retries)
            .field("concurrency", &self.concurrency)
            .finish()
    }
}

/// The value of an option. It may be a secret, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
}

impl OptionValue {
    /// The value as services take it.
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
