//! The use cases of a store, grouped by subject.
//!
//! | module | contains |
//! |---|---|
//! | `opening` | opening a store: database, recovery, configuration changes |
//! | `uploads` | new files, from the first byte to the commit and the final name |
//! | `files` | stored files: reading, listing, changing, deleting, pictures, receipts |
//! | `access` | API keys and signed URLs |
//! | `providers` | bindings, objects at providers, moves between providers |
//! | `events` | the log of events, and its readers |
//! | `webhooks` | URLs to which the store sends events |
//! | `work` | registers and signals of background work |
//!
//! [`FileStore`] is the facade. It is cheap to clone and safe to share. Its methods return handles, which
//! borrow the store. Each module defines its handles, and the struct in [`Inner`] that owns its state.
//!
//! A use case runs in five steps. The use case reads the record, lets the lifecycle decide, flushes the bytes
//! to disk, commits once, and leaves the rest to a redo.
//!
//! # Verbs
//! These six verbs have one meaning each, here and in all lower layers:
//!
//! | verb | meaning |
//! |---|---|
//! | discard | remove staged bytes that no record will name |
//! | withdraw | remove an object at a provider that no record will refer to |
//! | release | give back a claim or a lease, as if it had never been made |
//! | postpone | move failed work to a later time |
//! | forget | remove an entry from memory or from a cache |
//! | cancel | stop running work |
//!
//! # Cancellation
//! If a caller drops a future before its commit is queued, the use case leaves no trace. Staged bytes are
//! discarded, and objects at a provider are withdrawn. After that, the use case runs in its own task. A
//! caller that disconnects can therefore not separate a record from its bytes.

pub(crate) mod opening;
pub(crate) mod uploads;
pub(crate) mod files;
pub(crate) mod access;
pub(crate) mod providers;
pub(crate) mod work;
pub(crate) mod events;
#[cfg(feature = "webhooks")]
pub(crate) mod webhooks;
mod request;
mod retry;
pub(crate) mod spans;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::domain::access::scope::Scope;
use crate::domain::config::StoreConfig;
use crate::domain::error::Result;
use crate::domain::event::EventNaming;
use crate::domain::file::damage::Damage;
use crate::domain::id::StoreId;
use crate::domain::provider::health::ProviderHealth;
use crate::domain::time::clock::{Clock, Timestamp};
use crate::metadata::Metadata;
use crate::storage::{BlobStores, DataDir, ProviderRegistry};

use self::access::Access;
use self::files::variant::Pictures;
use self::opening::last_used::OpenerRights;
use self::uploads::state::UploadState;
use self::work::background::Background;
use self::work::destinations::Destinations;

pub use crate::storage::ByteStream;
pub use access::keys::Keys;
pub use access::secrets::{Recency, SharedStore};
pub use access::signing::Signing;
pub use events::Events;
pub use files::Files;
pub use files::change::Changed;
pub use files::content_reader::ContentReader;
pub use files::listing::{FilePage, ListRequest};
pub use files::organizations::{Page, PageRequest};
pub use files::read::Opened;
pub use files::receipts::Receipts;
pub use files::serving::ServedFiles;
pub use files::variant::VariantRequest;
#[cfg(feature = "postgres")]
pub(crate) use opening::external_database::postgres_options;
pub use opening::open::FileStoreBuilder;
#[cfg(feature = "postgres")]
pub(crate) use opening::open::MARKED;
pub use opening::reload::Reloaded;
pub use providers::bindings::Bindings;
pub use request::{
    BatchItem, Change, Edit, GivenName, IfMatch, NewBatch, NewUpload, PartHints, Preconditions,
    Replacement, Uploaded,
};
pub use uploads::claims::{ReplacementClaims, UploadClaims};
pub use uploads::idempotency::IdempotencyKey;
#[cfg(feature = "internals")]
pub use uploads::resumable::judge_terms;
pub use uploads::resumable::permit::ResumablePermit;
pub use uploads::resumable::request::{
    Append, BodyCheck, CreatedUpload, Ends, NewResumable, Recheck, ResumableTarget,
};
pub use uploads::resumable::{Arrival, ResumableUploads};
pub(crate) use uploads::resumable::{clear_ended, reopen_stalled_uploads, upkeep_of_uploads};
pub use uploads::session::UploadSession;
pub use uploads::upload::Uploads;
#[cfg(feature = "webhooks")]
pub use webhooks::Webhooks;
#[cfg(all(feature = "webhooks", any(test, feature = "internals")))]
pub use webhooks::{Endpoints, Posted};

/// The health of a store's database and storage.
#[derive(Debug)]
#[non_exhaustive]
pub struct Health {
    /// The result of a ping to the database.
    pub database: Result<()>,
    /// The result of a test on the disk. The test writes a byte and reads the byte.
    pub storage: Result<()>,
}

impl Health {
    /// Returns true if database and storage work.
    pub fn is_good(&self) -> bool {
        self.database.is_ok() && self.storage.is_ok()
    }
}

/// A store of files. Cheap to clone: all clones are the same store.
///
/// ```no_run
/// use filestore_core::{FileStore, NewUpload, Scope, Workers};
///
/// # async fn example() -> filestore_core::Result<()> {
/// let store = FileStore::open("./files").await?;
/// let workers = Workers::start(&store);
///
/// let upload = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
/// let record = store.upload(upload, &b"hello"[..]).await?;
///
/// // A scope names the organizations whose files a caller may see.
/// let scope = Scope::Organizations(vec!["42".parse()?]);
/// let files = store.scoped(&scope);
/// assert_eq!(files.read(record.file_id).await?, "hello");
/// files.delete(record.file_id).await?;
///
/// workers.stop(std::time::Duration::from_secs(30)).await;
/// store.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # Handles
///
/// Most calls belong to a handle, which borrows the store:
///
/// | for | call |
/// |---|---|
/// | files: read, list, change, delete, pictures | [`scoped`](Self::scoped) |
/// | uploads in steps | [`uploads`](Self::uploads); [`upload`](Self::upload) does all steps |
/// | uploads that go on after a restart | [`resumable`](Self::resumable) |
/// | URLs that work without a key | [`signing`](Self::signing) |
/// | providers of new files | [`bindings`](Self::bindings) |
/// | API keys | [`keys`](Self::keys) |
/// | keys of purge receipts | [`receipts`](Self::receipts) |
/// | purge, sync, migration, checks, backups | [`admin`](Self::admin) |
/// | serving files over a network | [`serving`](Self::serving) |
/// | what happened to files | [`events`](Self::events) |
/// | several servers on one store | [`shared`](Self::shared) |
#[derive(Clone)]
pub struct FileStore {
    inner: Arc<Inner>,
}

/// The parts of a store. Each part owns the state of one module.
pub(crate) struct Inner {
    pub(crate) clock: Clock,
    /// The time at which the store was opened.
    pub(crate) opened_at: Timestamp,
    /// The configuration, which [`FileStore::reload`] replaces.
    config: RwLock<Arc<StoreConfig>>,
    pub(crate) dir: DataDir,
    pub(crate) metadata: Arc<dyn Metadata>,
    pub(crate) stores: BlobStores,
    pub(crate) pictures: Pictures,
    pub(crate) uploads: UploadState,
    pub(crate) access: Arc<Access>,
    pub(crate) background: Background,
    pub(crate) destinations: Destinations,
    #[cfg(feature = "webhooks")]
    pub(crate) webhooks: webhooks::WebhookState,
    /// The opener's rights to run background work.
    pub(crate) opener: OpenerRights,
    /// The names of events, by the key of the last read.
    naming: RwLock<EventNaming>,
    /// The start of the last complete flush, if uploads are not flushed one by one.
    flushed_at: Mutex<Option<Instant>>,
}

impl Inner {
    /// Returns the current time of the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the current configuration. Two calls in one use case can return different values.
    pub(crate) fn config(&self) -> Arc<StoreConfig> {
        Arc::clone(&self.config.read())
    }
}

impl FileStore {
    /// Returns the files of the organizations in `scope`. Other files are `NotFound`, like unknown ids.
    ///
    /// For example, a request of organization 42 works on `Scope::Organizations(vec!["42".parse()?])`. Your own
    /// jobs work on [`Scope::All`].
    pub fn scoped<'a>(&'a self, scope: &'a Scope) -> Files<'a> {
        Files::of(self, scope)
    }

    /// Returns the single steps of a read, for a program that serves files. Callers can access the files in
    /// `scope`.
    pub fn serving<'a>(&'a self, scope: &'a Scope) -> ServedFiles<'a> {
        ServedFiles::of(self.scoped(scope))
    }

    /// Returns the API keys. A server checks its callers with these keys.
    pub fn keys(&self) -> Keys<'_> {
        Keys::of(&self.inner.access)
    }

    /// Returns the secrets that sign URLs. [`Files::sign`] signs a URL to read a file.
    pub fn signing(&self) -> Signing<'_> {
        Signing::of(self)
    }

    /// Returns the keys that sign purge receipts. [`Files::receipt`] makes a receipt.
    pub fn receipts(&self) -> Receipts<'_> {
        Receipts::of(self)
    }

    /// Returns the handle for bindings. A binding names the provider of an organization's new files.
    pub fn bindings(&self) -> Bindings<'_> {
        Bindings::of(self)
    }

    /// Returns the exchange with other servers that share this store.
    pub fn shared(&self) -> SharedStore<'_> {
        SharedStore::of(&self.inner.access)
    }

    /// Returns the damage found since the store was opened: unreadable rows, and live records without bytes.
    /// The store skips both. An operator must repair them.
    pub fn damage(&self) -> Damage {
        let missing_blobs = self.inner.uploads.publishing.missing.lock().len() as u64;
        Damage { missing_blobs, ..self.inner.metadata.damage() }
    }

    /// Returns the store's id. The same id marks the data directory.
    pub fn id(&self) -> StoreId {
        self.inner.metadata.store_id()
    }

    /// Returns the current configuration. [`reload`](Self::reload) replaces it.
    pub fn config(&self) -> Arc<StoreConfig> {
        self.inner.config()
    }

    /// Returns the data directory of the store.
    pub fn data_dir(&self) -> &DataDir {
        &self.inner.dir
    }

    /// Returns the current providers. [`reload`](Self::reload) replaces them.
    pub fn providers(&self) -> Arc<ProviderRegistry> {
        self.inner.stores.providers()
    }

    /// Returns the current time of the store's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.now()
    }

    /// Returns the health of each provider of location CLOUD: its circuit breaker and its last error.
    pub fn provider_health(&self) -> Vec<ProviderHealth> {
        self.providers().health()
    }

    /// Checks that the database answers, and that the storage can write and read a byte.
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

    /// Finishes queued writes and closes the database. Calls on other clones then fail.
    pub async fn close(&self) {
        self.inner.uploads.publishing.idle().await;
        if let Err(error) = self.inner.access.note_key_uses().await {
            tracing::warn!(error = %error.chain(), "the last uses of keys were not written");
        }
        if let Err(error) = opening::unflushed::flush_at_end(self).await {
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
