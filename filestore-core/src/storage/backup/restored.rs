//! A data directory that is being restored.
//!
//! # Crash safety
//! The database gets its name last. A directory whose restore broke off has a note, by which it is
//! refused as a store ([`DataDir`](crate::storage::DataDir)), and may be restored into again. Its lock is
//! held meanwhile.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::blocking;
use super::copy::{self, Copying};
use super::directory::{full, make_directory, write_durably};
use super::opened::Opened;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::path::BlobKey;
use crate::storage::data_dir::{LOCK_FILE, RESTORING_NOTE as NOTE, lock};

const RESTORING: &str = "restoring a snapshot";
const BLOBS: &str = "blobs";
const DATABASE: &str = "metadata.sqlite3";
const UNFINISHED: &str = "metadata.sqlite3.restoring";

/// A directory that becomes the data directory of a store. All methods block.
#[derive(Debug)]
pub struct RestoredDirectory {
    path: PathBuf,
    directory: File,
    /// The lock of the data directory.
    _lock: File,
    known: Mutex<HashSet<Box<str>>>,
    is_resumed: bool,
}

impl RestoredDirectory {
    /// Begins to restore a snapshot into `path`: an absent or empty directory, or one into which a
    /// restore of the same snapshot broke off. `Unusable` for any other.
    pub fn begin(path: &Path, id: SnapshotId) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(RESTORING, error))?;
        make_directory(&path)?;

        let is_resumed = match fs::read_to_string(path.join(NOTE)) {
            Ok(noted) if noted.trim() == id.to_string() => true,
            Ok(noted) => {
                return Err(occupied(&path, &format!("the restore of snapshot {}", noted.trim())));
            }
            Err(_) => false,
        };
        if !is_resumed && holds_something(&path).map_err(|error| Error::io(RESTORING, error))? {
            return Err(occupied(&path, "something"));
        }

        let lock = lock(&path)?;
        if path.join(DATABASE).exists() {
            return Err(already_restored(&path));
        }
        write_durably(&path.join(NOTE), &format!("{id}\n"))?;
        make_directory(&path.join(BLOBS))?;
        let directory = File::open(&path).map_err(|error| Error::io(RESTORING, error))?;
        Ok(Self { path, directory, _lock: lock, known: Mutex::default(), is_resumed })
    }

    /// Returns the path of the database that is being prepared.
    pub fn database(&self) -> PathBuf {
        self.path.join(UNFINISHED)
    }

    /// Copies the snapshot's database to be prepared; returns what it was found to be.
    pub async fn take_database(&self, from: Opened) -> Result<Copying> {
        let path = self.database();
        let to = blocking(RESTORING, move || {
            replacing(&path).map_err(|error| full(Error::io(RESTORING, error)))
        });
        from.copy_to(to.await?).await
    }

    /// Tells whether an earlier run restored the blob of a key. Blocks.
    pub(super) fn has(&self, key: &BlobKey, expected: Copying) -> bool {
        let path = self.path.join(BLOBS).join(key.as_str());
        self.is_resumed && is_already(&path, expected, &mut Vec::new())
    }

    /// Makes the empty file of a blob. Blocks.
    pub(super) fn make_blob(&self, key: &BlobKey) -> Result<File> {
        self.ensure(key.directory())?;
        let made = replacing(&self.path.join(BLOBS).join(key.as_str()));
        made.map_err(|error| full(Error::io(RESTORING, error)))
    }

    /// Removes the file of a blob that has not its bytes. Blocks.
    pub(super) fn discard_blob(&self, key: &BlobKey) -> Result<()> {
        let removed = fs::remove_file(self.path.join(BLOBS).join(key.as_str()));
        removed.map_err(|error| Error::io(RESTORING, error))
    }

    /// Restores the blob of a key. Returns false, and leaves nothing, if the bytes are not those
    /// expected.
    pub fn take_blob(
        &self,
        key: &BlobKey,
        from: &File,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<bool> {
        if self.has(key, expected) {
            return Ok(true);
        }

        let to = self.make_blob(key)?;
        let copied = copy::copy(from, &to, buffer).map_err(io::Error::from).and_then(|found| {
            if !cfg!(target_os = "linux") {
                to.sync_all()?;
            }
            Ok(found)
        });
        let found = copied.map_err(|error| full(Error::io(RESTORING, error)))?;
        if found != expected {
            self.discard_blob(key)?;
        }
        Ok(found == expected)
    }

    /// Flushes everything, then gives the database its name: from now on the directory is a store.
    pub fn finish(self) -> Result<()> {
        let finished = self
            .flush()
            .and_then(|()| fs::rename(self.database(), self.path.join(DATABASE)))
            .and_then(|()| self.directory.sync_all())
            .and_then(|()| fs::remove_file(self.path.join(NOTE)))
            .and_then(|()| self.directory.sync_all());
        finished.map_err(|error| full(Error::io(RESTORING, error)))
    }

    #[cfg(target_os = "linux")]
    fn flush(&self) -> io::Result<()> {
        rustix::fs::syncfs(&self.directory).map_err(io::Error::from)
    }

    #[cfg(not(target_os = "linux"))]
    fn flush(&self) -> io::Result<()> {
        File::open(self.database())?.sync_all()?;
        let known = self.known.lock();
        for directory in known.iter() {
            for directory in Path::new(&**directory).ancestors() {
                File::open(self.path.join(BLOBS).join(directory))?.sync_all()?;
            }
        }
        self.directory.sync_all()
    }

    fn ensure(&self, directory: &str) -> Result<()> {
        if self.known.lock().contains(directory) {
            return Ok(());
        }
        let path = self.path.join(BLOBS).join(directory);
        let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
        made.map_err(|error| full(Error::io(RESTORING, error)))?;
        self.known.lock().insert(directory.into());
        Ok(())
    }
}

/// Tells whether an earlier run restored the blob.
fn is_already(path: &Path, expected: Copying, buffer: &mut Vec<u8>) -> bool {
    let read = File::open(path).and_then(|file| copy::digest(&file, buffer));
    read.is_ok_and(|found| found == expected)
}

fn replacing(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Tells whether there is anything in a directory but the lock of a data directory.
fn holds_something(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != LOCK_FILE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The error of a directory that lacks nothing but the removal of its note, if the note is there.
fn already_restored(path: &Path) -> Error {
    let text = format!(
        "{} holds a database: if a restore broke off there, it had done all its work; remove {NOTE} to use it",
        path.display()
    );
    Error::new(ErrorKind::Unusable, text)
}

fn occupied(path: &Path, by: &str) -> Error {
    let message = format!(
        "a snapshot is restored into an empty directory, and this one has {by} in it: {}",
        path.display()
    );
    Error::new(ErrorKind::Unusable, message)
}
