//! A data directory during a restore.
//!
//! # Crash safety
//! The database gets its name last. If a restore is interrupted, the directory contains a note. Because of
//! this note, [`DataDir`](crate::storage::DataDir) refuses it as a store, and another restore can continue.
//! The restore holds the directory's lock.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::blocking;
use super::copy::{self, Copying};
use super::files::{full, make_directory, remove_if_there, write_durably};
use super::opened::Opened;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{SnapshotId, StoreId};
use crate::storage::access::check_data_directory;
use crate::storage::data_dir::{LOCK_FILE, RESTORING_NOTE as NOTE, lock};
use crate::storage::file_lock::FileLock;
use crate::storage::identity;

const RESTORING: &str = "restoring a snapshot";
const BLOBS: &str = "blobs";
const DATABASE: &str = "metadata.sqlite3";
const UNFINISHED: &str = "metadata.sqlite3.restoring";
const FORMER: &str = "metadata.sqlite3.copied";

/// The endings of the files that SQLite may have beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// A directory that becomes the data directory of a store. All methods block.
#[derive(Debug)]
pub struct RestoredDirectory {
    path: PathBuf,
    directory: File,
    /// The lock of the data directory.
    _lock: FileLock,
    known: Mutex<HashSet<Box<str>>>,
    is_resumed: bool,
    copy_id: StoreId,
}

impl RestoredDirectory {
    /// Begins to restore a snapshot into `path`: an absent or empty directory, or one into which a
    /// restore of the same snapshot broke off. A copy gets the id `fresh`, or that of the run before.
    /// `Unusable` for any other directory.
    pub fn begin(path: &Path, id: SnapshotId, fresh: StoreId) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(RESTORING, error))?;
        make_directory(&path)?;
        check_data_directory(&path)?;

        let noted = fs::read_to_string(path.join(NOTE)).ok();
        let is_resumed = noted.is_some();
        let (of, copy_id) = noted.as_deref().map(read_note).unwrap_or_default();
        if is_resumed && of != id.to_string() {
            return Err(occupied(&path, &format!("the restore of snapshot {of}")));
        }
        if !is_resumed && holds_something(&path).map_err(|error| Error::io(RESTORING, error))? {
            return Err(occupied(&path, "something"));
        }

        let lock = lock(&path)?;
        if path.join(DATABASE).exists() {
            return Err(already_restored(&path));
        }
        let copy_id = copy_id.unwrap_or(fresh);
        let note = format!("{id} {copy_id}\n");
        if noted.is_none_or(|noted| noted != note) {
            write_durably(&path.join(NOTE), &note)?;
        }
        make_directory(&path.join(BLOBS))?;
        let directory = File::open(&path).map_err(|error| Error::io(RESTORING, error))?;
        Ok(Self { path, directory, _lock: lock, known: Mutex::default(), is_resumed, copy_id })
    }

    /// Returns the store's id, if it is restored as a copy.
    pub fn copy_id(&self) -> StoreId {
        self.copy_id
    }

    /// Leaves the directory as empty as it was before this run, which has restored nothing. One in which an
    /// earlier run broke off stays as it is.
    pub fn give_up(self) -> Result<()> {
        if self.is_resumed {
            return Ok(());
        }
        let removed = remove_if_there(&self.database())
            .and_then(|()| fs::remove_dir(self.path.join(BLOBS)))
            .and_then(|()| fs::remove_file(self.path.join(NOTE)));
        removed.map_err(|error| Error::io(RESTORING, error))
    }

    /// Returns the path of the database during the restore.
    pub fn database(&self) -> PathBuf {
        self.path.join(UNFINISHED)
    }

    /// Copies the snapshot's database. Returns its size and digest.
    pub async fn take_database(&self, from: Opened) -> Result<Copying> {
        let path = self.database();
        let to = blocking(RESTORING, move || {
            // A log of the run before is not one of the new file.
            remove_beside(&path).map_err(|error| Error::io(RESTORING, error))?;
            replacing(&path).map_err(|error| full(Error::io(RESTORING, error)))
        });
        from.copy_to(to.await?).await
    }

    /// Returns true if an earlier run restored the blob of a key. Blocks.
    pub(super) fn has(&self, key: &BlobKey, expected: Copying) -> bool {
        let path = self.path.join(BLOBS).join(key.as_str());
        self.is_resumed && is_already(&path, expected, &mut Vec::new())
    }

    /// Creates the empty file of a blob. Blocks.
    pub(super) fn make_blob(&self, key: &BlobKey) -> Result<File> {
        self.ensure(key.directory())?;
        let made = replacing(&self.path.join(BLOBS).join(key.as_str()));
        made.map_err(|error| full(Error::io(RESTORING, error)))
    }

    /// Removes the file of a blob with wrong bytes. Blocks.
    pub(super) fn discard_blob(&self, key: &BlobKey) -> Result<()> {
        let removed = fs::remove_file(self.path.join(BLOBS).join(key.as_str()));
        removed.map_err(|error| Error::io(RESTORING, error))
    }

    /// Restores a key's blob. If the bytes do not match, returns false and removes them.
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

    /// Flushes all files, and then gives the database its name. From now on, the directory is a store.
    pub fn finish(self) -> Result<()> {
        let finished = self
            .flush()
            .and_then(|()| fs::rename(self.database(), self.path.join(DATABASE)))
            .and_then(|()| self.directory.sync_all())
            .and_then(|()| fs::remove_file(self.path.join(NOTE)))
            .and_then(|()| self.directory.sync_all());
        finished.map_err(|error| full(Error::io(RESTORING, error)))
    }

    /// Flushes everything, and marks the directory as that of `store`. The records are in another database,
    /// so this renames the directory's database to a former one.
    pub fn retire_database(&self, store: StoreId) -> Result<()> {
        let database = self.database();
        if fs::metadata(beside(&database, BESIDE[0])).is_ok_and(|log| log.len() > 0) {
            return Err(Error::internal(RESTORING, "the restored database is in use"));
        }
        identity::mark(&self.path, &self.path.join(BLOBS), store)?;
        let retired = self
            .flush()
            .and_then(|()| fs::rename(&database, self.path.join(FORMER)))
            .and_then(|()| remove_beside(&database))
            .and_then(|()| self.directory.sync_all());
        retired.map_err(|error| full(Error::io(RESTORING, error)))
    }

    /// Returns true if an earlier run put the records into another database.
    pub fn has_retired(&self) -> bool {
        self.path.join(FORMER).exists()
    }

    /// Ends a restore with records in another database. From now on, the directory belongs to a store.
    pub fn conclude(self) -> Result<()> {
        let concluded = remove_if_there(&self.database())
            .and_then(|()| fs::remove_file(self.path.join(NOTE)))
            .and_then(|()| self.directory.sync_all());
        concluded.map_err(|error| full(Error::io(RESTORING, error)))
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

/// Reads the snapshot that is restored, and the id that a copy gets. Earlier versions did not note that.
fn read_note(note: &str) -> (String, Option<StoreId>) {
    let mut words = note.split_whitespace();
    let snapshot = words.next().unwrap_or_default().to_owned();
    (snapshot, words.next().and_then(|id| id.parse().ok()))
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn remove_beside(database: &Path) -> io::Result<()> {
    BESIDE.iter().try_for_each(|ending| remove_if_there(&beside(database, ending)))
}

/// Tells whether an earlier run restored the blob.
fn is_already(path: &Path, expected: Copying, buffer: &mut Vec<u8>) -> bool {
    let read = File::open(path).and_then(|file| copy::digest(&file, buffer));
    read.is_ok_and(|found| found == expected)
}

fn replacing(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Returns true if a directory contains anything except the lock of a data directory.
fn holds_something(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != LOCK_FILE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the error for a directory whose restore is complete except for its note, if the note exists.
fn already_restored(path: &Path) -> Error {
    let text = format!(
        "{} holds a database. If a restore was interrupted there, its work is complete: remove {NOTE} to use the directory",
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
