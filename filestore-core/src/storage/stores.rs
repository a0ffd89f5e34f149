//! All stores of blobs, found by the provider that holds a blob.

use super::{BlobStore, LocalStore, ProviderRegistry};
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::status::Location;

/// The service's own disk and the configured providers.
///
/// Two questions are kept apart. The *location* says who serves a file to clients: the service itself,
/// or the provider by a redirect. The *holder* is the store that has the bytes; use cases read, copy and
/// remove through it without asking which one that is.
#[derive(Debug, Clone)]
pub struct BlobStores {
    local: LocalStore,
    providers: ProviderRegistry,
}

impl BlobStores {
    /// Joins the local store and the registered providers.
    pub fn new(local: LocalStore, providers: ProviderRegistry) -> Self {
        Self { local, providers }
    }

    /// Returns the store that holds the blobs of a provider: `ProviderUnavailable` if that provider is
    /// not configured, or no longer.
    pub fn holder(&self, code: &ProviderCode) -> Result<&dyn BlobStore> {
        match self.location(code) {
            Location::Local => Ok(&self.local),
            Location::Cloud => Ok(self.providers.cloud(code)?),
        }
    }

    /// Returns who serves the files of a provider; see [`ProviderRegistry::location`].
    pub fn location(&self, code: &ProviderCode) -> Location {
        self.providers.location(code)
    }

    /// Returns the service's own disk, where every upload is staged.
    pub fn local(&self) -> &LocalStore {
        &self.local
    }

    /// Returns the registered providers.
    pub fn providers(&self) -> &ProviderRegistry {
        &self.providers
    }
}
