//! Providers: where bytes can be stored.

use std::fmt;
use std::str::FromStr;

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
                "storageProvider",
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
