//! The day directories below `blobs/`, made when first needed, synced in the background, removed
//! when empty.
//!
//! # Locking
//! `changing` is held while directories are made or removed, so that a chain of parents cannot lose
//! a link while it grows. Renames into a directory take no lock: one that meets a removal fails
//! with ENOENT, and its caller forgets the directory and retries.
//!
//! # Crash safety
//! A new directory's name is durable before anything is renamed into it. The rename itself is
//! synced later: until then a crash leaves the staged name, which is durable already.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::mem;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::durable::sync;
use crate::domain::config::Durability;
use crate::tasks::step::{Call, Step, attempt, reached};

/// Number of directories remembered as existing. A forgotten one costs a `mkdir` that fails.
const KNOWN_LIMIT: usize = 16_384;

/// The directories of `blobs/`, by the directory part of a key.
pub(super) struct Directories {
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
    /// True while somebody sees to it that they are synced.
    is_awaited: bool,
}

impl Directories {
    /// Takes charge of the directories below `blobs`.
    pub(super) fn new(blobs: File, durability: Durability) -> Self {
        Self {
            blobs,
            durability,
            known: Mutex::default(),
            changing: Mutex::default(),
            renamed: Mutex::default(),
        }
    }

    /// Makes `directory` and its parents where missing; new names are durable when this returns.
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
    pub(super) fn forget(&self, directory: &str) {
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

    /// Removes `directory` and its parents as far as they are empty. Failures are ignored: a
    /// directory that stays is harmless.
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

    /// Syncs `directory`, or the nearest of its parents that still exists: after the directory's
    /// own removal, that parent records the entries' absence.
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

    /// Notes a rename into `directory`, to be synced by [`Self::sync_renamed`]. True if nobody sees to
    /// that yet: the caller has to, or to say that it [does not](Self::abandon_renamed).
    pub(super) fn note_rename(&self, directory: &str) -> bool {
        if self.durability == Durability::Process {
            return false;
        }

        let mut renamed = self.renamed.lock();
        if !renamed.into.contains(directory) {
            renamed.into.insert(directory.into());
        }
        !mem::replace(&mut renamed.is_awaited, true)
    }

    /// Lets the next rename ask again for the sync that did not come, as when a runtime ends first.
    pub(super) fn abandon_renamed(&self) {
        self.renamed.lock().is_awaited = false;
    }

    /// Syncs every directory noted since the last call, each once; returns the first failure. A
    /// failed sync is not retried: an entry that is lost is found under its staged name.
    pub(super) fn sync_renamed(&self) -> io::Result<()> {
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

/// Returns the parent of `directory`; empty for a topmost one.
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
