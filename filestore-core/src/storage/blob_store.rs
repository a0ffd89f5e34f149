//! The trait that use cases call wherever bytes are stored, read or removed.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::local::LocalBlob;
use crate::domain::error::Result;
use crate::domain::id::Sha256;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;

/// The bytes of a blob, or of a part of one. Ends with an error rather than short.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// A store that holds blobs under keys: the service's own disk, or a provider.
///
/// # Contract
/// - A key is written once. Callers never put two blobs under one key, and never reuse the key of a
///   blob that was removed.
/// - A blob that [`put`](Self::put) acknowledged is whole and verified, and stays until it is
///   removed.
/// - [`read`](Self::read) yields the bytes of one blob, never a mix and never fewer than asked for.
/// - [`remove`](Self::remove) says `Ok` only of bytes that are gone for good.
///
/// # Errors
/// No message holds a key, a credential or a signed URL. Faults of the service's own disk are
/// [`Internal`](crate::ErrorKind::Internal) or [`StorageFull`](crate::ErrorKind::StorageFull),
/// faults of a provider [`ProviderUnavailable`](crate::ErrorKind::ProviderUnavailable).
///
/// # Cancellation
/// A put that is dropped, or that failed, may leave the blob under its key. A caller that puts
/// without staging notes the key before the first byte and removes the key when the put comes to
/// nothing.
///
/// # Not here
/// Location: a store says nothing about who serves its bytes to clients. Listing: records and notes
/// say what exists. What one kind of store alone can do stays with it: staging and publishing with
/// [`LocalStore`](super::LocalStore), presigned URLs and checks with [`Cloud`](super::Cloud).
#[async_trait]
pub trait BlobStore: Send + Sync + fmt::Debug {
    /// Stores `bytes` under a key that was never used.
    ///
    /// `Ok` means that the store durably holds exactly these bytes. `bytes` must yield what `blob`
    /// says, in length and digest: [`DigestMismatch`](crate::ErrorKind::DigestMismatch) otherwise,
    /// and nothing is stored. Errors of `bytes` are passed on.
    async fn put(
        &self,
        key: &BlobKey,
        blob: &BlobInfo,
        bytes: ByteStream,
        priority: Priority,
    ) -> Result<()>;

    /// Reads `range` of a blob of `size_bytes`; `None` if the blob is absent.
    ///
    /// A range beyond `size_bytes` is an error. So is a stored blob that is shorter than
    /// `size_bytes`, and a longer one wherever the store tells its length.
    async fn read(
        &self,
        key: &BlobKey,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<BlobRead>>;

    /// Reads a whole blob to copy it elsewhere; as [`read`](Self::read) otherwise. Nobody waits for
    /// the bytes, and the reader takes them as slowly as its target does.
    async fn read_to_copy(&self, key: &BlobKey, size_bytes: u64) -> Result<Option<BlobRead>> {
        self.read(key, size_bytes, 0..size_bytes).await
    }

    /// Removes blobs: one outcome for each key, in the order of the keys.
    ///
    /// `Ok` means that the bytes are confirmed absent, also if they were never there. A failure
    /// does not keep the others from being removed. Readers that have a blob open on the service's
    /// own disk can read it to its end.
    async fn remove(&self, keys: Vec<BlobKey>) -> Vec<Result<()>>;
}

/// Description of a blob to be stored: its length, its digest, and how it is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Digest that the bytes must have.
    pub sha256: Sha256,
    /// Media type to serve the blob with, kept by stores that clients read from directly.
    pub content_type: String,
    /// `Content-Disposition` to serve the blob with, if any; kept as the media type is.
    pub content_disposition: Option<String>,
}

/// Urgency of a write, which decides whose share of a store's memory the write takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Priority {
    /// A client waits for the reply.
    Request,
    /// Nobody waits, and the source yields as fast as it is read.
    Background,
    /// Nobody waits, and the bytes come from that provider, as slowly as it yields them.
    From(ProviderCode),
    /// Nobody waits, and the bytes are held back to the rate of that run.
    Paced(u64),
}

/// A range of a blob, in the form that its store has at hand.
pub enum BlobRead {
    /// Bytes in memory: a small range, read already.
    Small(Bytes),
    /// The open file, to be read with `pread`. It stays readable when the blob is removed.
    File(LocalBlob),
    /// Pieces of the range as they arrive.
    Stream(ByteStream),
}

impl BlobRead {
    /// Turns the answer to a [`read`](BlobStore::read) of `range` into a stream of that range.
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
