//! The files of a session that have arrived whole: durable, or on the way there.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use crate::domain::error::{Error, Result};
use crate::storage::{StagedBlob, StagingWriter};

/// The most files of one session that are flushed to disk at once, so that their flushes share the
/// wait.
const FLUSHES: usize = 8;

/// Whole files by their number. Dropping them discards their bytes.
#[derive(Debug, Default)]
pub(super) struct WholeFiles {
    /// The files; `None` for one that is not durable yet, or was lost.
    files: BTreeMap<u32, Option<StagedBlob>>,
    flushing: JoinSet<(u32, Result<StagedBlob>)>,
    bytes: u64,
}

impl WholeFiles {
    /// Returns the bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a file that is durable already.
    pub(super) fn adopt(&mut self, number: u32, blob: StagedBlob) {
        self.bytes += blob.size_bytes;
        self.files.insert(number, Some(blob));
    }

    /// Refuses a second file of the number.
    pub(super) fn expect_new(&self, number: u32) -> Result<()> {
        if !self.files.contains_key(&number) {
            return Ok(());
        }
        let message = "a file of the upload is sent more than once";
        Err(Error::invalid("file", message))
    }

    /// Makes the file durable before this returns.
    pub(super) async fn finish(&mut self, number: u32, writer: StagingWriter) -> Result<()> {
        self.add(number, &writer);
        let staged = writer.finish().await?;
        self.files.insert(number, Some(staged));
        Ok(())
    }

    /// Waits until one more item can be flushed beside the others.
    pub(super) async fn wait_for_a_turn(&mut self) -> Result<()> {
        while self.flushing.len() >= FLUSHES {
            self.flushed().await?;
        }
        Ok(())
    }

    /// Begins to make the item durable, and does not wait for it.
    pub(super) fn finish_soon(&mut self, number: u32, writer: StagingWriter) {
        self.add(number, &writer);
        self.flushing.spawn(async move { (number, writer.finish().await) });
    }

    fn add(&mut self, number: u32, writer: &StagingWriter) {
        self.files.insert(number, None);
        self.bytes += writer.size_bytes();
    }

    /// Notes that the file will never be whole.
    pub(super) fn lose(&mut self, number: u32) {
        self.files.insert(number, None);
    }

    /// Waits until all files are durable.
    pub(super) async fn settle(&mut self) -> Result<()> {
        while self.flushed().await? {}
        Ok(())
    }

    /// Waits until one item is durable; false when none is left.
    async fn flushed(&mut self) -> Result<bool> {
        let Some(flushed) = self.flushing.join_next().await else { return Ok(false) };
        let (number, staged) = flushed.map_err(|e| Error::internal("staging an item", e))?;
        self.files.insert(number, Some(staged.map_err(|e| e.with_item(number))?));
        Ok(true)
    }

    /// Takes a durable file out, for the commit.
    pub(super) fn take(&mut self, number: u32) -> Option<StagedBlob> {
        self.files.remove(&number).flatten()
    }

    /// Returns the number of a file that was not taken.
    pub(super) fn left(&self) -> Option<u32> {
        self.files.keys().next().copied()
    }
}
