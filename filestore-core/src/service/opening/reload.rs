//! Applies a changed configuration while the store is open.
//!
//! # Purpose
//! Limits, lifetimes, the quota, the scrub, backup destinations, providers and signing secrets can change
//! without a restart. Other values belong to parts that already run: threads, caches, converters, and the
//! flush mode. They stay until the next opening, and the report names them.
//!
//! # Locking
//! The configuration and the registry of providers are each replaced as a whole. A running use case ends with
//! the values with which it began. For example, an operation at a provider continues after the provider was
//! removed from the configuration.

use std::sync::Arc;

use super::last_used;
use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::service::{FileStore, Inner};
use crate::storage::StagedLimits;

/// The result of [`FileStore::reload`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// Keys with a new value that takes effect at the next opening.
    pub waiting: Vec<&'static str>,
}

impl FileStore {
    /// Applies a changed configuration: lifetimes, limits, the quota, sync and scrub settings, backup
    /// destinations, providers and signing secrets. A provider with an unchanged configuration keeps its
    /// state. To start the lanes of new providers, call [`Workers::refresh`](crate::Workers::refresh).
    ///
    /// If the call fails, no value changes. Returns `Unusable` for a value out of range, or if a provider
    /// cannot be opened.
    pub async fn reload(&self, mut config: StoreConfig) -> Result<Reloaded> {
        config.check_settings()?;
        let providers = self.providers().changed_to(&config.providers)?;
        if providers.backend() != self.providers().backend() {
            let message = "local.backend changes with a restart alone";
            return Err(Error::new(ErrorKind::Unusable, message).with_field("local.backend"));
        }
        let waiting = self.inner.keep_fixed(&mut config);
        last_used::change(&*self.inner.metadata, &config).await?;

        self.inner.uploads.staged.limit_to(StagedLimits::from(&config.limits));
        self.inner.stores.replace_providers(providers);
        self.inner.access.signing.configure(&config.signing);
        *self.inner.config.write() = Arc::new(config);

        self.inner.background.purge_wanted.notify();
        self.inner.background.sync_wanted.notify();
        #[cfg(feature = "webhooks")]
        self.inner.webhooks.wanted.notify();
        Ok(Reloaded { waiting })
    }
}

impl Inner {
    /// Restores the values that can change only at an opening. Returns their keys.
    fn keep_fixed(&self, config: &mut StoreConfig) -> Vec<&'static str> {
        let now = self.config();
        let mut waiting = Vec::new();
        keep(&mut config.durability, &now.durability, "durability", &mut waiting);
        keep(&mut config.metadata, &now.metadata, "metadata", &mut waiting);
        keep(&mut config.reserve_bytes, &now.reserve_bytes, "reserve_bytes", &mut waiting);
        keep(
            &mut config.clock_settle,
            &now.clock_settle,
            "lifetimes.clock_settle_secs",
            &mut waiting,
        );
        keep(
            &mut config.limits.concurrent_uploads,
            &now.limits.concurrent_uploads,
            "limits.concurrent_uploads",
            &mut waiting,
        );
        keep(
            &mut config.limits.blob_cache_bytes,
            &now.limits.blob_cache_bytes,
            "limits.blob_cache_bytes",
            &mut waiting,
        );
        keep(
            &mut config.limits.open_files,
            &now.limits.open_files,
            "limits.open_files",
            &mut waiting,
        );
        keep(&mut config.events.enabled, &now.events.enabled, "events.enabled", &mut waiting);
        keep(&mut config.variants, &now.variants, "variants", &mut waiting);
        waiting
    }
}

fn keep<T: PartialEq + Clone>(
    new: &mut T,
    now: &T,
    key: &'static str,
    waiting: &mut Vec<&'static str>,
) {
    if new != now {
        new.clone_from(now);
        waiting.push(key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::access::scope::Scope;
    use crate::domain::file::status::Location;
    use crate::domain::provider::binding::NewBinding;
    use crate::domain::provider::{ProviderCode, ProviderConfig};
    use crate::service::NewUpload;

    fn upload() -> NewUpload {
        NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
    }

    fn with_provider(code: &str) -> StoreConfig {
        let mut config = StoreConfig::default();
        config.providers.push(ProviderConfig::new(code.parse().unwrap(), "memory"));
        config
    }

    async fn bind(store: &FileStore, code: &str) {
        let binding = NewBinding::new(42.try_into().unwrap(), "x", code.parse().unwrap());
        store.bindings().create(binding).await.unwrap();
    }

    #[tokio::test]
    async fn limits_hold_from_the_reload_on_and_others_wait_for_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        store.upload(upload(), &b"12345"[..]).await.unwrap();

        let mut config = StoreConfig::default();
        config.limits.max_file_size = 4;
        config.variants.threads = 7;
        let reloaded = store.reload(config).await.unwrap();
        assert_eq!(reloaded.waiting, ["variants"]);
        assert_eq!(store.config().variants, StoreConfig::default().variants);

        let error = store.upload(upload(), &b"12345"[..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        store.upload(upload(), &b"1234"[..]).await.unwrap();
    }

    #[tokio::test]
    async fn a_backend_of_local_comes_and_goes_with_a_restart_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let mut config = with_provider("mem");
        config.providers[0] = config.providers[0].clone().as_local_backend();
        let error = store.reload(config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
        assert_eq!(error.details().field.as_deref(), Some("local.backend"));

        let record = store.upload(upload(), &b"bytes"[..]).await.unwrap();
        assert!(record.blob.provider.is_local());
        assert_eq!(store.providers().all().len(), 1);
    }

    #[tokio::test]
    async fn what_cannot_be_used_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();

        let mut bad = with_provider("mem");
        bad.quota_bytes = Some(1);
        bad.providers.push(ProviderConfig::new("odd".parse().unwrap(), "s4"));
        assert_eq!(store.reload(bad).await.unwrap_err().kind(), ErrorKind::Unusable);
        assert_eq!((store.providers().all().len(), store.config().quota_bytes), (1, None));

        let mut bad = StoreConfig::default();
        bad.limits.max_batch_items = 0;
        assert_eq!(store.reload(bad).await.unwrap_err().kind(), ErrorKind::Unusable);
        store.upload(upload(), &b"12345"[..]).await.unwrap();
    }

    #[tokio::test]
    async fn a_provider_comes_and_goes_and_comes_back_without_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let code: ProviderCode = "mem".parse().unwrap();
        assert!(store.providers().check_for_binding(&code).is_err());

        store.reload(with_provider("mem")).await.unwrap();
        bind(&store, "mem").await;
        let record = store.upload(upload(), &b"far away"[..]).await.unwrap();
        assert_eq!(record.state.location(), Location::Cloud);
        assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "far away");

        let mut renamed = with_provider("mem");
        renamed.providers[0].name = "Memory".to_owned();
        renamed.providers[0].is_active = false;
        store.reload(renamed).await.unwrap();
        let error = store.upload(upload(), &b"x"[..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProviderInactive);
        assert_eq!(
            store.scoped(&Scope::All).read(record.file_id).await.unwrap(),
            "far away",
            "kept"
        );

        let held = store.providers().cloud(&code).unwrap().clone();
        store.reload(StoreConfig::default()).await.unwrap();
        let error = store.scoped(&Scope::All).read(record.file_id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
        assert_eq!(held.code(), &code, "what runs there can end");
    }

    #[tokio::test]
    async fn a_guest_goes_by_what_was_reloaded() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let config = StoreConfig { purge_grace: Duration::from_hours(1), ..StoreConfig::default() };
        store.reload(config).await.unwrap();
        store.close().await;
        drop(store);

        let guest = FileStore::builder(dir.path()).follow_owner().open().await.unwrap();
        assert_eq!(guest.config().purge_grace, Duration::from_hours(1));
    }
}
