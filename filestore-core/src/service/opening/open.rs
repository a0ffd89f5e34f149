//! Opens a store: locks the directory, opens the database and recovers from crashes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::last_used::{self, Age, Opener};
use super::{external_database, recovery, unflushed};
use crate::domain::config::{Durability, Limits, MetadataPlace, StoreConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::EventNaming;
use crate::domain::file::variant::{Fit, VariantSize};
use crate::domain::id::StoreId;
use crate::domain::provider::{ProviderCode, ProviderConfig};
use crate::domain::time::clock::{Clock, Timestamp};
use crate::domain::time::leap::LeapGuard;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::{LogSwitch, Metadata};
use crate::service::access::Access;
use crate::service::files::variant::Pictures;
use crate::service::providers::identity::MarkedProviders;
use crate::service::uploads::state::UploadState;
use crate::service::work::background::Background;
use crate::service::work::destinations::Destinations;
use crate::service::{FileStore, Inner};
use crate::storage::{
    BlobStores, DataDir, LocalOptions, LocalStore, Markers, ProviderRegistry, StagedLimits,
};
use crate::tasks;
use crate::variant::VariantEngine;
use crate::variant::convert::Converters;

impl FileStore {
    /// Opens the store in `path` with the default configuration. Creates the store if necessary.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open().await
    }

    /// Returns a builder for opening the store in `path` with options.
    pub fn builder(path: impl AsRef<Path>) -> FileStoreBuilder {
        FileStoreBuilder {
            path: path.as_ref().to_owned(),
            config: StoreConfig::default(),
            clock: Clock::system(),
            opener: Opener::Owner,
            is_temporary: false,
        }
    }

    /// Opens a new store for a test, in a directory of its own below the system's directory for temporary files. When
    /// the last clone of the store is dropped, the directory is removed.
    ///
    /// Everything works as in any other store, with one difference: without a power cut to survive, no byte is flushed
    /// ([`Durability::Process`]). So a test needs a few milliseconds. For options, use
    /// [`FileStoreBuilder::temporary`].
    ///
    /// ```
    /// use filestore_core::{FileStore, NewUpload};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// let store = FileStore::temporary().await?;
    /// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
    /// store.upload(new, &b"hello"[..]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn temporary() -> Result<Self> {
        FileStoreBuilder::temporary().open().await
    }
}

/// The options for opening a store; from [`FileStore::builder`].
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
    pub(super) path: PathBuf,
    pub(super) config: StoreConfig,
    clock: Clock,
    opener: Opener,
    /// True if the directory is removed with the store.
    is_temporary: bool,
}

impl FileStoreBuilder {
    /// Returns a builder for a store in a temporary directory of its own. See [`FileStore::temporary`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use filestore_core::{FileStoreBuilder, ManualClock, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// let clock = ManualClock::at(Timestamp::now());
    /// let store = FileStoreBuilder::temporary().clock(clock.clock()).open().await?;
    /// clock.advance(Duration::from_hours(25));
    /// # drop(store);
    /// # Ok(())
    /// # }
    /// ```
    pub fn temporary() -> Self {
        let name = format!("filestore-{}", tasks::random_name());
        let builder = FileStore::builder(std::env::temp_dir().join(name));
        Self { is_temporary: true, ..builder }.durability(Durability::Process)
    }

    /// Sets the whole configuration. Call this method before the setters of single options.
    #[must_use]
    pub fn config(mut self, config: StoreConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how safely the store writes to the disk before the acknowledgement of an upload.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.config.durability = durability;
        self
    }

    /// Adds a provider, for example an S3 bucket, that can store files in addition to the data directory.
    #[must_use]
    pub fn provider(mut self, provider: ProviderConfig) -> Self {
        self.config.providers.push(provider);
        self
    }

    /// Sets how long a deleted file can be restored before the purge claims it (default 1 day).
    #[must_use]
    pub fn purge_grace(mut self, grace: Duration) -> Self {
        self.config.purge_grace = grace;
        self
    }

    /// Sets the maximum number of bytes that one organization can store.
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.config.quota_bytes = Some(bytes);
        self
    }

    /// Sets the maximum number of files that one organization can store.
    #[must_use]
    pub fn quota_files(mut self, files: u64) -> Self {
        self.config.quota_files = Some(files);
        self
    }

    /// Sets the maximum sizes and counts of an upload.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets the variants to make in the background for every new picture.
    #[must_use]
    pub fn eager_variants(
        mut self,
        variants: impl IntoIterator<Item = (VariantSize, Fit)>,
    ) -> Self {
        self.config.variants.eager = variants.into_iter().collect();
        self
    }

    /// Sets the clock of the store (default: the system clock).
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Uses the lifetimes, limits and attempts that the owner of the store last used, instead of the
    /// configured values. The recorded values stay unchanged. This is for a tool that works on the directory
    /// of a stopped server without the server's configuration.
    ///
    /// Purge, sync and migration runs fail if the owner used providers that are not configured here, or if
    /// the owner recorded no settings.
    #[must_use]
    pub fn follow_owner(mut self) -> Self {
        self.opener = Opener::Follower;
        self
    }

    /// Leaves the recorded settings of the owner unchanged. This is for a tool with its own configuration.
    /// Purge, sync and migration runs fail if the configuration lacks a provider that the owner used.
    #[must_use]
    pub fn as_guest(mut self) -> Self {
        self.opener = Opener::Guest;
        self
    }

    /// Locks the directory, opens the database, and completes or discards the leftovers of a crash.
    ///
    /// Returns `Locked` if another process uses the directory. Returns `Unusable` if the directory cannot be
    /// used. For example, the path is not a directory or not writable, the schema is newer than this program,
    /// blobs exist without a database, or the blobs belong to another store. Also returns `Unusable` for a
    /// configured value out of range, and names the key in [`Details::field`](crate::Details::field).
    pub async fn open(self) -> Result<FileStore> {
        // Before anything is created.
        self.config.check_settings()?;
        external_database::check(&self.config)?;
        let Self { path, mut config, clock, opener, is_temporary } = self;
        let mut providers = ProviderRegistry::open_with(&config.providers, &clock)?;

        let parts = {
            let (config, clock) = (config.clone(), clock.clone());
            let open = if is_temporary { DataDir::open_temporary } else { DataDir::open };
            tasks::blocking(move || Parts::open(open(&path)?, &config, &clock))
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
        let opens_as = opener;
        let opener = last_used::record_or_follow(&*metadata, &mut config, opener, age).await?;

        let naming = open_log(&*metadata, &config, opens_as, clock.now()).await?;
        let access = Access::load(Arc::clone(&metadata), clock.clone(), &config.signing).await?;
        let ledger = MarkedProviders::ledger(Arc::clone(&metadata));
        providers.identify(metadata.store_id(), &ledger);

        let stores = BlobStores::new(local, providers);
        let destinations = Destinations::new(Arc::clone(&metadata), stores.clone());
        let leap_guard = LeapGuard::new(config.clock_settle);
        leap_guard.look(&clock);
        let background = Background::new(Arc::clone(&metadata), clock.clone(), leap_guard);
        let store = FileStore {
            inner: Arc::new(Inner {
                opened_at: clock.now(),
                clock,
                uploads: UploadState::new(StagedLimits::from(&config.limits)),
                config: RwLock::new(Arc::new(config)),
                dir,
                metadata,
                stores,
                pictures: Pictures { engine: variants, converters: Arc::new(converters) },
                access: Arc::new(access),
                background,
                destinations,
                #[cfg(feature = "webhooks")]
                webhooks: crate::service::webhooks::WebhookState::default(),
                opener,
                naming: RwLock::new(naming),
                flushed_at: Mutex::default(),
            }),
        };

        recovery::recover(&store).await?;
        unflushed::settle(&store).await?;
        if let Some(isolation) = store.inner.pictures.converters.isolation().await {
            tracing::info!("converters run in a sandbox: {isolation}");
        }
        Ok(store)
    }
}

/// Opens the log of events. Only the owner switches it. On a full disk, the switch stays as it is.
async fn open_log(
    metadata: &dyn Metadata,
    config: &StoreConfig,
    opener: Opener,
    now: Timestamp,
) -> Result<EventNaming> {
    let switch = match (opener, config.events.enabled) {
        (Opener::Owner, true) => LogSwitch::On,
        (Opener::Owner, false) => LogSwitch::Off,
        (Opener::Guest | Opener::Follower, _) => LogSwitch::Unchanged,
    };
    let fresh_key = tasks::random_secret();
    match metadata.open_events(switch, fresh_key, now).await {
        Err(error) if error.is_lack_of_room() => {
            tracing::warn!("the disk is full: the log of events stays as it is");
            // Every read takes over the stored key. A log without a key is off.
            Ok(EventNaming::new(fresh_key))
        }
        key => key.map(EventNaming::new),
    }
}

/// The parts of a store that the blocking pool opens.
struct Parts {
    dir: DataDir,
    local: LocalStore,
    /// The database in the directory. `None` if the database is elsewhere.
    database: Option<(Arc<dyn Metadata>, Age)>,
    variants: VariantEngine,
    converters: Converters,
}

impl Parts {
    fn open(dir: DataDir, config: &StoreConfig, clock: &Clock) -> Result<Self> {
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

/// The setting that records that the data directory has its markers.
pub(crate) const MARKED: &str = "directory_marked";

/// Refuses the directory of another store if the records do not belong to a marked directory yet.
async fn check_unused(dir: &DataDir, metadata: &dyn Metadata) -> Result<()> {
    if metadata.settings().await?.contains_key(MARKED) {
        return Ok(());
    }

    if is_unused(dir).await? {
        return Ok(());
    }
    let message = format!(
        "the data directory {} and the PostgreSQL database belong to different stores. To copy the records of the \
         data directory to PostgreSQL, use `filestore metadata copy`",
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

/// Returns true if the data directory contains no recorded and no dropped blob. A new directory can then
/// replace it.
pub(super) async fn has_nothing(metadata: &dyn Metadata) -> Result<bool> {
    let local = ProviderCode::local();
    Ok(metadata.blobs_at(&local, 1).await?.is_empty() && !metadata.keeps_dropped(&local).await?)
}

/// Checks that directory and database belong to the same store. Marks a directory without a marker.
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
