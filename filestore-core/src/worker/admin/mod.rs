//! Administration: purge, providers, the variant cache, erasure.
//!
//! | file | calls |
//! |---|---|
//! | `moves` | sync and migration |
//! | `checks` | checks of the store and its providers, upkeep |
//! | `backups` | snapshots |
//! | `uploads` | resumable uploads |

mod moves;
mod checks;
mod backups;
mod uploads;

use super::running::progress::Progress;
use super::running::run::Runs;
use super::{backlog, overview, purge};
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::usage::Usage;
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::backlog::ProviderBacklog;
use crate::domain::report::erasure::EraseReceipt;
use crate::domain::report::load::Load;
use crate::domain::report::overview::{Overview, ProviderStatus};
use crate::domain::report::{ProviderInfo, PurgeOptions, PurgeReport, Schema};
use crate::service::providers::overview::{list_providers, provider_code};
use crate::variant::CacheReport;

/// The administration of a store; from [`FileStore::admin`].
///
/// Calls can run at the same time as the background [`Workers`](super::Workers) and as each other. Leases in
/// the database divide the work.
///
/// ```no_run
/// use filestore_core::admin::NoProgress;
/// use filestore_core::FileStore;
///
/// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
/// let plan = store.admin().purge_plan().await?;
/// println!("{} files are due, {} bytes", plan.purged, plan.purged_bytes);
/// let report = store.admin().purge(&NoProgress).await?;
/// for failure in report.failures {
///     println!("{}: {}", failure.file_id, failure.error);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    store: &'a FileStore,
}

impl FileStore {
    /// Returns the administration of the store: purge, sync, migration, providers, variants.
    pub fn admin(&self) -> Admin<'_> {
        Admin { store: self }
    }
}

impl<'a> Admin<'a> {
    /// Counts the files that [`purge`](Self::purge) would remove now, and removes none.
    pub async fn purge_plan(self) -> Result<PurgeReport> {
        self.purge_plan_of(&PurgeOptions::default()).await
    }

    /// Counts the files that [`purge_with`](Self::purge_with) would remove now, and removes none.
    pub async fn purge_plan_of(self, options: &PurgeOptions) -> Result<PurgeReport> {
        purge::plan(self.store, options).await
    }

    /// Purges all due files: expired TEMP files, and deleted files and replaced blobs after their grace
    /// period. Progress counts files and blobs.
    ///
    /// The run ends when no other work is due. Failed files, and files of a provider that does not answer,
    /// stay for later. The run also ends after the amount of work that was due at the start. Returns
    /// `ProviderUnavailable` if this opener does not know the lifetimes and providers of the store's owner.
    pub async fn purge(self, progress: &dyn Progress) -> Result<PurgeReport> {
        self.purge_until(&|| false, progress).await
    }

    /// Purges like [`purge`](Self::purge), but ends early, between two removals, once `stop` returns true.
    pub async fn purge_until(
        self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<PurgeReport> {
        self.purge_with(&PurgeOptions::default(), stop, progress).await
    }

    /// Purges like [`purge_until`](Self::purge_until), for the files that the options select. For example, it
    /// can purge files before the end of their grace period, or only one organization's files.
    ///
    /// ```no_run
    /// use filestore_core::admin::{NoProgress, PurgeOptions, PurgeWhen};
    ///
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let mut options = PurgeOptions::default();
    /// options.when = PurgeWhen::Now;
    /// options.organization = Some("42".parse()?);
    /// let report = store.admin().purge_with(&options, &|| false, &NoProgress).await?;
    /// println!("{} bytes are free again", report.purged_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn purge_with(
        self,
        options: &PurgeOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<PurgeReport> {
        self.store.inner().opener.check_standing()?;
        self.runs().purge(options, stop, progress).await
    }

    /// Counts the waiting work of each provider, and its age: copies, deleted files and replaced blobs.
    /// Providers without waiting work are omitted. The call is cheap, so a monitoring probe can use it every
    /// few seconds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for waiting in store.admin().backlog().await? {
    ///     println!("{}: {} files to copy", waiting.provider, waiting.sync.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backlog(self) -> Result<Vec<ProviderBacklog>> {
        backlog::count(self.store).await
    }

    /// Returns an overview of the whole store: database, disk, providers and waiting work.
    /// [`Overview::advice`] lists the problems, and how to solve them.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) {
    /// for advice in store.admin().overview().await.advice() {
    ///     println!("{}: {}; {}", advice.about, advice.problem, advice.next);
    /// }
    /// # }
    /// ```
    pub async fn overview(self) -> Overview {
        overview::everything(self.store).await
    }

    /// Returns the state of queues, caches and counters. The call is fast, for monitoring every few seconds.
    /// For the work that waits for providers, call [`backlog`](Self::backlog).
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) {
    /// let load = store.admin().load().await;
    /// println!("{} changes wait for the database", load.writes.waiting);
    /// # }
    /// ```
    pub async fn load(self) -> Load {
        overview::load(self.store).await
    }

    /// Returns the files and bytes that all organizations store together, by location. The cost grows with the
    /// number of organizations, and not with the number of files.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// println!("{} bytes", store.admin().usage().await?.total().bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage(self) -> Result<Usage> {
        self.store.inner().metadata.total().await
    }

    /// Returns the records database's engine and schema version.
    pub fn schema(self) -> Schema {
        self.store.inner().metadata.schema()
    }

    /// Lists every provider with how it answers and what waits for it, `LOCAL` first.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for provider in store.admin().provider_status().await? {
    ///     println!("{}: {:?}", provider.info.code, provider.state());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn provider_status(self) -> Result<Vec<ProviderStatus>> {
        overview::providers(self.store).await
    }

    /// Erases an organization. The call removes it from all keys, deletes its files, and removes their bytes
    /// and variants everywhere without waiting for the grace period. The call then removes the organization's
    /// bindings, remembered replies and totals. The receipt lists the removals, and confirms that every place
    /// was checked. An incomplete receipt lists the leftovers, and another call continues.
    ///
    /// Clients with a key for all organizations can still upload new files, so stop these clients first.
    /// Returns `ProviderUnavailable` if this opener does not know the providers of the store's owner.
    ///
    /// ```no_run
    /// # use filestore_core::admin::NoProgress;
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let receipt = store.admin().erase_organization(&"42".parse()?, &|| false, &NoProgress).await?;
    /// assert!(receipt.is_complete, "{:?}", receipt.places);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn erase_organization(
        self,
        organization: &OrganizationId,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<EraseReceipt> {
        self.store.inner().opener.check_standing()?;
        self.runs().erase_organization(organization, stop, progress).await
    }

    /// Lists all providers, including inactive providers, with `LOCAL` first.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for provider in store.admin().providers() {
    ///     println!("{} ({}): {}", provider.code, provider.scheme, provider.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn providers(self) -> Vec<ProviderInfo> {
        list_providers(self.store)
    }

    /// Returns the provider with this code. `UnknownProvider` lists the known codes.
    pub fn provider_code(self, code: &str) -> Result<ProviderCode> {
        provider_code(self.store, code)
    }

    /// Returns the number and size of the variants in the cache.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let cache = store.admin().variant_cache().await;
    /// println!("{} variants on disk, {} bytes", cache.disk_entries, cache.disk_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn variant_cache(self) -> CacheReport {
        self.store.inner().pictures.engine.report().await
    }

    /// Empties the variant cache.
    pub async fn prune_variants(self) -> CacheReport {
        self.store.inner().pictures.engine.prune().await
    }

    fn runs(self) -> Runs<'a> {
        Runs(self.store)
    }
}
