//! Checks of the store and its providers, and upkeep.

use super::Admin;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{FsckMode, FsckOptions, FsckReport, FsckStatus};
use crate::storage::ProviderCheck;
use crate::worker::running::progress::Progress;
use crate::worker::{fsck, scrub, upkeep};

impl Admin<'_> {
    /// Checks the whole store while it serves: all records and their bytes, all blobs and the records that
    /// refer to them, leftovers, cached variants, and totals. The check only reports, unless the options
    /// request repairs. The check ends early once `stop` returns true, and the next check of the same kind
    /// resumes there. Progress counts files and bytes.
    ///
    /// Returns `Conflict` while another check runs, and `UnknownProvider` if the options name an unknown
    /// provider. A repair returns `ProviderUnavailable` if this opener does not know the lifetimes and
    /// providers of the store's owner.
    ///
    /// ```no_run
    /// # use filestore_core::admin::{FsckDepth, FsckOptions, NoProgress};
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let mut options = FsckOptions::default();
    /// options.depth = FsckDepth::Deep;
    /// let report = store.admin().fsck(options, &|| false, &NoProgress).await?;
    /// for finding in &report.findings {
    ///     println!("{} {}: {}", finding.kind, finding.name, finding.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck(
        self,
        options: FsckOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<FsckReport> {
        if options.mode == FsckMode::Repair {
            self.store.inner().opener.check_standing()?;
        }
        self.runs().fsck(options, stop, progress).await
    }

    /// Aborts multipart uploads that killed processes left at a provider. These are uploads that are at least
    /// a day old and have no write intent. Returns their number. The background workers do this every hour.
    /// The call ends early once `stop` returns true. The call does nothing if the provider cannot list
    /// uploads. Only S3 can, with keys or with credentials from the environment.
    ///
    /// Returns `UnknownProvider` for an unconfigured provider. Returns `ProviderUnavailable` if the provider
    /// does not answer, or if this program opened the store without the owner's providers. Returns
    /// `Unusable` if the provider refuses to list uploads.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let aborted = store.admin().abort_left_uploads(&"s3-main".parse()?, &|| false).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn abort_left_uploads(
        self,
        provider: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64> {
        self.store.inner().opener.check_standing()?;
        self.runs().abort_left_uploads(provider, stop).await
    }

    /// Describes the running check on any server, and the last results of the requested check and of the
    /// scrub.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// if let Some(scrub) = store.admin().fsck_status().await?.scrub {
    ///     println!("{} found by {:?}", scrub.found, scrub.ended_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck_status(self) -> Result<FsckStatus> {
        fsck::status(self.store).await
    }

    /// Tells the running check on any server to stop. The caller of that check gets a report of the findings
    /// so far. Returns false if no check runs. Another server sees the request within seconds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// if !store.admin().fsck_stop().await? {
    ///     println!("no check is under way");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck_stop(self) -> Result<bool> {
        fsck::stop(self.store).await
    }

    /// Tells this process's check to stop, for example when the process ends.
    pub fn fsck_stop_here(self) {
        fsck::stop_here(self.store);
    }

    /// Tests a provider of location CLOUD with its own test objects. The report contains the faults of the
    /// provider. Returns `UnknownProvider` if no provider has this code, and `InvalidField` for `LOCAL`.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let check = store.admin().check_provider("s3").await?;
    /// for step in &check.steps {
    ///     println!("{}: {:?} {}", step.name, step.outcome, step.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn check_provider(self, code: &str) -> Result<ProviderCheck> {
        self.runs().check_provider(code).await
    }

    /// Runs one round of upkeep, like [`Workers`](crate::Workers) do twice a minute. The round repeats failed
    /// renames, refills the reserve file, ends abandoned writes to providers, and removes expired idempotency
    /// keys, secrets and receipts. A failing part does not stop the other parts. Returns the first failure.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// store.admin().upkeep().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upkeep(self) -> Result<()> {
        upkeep::run(self.store).await
    }

    /// Scrubs the store if a scrub is due, or resumes a stopped scrub. A scrub gives way to a
    /// [check](Self::fsck). Ends early once `stop` returns true.
    pub async fn scrub_if_due(self, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        scrub::run_if_due(self.store, stop).await
    }

    /// Waits for a database fault after which the process must restart. Returns the reason.
    pub async fn poisoned(self) -> String {
        self.store.inner().metadata.poisoned().await
    }
}
