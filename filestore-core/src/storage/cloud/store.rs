//! The provider as a [`BlobStore`].

use std::ops::Range;

use async_trait::async_trait;
use futures_util::stream::{FuturesOrdered, StreamExt};

use super::Cloud;
use super::breaker::Direction;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::path::BlobKey;
use crate::storage::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};

/// Objects removed at the same time by one call.
const REMOVALS_AT_ONCE: usize = 16;

#[async_trait]
impl BlobStore for Cloud {
    /// Compares the length of what arrived; the bytes were checked by the provider itself, or are
    /// read back. An unfinished multipart upload is aborted in every case.
    ///
    /// Waits while the puts of that priority hold as much memory as they may: [`ErrorKind::Busy`] if
    /// that takes too long.
    async fn put(
        &self,
        key: &BlobKey,
        blob: &BlobInfo,
        bytes: ByteStream,
        priority: Priority,
    ) -> Result<()> {
        self.put_path(key.as_str(), blob, bytes, &priority).await
    }

    /// The first bytes are there when this returns, so that an absent object and an unreachable
    /// provider are told before a reply has begun. A stream that breaks is resumed where it broke;
    /// one that cannot be resumed ends with an error. [`ErrorKind::Busy`] if other readers keep all
    /// turns for too long.
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
    /// An absent object says nothing where the records mean another place.
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
