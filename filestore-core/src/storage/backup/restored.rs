//! A data directory that is being restored.
//!
//! # Crash safety
//! The database gets its name last, so that a directory whose restore broke off is no store: it is
//! refused, and may be restored into again.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::copy::{self, Copying};
use super::directory::{full, make_directory, write_durably};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::path::BlobKey;

const RESTORING: &str = "restoring a snapshot";
const BLOBS: &str = "blobs";
const DATABASE: &str = "metadata.sqlite3";
const UNFINISHED: &str = "metadata.sqlite3.restoring";

/// The note that the directory is being restored.
const NOTE: &str = "filestore-restoring";

/// A directory that becomes the data directory of a store. All methods block.
#[derive(Debug)]
pub struct RestoredDirectory {
    path: PathBuf,
    directory: File,
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
        let mut entries = fs::read_dir(&path).map_err(|error| Error::io(RESTORING, error))?;
        if !is_resumed && entries.next().is_some() {
            return Err(occupied(&path, "something"));
        }

        write_durably(&path.join(NOTE), &format!("{id}\n"))?;
        make_directory(&path.join(BLOBS))?;
        let directory = File::open(&path).map_err(|error| Error::io(RESTORING, error))?;
        Ok(Self { path, directory, known: Mutex::default(), is_resumed })
    }

    /// Returns the path of the database that is being prepared.
    pub fn database(&self) -> PathBuf {
        self.path.join(UNFINISHED)
    }

    /// Copies the snapshot's database to be prepared; returns what it was found to be.
    pub fn take_database(&self, from: &Path) -> Result<Copying> {
        let made = File::open(from).and_then(|from| Ok((from, replacing(&self.database())?)));
        let copied = made.and_then(|(from, to)| Ok(copy::copy(&from, &to, &mut Vec::new())?));
        copied.map_err(|error| full(Error::io(RESTORING, error)))
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
        self.ensure(key.directory())?;
        let path = self.path.join(BLOBS).join(key.as_str());
        if self.is_resumed && is_already(&path, expected, buffer) {
            return Ok(true);
        }

        let copied = replacing(&path).and_then(|to| {
            let found = copy::copy(from, &to, buffer)?;
            if !cfg!(target_os = "linux") {
                to.sync_all()?;
            }
            Ok(found)
        });
        let found = copied.map_err(|error| full(Error::io(RESTORING, error)))?;
        if found != expected {
            fs::remove_file(&path).map_err(|error| Error::io(RESTORING, error))?;
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

fn occupied(path: &Path, by: &str) -> Error {
    let message = format!(
        "a snapshot is restored into an empty directory, and this one has {by} in it: {}",
        path.display()
    );
    Error::new(ErrorKind::Unusable, message)
}
