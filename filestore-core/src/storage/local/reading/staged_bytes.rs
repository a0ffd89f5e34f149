//! The bytes of a staged file, block by block.

use std::fs::File;
use std::os::unix::fs::FileExt;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use rustix::fs::{Mode, OFlags, openat};

use super::super::LocalStore;
use crate::domain::error::{Error, Result};
use crate::domain::id::BlobId;
use crate::storage::ByteStream;

/// The bytes that are read at once.
const BLOCK_BYTES: u64 = 256 << 10;

const READING: &str = "reading a staged file";

impl LocalStore {
    /// Reads `size_bytes` bytes of a staged file from `offset` on. Fails in the middle if the file is shorter.
    pub fn read_staged(&self, blob_id: BlobId, offset: u64, size_bytes: u64) -> ByteStream {
        let store = self.clone();
        let end = offset.saturating_add(size_bytes);
        let blocks = stream::unfold((None, offset), move |(file, at)| {
            let store = store.clone();
            async move {
                if at >= end {
                    return None;
                }
                let wanted = BLOCK_BYTES.min(end - at);
                match store.read_block(blob_id, file, at, wanted).await {
                    Ok((file, block)) => Some((Ok(block), (Some(file), at + wanted))),
                    Err(error) => Some((Err(error), (None, end))),
                }
            }
        });
        Box::pin(blocks)
    }

    async fn read_block(
        &self,
        blob_id: BlobId,
        file: Option<File>,
        at: u64,
        wanted: u64,
    ) -> Result<(File, Bytes)> {
        self.on_pool(READING, move |shared| {
            let open = || {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                openat(&shared.staging, blob_id.to_string(), flags, Mode::empty())
                    .map(File::from)
                    .map_err(|error| Error::io(READING, error.into()))
            };
            let file = file.map_or_else(open, Ok)?;
            let wanted =
                usize::try_from(wanted).map_err(|error| Error::internal(READING, error))?;
            let mut block = BytesMut::zeroed(wanted);
            file.read_exact_at(&mut block, at).map_err(|error| Error::io(READING, error))?;
            Ok((file, block.freeze()))
        })
        .await
    }
}
