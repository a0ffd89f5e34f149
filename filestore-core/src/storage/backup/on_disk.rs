//! A directory as a [`Destination`]. Blocking work runs on the blocking pool, one batch at a time.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::blocking;
use super::content::{Found, FoundHow, OnDisk, Stored, Wanted};
use super::copy::Copying;
use super::destination::{Destination, Removed, RunClaim, RunKind};
use super::directory::{BackupDirectory, Presence};
use super::draft::{DatabaseFile, Draft};
use super::files::{BACKING_UP, READING};
use super::intake::Taken;
use super::manifest::Manifest;
use super::opened::Opened;
use super::restored::RestoredDirectory;
use super::runs::Sharing;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{DestinationId, SnapshotId};
use crate::domain::report::backup::{BlobProblem, SnapshotBytes};
use crate::domain::time::clock::Timestamp;
use crate::storage::{ByteStream, LocalStore};

/// The bytes of a stream that one task on the blocking pool writes.
const PIECE_BYTES: usize = 1 << 20;

#[async_trait]
impl Destination for BackupDirectory {
    fn place(&self) -> BackupPlace {
        BackupPlace::Directory(self.path().to_owned())
    }

    async fn identify(&self, now: Timestamp) -> Result<DestinationId> {
        let directory = self.clone();
        blocking(READING, move || directory.identified(now)).await
    }

    async fn claim(&self, run: RunClaim) -> Result<Arc<dyn Destination>> {
        let sharing = match run.kind {
            RunKind::Create | RunKind::Verify | RunKind::Prune => Sharing::Alone,
            RunKind::Restore => Sharing::Beside,
        };
        Ok(Arc::new(self.claimed(sharing)?))
    }

    /// The lock lasts as long as the process.
    async fn confirm(&self) -> Result<()> {
        Ok(())
    }

    async fn release(&self) {}

    async fn snapshots(&self) -> Result<Vec<SnapshotId>> {
        let directory = self.clone();
        blocking(READING, move || directory.finished()).await
    }

    async fn manifest(&self, id: SnapshotId) -> Result<Manifest> {
        let directory = self.clone();
        blocking(READING, move || directory.open_manifest(id)).await
    }

    async fn begin(&self, id: SnapshotId, _: &Path) -> Result<Draft> {
        let directory = self.clone();
        blocking(BACKING_UP, move || directory.make(id)).await
    }

    async fn finish(&self, draft: &Draft, manifest: File) -> Result<()> {
        let (directory, id) = (self.clone(), draft.id);
        blocking(BACKING_UP, move || directory.name(id, &manifest)).await
    }

    async fn remove(&self, id: SnapshotId) -> Result<()> {
        let directory = self.clone();
        blocking(READING, move || directory.unname(id)).await
    }

    async fn clear(&self) -> Result<()> {
        let directory = self.clone();
        blocking(READING, move || {
            directory.unfinished()?.into_iter().try_for_each(|id| directory.unname(id))
        })
        .await
    }

    async fn open_database(&self, id: SnapshotId) -> Result<Option<Opened>> {
        let directory = self.clone();
        let file = blocking(READING, move || directory.open_copy(id)).await?;
        Ok(file.map(Opened::File))
    }

    async fn database_file(&self, id: SnapshotId, _: &Path) -> Result<DatabaseFile> {
        Ok(DatabaseFile { path: self.database(id), _scratch: None })
    }

    async fn find(&self, wanted: Vec<Wanted>, bytes: SnapshotBytes) -> Result<Vec<Option<Found>>> {
        let directory = self.clone();
        blocking(BACKING_UP, move || {
            let mut buffer = Vec::new();
            wanted.iter().map(|wanted| directory.reuse(wanted, bytes, &mut buffer)).collect()
        })
        .await
    }

    async fn take_files(
        &self,
        local: &LocalStore,
        wanted: Vec<OnDisk>,
        bytes: SnapshotBytes,
    ) -> Result<Vec<Result<Stored, BlobProblem>>> {
        let (directory, local) = (self.clone(), local.clone());
        blocking(BACKING_UP, move || {
            let mut buffer = Vec::new();
            let take = |wanted: &OnDisk| directory.take(&local, wanted, bytes, &mut buffer);
            wanted.iter().map(take).collect()
        })
        .await
    }

    async fn receive(&self, expected: Copying, mut bytes: ByteStream) -> Result<Option<Stored>> {
        use futures_util::StreamExt;

        let directory = self.clone();
        let mut intake = blocking(BACKING_UP, move || directory.intake(expected)).await?;
        let mut held = Vec::with_capacity(PIECE_BYTES);
        while let Some(piece) = bytes.next().await.transpose()? {
            held.extend_from_slice(&piece);
            if held.len() >= PIECE_BYTES {
                (intake, held) = blocking(BACKING_UP, move || {
                    intake.write(&held)?;
                    held.clear();
                    Ok((intake, held))
                })
                .await?;
            }
        }
        let is_whole = blocking(BACKING_UP, move || {
            intake.write(&held)?;
            intake.finish()
        });
        Ok(is_whole.await?.then_some(unnamed(expected)))
    }

    async fn open(&self, content: Stored) -> Result<Option<Opened>> {
        let directory = self.clone();
        let file = blocking(READING, move || directory.open_blob(content.expected.sha256)).await?;
        Ok(file.map(Opened::File))
    }

    async fn digest(&self, contents: Vec<Stored>) -> Vec<Result<Option<Copying>>> {
        let (directory, count) = (self.clone(), contents.len());
        let read = blocking(READING, move || {
            let mut buffer = Vec::new();
            let read = |content: &Stored| directory.read_blob(content.expected.sha256, &mut buffer);
            Ok(contents.iter().map(read).collect())
        });
        read.await.unwrap_or_else(|error: Error| vec![Err(error); count])
    }

    async fn set_aside(&self, content: Stored) -> Result<bool> {
        let directory = self.clone();
        blocking(READING, move || directory.move_aside(content.expected.sha256)).await
    }

    async fn restore(
        &self,
        to: &Arc<RestoredDirectory>,
        blobs: Vec<(BlobKey, Stored)>,
    ) -> Result<Vec<Option<bool>>> {
        let (directory, to) = (self.clone(), Arc::clone(to));
        blocking(READING, move || {
            let mut buffer = Vec::new();
            let take = |(key, content): &(BlobKey, Stored)| {
                let Some(from) = directory.open_blob(content.expected.sha256)? else {
                    return Ok(None);
                };
                to.take_blob(key, &from, content.expected, &mut buffer).map(Some)
            };
            blobs.iter().map(take).collect()
        })
        .await
    }

    async fn sweep(&self, removed: Removed) -> Result<()> {
        let directory = self.clone();
        blocking(READING, move || directory.remove_unheld(|bytes| removed(bytes))).await
    }
}

impl BackupDirectory {
    /// Decides if an existing content can be used. If a finished snapshot names the content, its size alone
    /// is compared, because that snapshot flushed it.
    fn reuse(
        &self,
        wanted: &Wanted,
        bytes: SnapshotBytes,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Found>> {
        let expected = wanted.expected;
        let found = |how| Found { stored: unnamed(expected), how };
        match (self.look(expected), bytes) {
            (None, _) => Ok(None),
            (Some(Presence::Shared), SnapshotBytes::Copied) => {
                let is_whole = self.unshare(expected, buffer)?;
                Ok(is_whole.then(|| found(FoundHow::Unshared)))
            }
            (Some(_), _) => {
                let is_whole = wanted.vouched.is_some()
                    || self.read_blob(expected.sha256, buffer)? == Some(expected);
                Ok(is_whole.then(|| found(FoundHow::Reused)))
            }
        }
    }

    fn take(
        &self,
        local: &LocalStore,
        wanted: &OnDisk,
        bytes: SnapshotBytes,
        buffer: &mut Vec<u8>,
    ) -> Result<Result<Stored, BlobProblem>> {
        let mut problem = BlobProblem::Missing;
        for key in &wanted.keys {
            let taken = match bytes {
                SnapshotBytes::Copied => local
                    .open_file(key)?
                    .map(|file| self.take_file(&file, wanted.expected, buffer))
                    .transpose()?,
                SnapshotBytes::HardLinked => self.link(local, key, wanted.expected, buffer)?,
            };
            problem = match taken {
                Some(Taken::Whole) => return Ok(Ok(unnamed(wanted.expected))),
                Some(Taken::Other | Taken::Unreadable) => BlobProblem::Wrong,
                None => BlobProblem::Missing,
            };
        }
        Ok(Err(problem))
    }

    fn link(
        &self,
        local: &LocalStore,
        key: &BlobKey,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Taken>> {
        for path in local.paths_of(key) {
            if let Some(linked) = self.link_file(&path, expected, buffer)? {
                return Ok(Some(linked));
            }
        }
        Ok(None)
    }
}

/// Describes a content that is named by its digest alone.
fn unnamed(expected: Copying) -> Stored {
    Stored { expected, by: None }
}
