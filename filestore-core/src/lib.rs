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
//! | URLs that work without a key | [`FileStore::signing`] |
//! | where an organization's files go | [`FileStore::bindings`] |
//! | purge, sync, migration, providers, the variant cache | [`FileStore::admin`] |
//! | keys, for whoever serves a store over a network | [`FileStore::keys`] |
//! | proof that a purged file is gone | [`FileStore::receipts`], [`verify_receipt`] |
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
//! The modules below are private. The feature `internals` makes them public for the project's own
//! benches, fuzz targets and white-box tests; it promises no stability at all.
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
//! | `tasks` | where work runs; in tests, a simulation on one thread |
//! | `domain` | ids, states, paths, limits, errors: pure, no I/O |
//! | `api` | the wire contract; `api::convert` is the only bridge from the domain to it |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        rustdoc::private_intra_doc_links,
        reason = "the strata are whole; what only benches and white-box tests call needs `internals`"
    )
)]

#[cfg(feature = "api")]
pub mod api;

#[cfg(feature = "store")]
pub mod config_file;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod domain;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod domain;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod metadata;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod metadata;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod service;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod service;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod storage;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod storage;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod tasks;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod tasks;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod variant;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod variant;
#[cfg(all(feature = "store", feature = "internals"))]
pub mod worker;
#[cfg(all(feature = "store", not(feature = "internals")))]
mod worker;

/// Rules that servers and clients of a store share with it: names and types that come over the wire, and
/// how stored bytes are served to browsers.
#[cfg(feature = "store")]
pub mod web {
    pub use crate::domain::{media, serving};
}

#[cfg(feature = "store")]
pub use self::{
    domain::{
        backlog::{ProviderBacklog, Waiting},
        backup::{
            BackupOptions, BackupReport, BlobFault, BlobProblem, PruneReport, RestoreReport,
            RestoredAs, Selection, SnapshotBytes, SnapshotClouds, SnapshotInfo, VerifyReport,
        },
        binding::{Binding, BindingChange, NewBinding},
        clock::{Clock, ManualClock, Timestamp},
        config::{
            AnimationLimits, BackupDestination, ConverterConfig, ConverterOutput, Durability,
            Limits, MetadataPlace, PostgresConfig, ScrubConfig, SigningConfig, StoreConfig,
            SyncConfig, VariantConfig,
        },
        custom_metadata::CustomMetadata,
        damage::{Damage, DamagedRow},
        disposition::Disposition,
        erasure::{EraseReceipt, ErasedPlace, Removed},
        error::{Details, Error, ErrorKind, Result},
        fsck::{
            Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode, FsckOptions, FsckReport,
            FsckRunning, FsckStart, FsckStatus, FsckSummary,
        },
        id::{
            BlobId, DestinationId, FileId, KeyId, OrganizationId, OrganizationNumber, Sha256,
            SnapshotId, StoreId, SubSystem,
        },
        key::{ApiKey, KeyDigest, KeyScope, KeyScopes, KeySecret, NewKey},
        lifecycle::FileState,
        listing::ListFilter,
        load::{Load, QueueLoad, VariantLoad},
        overview::{Advice, DiskSpace, Overview, ProviderStatus, Unfinished},
        path::BlobKey,
        provider::{OptionValue, Provider, ProviderCode, ProviderConfig},
        provider_health::{BreakerHealth, BreakerState, ProviderFault, ProviderHealth},
        receipt::{
            AwaitedBlob, Content, DeletedBy, HoldingSnapshot, LookedAt, PurgeReceipt, PurgedFile,
            RemovedBlob,
        },
        receipt_key::{ReceiptKeyInfo, SignedReceipt, VerifiedReceipt, verify_receipt},
        record::{Blob, Dimensions, FileRecord, Thumbhash},
        reply::StoredReply,
        report::{
            MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus,
            MigrateVerifyReport, ProviderInfo, PurgeReport, SyncReport, SyncStatusReport,
            WorkFailure,
        },
        scope::Scope,
        sheet::{SheetGrid, SheetPlace},
        signature::{SignedMethod, SigningSecret},
        signed_url::{SignFile, SignUpload, SignedUrl, SigningSecretInfo, UploadPermit},
        status::{Location, PurgeStatus, Status, SyncStatus},
        usage::{Stored, Usage},
    },
    service::{
        BatchItem, Bindings, ByteStream, Change, Changed, Edit, FilePage, FileStore,
        FileStoreBuilder, GivenName, Health, IdempotencyGuard, IfMatch, Keys, ListRequest,
        NewBatch, NewUpload, Opened, PartHints, PermitGuard, Preconditions, QuotaReservation,
        Receipts, Reloaded, Replacement, Signing, Uploaded, Uploads, VariantRequest,
    },
    storage::{
        CheckOutcome, CheckStep, DataDir, PresignMethod, ProviderCheck, ProviderRegistry,
        StagedBlob, StagingWriter,
    },
    variant::{
        CacheReport, Fit, LAUNCHER_ARGUMENT, Motion, Sheet, SheetCell, Variant, VariantKey,
        VariantSize, launch,
    },
    worker::{
        Admin, Backups, CopiedRecords, NoProgress, Progress, Workers, copy_records,
        migrate::MigrateOptions,
    },
};

/// Compiles the README's example.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
