//! The provider as a [`BlobStore`].

use std::ops::Range;

use async_trait::async_trait;
use futures_util::stream::{FuturesOrdered, StreamExt};

use crate::domain::error::{ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};

/// The number of objects that one call removes in parallel.
const REMOVALS_AT_ONCE: usize = 16;

#[async_trait]
impl BlobStore for Cloud {
    /// Compares the length of the stored object. The provider verified the bytes itself, or they are read
    /// back. An unfinished multipart upload is always aborted.
    ///
    /// Waits until puts with this priority have free memory. [`ErrorKind::Busy`] if this takes too long.
    async fn put(
        &self,
        key: &BlobKey,
        blob: &BlobInfo,
        bytes: ByteStream,
        priority: Priority,
    ) -> Result<()> {
        self.put_path(key.as_str(), blob, bytes, &priority).await
    }

    /// The first bytes have arrived when this returns. An absent object or an unreachable provider is
    /// therefore reported before a reply begins. If the stream breaks, it is resumed at the same position. If
    /// this fails, it ends with an error. [`ErrorKind::Busy`] if other readers keep all turns for too long.
    async fn read(
        &self,
        key: &BlobKey,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<BlobRead>> {
        let read = self.read_for_client(key.as_str(), size_bytes, range).await;
        self.answer(key, read).await
    }

    async fn read_to_copy(&self, key: &BlobKey, size_bytes: u64) -> Result<Option<BlobRead>> {
        let read = self.read_all(key.as_str(), size_bytes).await;
        self.answer(key, read).await
    }

    async fn remove(&self, keys: Vec<BlobKey>) -> Vec<Result<()>> {
        let mut removals = FuturesOrdered::new();
        let mut outcomes = Vec::with_capacity(keys.len());

        for key in &keys {
            if removals.len() >= REMOVALS_AT_ONCE {
                outcomes.extend(removals.next().await);
            }
            removals.push_back(self.remove_path(key.as_str()));
        }

        outcomes.extend(removals.collect::<Vec<_>>().await);
        outcomes
    }
}

impl Cloud {
    /// An absent object counts only if the provider is the right place for the records.
    async fn answer(&self, key: &BlobKey, read: Result<ByteStream>) -> Result<Option<BlobRead>> {
        match read {
            Ok(pieces) => Ok(Some(BlobRead::Stream(pieces))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.confirm_identity(key.as_str(), Direction::Read).await?;
                tracing::debug!(provider = %self.code(), error = %error.chain(), "an object is absent");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
