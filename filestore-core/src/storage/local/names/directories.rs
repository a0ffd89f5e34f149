//! The day directories below `blobs/`. Directories are created when needed, synced in the background, and
//! removed when empty.
//!
//! # Locking
//! `changing` is held while directories are created or removed, so that no parent disappears while a chain of
//! directories is created. Renames into a directory take no lock. A rename into a removed directory fails
//! with ENOENT. Its caller then forgets the directory and retries.
//!
//! # Crash safety
//! The name of a new directory is durable before the first rename into it. The rename itself is synced later.
//! After a crash before that, the blob has its staged name, which is already durable.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::mem;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::domain::config::Durability;
use crate::storage::local::durable::sync;
use crate::tasks::step::{Call, Step, attempt, reached};

/// The number of directories that are known to exist. A forgotten directory costs a failed `mkdir`.
const KNOWN_LIMIT: usize = 16_384;

/// The directories of `blobs/`, by the directory part of a key.
pub(in crate::storage::local) struct Directories {
    blobs: File,
    durability: Durability,
    known: Mutex<HashSet<Box<str>>>,
    changing: Mutex<()>,
    renamed: Mutex<Renamed>,
}

/// Renames that are not synced yet.
#[derive(Default)]
struct Renamed {
    into: HashSet<Box<str>>,
    /// True while a task waits to sync them.
    is_awaited: bool,
}

impl Directories {
    /// Manages the directories below `blobs`.
    pub(in crate::storage::local) fn new(blobs: File, durability: Durability) -> Self {
        Self {
            blobs,
            durability,
            known: Mutex::default(),
            changing: Mutex::default(),
            renamed: Mutex::default(),
        }
    }

    /// Creates `directory` and its missing parents. New names are durable when this returns.
    pub(super) fn ensure(&self, directory: &str) -> io::Result<()> {
        if self.known.lock().contains(directory) {
            return Ok(());
        }

        let _changing = self.changing.lock();
        self.make(directory)?;

        let mut known = self.known.lock();
        if known.len() >= KNOWN_LIMIT {
            known.clear();
        }
        known.insert(directory.into());
        Ok(())
    }

    /// Forgets that `directory` exists.
    pub(in crate::storage::local) fn forget(&self, directory: &str) {
        self.known.lock().remove(directory);
    }

    fn make(&self, directory: &str) -> io::Result<()> {
        attempt(Call::MakeDirectory)?;
        match mkdirat(&self.blobs, directory, Mode::RWXU) {
            Ok(()) => self.sync_made(directory),
            Err(Errno::EXIST) => Ok(()),
            Err(Errno::NOENT) if !parent(directory).is_empty() => {
                self.make(parent(directory))?;
                mkdirat(&self.blobs, directory, Mode::RWXU)?;
                self.sync_made(directory)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the name of a new directory durable.
    fn sync_made(&self, directory: &str) -> io::Result<()> {
        reached(Step::DirectoryMade);
        self.sync_nearest(parent(directory))?;
        reached(Step::DirectorySynced);
        Ok(())
    }

    /// Removes `directory` and its parents as far as they are empty. Failures are ignored, because an empty
    /// directory is harmless.
    pub(super) fn prune(&self, directory: &str) {
        let _changing = self.changing.lock();
        let mut empty = directory;

        while !empty.is_empty() {
            self.forget(empty);
            if unlinkat(&self.blobs, empty, AtFlags::REMOVEDIR).is_err() {
                return;
            }
            reached(Step::DirectoryPruned);
            empty = parent(empty);
        }
    }

    /// Syncs `directory`, or its nearest parent that still exists. After the directory's own removal, this
    /// parent records the removal of its entries.
    pub(super) fn sync_nearest(&self, directory: &str) -> io::Result<()> {
        if self.durability == Durability::Process {
            return Ok(());
        }

        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut nearest = directory;
        loop {
            // A descriptor of its own: the kernel reports a failed write-back once per descriptor.
            let name = if nearest.is_empty() { "." } else { nearest };
            match openat(&self.blobs, name, flags, Mode::empty()) {
                Ok(opened) => return sync(&File::from(opened)),
                Err(Errno::NOENT) if !nearest.is_empty() => nearest = parent(nearest),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Records a rename into `directory`, for [`Self::sync_renamed`]. Returns true if no sync is planned yet.
    /// The caller must then plan the sync, or call [`abandon_renamed`](Self::abandon_renamed).
    pub(in crate::storage::local) fn note_rename(&self, directory: &str) -> bool {
        if self.durability == Durability::Process {
            return false;
        }

        let mut renamed = self.renamed.lock();
        if !renamed.into.contains(directory) {
            renamed.into.insert(directory.into());
        }
        !mem::replace(&mut renamed.is_awaited, true)
    }

    /// Records that a planned sync did not run, for example because a runtime ended. The next rename plans it
    /// again.
    pub(super) fn abandon_renamed(&self) {
        self.renamed.lock().is_awaited = false;
    }

    /// Syncs every directory recorded since the last call, each once. Returns the first failure. A failed
    /// sync is not retried, because a lost entry is found under its staged name.
    pub(in crate::storage::local) fn sync_renamed(&self) -> io::Result<()> {
        let due = mem::take(&mut *self.renamed.lock()).into;
        let mut outcome = Ok(());

        for directory in due {
            let synced = self.sync_nearest(&directory);
            outcome = outcome.and(synced);
        }

        reached(Step::RenamesSynced);
        outcome
    }
}

/// Returns the parent of `directory`, or an empty string for a topmost directory.
fn parent(directory: &str) -> &str {
    directory.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(home: &tempfile::TempDir) -> Directories {
        Directories::new(File::open(home.path()).unwrap(), Durability::Full)
    }

    #[test]
    fn a_directory_is_made_with_its_parents_and_removed_with_those_that_are_empty() {
        let home = tempfile::tempdir().unwrap();
        let directories = directories(&home);
        directories.ensure("a/b/2026/01/01").unwrap();
        directories.ensure("a/b/2026/01/02").unwrap();
        directories.prune("a/b/2026/01/01");
        assert!(!home.path().join("a/b/2026/01/01").exists());
        assert!(home.path().join("a/b/2026/01/02").is_dir());
        directories.prune("a/b/2026/01/02");
        assert!(!home.path().join("a").exists());
        directories.ensure("a/b/2026/01/02").unwrap();
        assert!(
            home.path().join("a/b/2026/01/02").is_dir(),
            "a removed directory is not remembered"
        );
    }

    #[test]
    fn a_removed_directory_is_synced_through_its_nearest_parent() {
        let home = tempfile::tempdir().unwrap();
        directories(&home).sync_nearest("a/b/2026/01/01").unwrap();
    }

    #[test]
    fn only_the_first_rename_since_a_sync_asks_for_one() {
        let home = tempfile::tempdir().unwrap();
        let directories = directories(&home);
        directories.ensure("a/b/2026/01/01").unwrap();
        assert!(directories.note_rename("a/b/2026/01/01"));
        assert!(!directories.note_rename("a/b/2026/01/01"));
        assert!(!directories.note_rename("a/b/2026/01/02"));
        directories.sync_renamed().unwrap();
        assert!(directories.note_rename("a/b/2026/01/01"));
        directories.abandon_renamed();
        assert!(directories.note_rename("a/b/2026/01/02"), "a sync that did not come");
        assert_eq!(directories.renamed.lock().into.len(), 2, "the next sync is for both");
    }
}
