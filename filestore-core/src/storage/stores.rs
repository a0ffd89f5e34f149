//! All stores of blobs, found by a blob's provider.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::RwLock;

use super::{BlobStore, Cloud, LocalStore, ProviderRegistry};
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::status::Location;
use crate::domain::provider::ProviderCode;

/// The local disk and the configured providers.
///
/// This type separates two questions. The *location* of a file tells who serves the file to clients: the
/// service itself, or the provider by a redirect. The *holder* is the store that contains the bytes. Use
/// cases read, copy and remove through the holder, without knowing its kind. If use cases need staging,
/// publishing or an open file, they call [`disk`](Self::disk).
#[derive(Debug, Clone)]
pub struct BlobStores {
    local: LocalStore,
    providers: Arc<RwLock<Arc<ProviderRegistry>>>,
}

/// The store that holds a blob: the local disk or a provider. A provider stays usable through this value even
/// if it is removed from the configuration.
#[derive(Debug)]
pub enum Holder<'a> {
    /// The local disk.
    Disk(&'a LocalStore),
    /// A provider of location CLOUD.
    Cloud(Cloud),
}

impl Deref for Holder<'_> {
    type Target = dyn BlobStore;

    fn deref(&self) -> &(dyn BlobStore + 'static) {
        match self {
            Self::Disk(disk) => *disk,
            Self::Cloud(cloud) => cloud,
        }
    }
}

impl BlobStores {
    /// Combines the local store and the registered providers.
    pub fn new(local: LocalStore, providers: ProviderRegistry) -> Self {
        Self { local, providers: Arc::new(RwLock::new(Arc::new(providers))) }
    }

    /// Returns the store with a provider's blobs. `ProviderUnavailable` if the provider is not, or no
    /// longer, configured.
    pub fn holder(&self, code: &ProviderCode) -> Result<Holder<'_>> {
        match self.disk(code) {
            Some(disk) => Ok(Holder::Disk(disk)),
            None => self.providers().cloud(code).cloned().map(Holder::Cloud),
        }
    }

    /// Returns the local disk if `code` is `LOCAL`. The local disk's blobs are staged and published,
    /// and can be opened as files. Blobs of other holders need a write intent and a put.
    pub fn disk(&self, code: &ProviderCode) -> Option<&LocalStore> {
        code.is_local().then_some(&self.local)
    }

    /// Removes blobs from their stores, at all stores in parallel. The results have the order of the blobs.
    /// See [`BlobStore::remove`].
    pub async fn remove(&self, blobs: Vec<(ProviderCode, BlobKey)>) -> Vec<Result<()>> {
        let mut by_holder: BTreeMap<ProviderCode, (Vec<usize>, Vec<BlobKey>)> = BTreeMap::new();
        for (index, (holder, key)) in blobs.into_iter().enumerate() {
            let (indexes, keys) = by_holder.entry(holder).or_default();
            indexes.push(index);
            keys.push(key);
        }

        let removals = by_holder.into_iter().map(|(holder, (indexes, keys))| async move {
            indexes.into_iter().zip(self.remove_at(&holder, keys).await)
        });
        let mut outcomes: Vec<_> = join_all(removals).await.into_iter().flatten().collect();

        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    async fn remove_at(&self, code: &ProviderCode, keys: Vec<BlobKey>) -> Vec<Result<()>> {
        match self.holder(code) {
            Ok(holder) => holder.remove(keys).await,
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Returns who serves a provider's files. See [`ProviderRegistry::location`].
    pub fn location(&self, code: &ProviderCode) -> Location {
        self.providers().location(code)
    }

    /// Returns the local disk. All uploads are staged there.
    pub fn local(&self) -> &LocalStore {
        &self.local
    }

    /// Returns the currently registered providers.
    pub fn providers(&self) -> Arc<ProviderRegistry> {
        Arc::clone(&self.providers.read())
    }

    /// Replaces the registered providers.
    pub fn replace_providers(&self, providers: ProviderRegistry) {
        *self.providers.write() = Arc::new(providers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::config::StoreConfig;
    use crate::domain::error::ErrorKind;
    use crate::domain::provider::ProviderConfig;
    use crate::storage::contract::{fresh_key, get, put};
    use crate::storage::{DataDir, LocalOptions};

    fn stores(home: &tempfile::TempDir) -> BlobStores {
        let options = LocalOptions::from(&StoreConfig::default());
        let local = LocalStore::open(&DataDir::open(home.path()).unwrap(), options).unwrap();
        let config = ProviderConfig::new("mem".parse().unwrap(), "memory");
        BlobStores::new(local, ProviderRegistry::open(&[config]).unwrap())
    }

    #[tokio::test]
    async fn blobs_are_removed_by_their_holders_and_each_has_its_outcome() {
        let home = tempfile::tempdir().unwrap();
        let stores = stores(&home);
        let (local, cloud, gone) =
            (ProviderCode::local(), "mem".parse().unwrap(), "gone".parse().unwrap());

        let blobs = [&local, &gone, &cloud, &local, &cloud].map(|code| (code.clone(), fresh_key()));
        for (code, key) in blobs.iter().filter(|(code, _)| *code != gone) {
            put(&*stores.holder(code).unwrap(), key, b"x").await.unwrap();
        }

        let outcomes = stores.remove(blobs.to_vec()).await;
        for ((code, key), outcome) in blobs.iter().zip(outcomes) {
            if *code == gone {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ProviderUnavailable);
            } else {
                outcome.unwrap();
                let holder = stores.holder(code).unwrap();
                assert!(get(&*holder, key, 1, 0..1).await.unwrap().is_none());
            }
        }
        assert!(stores.remove(Vec::new()).await.is_empty());
    }
}
