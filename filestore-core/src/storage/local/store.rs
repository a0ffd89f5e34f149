//! The local disk as a [`BlobStore`].

use std::ops::Range;

use async_trait::async_trait;
use futures_util::StreamExt;

use super::{LocalStore, StagedBlob, StagingWriter};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{BlobId, Sha256};
use crate::storage::{BlobInfo, BlobRead, BlobStore, ByteStream, Priority};

#[async_trait]
impl BlobStore for LocalStore {
    /// Stages and publishes in one call. Use cases that commit a record call stage, commit and publish
    /// separately, so that a crash in between leaves no file.
    ///
    /// Waits for a turn like [`stage`](Self::stage), for every priority.
    async fn put(
        &self,
        key: &BlobKey,
        blob: &BlobInfo,
        bytes: ByteStream,
        _priority: Priority,
    ) -> Result<()> {
        let staged = self.stage_all(key.blob_id(), blob.size_bytes, blob.sha256, bytes).await?;
        staged.keep();
        self.publish(key).await
    }

    /// Reads a range of at most 256 KiB in one task on the blocking pool. If the range has at most 64 KiB and
    /// is in memory, reads it directly. Opens the file for a larger range.
    async fn read(
        &self,
        key: &BlobKey,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<BlobRead>> {
        self.read_range(key, size_bytes, range).await
    }

    /// Removes both names of each blob.
    async fn remove(&self, keys: Vec<BlobKey>) -> Vec<Result<()>> {
        self.each_on_pool(keys, |shared, keys| shared.remove(keys)).await
    }
}

impl LocalStore {
    /// Stages all of `bytes`. If the bytes do not have the given length and digest, returns
    /// [`ErrorKind::DigestMismatch`] and removes them. Errors of `bytes` are passed on.
    pub async fn stage_all(
        &self,
        blob_id: BlobId,
        size_bytes: u64,
        sha256: Sha256,
        mut bytes: ByteStream,
    ) -> Result<StagedBlob> {
        let mut writer = self.stage(blob_id, size_bytes).await?;
        let received = receive(&mut writer, size_bytes, &mut bytes).await;

        if let Err(error) = received {
            // Finished nevertheless, so that the file is gone when the caller hears of the failure.
            if let Ok(staged) = writer.finish().await {
                staged.discard().await;
            }
            return Err(error);
        }

        let staged = writer.finish().await?;
        if let Err(mismatch) = check(&staged, size_bytes, sha256) {
            staged.discard().await;
            return Err(mismatch);
        }
        Ok(staged)
    }
}

/// Writes the pieces of `bytes` as they arrive, up to `size_bytes`.
async fn receive(
    writer: &mut StagingWriter,
    size_bytes: u64,
    bytes: &mut ByteStream,
) -> Result<()> {
    while let Some(piece) = bytes.next().await.transpose()? {
        if writer.size_bytes() + piece.len() as u64 > size_bytes {
            return Err(mismatch("the blob is longer than it should be"));
        }
        writer.write(piece).await?;
    }
    Ok(())
}

fn check(staged: &StagedBlob, size_bytes: u64, sha256: Sha256) -> Result<()> {
    if staged.size_bytes != size_bytes {
        Err(mismatch("the blob ends early"))
    } else if staged.sha256 != sha256 {
        Err(mismatch("the blob has another digest"))
    } else {
        Ok(())
    }
}

fn mismatch(problem: &str) -> Error {
    Error::new(ErrorKind::DigestMismatch, problem)
}
