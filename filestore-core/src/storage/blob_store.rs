//! The trait of every store that holds blobs. Use cases call it to store, read and remove bytes.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::local::LocalBlob;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::Sha256;
use crate::domain::provider::ProviderCode;

/// The bytes of a blob or blob part. A stream that is too short ends with an error.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// A store that holds blobs under keys: the local disk or a provider.
///
/// # Contract
/// - Each key is written once. Callers never put two blobs under one key, and never reuse the key of a
///   removed blob.
/// - A blob that [`put`](Self::put) acknowledged is complete and verified, and stays until its removal.
/// - [`read`](Self::read) yields one blob's bytes, never a mix, and never fewer bytes than requested.
/// - [`remove`](Self::remove) returns `Ok` only if the bytes are gone for good.
///
/// # Errors
/// Messages contain no key, no credential and no signed URL. Faults of the local disk are
/// [`Internal`](crate::ErrorKind::Internal) or [`StorageFull`](crate::ErrorKind::StorageFull). Faults of a
/// provider are [`ProviderUnavailable`](crate::ErrorKind::ProviderUnavailable).
///
/// # Cancellation
/// A put that is dropped or fails can leave the blob under its key. A caller that puts without staging
/// records the key before the first byte. If the put fails, the caller removes the key.
///
/// # Out of scope
/// A store does not know who serves its bytes to clients, and it does not list blobs. Records and write
/// intents tell which blobs exist. Functions of a single kind of store are methods of that store:
/// [`LocalStore`](super::LocalStore) stages and publishes, and [`Cloud`](super::Cloud) creates presigned URLs
/// and runs checks.
#[async_trait]
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Stores `bytes` under a new key.
    ///
    /// After `Ok`, the store durably holds exactly these bytes. `bytes` must match the length and the digest
    /// of `blob`. Otherwise the call returns [`DigestMismatch`](crate::ErrorKind::DigestMismatch) and stores
    /// no bytes. Errors of `bytes` are passed on.
    async fn put(
        &self,
        key: &BlobKey,
        blob: &BlobInfo,
        bytes: ByteStream,
        priority: Priority,
    ) -> Result<()>;

    /// Reads `range` of a blob with `size_bytes` bytes. `None` if the blob is absent.
    ///
    /// Fails if the range exceeds `size_bytes`, or if the stored blob is shorter. If the store reports
    /// lengths, a longer blob is also an error.
    async fn read(
        &self,
        key: &BlobKey,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<BlobRead>>;

    /// Reads a whole blob in order to copy it elsewhere, like [`read`](Self::read). No client waits for the
    /// bytes, and the target can read them slowly.
    async fn read_to_copy(&self, key: &BlobKey, size_bytes: u64) -> Result<Option<BlobRead>> {
        self.read(key, size_bytes, 0..size_bytes).await
    }

    /// Removes blobs. Returns one result for each key, in the order of the keys.
    ///
    /// `Ok` means that the bytes are confirmed absent, even if they never existed. A failure does not stop
    /// the removal of other blobs. Readers that opened a blob on the local disk can read it to its end.
    async fn remove(&self, keys: Vec<BlobKey>) -> Vec<Result<()>>;
}

/// The description of a blob to store: length, digest, and the headers for replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    /// The length in bytes.
    pub size_bytes: u64,
    /// The digest that the bytes must have.
    pub sha256: Sha256,
    /// The media type for serving the blob. Providers that clients read from directly store it.
    pub content_type: String,
    /// The `Content-Disposition` for serving the blob, if any. Stored like the media type.
    pub content_disposition: Option<String>,
}

/// The urgency of a write, which decides whose share of the memory the write uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Priority {
    /// A client waits for the reply.
    Request,
    /// No client waits, and the source yields as fast as it is read.
    Background,
    /// No client waits, and the bytes come from this provider at its own speed.
    CopyFrom(ProviderCode),
    /// No client waits, and the bytes are limited to the rate of this run.
    Paced(u64),
}

/// A range of a blob, in the form that is cheapest for its store.
pub enum BlobRead {
    /// A small range, already in memory.
    Small(Bytes),
    /// The open file, to be read with `pread`. The file stays readable after the blob is removed.
    File(LocalBlob),
    /// Pieces of the range as they arrive.
    Stream(ByteStream),
}

impl BlobRead {
    /// Converts the result of a [`read`](BlobStore::read) of `range` to a stream of this range.
    pub fn into_stream(self, range: Range<u64>) -> ByteStream {
        match self {
            Self::Small(bytes) => stream::once(async { Ok(bytes) }).boxed(),
            Self::File(blob) => blob.into_stream(range).boxed(),
            Self::Stream(bytes) => bytes,
        }
    }
}

impl fmt::Debug for BlobRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small(bytes) => f.debug_tuple("Small").field(&bytes.len()).finish(),
            Self::File(blob) => f.debug_tuple("File").field(blob).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}
