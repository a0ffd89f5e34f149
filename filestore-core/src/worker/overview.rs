//! The whole store at a glance, background work included.

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::load::Load;
use crate::domain::overview::{Overview, ProviderStatus};

impl FileStore {
    /// Lists every provider with how it answers and what waits for it.
    pub(crate) async fn provider_overview(&self) -> Result<Vec<ProviderStatus>> {
        Ok(self.provider_states(self.backlog().await?))
    }

    /// Looks at queues, caches and counters. Nothing is counted row by row or file by file.
    pub(crate) async fn load(&self) -> Load {
        let (copied_files, copied_bytes) = self.inner().traffic.totals();
        let damage = self.damage();

        Load {
            at: self.inner().now(),
            opened_at: self.inner().opened_at,
            disk: self.disk_space().await,
            unfinished: self.unfinished(),
            writes: self.inner().metadata.queued_writes(),
            variants: self.variant_load(),
            copied_files,
            copied_bytes,
            damaged_rows: damage.damaged_rows,
            missing_blobs: damage.missing_blobs,
            scrub: self.fsck_status().await.ok().and_then(|checks| checks.scrub),
        }
    }

    /// Looks at everything. A part that cannot be counted because the database does not answer is left
    /// at nothing, and the overview says so.
    pub(crate) async fn overview(&self) -> Overview {
        let ((database_fault, storage_fault), disk, providers, sync, purge, checks, migrations) = tokio::join!(
            self.faults(),
            self.disk_space(),
            self.provider_overview(),
            self.sync_status(),
            self.purge_plan(),
            self.fsck_status(),
            self.inner().running_migrations(),
        );
        let uncounted = [providers.as_ref().err(), sync.as_ref().err(), purge.as_ref().err()];
        let uncounted =
            uncounted.into_iter().flatten().next().map(|error| error.message().to_owned());

        Overview {
            store_id: self.inner().metadata.store_id(),
            version: env!("CARGO_PKG_VERSION"),
            opened_at: self.inner().opened_at,
            at: self.inner().now(),
            data_dir: self.data_dir().path().to_owned(),
            database_fault: database_fault.or(uncounted),
            storage_fault,
            disk,
            unfinished: self.unfinished(),
            providers: providers.unwrap_or_else(|_| self.provider_states(Vec::new())),
            sync: sync.unwrap_or_default(),
            purge: purge.unwrap_or_default(),
            migrations,
            checks: checks.unwrap_or_default(),
            damage: self.damage(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::FileStore;
    use crate::domain::config::StoreConfig;
    use crate::domain::provider::ProviderConfig;
    use crate::domain::provider_health::BreakerState;
    use crate::domain::scope::Scope;
    use crate::service::NewUpload;

    #[tokio::test]
    async fn an_overview_shows_the_store_its_providers_and_what_waits() {
        let dir = tempfile::tempdir().unwrap();
        let memory = ProviderConfig::new("mem".parse().unwrap(), "memory");
        let config = StoreConfig { providers: vec![memory], ..StoreConfig::default() };
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.delete(record.file_id, &Scope::All).await.unwrap();
        let _unfinished = store.uploads().stage().await.unwrap();

        let overview = store.admin().overview().await;
        assert_eq!(overview.data_dir, store.data_dir().path());
        assert_eq!((overview.database_fault.clone(), overview.storage_fault.clone()), (None, None));
        assert!(overview.disk.is_some_and(|disk| disk.total_bytes > disk.free_bytes));
        assert_eq!((overview.unfinished.files, overview.purge.purged), (1, 1));

        let [local, memory] = &overview.providers[..] else { panic!("{:?}", overview.providers) };
        assert_eq!((local.state(), local.backlog.purge.count), (None, 1));
        assert_eq!((memory.state(), memory.backlog.is_empty()), (Some(BreakerState::Closed), true));
        store.close().await;
    }

    #[tokio::test]
    async fn the_load_counts_where_variants_came_from() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"no picture"[..]).await.unwrap();
        assert!(store.variant(record.file_id, 200).await.is_err());

        let load = store.admin().load().await;
        assert_eq!((load.variants.made, load.variants.failed), (0, 1));
        assert!(load.variants.threads > 0 && load.variants.tasks.max > 0);
        assert_eq!(load.writes.waiting, 0);
        assert!(load.disk.is_some() && load.writes.max > 0);
        store.close().await;
    }

    #[tokio::test]
    async fn a_database_that_does_not_answer_is_said_and_hides_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        store.close().await;
        let overview = store.admin().overview().await;
        assert!(overview.database_fault.is_some());
        assert_eq!(overview.providers.len(), 1);
        assert_eq!(overview.advice()[0].about, "database");
    }
}
