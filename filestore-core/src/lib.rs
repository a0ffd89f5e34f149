//! File storage for organizations, as a library: durable uploads, atomic batches, a lifecycle from
//! temporary to ready, gallery variants of images, soft purge. No server and no HTTP: metadata in
//! SQLite and bytes on the local disk, in one directory.
//!
//! ```
//! # #[cfg(feature = "store")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> filestore_core::Result<()> {
//! use filestore_core::{FileStore, NewUpload, Scope, Workers};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path();
//! let store = FileStore::open(path).await?;
//! let workers = Workers::start(&store);
//!
//! // Any `AsyncRead` can be uploaded. When `upload` returns, bytes and record survive a power cut.
//! let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
//! let record = store.upload(new, &b"hello"[..]).await?;
//! assert_eq!(store.read(record.file_id, &Scope::All).await?, "hello");
//!
//! // Deleting hides a file at once; its bytes go in the background.
//! store.delete(record.file_id, &Scope::All).await?;
//!
//! workers.stop(std::time::Duration::from_secs(30)).await;
//! store.close().await;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "store"))]
//! # fn main() {}
//! ```
//!
//! # Where to go from here
//!
//! | for | see |
//! |---|---|
//! | everyday work: upload, read, list, variants, delete | [`FileStore`] |
//! | options | [`FileStoreBuilder`], [`StoreConfig`] |
//! | uploads in steps, idempotency keys, quotas | [`FileStore::uploads`] |
//! | where an organization's files go | [`FileStore::bindings`] |
//! | purge, sync, migration, providers, the variant cache | [`FileStore::admin`] |
//! | background work | [`Workers`] |
//! | what went wrong | [`Error`], [`ErrorKind`] |
//!
//! All of it is at the root of the crate: `use filestore_core::{...}` is enough.
//!
//! # Features
//!
//! `store` (default) is the store itself; `s3` (default), `azblob` and `gcs` are kinds of providers.
//! With only `api` the crate is the wire contract: the serde types of the HTTP API, and nothing that
//! touches a disk.
//!
//! # Inside
//!
//! The strata, each of which may use those below it (adapters never each other):
//!
//! | module | contents |
//! |---|---|
//! | `worker` | background work: purge, expiry, sync, migration, upkeep |
//! | `service` | [`FileStore`]: the use cases, one file each |
//! | `metadata` | all SQL behind one trait |
//! | `storage` | the data directory and its blobs, and the registry of providers |
//! | `variant` | all pixels |
//! | `config_file` | the store's part of the configuration file |
//! | `domain` | ids, states, paths, limits, errors: pure, no I/O |
//! | `api` | the wire contract; `api::convert` is the only bridge from the domain to it |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "api")]
pub mod api;

#[cfg(feature = "store")]
pub mod config_file;
#[cfg(feature = "store")]
pub mod domain;
#[cfg(feature = "store")]
pub mod metadata;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod storage;
#[cfg(feature = "store")]
pub mod variant;
#[cfg(feature = "store")]
pub mod worker;

#[cfg(feature = "store")]
pub use self::{
    domain::{
        binding::{Binding, BindingChange, NewBinding},
        clock::{Clock, ManualClock, Timestamp},
        config::{Durability, Limits, StoreConfig, SyncConfig, VariantConfig},
        disposition::Disposition,
        error::{Details, Error, ErrorKind, Result},
        id::{BlobId, FileId, OrganizationId, OrganizationNumber, Sha256, SubSystem},
        listing::ListFilter,
        provider::{OptionValue, Provider, ProviderCode, ProviderConfig},
        record::{Blob, Dimensions, FileRecord},
        reply::StoredReply,
        report::{
            MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus,
            MigrateVerifyReport, ProviderInfo, PurgeReport, SyncReport, SyncStatusReport,
            WorkFailure,
        },
        scope::Scope,
        status::{Location, PurgeStatus, Status, SyncStatus},
    },
    service::{
        BatchItem, Bindings, ByteStream, Change, Changed, FilePage, FileStore, FileStoreBuilder,
        GivenName, Health, IdempotencyGuard, IfMatch, ListRequest, NewBatch, NewUpload, Opened,
        PartHints, QuotaReservation, Replacement, Uploaded, Uploads, VariantRequest,
    },
    storage::{CheckOutcome, CheckStep, ProviderCheck, StagedBlob, StagingWriter},
    variant::{CacheReport, Fit, Variant, VariantSize},
    worker::{Admin, NoProgress, Progress, Workers, migrate::MigrateOptions},
};

/// Compiles the README's example.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
