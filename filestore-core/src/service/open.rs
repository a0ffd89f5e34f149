//! Opening a store: lock, database, recovery.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::at_work::AtWork;
use super::checks::Checks;
use super::key_ring::KeyRing;
use super::last_used::{self, Age, Opener, Settled};
use super::migrations::Migrations;
use super::provider_identity::MarkedProviders;
use super::publish::PublishQueue;
use super::secrets::LoadedSecrets;
use super::signing::SigningSecrets;
use super::traffic::Traffic;
use super::wake::Wake;
use super::{
    FileStore, Inner, external_database, idempotency, permits, quota, recovery, unflushed,
};
use crate::domain::clock::Clock;
use crate::domain::config::{Durability, Limits, MetadataPlace, StoreConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::domain::leap::LeapGuard;
use crate::domain::provider::{ProviderCode, ProviderConfig};
use crate::domain::variant::{Fit, VariantSize};
use crate::metadata::Metadata;
use crate::metadata::sqlite::SqliteMetadata;
use crate::storage::{
    BlobStores, DataDir, LocalOptions, LocalStore, Markers, ProviderRegistry, StagedLedger,
    StagedLimits,
};
use crate::tasks;
use crate::variant::VariantEngine;
use crate::variant::convert::Converters;

impl FileStore {
    /// Opens the store in `path` with the default configuration, creating it if need be.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Prepares to open the store in `path`.
    pub fn builder(path: impl AsRef<Path>) -> FileStoreBuilder {
        FileStoreBuilder {
            path: path.as_ref().to_owned(),
            config: StoreConfig::default(),
            clock: Clock::system(),
            opener: Opener::Owner,
        }
    }
}

/// The options of a store that is about to be opened; from [`FileStore::builder`].
///
/// ```
/// use std::time::Duration;
///
/// use filestore_core::{Durability, FileStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::builder(dir.path())
///     .durability(Durability::Full)
///     .purge_grace(Duration::from_secs(3600))
///     .open()
///     .await?;
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileStoreBuilder {
    path: PathBuf,
    config: StoreConfig,
    clock: Clock,
    opener: Opener,
}

impl FileStoreBuilder {
    /// Sets the whole configuration. Call it before the setters of single options.
    #[must_use]
    pub fn config(mut self, config: StoreConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how far an acknowledged write is on the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.config.durability = durability;
        self
    }

    /// Adds a provider: a place for bytes besides the data directory.
    #[must_use]
    pub fn provider(mut self, provider: ProviderConfig) -> Self {
        self.config.providers.push(provider);
        self
    }

    /// Sets how long a deleted file can be restored before the purge claims it.
    #[must_use]
    pub fn purge_grace(mut self, grace: Duration) -> Self {
        self.config.purge_grace = grace;
        self
    }

    /// Sets how many bytes one organization may store.
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.config.quota_bytes = Some(bytes);
        self
    }

    /// Sets how many files one organization may store.
    #[must_use]
    pub fn quota_files(mut self, files: u64) -> Self {
        self.config.quota_files = Some(files);
        self
    }

    /// Sets the sizes and counts an upload may have.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Makes these variants of every picture in the background when it arrives.
    #[must_use]
    pub fn eager_variants(
        mut self,
        variants: impl IntoIterator<Item = (VariantSize, Fit)>,
    ) -> Self {
        self.config.variants.eager = variants.into_iter().collect();
        self
    }

    /// Sets the clock that the store goes by; the system's unless set.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Goes by the lifetimes, limits and attempts that the store's owner last used, in place of
    /// those of the configuration, and leaves them on record. For tools that work on the directory
    /// of a server that is stopped and do not have its configuration.
    ///
    /// Purge, sync and migration runs are refused if the owner used providers that are not
    /// configured here, or left nothing on record.
    #[must_use]
    pub fn follow_owner(mut self) -> Self {
        self.opener = Opener::Follower;
        self
    }

    /// Leaves on record what the store's owner last used. For tools that have a configuration;
    /// purge, sync and migration runs are refused if it lacks a provider that the owner used.
    #[must_use]
    pub fn as_guest(mut self) -> Self {
        self.opener = Opener::Guest;
        self
    }

    /// Takes the directory's lock, opens the database, and completes or discards what a crash left.
    ///
    /// `Locked` if another process holds the directory, `Unusable` if it cannot be used as it is (no
    /// directory, not writable, a newer schema, no database beside blobs, another store's blobs).
    pub async fn open(self) -> Result<FileStore> {
        let Self { path, mut config, clock, opener } = self;
        let mut providers = ProviderRegistry::open_with(&config.providers, &clock)?;

        let parts = {
            let (config, clock) = (config.clone(), clock.clone());
            tasks::blocking(move || Parts::open(&path, &config, &clock))
                .await
                .map_err(|e| Error::internal("opening the store", e))??
        };
        let Parts { dir, local, database, variants, converters } = parts;
        let (metadata, age) = if let Some(here) = database {
            here
        } else {
            let (metadata, age) = Box::pin(external_database::open(&config, &clock, &dir)).await?;
            check_unused(&dir, &*metadata).await?;
            (metadata, age)
        };

        check_identity(&dir, &*metadata, providers.backend()).await?;
        let Settled { standing, missing_backend } =
            last_used::settle(&*metadata, &mut config, opener, age).await?;

        let loaded_secrets = LoadedSecrets::before_reading(&*metadata).await?;
        let signing = SigningSecrets::load(&*metadata, &config.signing).await?;
        let staged = StagedLedger::new(StagedLimits::from(&config.limits));
        let ledger = MarkedProviders::ledger(Arc::clone(&metadata));
        providers.identify(metadata.store_id(), &ledger);

        let keys = KeyRing::read(&*metadata).await?;
        let leap_guard = LeapGuard::new(config.clock_settle);
        leap_guard.look(&clock);
        let store = FileStore {
            inner: Arc::new(Inner {
                opened_at: clock.now(),
                clock,
                config: RwLock::new(Arc::new(config)),
                dir,
                metadata,
                stores: BlobStores::new(local, providers),
                variants,
                converters: Arc::new(converters),
                publishing: Arc::new(PublishQueue::new()),
                purge_wanted: Wake::default(),
                purging: AtWork::default(),
                sync_wanted: Wake::default(),
                leap_guard,
                traffic: Traffic::default(),
                migrations: Migrations::default(),
                checks: Checks::default(),
                standing,
                missing_backend,
                flushed_at: Mutex::default(),
                keys,
                loaded_secrets,
                idempotency: Arc::new(idempotency::KeysInUse::default()),
                permits: Arc::new(permits::PermitsInUse::default()),
                quota: Arc::new(quota::Ledger::default()),
                receipt_keys: tokio::sync::Mutex::new(()),
                removals_seen: tokio::sync::Mutex::default(),
                destinations: tokio::sync::Mutex::new(()),
                destination_looks: Arc::new(tokio::sync::Semaphore::new(
                    super::destinations::LOOKS_AT_ONCE,
                )),
                signing,
                staged,
            }),
        };

        recovery::recover(&store).await?;
        unflushed::settle(&store).await?;
        if let Some(isolation) = store.inner.converters.isolation().await {
            tracing::info!("converters run in a sandbox: {isolation}");
        }
        Ok(store)
    }
}

/// The parts of a store that are opened on the blocking pool.
struct Parts {
    dir: DataDir,
    local: LocalStore,
    /// The database in the directory; `None` if it is elsewhere.
    database: Option<(Arc<dyn Metadata>, Age)>,
    variants: VariantEngine,
    converters: Converters,
}

impl Parts {
    fn open(path: &Path, config: &StoreConfig, clock: &Clock) -> Result<Self> {
        let dir = DataDir::open(path)?;
        let is_here = config.metadata == MetadataPlace::Sqlite;
        let marker = if is_here { dir.identify()? } else { None };

        let local = LocalStore::open_with(&dir, LocalOptions::from(config), clock)?;
        let reserve = local.clone();
        let on_full = Arc::new(move || {
            reserve.free_reserve();
        });

        let database: Option<(Arc<dyn Metadata>, Age)> = if is_here {
            let age = if dir.has_database() { Age::Old } else { Age::New };
            // A database from before stores had ids is the one of the directory that it lies in.
            let id = marker.unwrap_or_else(|| StoreId::generate(clock.now()));
            let (file, durability) = (dir.database(), config.durability);
            let metadata = SqliteMetadata::open_known_as(id, &file, durability, Some(on_full))?;
            Some((Arc::new(metadata), age))
        } else {
            None
        };

        let room = local.clone();
        let variants =
            VariantEngine::open_beside(&dir.variants(), config.variants.clone(), move || {
                room.has_room()
            })?;

        let converters = Converters::open(dir.converters(), &config.variants)?;

        Ok(Self { dir, local, database, variants, converters })
    }
}

/// The setting that says that the data directory has its markers.
pub(crate) const MARKED: &str = "directory_marked";

/// Refuses the directory of another store beside records that have none yet.
async fn check_unused(dir: &DataDir, metadata: &dyn Metadata) -> Result<()> {
    if metadata.settings().await?.contains_key(MARKED) {
        return Ok(());
    }

    if is_unused(dir).await? {
        return Ok(());
    }
    let message = format!(
        "the data directory {} holds the files of another store than the one whose records are in PostgreSQL; \
         `filestore metadata copy` moves its records there",
        dir.path().display()
    );
    Err(Error::new(ErrorKind::Unusable, message))
}

async fn is_unused(dir: &DataDir) -> Result<bool> {
    let dir = dir.clone();
    tasks::blocking(move || dir.is_unused())
        .await
        .map_err(|e| Error::internal("checking the data directory", e))?
}

/// Tells whether no record and no dropped blob is in the data directory: a new one can take its place.
pub(super) async fn has_nothing(metadata: &dyn Metadata) -> Result<bool> {
    let local = ProviderCode::local();
    Ok(metadata.blobs_at(&local, 1).await?.is_empty() && !metadata.keeps_dropped(&local).await?)
}

/// Checks that directory and database are of one store, and marks a directory that is not marked
/// yet.
async fn check_identity(
    dir: &DataDir,
    metadata: &dyn Metadata,
    backend: Option<&ProviderCode>,
) -> Result<()> {
    let is_marked = metadata.settings().await?.contains_key(MARKED);
    let may_be_new =
        !is_marked || (backend.is_some() && is_unused(dir).await? && has_nothing(metadata).await?);
    let markers = if may_be_new { Markers::Expected } else { Markers::Required };

    let (dir, id) = (dir.clone(), metadata.store_id());
    let are_complete = tasks::blocking(move || dir.check_markers(id, markers))
        .await
        .map_err(|e| Error::internal("checking the data directory", e))??;
    if is_marked || !are_complete {
        return Ok(());
    }

    let noted = metadata.put_settings([(MARKED.to_owned(), "1".to_owned())].into()).await;
    match noted {
        // A later opening notes it.
        Err(error) if error.is_lack_of_room() => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_process_is_kept_out_until_the_first_closes() {
        let dir = tempfile::tempdir().unwrap();
        let first = FileStore::open(dir.path()).await.unwrap();
        let second = FileStore::open(dir.path()).await.unwrap_err();
        assert_eq!(second.kind(), ErrorKind::Locked);
        first.close().await;
        drop(first);
        FileStore::open(dir.path()).await.unwrap();
    }
}
