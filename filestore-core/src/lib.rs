//! Stores your customers' files from inside your program: durable uploads, atomic batches,
//! thumbnails, deletes that you can undo, checks and backups. You need no server. Records are in
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
//!
//! // A scope names the organizations whose files a call finds. `Scope::All` names all of them.
//! let files = store.scoped(&Scope::All);
//! assert_eq!(files.read(record.file_id).await?, "hello");
//!
//! // A deleted file is hidden at once. The workers remove its bytes a day later.
//! files.delete(record.file_id).await?;
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
//! | you want to | see |
//! |---|---|
//! | upload files | [`FileStore::upload`], [`FileStore::batch`] |
//! | read, list, change and delete files of an organization, or of all | [`FileStore::scoped`], [`Files`] |
//! | set options | [`FileStoreBuilder`], [`StoreConfig`], [`config`] |
//! | run background work | [`Workers`] |
//! | handle errors | [`Error`], [`ErrorKind`] |
//! | upload in steps, with idempotency keys and quotas | [`FileStore::uploads`], [`uploads`] |
//! | choose sizes, make contact sheets, run converters | [`Files::variant`], [`Files::sheet`], [`variants`] |
//! | hand out URLs that work without a key | [`Files::sign`], [`FileStore::signing`], [`signing`] |
//! | choose the provider for an organization's files | [`FileStore::bindings`], [`bindings`] |
//! | serve files over a network | [`FileStore::serving`], [`ServedFiles`] |
//! | learn what happened to files | [`FileStore::events`], [`events`] |
//! | send events to URLs | [`FileStore::webhooks`], [`webhooks`] |
//! | find out where a file is, why, and what comes next | [`Files::explain`], [`explain`] |
//! | check API keys in a server of your own | [`FileStore::keys`], [`FileStore::shared`], [`keys`] |
//! | purge, sync, migrate, check and back up | [`FileStore::admin`], [`admin`] |
//! | prove that a purged file is gone | [`Files::receipt`], [`FileStore::receipts`], [`receipts`] |
//! | answer requests for files in your own routes, like the server | [`web`] |
//!
//! Import everyday names from the root. The types of `store.admin()` are in [`admin`], those of
//! `store.keys()` in [`keys`], and so on.
//!
//! # File modes
//!
//! The store creates files for their owner only: mode 0600, directories 0700. The store does not
//! change the umask, because the umask belongs to the whole process. Files at an `fs` provider
//! follow the umask. If other accounts must not read them, set the umask to 077 when your program
//! starts. `FileStore::open` refuses a data directory if another account owns the directory or can
//! write to it.
//!
//! # Features
//!
//! - `store` (default): the store itself.
//! - `pictures` (default): variants, sheets, placeholders. This feature builds libwebp.
//! - `converters` (default): previews of other files, by commands in a sandbox.
//! - `s3` (default), `azblob`, `gcs`: providers that speak S3, Azure Blob Storage, Google Cloud Storage. Each turns on
//!   `providers`.
//! - `providers`: providers through OpenDAL. Alone, this feature has the kinds `fs` and `memory` (for tests).
//! - `webhooks` (default): events that are sent to URLs.
//! - `postgres`: records in PostgreSQL.
//! - `http` (default): replies for your own routes ([`web`]), with ranges and conditions.
//! - `schema`: JSON schemas of the types in [`api`].
//! - `api` alone: the types of the HTTP API, without code that touches a disk.
//!
//! The feature `internals` opens the private modules to the tests of this project. It can change in every
//! version. `ARCHITECTURE.md` in the repository describes these modules.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        rustdoc::private_intra_doc_links,
        reason = "each layer is complete, and only benches and white-box tests call the `internals`"
    )
)]

#[cfg(feature = "api")]
pub mod api;

#[cfg(feature = "store")]
pub mod config_file;

#[cfg(feature = "store")]
mod domain;
#[cfg(feature = "store")]
mod metadata;
#[cfg(feature = "store")]
mod service;
#[cfg(feature = "store")]
mod storage;
#[cfg(feature = "store")]
mod tasks;
#[cfg(feature = "store")]
mod variant;
#[cfg(feature = "store")]
mod worker;
#[cfg(feature = "store")]
pub mod web;

/// The strata, for the project's own benches, fuzz targets and white-box tests. No stability promised.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod domain {
        pub use crate::domain::*;
    }
    pub mod metadata {
        pub use crate::metadata::*;
    }
    pub mod service {
        pub use crate::service::*;
    }
    pub mod storage {
        pub use crate::storage::*;
    }
    pub mod tasks {
        pub use crate::tasks::*;
    }
    pub mod variant {
        pub use crate::variant::*;
    }
    pub mod worker {
        pub use crate::worker::*;
    }
}

#[cfg(feature = "store")]
pub use self::{
    domain::{
        access::scope::Scope,
        config::{Durability, Limits, StoreConfig},
        error::{Details, Error, ErrorKind, Result},
        file::{
            custom_metadata::CustomMetadata,
            disposition::Disposition,
            lifecycle::FileState,
            listing::{ListFilter, ListOrder},
            path::BlobKey,
            policy::FilePolicy,
            record::{Blob, Deletion, Dimensions, FileRecord, Thumbhash},
            status::{Location, PurgeStatus, Status, SyncStatus},
            usage::{KnownOrganization, Stored, SubSystemUsage, Usage},
        },
        id::{BlobId, FileId, OrganizationId, OrganizationNumber, Sha256, SubSystem},
        patch::{MetadataPatch, Patch},
        provider::{Provider, ProviderCode},
        time::clock::{Clock, ManualClock, Timestamp},
    },
    service::{
        BatchItem, ByteStream, Change, Changed, ContentReader, Edit, FilePage, FileStore,
        FileStoreBuilder, Files, IfMatch, ListRequest, NewBatch, NewUpload, Opened, Page,
        PageRequest, Preconditions, Replacement, ServedFiles,
    },
    storage::{DataDir, LocalBlob, SendFile},
    variant::Fit,
    worker::Workers,
};

/// An operator's work: purge, sync, migration, checks, backups, providers, and the reports of this
/// work.
#[cfg(feature = "store")]
pub mod admin {
    pub use crate::domain::file::damage::{Damage, DamagedRow};
    pub use crate::domain::id::{DestinationId, SnapshotId, StoreId};
    pub use crate::domain::provider::backlog::{ProviderBacklog, Waiting};
    pub use crate::domain::provider::health::{
        BreakerHealth, BreakerState, ProviderFault, ProviderHealth,
    };
    pub use crate::domain::report::backup::{
        BackupOptions, BackupReport, BlobFault, BlobProblem, LastBackup, PruneReport,
        RestoreOptions, RestoreReport, RestoredAccess, RestoredAs, RestoredKeys, Selection,
        SnapshotBytes, SnapshotClouds, SnapshotInfo, VerifyReport,
    };
    pub use crate::domain::report::erasure::{EraseReceipt, ErasedPlace, MayReturn, Removed};
    pub use crate::domain::report::fsck::{
        Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode, FsckOptions, FsckReport,
        FsckRunning, FsckStart, FsckStatus, FsckSummary,
    };
    pub use crate::domain::report::load::{
        EventLogLoad, Load, QueueLoad, ResumableLoad, VariantLoad,
    };
    pub use crate::domain::report::overview::{
        Advice, AdviceCode, DiskSpace, Overview, ProviderStatus, Unfinished,
    };
    pub use crate::domain::report::webhooks::WebhooksOverview;
    pub use crate::domain::report::{
        MigrateHolding, MigratePlan, MigrateReport, MigrateRunning, MigrateStatus,
        MigrateVerifyReport, OrganizationSyncStatus, ProviderInfo, PurgeOptions, PurgeReport,
        PurgeWhen, Schema, SyncReport, SyncStatusReport, WorkFailure,
    };
    pub use crate::service::{Health, Reloaded};
    pub use crate::storage::{CheckOutcome, CheckStep, ProviderCheck};
    pub use crate::variant::CacheReport;
    pub use crate::worker::{
        Admin, Backups, CopiedFiles, CopiedRecords, NoProgress, Progress, are_records_copied,
        copy_files, copy_records, migrate::MigrateOptions,
    };
}

/// The choice of a provider for each organization.
#[cfg(feature = "store")]
pub mod bindings {
    pub use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
    pub use crate::service::Bindings;
}

/// Explanations of files: where a file is and why, what comes next and when. Start with
/// [`Files::explain`].
#[cfg(feature = "store")]
pub mod explain {
    pub use crate::domain::report::explain::{
        ExplainedFile, Explanation, Fact, FactCode, History, Reader, Step, StepCode,
    };
}

/// Parts of a [`StoreConfig`].
#[cfg(feature = "store")]
pub mod config {
    pub use crate::domain::{
        config::{
            AnimationLimits, BackupDestination, BackupPlace, ConverterConfig, ConverterOutput,
            EventsConfig, MetadataPlace, PostgresConfig, ResumableConfig, ScrubConfig,
            SigningConfig, SyncConfig, VariantConfig,
        },
        provider::{OptionValue, ProviderConfig},
    };
    pub use crate::storage::{ProviderRegistry, warn_of_others};
}

/// Events: what happened to the files, in order, without a gap.
#[cfg(feature = "store")]
pub mod events {
    pub use crate::domain::event::{
        After, Event, EventDetails, EventFilter, EventId, EventKind, EventPage,
    };
    pub use crate::service::Events;
}

/// Webhooks: URLs to which the store sends events, signed by Standard Webhooks.
#[cfg(feature = "webhooks")]
pub mod webhooks {
    pub use crate::domain::id::WebhookId;
    pub use crate::domain::webhook::{
        DeliveryFault, Disabled, DisabledReason, FailurePage, FailureState, NewWebhook, PingReport,
        Redeliver, Redelivered, Webhook, WebhookBacklog, WebhookCounts, WebhookEdit,
        WebhookFailure, WebhookHealth, WebhookSecret, WebhookUrl,
    };
    pub use crate::service::Webhooks;
}

/// API keys, for servers that you build on a store.
#[cfg(feature = "store")]
pub mod keys {
    pub use crate::domain::access::key::{
        ApiKey, KeyDigest, KeyScope, KeyScopes, KeySecret, NewKey,
    };
    pub use crate::domain::id::KeyId;
    pub use crate::service::{Keys, Recency, SharedStore};
}

/// Purge receipts: signed statements that a deleted file is gone.
#[cfg(feature = "store")]
pub mod receipts {
    pub use crate::domain::report::receipt::{
        AwaitedBlob, Content, DeletedBy, HoldingSnapshot, LookedAt, PurgeReceipt, PurgedFile,
        RemovedBlob,
    };
    pub use crate::domain::report::receipt_key::{
        ReceiptKeyInfo, SignedReceipt, VerifiedReceipt, verify_receipt,
    };
    pub use crate::service::Receipts;
}

/// Signed URLs, which work without a key.
#[cfg(feature = "store")]
pub mod signing {
    pub use crate::domain::access::signature::{SignedMethod, SigningSecret};
    pub use crate::domain::access::signed_url::{
        SignFile, SignUpload, SignedUrl, SigningSecretInfo, UploadPermit, VerifiedUrl,
    };
    pub use crate::service::Signing;
    pub use crate::storage::PresignMethod;
}

/// Uploads in steps: claims, bytes, commit. Start with [`UploadSession`](uploads::UploadSession).
#[cfg(feature = "store")]
pub mod uploads {
    pub use crate::domain::file::reply::StoredReply;
    pub use crate::domain::file::resumable::{
        ResumableUpload, UploadAddress, UploadFailure, UploadStage, UploadTotals,
    };
    pub use crate::domain::id::UploadId;
    pub use crate::domain::report::erasure::Era;
    pub use crate::service::{
        Append, Arrival, BodyCheck, CreatedUpload, Ends, GivenName, IdempotencyKey, NewResumable,
        PartHints, Recheck, ReplacementClaims, ResumablePermit, ResumableTarget, ResumableUploads,
        UploadClaims, UploadSession, Uploaded, Uploads,
    };
}

/// Variants (WebP images of stored images), contact sheets, and the launcher of converters.
#[cfg(feature = "store")]
pub mod variants {
    pub use crate::domain::file::sheet::{SheetGrid, SheetPlace};
    pub use crate::service::VariantRequest;
    #[cfg(feature = "converters")]
    pub use crate::variant::{LAUNCHER_ARGUMENT, launch};
    pub use crate::variant::{Motion, Sheet, SheetCell, Variant, VariantKey, VariantSize};
}

/// Compiles the README's example.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
