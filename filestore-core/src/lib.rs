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
//! | options | [`FileStoreBuilder`], [`StoreConfig`], [`config`] |
//! | background work | [`Workers`] |
//! | what went wrong | [`Error`], [`ErrorKind`] |
//! | uploads in steps, idempotency keys, quotas | [`FileStore::uploads`], [`uploads`] |
//! | sheets, sizes, converters | [`FileStore::variant`], [`FileStore::sheet`], [`variants`] |
//! | URLs that work without a key | [`FileStore::signing`], [`signing`] |
//! | where an organization's files go | [`FileStore::bindings`], [`bindings`] |
//! | keys, for whoever serves a store over a network | [`FileStore::keys`], [`keys`] |
//! | purge, sync, migration, providers, checks, backups | [`FileStore::admin`], [`admin`] |
//! | proof that a purged file is gone | [`FileStore::receipts`], [`receipts`] |
//!
//! The names of everyday work are at the root of the crate; the types of each other group of calls are in a
//! module of the same name.
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
        clock::{Clock, ManualClock, Timestamp},
        config::{Durability, Limits, StoreConfig},
        custom_metadata::CustomMetadata,
        disposition::Disposition,
        error::{Details, Error, ErrorKind, Result},
        id::{BlobId, FileId, OrganizationId, OrganizationNumber, Sha256, SubSystem},
        lifecycle::FileState,
        listing::ListFilter,
        path::BlobKey,
        provider::{Provider, ProviderCode},
        record::{Blob, Dimensions, FileRecord, Thumbhash},
        scope::Scope,
        status::{Location, PurgeStatus, Status, SyncStatus},
        usage::{Stored, Usage},
    },
    service::{
        BatchItem, ByteStream, Change, Changed, Edit, FilePage, FileStore, FileStoreBuilder,
        IfMatch, ListRequest, NewBatch, NewUpload, Opened, Preconditions, Replacement,
    },
    storage::{DataDir, LocalBlob, SendFile},
    variant::Fit,
    worker::Workers,
};

/// Work for who runs a store: purge, sync, migration, checks, backups, providers, and what their reports say.
#[cfg(feature = "store")]
pub mod admin {
    pub use crate::domain::{
        backlog::{ProviderBacklog, Waiting},
        backup::{
            BackupOptions, BackupReport, BlobFault, BlobProblem, PruneReport, RestoreReport,
            RestoredAs, Selection, SnapshotBytes, SnapshotClouds, SnapshotInfo, VerifyReport,
        },
        damage::{Damage, DamagedRow},
        erasure::{EraseReceipt, ErasedPlace, Removed},
        fsck::{
            Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode, FsckOptions, FsckReport,
            FsckRunning, FsckStart, FsckStatus, FsckSummary,
        },
        id::{DestinationId, SnapshotId, StoreId},
        load::{Load, QueueLoad, VariantLoad},
        overview::{Advice, DiskSpace, Overview, ProviderStatus, Unfinished},
        provider_health::{BreakerHealth, BreakerState, ProviderFault, ProviderHealth},
        report::{
            MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus,
            MigrateVerifyReport, ProviderInfo, PurgeReport, SyncReport, SyncStatusReport,
            WorkFailure,
        },
    };
    pub use crate::service::{Health, Reloaded};
    pub use crate::storage::{CheckOutcome, CheckStep, ProviderCheck};
    pub use crate::variant::CacheReport;
    pub use crate::worker::{
        Admin, Backups, CopiedFiles, CopiedRecords, NoProgress, Progress, are_records_copied,
        copy_files, copy_records, migrate::MigrateOptions,
    };
}

/// Bindings of organizations to providers.
#[cfg(feature = "store")]
pub mod bindings {
    pub use crate::domain::binding::{Binding, BindingChange, NewBinding};
    pub use crate::service::Bindings;
}

/// Parts of a [`StoreConfig`].
#[cfg(feature = "store")]
pub mod config {
    pub use crate::domain::{
        config::{
            AnimationLimits, BackupDestination, BackupPlace, ConverterConfig, ConverterOutput,
            MetadataPlace, PostgresConfig, ScrubConfig, SigningConfig, SyncConfig, VariantConfig,
        },
        provider::{OptionValue, ProviderConfig},
    };
    pub use crate::storage::ProviderRegistry;
}

/// Keys of the API, for whoever serves a store over a network.
#[cfg(feature = "store")]
pub mod keys {
    pub use crate::domain::{
        id::KeyId,
        key::{ApiKey, KeyDigest, KeyScope, KeyScopes, KeySecret, NewKey},
    };
    pub use crate::service::{Keys, Recency};
}

/// Receipts of purges, and what they say.
#[cfg(feature = "store")]
pub mod receipts {
    pub use crate::domain::{
        receipt::{
            AwaitedBlob, Content, DeletedBy, HoldingSnapshot, LookedAt, PurgeReceipt, PurgedFile,
            RemovedBlob,
        },
        receipt_key::{ReceiptKeyInfo, SignedReceipt, VerifiedReceipt, verify_receipt},
    };
    pub use crate::service::Receipts;
}

/// URLs that work without a key.
#[cfg(feature = "store")]
pub mod signing {
    pub use crate::domain::{
        signature::{SignedMethod, SigningSecret},
        signed_url::{SignFile, SignUpload, SignedUrl, SigningSecretInfo, UploadPermit},
    };
    pub use crate::service::Signing;
    pub use crate::storage::PresignMethod;
}

/// Uploads in steps: receive first, commit later; idempotency keys, quotas.
#[cfg(feature = "store")]
pub mod uploads {
    pub use crate::domain::reply::StoredReply;
    pub use crate::service::{
        GivenName, IdempotencyGuard, PartHints, PermitGuard, QuotaReservation, Uploaded, Uploads,
    };
    pub use crate::storage::{StagedBlob, StagingWriter};
}

/// Reduced pictures, sheets of them, and the launcher of converters.
#[cfg(feature = "store")]
pub mod variants {
    pub use crate::domain::sheet::{SheetGrid, SheetPlace};
    pub use crate::service::VariantRequest;
    pub use crate::variant::{
        LAUNCHER_ARGUMENT, Motion, Sheet, SheetCell, Variant, VariantKey, VariantSize, launch,
    };
}

/// Compiles the README's example.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
