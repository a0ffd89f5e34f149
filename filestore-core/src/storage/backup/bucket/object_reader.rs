//! Reads an object like a file.

use std::io::{self, Read, Seek, SeekFrom};

use tokio::runtime::Handle;

use crate::domain::error::{Error, Result};
use crate::storage::Cloud;

/// An object as a file, with one request for each read. Blocks: use it only on the blocking pool.
pub(super) struct ObjectReader {
    cloud: Cloud,
    name: String,
    size_bytes: u64,
    at: u64,
    runtime: Handle,
}

impl ObjectReader {
    /// Opens an object. `None` if it does not exist.
    pub(super) async fn open(cloud: &Cloud, name: String) -> Result<Option<Self>> {
        let Some(size_bytes) = cloud.object_size(&name).await? else { return Ok(None) };
        let (cloud, runtime) = (cloud.clone(), Handle::current());
        Ok(Some(Self { cloud, name, size_bytes, at: 0, runtime }))
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes.saturating_sub(self.at);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if length == 0 {
            return Ok(0);
        }

        let range = self.at..self.at + length as u64;
        let read = self.cloud.read_object_range(&self.name, self.size_bytes, range);
        let bytes = self.runtime.block_on(read).map_err(io::Error::other)?;
        let bytes = bytes.ok_or_else(|| io::Error::other(Error::not_found("the snapshot")))?;
        buffer[..length].copy_from_slice(&bytes);
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size_bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
