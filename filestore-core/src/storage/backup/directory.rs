//! The directory that snapshots lie in.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::copy::{self, Copying};
use super::destination::Draft;
use super::manifest::Manifest;
use super::marker::{self, MARKER};
use super::runs::{Claim, Runs, Sharing};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256, SnapshotId};
use crate::tasks::step::{Step, reached};

const LOCK: &str = "filestore-backup.lock";
pub(super) const BLOBS: &str = "blobs";
pub(super) const SNAPSHOTS: &str = "snapshots";
pub(super) const MANIFEST: &str = "manifest.jsonl";
const UNFINISHED_MANIFEST: &str = "manifest.jsonl.new";
const DATABASE: &str = "metadata.sqlite3";

pub(super) const BACKING_UP: &str = "writing a snapshot";
pub(super) const READING: &str = "reading a snapshot";

/// True if each file is flushed by itself: the file system cannot be flushed as a whole.
pub(super) const SYNCS_EACH: bool = !cfg!(target_os = "linux");

/// A directory of snapshots, locked by this process. Clones share the lock. All methods block.
#[derive(Debug, Clone)]
pub struct BackupDirectory {
    held: Arc<Locked>,
    /// The claim of the run that this clone belongs to.
    _claim: Option<Arc<Claim>>,
}

#[derive(Debug)]
struct Locked {
    path: PathBuf,
    /// Opened before anything is written: a flush reports the failures since then.
    directory: File,
    runs: Arc<Runs>,
    _lock: File,
}

/// A content that lies in the directory, by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The file has no name outside of the directory.
    Owned,
    /// The file has other names: its bytes are those of a file of the store, or of another copy.
    Shared,
}

impl BackupDirectory {
    /// Opens a directory of snapshots; an absent or empty one is made to be one.
    ///
    /// `Locked` while another process works on it, `Unusable` if it holds something else.
    pub fn create(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(BACKING_UP, error))?;
        make_directory(&path)?;
        Self::prepare(&path)
    }

    /// Opens a directory that is there as [`create`](Self::create) does. `Unusable` for an absent one: the
    /// disk that it is on may not be mounted.
    pub fn prepare(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(BACKING_UP, error))?;
        if !path.is_dir() {
            let message = format!(
                "the backup destination is not there: {}; mount its disk, or make the directory once",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        if is_empty(&path).map_err(|error| Error::io(BACKING_UP, error))? {
            marker::make(&path)?;
        }

        let directory = Self::open(&path)?;
        for part in [BLOBS, SNAPSHOTS] {
            make_directory(&path.join(part))?;
        }
        Ok(directory)
    }

    /// Opens a directory that was one of snapshots before, as [`prepare`](Self::prepare) does. `Unusable`
    /// for one that does not show it any more: the disk that it is on may not be mounted.
    pub fn reopen(path: &Path) -> Result<Self> {
        if path.is_dir() && !marker::is_in(path) {
            let message = format!(
                "the backup destination {} had snapshots of this store, and shows nothing of them: mount its disk; if snapshots \
                 are to begin anew there, write the line \"{}\" into the file {MARKER} in it",
                path.display(),
                marker::FORMAT
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        Self::prepare(path)
    }

    /// Opens a directory that has snapshots, or had. Fails as [`create`](Self::create) does.
    pub fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(READING, error))?;
        if !marker::is_in(&path) {
            let message = format!(
                "the directory holds no snapshots, and something else or nothing: {}",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }

        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(|error| Error::io(READING, error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let message = format!("another process works on the snapshots in {}", path.display());
            return Err(Error::new(ErrorKind::Locked, message));
        }

        let directory = File::open(&path).map_err(|error| Error::io(READING, error))?;
        let runs = Arc::default();
        let held = Arc::new(Locked { path, directory, runs, _lock: lock });
        Ok(Self { held, _claim: None })
    }

    /// Claims the directory for a run, which works on the clone that is returned: until the last clone of
    /// that is gone, no other run has the directory, unless both only read. `Locked` while one has it.
    pub(super) fn claimed(&self, sharing: Sharing) -> Result<Self> {
        let claim = Claim::take(&self.held.runs, sharing, self.path())?;
        Ok(Self { held: Arc::clone(&self.held), _claim: Some(Arc::new(claim)) })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.held.path
    }

    /// Returns the id of the directory, which one that has none yet gets now, durably.
    pub(super) fn identified(&self, now: Timestamp) -> Result<DestinationId> {
        if let Some(id) = marker::read_id(self.path())? {
            return Ok(id);
        }
        let id = DestinationId::generate(now);
        marker::write_id(self.path(), id)?;
        Ok(id)
    }

    /// Lists the finished snapshots, the oldest first.
    pub(super) fn finished(&self) -> Result<Vec<SnapshotId>> {
        Ok(self.all()?.into_iter().filter(|id| self.manifest_path(*id).is_file()).collect())
    }

    /// Lists the snapshots that are not whole: what broke off, or is being removed.
    pub(super) fn unfinished(&self) -> Result<Vec<SnapshotId>> {
        Ok(self.all()?.into_iter().filter(|id| !self.manifest_path(*id).is_file()).collect())
    }

    fn all(&self) -> Result<Vec<SnapshotId>> {
        let mut ids = Vec::new();
        let entries = match fs::read_dir(self.path().join(SNAPSHOTS)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
            Err(error) => return Err(Error::io(READING, error)),
        };
        for entry in entries {
            let name = entry.map_err(|error| Error::io(READING, error))?.file_name();
            ids.extend(name.to_str().and_then(|name| name.parse::<SnapshotId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Begins a snapshot: makes its directory.
    pub(super) fn make(&self, id: SnapshotId) -> Result<Draft> {
        let path = self.snapshot_path(id);
        make_directory(&path)?;
        let (database, manifest) = (path.join(DATABASE), path.join(UNFINISHED_MANIFEST));
        reached(Step::SnapshotBegun);
        Ok(Draft { id, database, manifest, _scratch: None })
    }

    /// Returns the path of the snapshot's copy of the database.
    pub(super) fn database(&self, id: SnapshotId) -> PathBuf {
        self.snapshot_path(id).join(DATABASE)
    }

    /// Gives the manifest its name: from now on the snapshot is there. Everything that it names was
    /// flushed before, and is with this.
    pub(super) fn name(&self, id: SnapshotId, manifest: &File) -> Result<()> {
        let directory = self.snapshot_path(id);
        let finished = self
            .flush()
            .and_then(|()| manifest.sync_all())
            .and_then(|()| {
                fs::rename(directory.join(UNFINISHED_MANIFEST), directory.join(MANIFEST))
            })
            .and_then(|()| File::open(&directory)?.sync_all());
        finished.map_err(|error| full(Error::io(BACKING_UP, error)))?;
        reached(Step::SnapshotFinished);
        Ok(())
    }

    /// Flushes all that was written into the directory since it was opened: with one call for its whole
    /// file system, which also reports what failed in the background (Linux 5.8 and newer).
    #[cfg(target_os = "linux")]
    fn flush(&self) -> io::Result<()> {
        rustix::fs::syncfs(&self.held.directory).map_err(io::Error::from)
    }

    /// Flushes the names; the files were flushed one by one.
    #[cfg(not(target_os = "linux"))]
    fn flush(&self) -> io::Result<()> {
        let blobs = self.path().join(BLOBS);
        for entry in fs::read_dir(&blobs)? {
            File::open(entry?.path())?.sync_all()?;
        }
        for directory in [blobs, self.path().join(SNAPSHOTS)] {
            File::open(directory)?.sync_all()?;
        }
        self.held.directory.sync_all()
    }

    /// Opens the manifest of a finished snapshot. `NotFound` if there is none.
    pub(super) fn open_manifest(&self, id: SnapshotId) -> Result<Manifest> {
        match File::open(self.manifest_path(id)) {
            Ok(file) => Manifest::open(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::not_found("the snapshot"))
            }
            Err(error) => Err(Error::io(READING, error)),
        }
    }

    /// Removes a snapshot durably, its manifest first: what is left after a crash is no snapshot. Its
    /// bytes stay until they are swept.
    pub(super) fn unname(&self, id: SnapshotId) -> Result<()> {
        let directory = self.snapshot_path(id);
        let removed = remove_if_there(&self.manifest_path(id))
            .and_then(|()| File::open(&directory)?.sync_all())
            .and_then(|()| {
                reached(Step::SnapshotUnnamed);
                fs::remove_dir_all(&directory)
            })
            .and_then(|()| File::open(self.path().join(SNAPSHOTS))?.sync_all());
        removed.map_err(|error| Error::io("removing a snapshot", error))
    }

    /// Looks for something of that size under a digest.
    pub(super) fn look(&self, expected: Copying) -> Option<Presence> {
        let found = fs::metadata(self.blob_path(expected.sha256)).ok()?;
        if found.len() != expected.size_bytes {
            return None;
        }
        Some(if found.nlink() > 1 { Presence::Shared } else { Presence::Owned })
    }

    /// Reads what the directory has under a digest, from the disk; `None` if there is nothing.
    pub(super) fn read_blob(
        &self,
        sha256: Sha256,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Copying>> {
        match self.open_blob(sha256)? {
            Some(file) => copy::digest_of_disk(&file, buffer)
                .map(Some)
                .map_err(|error| Error::io(READING, error)),
            None => Ok(None),
        }
    }

    /// Opens the bytes of a digest; `None` if there are none.
    pub(super) fn open_blob(&self, sha256: Sha256) -> Result<Option<File>> {
        match File::open(self.blob_path(sha256)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(READING, error)),
        }
    }

    /// Opens the snapshot's copy of the database; `None` if it is missing.
    pub(super) fn open_copy(&self, id: SnapshotId) -> Result<Option<File>> {
        match File::open(self.database(id)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(READING, error)),
        }
    }

    pub(super) fn blobs_path(&self) -> PathBuf {
        self.path().join(BLOBS)
    }

    pub(super) fn blob_path(&self, sha256: Sha256) -> PathBuf {
        let name = sha256.to_hex();
        self.blobs_path().join(&name[..2]).join(name)
    }

    fn snapshot_path(&self, id: SnapshotId) -> PathBuf {
        self.path().join(SNAPSHOTS).join(id.to_string())
    }

    fn manifest_path(&self, id: SnapshotId) -> PathBuf {
        self.snapshot_path(id).join(MANIFEST)
    }
}

/// Tells whether a directory has nothing in it but what a file system of its own begins with.
fn is_empty(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != "lost+found" {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => Error::new(
            ErrorKind::Unusable,
            format!("the place for snapshots is not a directory: {}", path.display()),
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::new(
            ErrorKind::Unusable,
            format!("the directory for snapshots cannot be written: {}", path.display()),
        ),
        _ => full(Error::io(BACKING_UP, error)),
    })
}

pub(super) fn write_durably(path: &Path, text: &str) -> Result<()> {
    let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = written.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    });
    written.map_err(|error| full(Error::io(BACKING_UP, error)))
}

/// Says of a full disk which one it is.
pub(super) fn full(error: Error) -> Error {
    if error.kind() != ErrorKind::StorageFull {
        return error;
    }
    let message = "the disk that is written to is full; what was copied stays, and the next run goes on from there";
    Error::new(ErrorKind::StorageFull, message).with_field("destination").with_source(error)
}
