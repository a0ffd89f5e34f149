//! Storage of file contents, on the local disk and at providers.
//!
//! | module | contents |
//! |---|---|
//! | `access` | checks of the permissions of trusted directories |
//! | `backup` | snapshots: contents by digest, with one manifest for each snapshot |
//! | `blob_store` | [`BlobStore`], the trait of every store that holds blobs |
//! | `data_dir` | one store's directory, locked by one process |
//! | `identity` | the markers of the store in its directory, checked at opening |
//! | `local` | the LOCAL blobs in the directory: staged, published, read, removed |
//! | `cloud` | the blobs at one CLOUD provider: put and verified, read, presigned, removed |
//! | `cloud_types` | the questions to a provider, and its answers |
//! | `no_cloud` | replaces `cloud` in a build without the feature `providers` |
//! | `registry` | the configured providers, and the location of their files |
//! | `tls` | cryptography and trust for requests to providers and webhooks |
//! | `stores` | all stores together, found by a provider's code |
//!
//! Each blob is written once, under a key that is never reused, so no code here overwrites a blob. The layers
//! above decide which blobs records refer to. This module makes bytes durable before a record names them.
//! Later it finds the bytes under either of their two names. The store reports bytes as removed only when
//! they are gone for good.

pub(crate) mod access;
pub mod blob_store;
pub mod backup;
pub mod data_dir;
mod file_lock;
pub mod identity;
pub mod local;
pub mod cloud_types;
#[cfg(feature = "providers")]
pub mod cloud;
#[cfg(not(feature = "providers"))]
mod no_cloud;
pub mod registry;
pub mod stores;
#[cfg(any(feature = "transport", feature = "webhooks"))]
pub(crate) mod tls;

#[cfg(test)]
mod contract;

pub use access::warn_of_others;
pub use blob_store::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};
#[cfg(feature = "providers")]
pub use cloud::Cloud;
#[cfg(all(feature = "providers", any(test, feature = "internals")))]
pub use cloud::{SimulatedProviders, Weather};
pub use cloud_types::{
    CheckOutcome, CheckStep, CloudCapabilities, MarkerLedger, PresignMethod, PresignRequest,
    Presigned, ProviderCheck, UnfinishedUpload, UploadsPlace,
};
pub use data_dir::DataDir;
pub use identity::Markers;
pub use local::{
    BlobDigest, BlobWalk, DigestState, DigestStep, LocalBlob, LocalOptions, LocalStore, SendFile,
    StagedBlob, StagedPoint, StagedWalk, StagingWriter, WalkedName, WalkedPage,
};
pub(crate) use local::{StagedLedger, StagedLimits, Uploader};
#[cfg(not(feature = "providers"))]
pub use no_cloud::Cloud;
pub use registry::ProviderRegistry;
pub use stores::BlobStores;
