//! Publishes blobs: renames them from the staged to the final name. Also removes both names.
//!
//! # Crash safety
//! A rename is atomic, so a blob always has at least one of its names. Some file systems have no rename
//! without replacement (see [`super::rename`]). Only there can a crash leave both names, which are then links
//! to the same file.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::fs::{AtFlags, Stat, statat, unlinkat};
use rustix::io::Errno;

use super::rename;
use crate::domain::config::Durability;
use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::storage::local::Shared;
use crate::storage::local::durable::sync;
use crate::tasks;
use crate::tasks::step::{Call, Step, attempt, reached};

/// The number of attempts to rename into a directory that disappears after its creation. Each failure needs a
/// purge that empties the directory at exactly this moment.
const ATTEMPTS: usize = 64;

/// The time during which renames are collected before their directories are synced. No caller waits for it.
const SYNC_DELAY: Duration = Duration::from_millis(500);

const PUBLISHING: &str = "publishing a blob";
const REMOVING: &str = "removing a blob";

/// The pending sync of renamed directories. If the runtime ends first, the next rename plans the sync again.
struct Awaited {
    shared: Weak<Shared>,
    is_over: bool,
}

impl Awaited {
    fn sync(mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        // A failure is logged there.
        shared.sync_renamed().ok();
        self.is_over = true;
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && !self.is_over
        {
            shared.directories.abandon_renamed();
        }
    }
}

impl Shared {
    /// Renames a staged blob to its final name. Succeeds if this was done before.
    pub(in crate::storage::local) fn publish(self: &Arc<Self>, key: &BlobKey) -> Result<()> {
        let staged = key.blob_id().to_string();

        for _ in 0..ATTEMPTS {
            self.directories
                .ensure(key.directory())
                .map_err(|error| Error::io(PUBLISHING, error))?;

            #[cfg(feature = "sabotage")]
            tasks::sabotage::hand_out(&staged, &self.staging, &self.blobs, key.as_str());
            let renamed = attempt(Call::Rename).and_then(|()| {
                rename::no_replace(&self.staging, &staged, &self.blobs, key.as_str())
            });
            match renamed {
                Ok(()) => {
                    reached(Step::BlobRenamed);
                    self.sync_later(key.directory());
                    return Ok(());
                }
                Err(Errno::NOENT) if self.stat_staged(&staged)?.is_none() => {
                    return self.stat_final(key)?.map(drop).ok_or_else(|| Error::not_found("blob"));
                }
                Err(Errno::NOENT) => self.directories.forget(key.directory()),
                Err(Errno::EXIST) => return self.settle_both_names(key, &staged),
                Err(error) => return Err(Error::io(PUBLISHING, error.into())),
            }
        }

        Err(Error::internal(PUBLISHING, "its directory is removed again and again"))
    }

    /// Completes a rename that a crash interrupted between link and unlink. Two different files under one key
    /// cannot be resolved here, so both stay.
    fn settle_both_names(&self, key: &BlobKey, staged: &str) -> Result<()> {
        let here = self.stat_staged(staged)?.map(|stat| (stat.st_dev, stat.st_ino));
        let there = self.stat_final(key)?.map(|stat| (stat.st_dev, stat.st_ino));
        if here.is_some() && here != there {
            return Err(Error::internal(PUBLISHING, format!("another blob has the key {key}")));
        }
        unlink(&self.staging, staged).map_err(|error| Error::io(PUBLISHING, error))
    }

    fn stat_staged(&self, staged: &str) -> Result<Option<Stat>> {
        stat(&self.staging, staged)
    }

    fn stat_final(&self, key: &BlobKey) -> Result<Option<Stat>> {
        stat(&self.blobs, key.as_str())
    }

    /// Plans a sync of the directory, together with other directories.
    fn sync_later(self: &Arc<Self>, directory: &str) {
        if !self.directories.note_rename(directory) {
            return;
        }

        // Weak, or the wait would hold the data directory's lock after the store is gone.
        let awaited = Awaited { shared: Arc::downgrade(self), is_over: false };
        tasks::spawn(async move {
            tokio::time::sleep(SYNC_DELAY).await;
            tasks::blocking(move || awaited.sync()).await.ok();
        });
    }

    /// Syncs the directories of all renames so far.
    pub(in crate::storage::local) fn sync_renamed(&self) -> Result<()> {
        self.directories.sync_renamed().map_err(|error| {
            tracing::error!(%error, "a directory of blobs could not be synced");
            Error::io("syncing a directory of blobs", error)
        })
    }

    /// Removes both names of each key. `Ok` means that they are gone for good.
    pub(in crate::storage::local) fn remove(&self, keys: &[BlobKey]) -> Vec<Result<()>> {
        let mut outcomes: Vec<_> = keys.iter().map(|key| self.unlink_both(key)).collect();
        for key in keys {
            self.in_memory.forget(key.blob_id());
            self.open_files.forget(key.blob_id());
        }

        let staging = self.sync_staging();
        let mut directories: BTreeMap<&str, io::Result<()>> = BTreeMap::new();
        for (key, outcome) in keys.iter().zip(&mut outcomes) {
            let directory = key.directory();
            let synced = directories
                .entry(directory)
                .or_insert_with(|| self.directories.sync_nearest(directory));
            if outcome.is_ok() {
                *outcome = match (&staging, &*synced) {
                    (Ok(()), Ok(())) => Ok(()),
                    (Err(error), _) | (_, Err(error)) => {
                        Err(Error::internal("syncing a removal", error.to_string()))
                    }
                };
            }
        }

        reached(Step::RemovalSynced);

        for directory in directories.keys() {
            self.directories.prune(directory);
        }
        outcomes
    }

    /// Unlinks the staged name first, because no publishing can then restore the final name.
    fn unlink_both(&self, key: &BlobKey) -> Result<()> {
        unlink(&self.staging, &key.blob_id().to_string())
            .and_then(|()| {
                reached(Step::StagedNameRemoved);
                unlink(&self.blobs, key.as_str())
            })
            .and_then(|()| self.forget_aside(key))
            .map_err(|error| Error::io(REMOVING, error))?;
        reached(Step::BlobRemoved);
        Ok(())
    }

    /// Unlinks the blob's file in `damaged/`, if there is one.
    fn forget_aside(&self, key: &BlobKey) -> io::Result<()> {
        match std::fs::remove_file(self.dir.damaged().join(key.blob_id().to_string())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Unlinks staged names durably. An absent name counts as unlinked.
    pub(in crate::storage::local) fn discard_staged(&self, ids: &[BlobId]) -> Result<()> {
        ids.iter()
            .try_for_each(|id| {
                unlink(&self.staging, &id.to_string())?;
                reached(Step::StagedDiscarded);
                Ok(())
            })
            .and_then(|()| self.sync_staging())
            .map_err(|error| Error::io("discarding staged blobs", error))
    }

    /// Syncs the staging directory through a separate descriptor. A failed write-back is reported once for
    /// each descriptor, and the descriptor of the uploads must not miss its failures.
    fn sync_staging(&self) -> io::Result<()> {
        match self.durability {
            Durability::Full => sync(&std::fs::File::open(self.dir.staging())?),
            Durability::Process => Ok(()),
        }
    }

    /// Lists the blobs in `staging/`. Other files are logged and not touched.
    pub(in crate::storage::local) fn staged(&self) -> io::Result<Vec<BlobId>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(self.dir.staging())? {
            let entry = entry?;
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());

            match id {
                Some(id) if entry.file_type()?.is_file() => ids.push(id),
                _ => {
                    tracing::warn!(name = ?entry.file_name(), "a foreign name in the staging directory");
                }
            }
        }

        Ok(ids)
    }
}

fn stat(dir: &std::fs::File, name: &str) -> Result<Option<Stat>> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Error::io("looking for a blob", error.into())),
    }
}

/// Unlinks a name. An absent name counts as unlinked.
fn unlink(dir: &std::fs::File, name: &str) -> io::Result<()> {
    attempt(Call::Unlink)?;
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
