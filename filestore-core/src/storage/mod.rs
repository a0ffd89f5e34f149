//! Storage: where the bytes are.
//!
//! | module | what it holds |
//! |---|---|
//! | `blob_store` | [`BlobStore`], the trait of every store that holds blobs |
//! | `data_dir` | the directory of one store, locked by one process |
//! | `local` | the LOCAL blobs in it: staged, published, read, removed |
//! | `cloud` | the blobs at one CLOUD provider: put and verified, read, presigned, removed |
//! | `registry` | which providers there are |
//!
//! A blob is written once under a key that is never used again, so nothing here overwrites. What a
//! record refers to is decided above; this module makes bytes durable before a record names them,
//! finds them under either of their two names afterwards, and says "removed" only of bytes that are
//! gone for good.

pub mod blob_store;
pub mod data_dir;
pub mod local;
pub mod cloud;
pub mod registry;

#[cfg(test)]
mod contract;

pub use blob_store::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};
pub use cloud::{
    CheckOutcome, CheckStep, Cloud, CloudCapabilities, PresignMethod, PresignRequest, Presigned,
    ProviderCheck,
};
pub use data_dir::DataDir;
pub use local::{LocalBlob, LocalOptions, LocalStore, StagedBlob, StagingWriter};
pub use registry::ProviderRegistry;
