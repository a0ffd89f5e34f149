//! Records in the database which providers carry the store's marker.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::Metadata;
use crate::storage::MarkerLedger;

/// The list of marked providers, kept in the settings of the store.
pub(in crate::service) struct MarkedProviders(Arc<dyn Metadata>);

impl MarkedProviders {
    /// Returns the list in the database `metadata`.
    pub(in crate::service) fn ledger(metadata: Arc<dyn Metadata>) -> Arc<dyn MarkerLedger> {
        Arc::new(Self(metadata))
    }
}

fn setting(provider: &ProviderCode) -> String {
    format!("provider_marked:{provider}")
}

#[async_trait]
impl MarkerLedger for MarkedProviders {
    async fn is_marked(&self, provider: &ProviderCode) -> Result<bool> {
        Ok(self.0.settings().await?.contains_key(&setting(provider)))
    }

    async fn note_marked(&self, provider: &ProviderCode) -> Result<()> {
        self.0.put_settings([(setting(provider), "1".to_owned())].into()).await
    }

    async fn some_blobs(
        &self,
        provider: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<(BlobKey, u64)>> {
        self.0.blobs_at(provider, limit).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use rusqlite::Connection;

    use super::*;
    use crate::FileStore;
    use crate::domain::access::scope::Scope;
    use crate::domain::config::StoreConfig;
    use crate::domain::error::{Error, ErrorKind};
    use crate::domain::file::status::Location;
    use crate::domain::id::FileId;
    use crate::domain::provider::ProviderConfig;
    use crate::domain::provider::binding::NewBinding;
    use crate::domain::time::clock::{Clock, ManualClock, Timestamp};
    use crate::service::NewUpload;
    use crate::worker::{NoProgress, Workers};

    /// A store beside a directory that stands for a mounted disk. Organization 7 writes through to it,
    /// organization 8 syncs to it.
    struct House(tempfile::TempDir);

    impl House {
        async fn new() -> (Self, FileStore) {
            let house = Self(tempfile::tempdir().unwrap());
            let store = house.open().await;
            for (number, sync_enabled) in [(7, false), (8, true)] {
                let binding = NewBinding {
                    organization: number.try_into().unwrap(),
                    organization_name: "x".into(),
                    provider: "disk".parse().unwrap(),
                    sync_enabled,
                };
                store.bindings().create(binding).await.unwrap();
            }
            (house, store)
        }

        async fn open(&self) -> FileStore {
            self.open_by(Clock::system()).await
        }

        /// Opens the store two minutes later, after all pauses for what a provider refused.
        async fn open_later(&self) -> FileStore {
            let later = Timestamp::now().plus(Duration::from_mins(2));
            self.open_by(ManualClock::at(later).clock()).await
        }

        async fn open_by(&self, clock: Clock) -> FileStore {
            let root = self.disk().to_str().unwrap().to_owned();
            let provider =
                ProviderConfig::new("disk".parse().unwrap(), "fs").with_option("root", root);
            let mut config = StoreConfig { providers: vec![provider], ..StoreConfig::default() };
            config.sync.max_attempts = 1000;
            config.purge_grace = Duration::ZERO;
            let builder = FileStore::builder(self.0.path().join("data")).config(config);
            builder.clock(clock).open().await.unwrap()
        }

        fn disk(&self) -> PathBuf {
            self.0.path().join("disk")
        }

        /// Unmounts the disk: its directory is empty.
        fn unmount(&self) {
            std::fs::rename(self.disk(), self.0.path().join("away")).unwrap();
            std::fs::create_dir(self.disk()).unwrap();
        }

        fn mount(&self) {
            std::fs::remove_dir_all(self.disk()).unwrap();
            std::fs::rename(self.0.path().join("away"), self.disk()).unwrap();
        }
    }

    async fn upload(store: &FileStore, organization: &str) -> Result<FileId> {
        let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
        Ok(store.upload(new, &b"bytes"[..]).await?.file_id)
    }

    async fn sync(store: &FileStore) -> u64 {
        store.admin().sync(Arc::new(NoProgress)).await.unwrap().synced
    }

    fn says_where(error: &Error, what: &str) {
        assert_eq!(error.kind(), ErrorKind::ProviderUnavailable, "{error}");
        let text = error.to_string();
        assert!(text.contains("disk") && text.contains(what), "{text}");
    }

    fn files_in(directory: &Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
    }

    #[tokio::test]
    async fn a_disk_that_is_not_mounted_is_neither_empty_nor_a_place_for_files() {
        let (house, store) = House::new().await;
        let (kept, deleted) =
            (upload(&store, "7").await.unwrap(), upload(&store, "7").await.unwrap());
        store.close().await;
        drop(store);
        house.unmount();

        let store = house.open().await;
        store.scoped(&Scope::All).delete(deleted).await.unwrap();
        let purge = store.admin().purge(&NoProgress).await.unwrap();
        assert_eq!(purge.purged, 0, "what is out of sight is not gone");

        let waits = upload(&store, "8").await.unwrap();
        assert_eq!(sync(&store).await, 0);
        let record = store.scoped(&Scope::All).record(waits).await.unwrap();
        assert_eq!(record.state.location(), Location::Local);
        says_where(&upload(&store, "7").await.unwrap_err(), "is missing");
        says_where(&store.scoped(&Scope::All).read(kept).await.unwrap_err(), "is missing");
        let check = store.admin().check_provider("disk").await.unwrap();
        assert!(!check.can_serve && format!("{check:?}").contains("marker"), "{check:?}");
        assert_eq!(files_in(&house.disk()), 0, "nothing is written to the wrong place");
        store.close().await;
        drop(store);
        house.mount();

        let store = house.open_later().await;
        assert_eq!(store.scoped(&Scope::All).read(kept).await.unwrap(), "bytes");
        assert_eq!(sync(&store).await, 1);
        assert_eq!(store.scoped(&Scope::All).read(waits).await.unwrap(), "bytes");
        assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);
        store.close().await;
    }

    #[tokio::test]
    async fn a_disk_that_goes_away_while_the_store_is_open_is_noticed_too() {
        let (house, store) = House::new().await;
        let (kept, deleted) =
            (upload(&store, "7").await.unwrap(), upload(&store, "7").await.unwrap());
        house.unmount();

        store.scoped(&Scope::All).delete(deleted).await.unwrap();
        assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 0);
        says_where(&upload(&store, "7").await.unwrap_err(), "is missing");
        says_where(&store.scoped(&Scope::All).read(kept).await.unwrap_err(), "is missing");

        let advice = store.admin().overview().await.advice();
        assert!(
            advice.iter().any(|one| one.about == "disk" && one.problem.contains("is missing")),
            "{advice:?}"
        );
        assert!(store.provider_health()[0].is_misplaced);

        house.mount();
        assert_eq!(store.scoped(&Scope::All).read(kept).await.unwrap(), "bytes");
        store.admin().check_provider("disk").await.unwrap();
        upload(&store, "7").await.unwrap();
        assert!(store.provider_health()[0].is_good());
        store.close().await;
    }

    #[tokio::test]
    async fn what_waits_for_a_disk_that_is_not_mounted_goes_on_when_it_is() {
        let (house, store) = House::new().await;
        let workers = Workers::start(&store);
        let waits = async |count| {
            loop {
                let status = store.admin().sync_status().await.unwrap();
                if status.pending + status.syncing == count {
                    return status;
                }
                tokio::task::yield_now().await;
            }
        };
        upload(&store, "8").await.unwrap();
        waits(0).await;

        house.unmount();
        for _ in 0..20 {
            upload(&store, "8").await.unwrap();
        }
        while !store.provider_health()[0].is_misplaced {
            tokio::task::yield_now().await;
        }
        assert_eq!(waits(20).await.failed, 0);

        house.mount();
        assert_eq!(waits(0).await.failed, 0);
        assert!(store.provider_health()[0].is_good());
        workers.stop(crate::tasks::HANG).await;
        store.close().await;
    }

    #[tokio::test]
    async fn a_provider_of_an_earlier_version_is_marked_only_if_a_file_of_it_is_there() {
        let (house, store) = House::new().await;
        let id = upload(&store, "7").await.unwrap();
        let database = store.data_dir().database();
        store.close().await;
        drop(store);

        // As the version before markers left it.
        std::fs::remove_file(house.disk().join(".filestore-store")).unwrap();
        let forgotten = "DELETE FROM settings WHERE name = 'provider_marked:disk'";
        assert_eq!(Connection::open(database).unwrap().execute(forgotten, []).unwrap(), 1);

        house.unmount();
        let store = house.open().await;
        says_where(&upload(&store, "7").await.unwrap_err(), "all 1 sampled files are missing");
        assert_eq!(files_in(&house.disk()), 0);

        house.mount();
        assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap(), "bytes");
        store.admin().check_provider("disk").await.unwrap();
        upload(&store, "7").await.unwrap();
        assert!(house.disk().join(".filestore-store").exists());
        store.close().await;
    }

    #[tokio::test]
    async fn the_place_of_another_store_is_refused_and_what_was_left_half_written_goes() {
        let (house, store) = House::new().await;
        upload(&store, "7").await.unwrap();
        store.close().await;
        drop(store);

        let staging = house.disk().join(".filestore-staging");
        let left = staging.join("01JD0000000000000000000000.abcdef");
        let young = staging.join("7ZZZZZZZZZZZZZZZZZZZZZZZZZ.abcdef");
        for name in [&left, &young] {
            std::fs::write(name, "half").unwrap();
        }
        let store = house.open().await;
        upload(&store, "7").await.unwrap();
        while left.exists() {
            tokio::task::yield_now().await;
        }
        assert!(young.exists(), "a process that runs may be writing it");
        store.close().await;
        drop(store);

        std::fs::write(house.disk().join(".filestore-store"), "01JD0000000000000000000000")
            .unwrap();
        let store = house.open().await;
        says_where(&upload(&store, "7").await.unwrap_err(), "01JD0000000000000000000000");
        store.close().await;
    }
}
