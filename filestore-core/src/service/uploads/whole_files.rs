//! The complete files of a session: already durable, or during their flush.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use crate::domain::error::{Error, Result};
use crate::storage::{StagedBlob, StagingWriter};

/// The maximum number of files that one session flushes to disk at once. Their flushes share the wait.
const FLUSHES: usize = 8;

/// Complete files by their number. A drop discards their bytes.
#[derive(Debug, Default)]
pub(super) struct WholeFiles {
    /// The files. `None` if a file is not yet durable, or was lost.
    files: BTreeMap<u32, Option<StagedBlob>>,
    flushing: JoinSet<(u32, Result<StagedBlob>)>,
    bytes: u64,
}

impl WholeFiles {
    /// Returns the size of all files, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a file that is durable already.
    pub(super) fn adopt(&mut self, number: u32, blob: StagedBlob) {
        self.bytes += blob.size_bytes;
        self.files.insert(number, Some(blob));
    }

    /// Refuses a second file with the same number.
    pub(super) fn expect_new(&self, number: u32) -> Result<()> {
        if !self.files.contains_key(&number) {
            return Ok(());
        }
        let message = "a file of the upload is sent more than once";
        Err(Error::invalid("file", message))
    }

    /// Makes the file durable before the call returns.
    pub(super) async fn finish(&mut self, number: u32, writer: StagingWriter) -> Result<()> {
        self.add(number, &writer);
        let staged = writer.finish().await?;
        self.files.insert(number, Some(staged));
        Ok(())
    }

    /// Waits until another item can be flushed.
    pub(super) async fn wait_for_a_turn(&mut self) -> Result<()> {
        while self.flushing.len() >= FLUSHES {
            self.flushed().await?;
        }
        Ok(())
    }

    /// Begins to flush the item, and returns at once.
    pub(super) fn finish_soon(&mut self, number: u32, writer: StagingWriter) {
        self.add(number, &writer);
        self.flushing.spawn(async move { (number, writer.finish().await) });
    }

    fn add(&mut self, number: u32, writer: &StagingWriter) {
        self.files.insert(number, None);
        self.bytes += writer.size_bytes();
    }

    /// Records that the file will never be complete.
    pub(super) fn lose(&mut self, number: u32) {
        self.files.insert(number, None);
    }

    /// Waits until all files are durable.
    pub(super) async fn finish_all(&mut self) -> Result<()> {
        while self.flushed().await? {}
        Ok(())
    }

    /// Waits until one item is durable. Returns false if no item is left.
    async fn flushed(&mut self) -> Result<bool> {
        let Some(flushed) = self.flushing.join_next().await else { return Ok(false) };
        let (number, staged) = flushed.map_err(|e| Error::internal("staging an item", e))?;
        self.files.insert(number, Some(staged.map_err(|e| e.with_item(number))?));
        Ok(true)
    }

    /// Takes a durable file for the commit.
    pub(super) fn take(&mut self, number: u32) -> Option<StagedBlob> {
        self.files.remove(&number).flatten()
    }

    /// Returns the number of a file that no commit took.
    pub(super) fn left(&self) -> Option<u32> {
        self.files.keys().next().copied()
    }
}
