//! The use cases: what an application does with a store, one file each.
//!
//! [`FileStore`] is the facade: cheap to clone, safe to share. A use case reads the record, lets the
//! lifecycle decide, makes bytes durable, commits once, and leaves the rest to redo.
//!
//! # Taking back
//! Six verbs, each with one meaning, here and in the strata below:
//!
//! | verb | is said of |
//! |---|---|
//! | discard | staged bytes that no record will name |
//! | withdraw | an object at a provider that no record will refer to |
//! | release | a claim or a lease, given back as if it had never been made |
//! | postpone | a failed piece of work, to a later time |
//! | forget | an entry in memory or in a cache |
//! | cancel | work under way |
//!
//! # Cancellation
//! A future that is dropped before its commit is queued leaves nothing: staged bytes are discarded,
//! objects at a provider withdrawn. From then on a use case runs in a task of its own, so that a
//! caller that goes away cannot part a record from its bytes.

mod request;
mod open;
mod external_database;
mod last_used;
mod reload;
pub(crate) mod recovery;
pub(crate) mod unflushed;
mod settled;
mod placement;
mod upload;
mod arrived;
mod staged;
mod commit;
mod uncommitted;
mod publish;
mod idempotency;
mod quota;
mod put_back;
mod signing;
mod permits;
mod change;
mod read;
mod listing;
mod variant;
mod sheet;
mod delete;
mod destinations;
mod receipts;
mod bindings;
mod keys;
mod key_ring;
mod providers;
mod overview;
mod provider_identity;
pub(crate) mod cloud_write;
pub(crate) mod relocate;
pub(crate) mod migrations;
pub(crate) mod checks;
mod traffic;
pub(crate) mod wake;
pub(crate) mod at_work;
pub(crate) mod under_way;
mod secrets;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::domain::clock::{Clock, Timestamp};
use crate::domain::config::StoreConfig;
use crate::domain::damage::Damage;
use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::domain::leap::{LeapGuard, Pace};
use crate::domain::provider::ProviderCode;
use crate::domain::provider_health::ProviderHealth;
use crate::metadata::Metadata;
use crate::storage::{BlobStores, DataDir, ProviderRegistry, StagedLedger};
use crate::variant::VariantEngine;
use crate::variant::convert::Converters;

use self::at_work::AtWork;
use self::checks::Checks;
use self::last_used::Standing;
use self::migrations::Migrations;
use self::publish::PublishQueue;
use self::traffic::Traffic;
use self::wake::Wake;

pub use crate::storage::ByteStream;
pub use bindings::Bindings;
pub use change::Changed;
#[cfg(feature = "postgres")]
pub(crate) use external_database::postgres_options;
pub use idempotency::IdempotencyGuard;
pub use keys::Keys;
pub use listing::{FilePage, ListRequest};
pub use open::FileStoreBuilder;
#[cfg(feature = "postgres")]
pub(crate) use open::MARKED;
pub use permits::PermitGuard;
pub use quota::QuotaReservation;
pub use read::Opened;
pub use receipts::Receipts;
pub use reload::Reloaded;
pub use request::{
    BatchItem, Change, Edit, GivenName, IfMatch, NewBatch, NewUpload, PartHints, Preconditions,
    Replacement, Uploaded,
};
pub use secrets::Recency;
pub use signing::Signing;
pub use upload::Uploads;
pub use variant::VariantRequest;

/// The health of what a store stands on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Health {
    /// The database's answer to a ping.
    pub database: Result<()>,
    /// The answer of the disk, which was written to and read from.
    pub storage: Result<()>,
}

impl Health {
    /// Returns true if all parts work.
    pub fn is_good(&self) -> bool {
        self.database.is_ok() && self.storage.is_ok()
    }
}

/// A store of files. Cheap to clone; all clones are the same store.
///
/// ```no_run
/// use filestore_core::service::NewUpload;
/// use filestore_core::{FileStore, domain::scope::Scope};
///
/// # async fn example() -> filestore_core::Result<()> {
/// let store = FileStore::open("./files").await?;
/// let upload = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
/// let record = store.upload(upload, &b"hello"[..]).await?;
/// let bytes = store.read(record.file_id, &Scope::All).await?;
/// assert_eq!(bytes, "hello");
/// store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FileStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) clock: Clock,
    /// The instant at which the store was opened.
    pub(crate) opened_at: Timestamp,
    /// The configuration, which [`FileStore::reload`] replaces.
    config: RwLock<Arc<StoreConfig>>,
    pub(crate) dir: DataDir,
    pub(crate) metadata: Arc<dyn Metadata>,
    pub(crate) stores: BlobStores,
    pub(crate) variants: VariantEngine,
    pub(crate) converters: Arc<Converters>,
    pub(crate) publishing: Arc<PublishQueue>,
    /// Wakes the lanes of the purge.
    pub(crate) purge_wanted: Wake,
    /// The runs of the purge that may have claimed files.
    pub(crate) purging: AtWork,
    /// Wakes the lanes of the sync.
    pub(crate) sync_wanted: Wake,
    /// Compares the clocks before anything is removed that is due.
    pub(crate) leap_guard: LeapGuard,
    /// Counters of what was copied to and between providers since the store was opened.
    pub(crate) traffic: Traffic,
    /// The migrations under way, by organization.
    pub(crate) migrations: Migrations,
    /// The checks under way.
    pub(crate) checks: Checks,
    /// The right of this opener to run the work of the background.
    pub(crate) standing: Standing,
    /// The backend of LOCAL that the store's owner used, if it is not the one in use here.
    missing_backend: Option<ProviderCode>,
    /// The beginning of the last flush of everything, where uploads are not flushed one by one.
    flushed_at: Mutex<Option<Instant>>,
    keys: key_ring::KeyRing,
    /// The version of `keys` and `signing`, where other servers may change them.
    loaded_secrets: secrets::LoadedSecrets,
    idempotency: Arc<idempotency::KeysInUse>,
    permits: Arc<permits::PermitsInUse>,
    quota: Arc<quota::Ledger>,
    /// The secrets that sign URLs.
    signing: signing::SigningSecrets,
    /// Lets one change of the keys that sign receipts run at a time.
    receipt_keys: tokio::sync::Mutex<()>,
    /// The instant up to which it is known what other servers have removed; `None` before the first look.
    pub(crate) removals_seen: tokio::sync::Mutex<Option<Timestamp>>,
    /// Held while what is remembered of directories of snapshots changes.
    destinations: tokio::sync::Mutex<()>,
    /// Turns of those that look at destinations of backups.
    destination_looks: Arc<tokio::sync::Semaphore>,
    /// The room for bytes that are staged without a commit.
    staged: Arc<StagedLedger>,
}

impl Inner {
    /// Returns the present instant by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the configuration as it is now. A use case that asks twice may get two answers.
    pub(crate) fn config(&self) -> Arc<StoreConfig> {
        Arc::clone(&self.config.read())
    }
}

impl FileStore {
    /// Reports the damage that was met since the store was opened: rows that cannot be read, and
    /// live records without bytes. Both are passed over; an operator has to repair them.
    pub fn damage(&self) -> Damage {
        let missing_blobs = self.inner.publishing.missing.lock().len() as u64;
        Damage { missing_blobs, ..self.inner.metadata.damage() }
    }

    /// Tells if what is due may be removed now: not while the wall clock has leapt forward and is not
    /// trusted yet. Says so in the log.
    pub(crate) fn may_remove(&self) -> bool {
        let pace = self.inner.leap_guard.look(&self.inner.clock);
        match pace {
            Pace::Leapt(millis) => tracing::warn!(
                by_secs = millis / 1000,
                settle_secs = self.inner.config().clock_settle.as_secs(),
                "the clock leapt forward: nothing is expired or removed until it is back or has settled"
            ),
            Pace::Settled => tracing::info!("the clock has settled: what is due is removed again"),
            Pace::Steady | Pace::Unsettled => {}
        }
        pace.may_remove()
    }

    /// Returns the id of the store, which its data directory is marked with.
    pub fn id(&self) -> StoreId {
        self.inner.metadata.store_id()
    }

    /// Returns the configuration as it is now; see [`reload`](Self::reload).
    pub fn config(&self) -> Arc<StoreConfig> {
        self.inner.config()
    }

    /// Returns the data directory that the store holds.
    pub fn data_dir(&self) -> &DataDir {
        &self.inner.dir
    }

    /// Returns the providers that the store knows now; see [`reload`](Self::reload).
    pub fn providers(&self) -> Arc<ProviderRegistry> {
        self.inner.stores.providers()
    }

    /// Returns the present instant by the store's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Describes how the providers of location CLOUD answer: their circuit breakers, with the last
    /// error of each.
    pub fn provider_health(&self) -> Vec<ProviderHealth> {
        self.providers().health()
    }

    /// Checks that the database answers and that the storage takes and gives back a byte.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) {
    /// let health = store.check().await;
    /// if let Err(error) = health.storage {
    ///     eprintln!("the disk: {error}");
    /// }
    /// # }
    /// ```
    pub async fn check(&self) -> Health {
        let (database, storage) =
            tokio::join!(self.inner.metadata.ping(), self.inner.stores.local().check());
        Health { database, storage }
    }

    /// Resolves when the database met a fault after which the process must end and start again.
    pub async fn poisoned(&self) -> String {
        self.inner.metadata.poisoned().await
    }

    /// Finishes queued writes and closes the database. Other clones fail from then on.
    pub async fn close(&self) {
        self.inner.publishing.idle().await;
        if let Err(error) = self.note_key_uses().await {
            tracing::warn!(error = %error.chain(), "the last uses of keys were not written");
        }
        if let Err(error) = unflushed::flush_at_end(self).await {
            tracing::warn!(error = %error.chain(), "not everything was flushed: the next start compares the files");
        }
        self.inner.metadata.close().await;
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStore").field("dir", &self.inner.dir.path()).finish_non_exhaustive()
    }
}
