//! Storage: the bytes of files, on the service's own disk and at providers.
//!
//! | module | content |
//! |---|---|
//! | `backup` | directories of snapshots: by digest, with a manifest each |
//! | `blob_store` | [`BlobStore`], the trait of every store that holds blobs |
//! | `data_dir` | the directory of one store, locked by one process |
//! | `identity` | the markers of its store in it, checked at opening |
//! | `local` | the LOCAL blobs in it: staged, published, read, removed |
//! | `cloud` | the blobs at one CLOUD provider: put and verified, read, presigned, removed |
//! | `registry` | the providers there are, and who serves the files of each |
//! | `stores` | all stores together: the holder of a blob by its provider's code |
//!
//! A blob is written once under a key that is never used again, so nothing here overwrites. The
//! strata above decide what a record refers to; this module makes bytes durable before a record
//! names them, finds them under either of their two names afterwards, and says "removed" only of
//! bytes that are gone for good.

pub mod blob_store;
pub mod backup;
pub mod data_dir;
pub mod identity;
pub mod local;
pub mod cloud;
pub mod registry;
pub mod stores;

#[cfg(test)]
mod contract;

pub use blob_store::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};
pub use cloud::{
    CheckOutcome, CheckStep, Cloud, CloudCapabilities, MarkerLedger, PresignMethod, PresignRequest,
    Presigned, ProviderCheck, UnfinishedUpload, UploadsPlace,
};
#[cfg(any(test, feature = "internals"))]
pub use cloud::{SimulatedProviders, Weather};
pub use data_dir::DataDir;
pub use identity::Markers;
pub use local::{
    BlobDigest, BlobWalk, DigestStep, LocalBlob, LocalOptions, LocalStore, SendFile, StagedBlob,
    StagedWalk, StagingWriter, WalkedName, WalkedPage,
};
pub(crate) use local::{StagedLedger, StagedLimits};
pub use registry::ProviderRegistry;
pub use stores::BlobStores;
