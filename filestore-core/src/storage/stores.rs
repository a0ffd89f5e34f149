//! All stores of blobs, found by the provider that holds a blob.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::RwLock;

use super::cloud::Cloud;
use super::{BlobStore, LocalStore, ProviderRegistry};
use crate::domain::error::Result;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::status::Location;

/// The service's own disk and the configured providers.
///
/// Two questions are kept apart. The *location* says who serves a file to clients: the service
/// itself, or the provider by a redirect. The *holder* is the store that has the bytes; use cases
/// read, copy and remove through it without asking which one that is. Where staging, publishing or
/// an open file matters, [`disk`](Self::disk) is the holder's own answer.
#[derive(Debug, Clone)]
pub struct BlobStores {
    local: LocalStore,
    providers: Arc<RwLock<Arc<ProviderRegistry>>>,
}

/// The store that holds a blob: the service's own disk, or a provider, which stays usable for its
/// holder even if it leaves the configuration.
#[derive(Debug)]
pub enum Holder<'a> {
    /// The service's own disk.
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
    /// Joins the local store and the registered providers.
    pub fn new(local: LocalStore, providers: ProviderRegistry) -> Self {
        Self { local, providers: Arc::new(RwLock::new(Arc::new(providers))) }
    }

    /// Returns the store that holds the blobs of a provider: `ProviderUnavailable` if that provider
    /// is not configured, or no longer.
    pub fn holder(&self, code: &ProviderCode) -> Result<Holder<'_>> {
        match self.disk(code) {
            Some(disk) => Ok(Holder::Disk(disk)),
            None => self.providers().cloud(code).cloned().map(Holder::Cloud),
        }
    }

    /// Returns the service's own disk if that is the holder: its blobs are staged and published,
    /// and can be opened as files. Blobs of any other holder are noted and put.
    pub fn disk(&self, code: &ProviderCode) -> Option<&LocalStore> {
        code.is_local().then_some(&self.local)
    }

    /// Removes blobs from the stores that hold them, all stores at the same time. The outcomes are
    /// in the order of the blobs; see [`BlobStore::remove`].
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

    /// Returns who serves the files of a provider; see [`ProviderRegistry::location`].
    pub fn location(&self, code: &ProviderCode) -> Location {
        self.providers().location(code)
    }

    /// Returns the service's own disk, where every upload is staged.
    pub fn local(&self) -> &LocalStore {
        &self.local
    }

    /// Returns the providers that are registered now.
    pub fn providers(&self) -> Arc<ProviderRegistry> {
        Arc::clone(&self.providers.read())
    }

    /// Registers other providers from now on.
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
