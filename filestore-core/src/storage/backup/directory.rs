//! A directory with snapshots.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::copy::{self, Copying};
use super::draft::Draft;
use super::files::{BACKING_UP, READING, full, make_directory, open_regular, remove_if_there};
use super::manifest::Manifest;
use super::marker::{self, MARKER};
use super::runs::{Claim, Runs, Sharing};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{DestinationId, Sha256, SnapshotId};
use crate::domain::time::clock::Timestamp;
use crate::storage::access::warn_of_others;
use crate::storage::file_lock::FileLock;
use crate::tasks::step::{Step, reached};

const LOCK: &str = "filestore-backup.lock";
pub(super) const BLOBS: &str = "blobs";
pub(super) const SNAPSHOTS: &str = "snapshots";
pub(super) const MANIFEST: &str = "manifest.jsonl";
const UNFINISHED_MANIFEST: &str = "manifest.jsonl.new";
pub(super) const DATABASE: &str = "metadata.sqlite3";

/// A directory with snapshots, locked by this process. Clones share the lock. All methods block.
#[derive(Debug, Clone)]
pub struct BackupDirectory {
    held: Arc<Locked>,
    /// The claim of this clone's run.
    _claim: Option<Arc<Claim>>,
}

#[derive(Debug)]
struct Locked {
    path: PathBuf,
    /// Opened before the first write, because a flush reports the failures since then.
    directory: File,
    runs: Arc<Runs>,
    _lock: FileLock,
}

/// How a content of a given size is stored in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The file has no other name.
    Owned,
    /// The file has other names. The file shares its bytes with a file of the store, or with another copy.
    Shared,
}

impl BackupDirectory {
    /// Opens a directory with snapshots. Creates an absent directory, and marks an empty directory.
    ///
    /// Returns `Locked` while another process uses the directory. Returns `Unusable` if it contains other
    /// files.
    pub fn create(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(BACKING_UP, error))?;
        make_directory(&path)?;
        Self::prepare(&path)
    }

    /// Opens an existing directory like [`create`](Self::create). `Unusable` if the directory is absent,
    /// because its disk might not be mounted.
    pub fn prepare(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(BACKING_UP, error))?;
        if !path.is_dir() {
            let message = format!(
                "the backup destination is not there: {}. Mount its disk, or create the directory once",
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

    /// Opens a directory that contained snapshots before, like [`prepare`](Self::prepare). `Unusable` if its
    /// marker is missing, because its disk might not be mounted.
    pub fn reopen(path: &Path) -> Result<Self> {
        if path.is_dir() && !marker::is_in(path) {
            let message = format!(
                "the backup destination {} had snapshots of this store, and they are missing now: mount its disk. To start \
                 again with an empty destination, write the line \"{}\" into its file {MARKER}",
                path.display(),
                marker::FORMAT
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        Self::prepare(path)
    }

    /// Opens a directory that contains, or contained, snapshots. Errors are those of
    /// [`create`](Self::create).
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

        warn_of_others("the destination of backups", &path);
        let directory = File::open(&path).map_err(|error| Error::io(READING, error))?;
        let runs = Arc::default();
        let held = Arc::new(Locked { path, directory, runs, _lock: FileLock::of(lock) });
        Ok(Self { held, _claim: None })
    }

    /// Claims the directory for a run, and returns a clone for this run. Until the last clone is dropped,
    /// other runs are excluded, unless both runs only read. `Locked` while another run excludes this run.
    pub(super) fn claimed(&self, sharing: Sharing) -> Result<Self> {
        let claim = Claim::take(&self.held.runs, sharing, self.path())?;
        Ok(Self { held: Arc::clone(&self.held), _claim: Some(Arc::new(claim)) })
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.held.path
    }

    /// Returns the directory's id. If there is no id yet, creates an id durably.
    pub(super) fn identified(&self, now: Timestamp) -> Result<DestinationId> {
        if let Some(id) = marker::read_id(self.path())? {
            return Ok(id);
        }
        let id = DestinationId::generate(now);
        marker::write_id(self.path(), id)?;
        Ok(id)
    }

    /// Lists the finished snapshots, oldest first.
    pub(super) fn finished(&self) -> Result<Vec<SnapshotId>> {
        Ok(self.all()?.into_iter().filter(|id| self.manifest_path(*id).is_file()).collect())
    }

    /// Lists the incomplete snapshots: interrupted, or being removed.
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

    /// Begins a snapshot by creating its directory.
    pub(super) fn make(&self, id: SnapshotId) -> Result<Draft> {
        let path = self.snapshot_path(id);
        make_directory(&path)?;
        let (database, manifest) = (path.join(DATABASE), path.join(UNFINISHED_MANIFEST));
        reached(Step::SnapshotBegun);
        Ok(Draft { id, database, manifest, _scratch: None })
    }

    /// Returns the path of the snapshot's database copy.
    pub(super) fn database(&self, id: SnapshotId) -> PathBuf {
        self.snapshot_path(id).join(DATABASE)
    }

    /// Gives the manifest its name. From now on, the snapshot exists. The contents were flushed before, and
    /// the manifest is flushed now.
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

    /// Flushes all writes since the directory was opened. A single call flushes the whole file system, and
    /// also reports earlier failures in the background (Linux 5.8 and newer).
    #[cfg(target_os = "linux")]
    fn flush(&self) -> io::Result<()> {
        rustix::fs::syncfs(&self.held.directory).map_err(io::Error::from)
    }

    /// Flushes the names. The files were flushed one by one.
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

    /// Opens the manifest of a finished snapshot. `NotFound` if there is no such snapshot.
    pub(super) fn open_manifest(&self, id: SnapshotId) -> Result<Manifest> {
        match open_regular(&self.manifest_path(id)) {
            Ok(file) => Manifest::open(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::not_found("the snapshot"))
            }
            Err(error) => Err(Error::io(READING, error)),
        }
    }

    /// Removes a snapshot durably, its manifest first, so that the rest does not count as a snapshot after a
    /// crash. The contents stay until a sweep.
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

    /// Looks for a file with this digest and size.
    pub(super) fn look(&self, expected: Copying) -> Option<Presence> {
        let found = fs::metadata(self.blob_path(expected.sha256)).ok()?;
        if found.len() != expected.size_bytes {
            return None;
        }
        Some(if found.nlink() > 1 { Presence::Shared } else { Presence::Owned })
    }

    /// Reads the content with this digest from the disk. `None` if there is no content.
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

    /// Opens the content with this digest. `None` if there is no content.
    pub(super) fn open_blob(&self, sha256: Sha256) -> Result<Option<File>> {
        match open_regular(&self.blob_path(sha256)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(READING, error)),
        }
    }

    /// Opens the snapshot's copy of the database. `None` if it is missing.
    pub(super) fn open_copy(&self, id: SnapshotId) -> Result<Option<File>> {
        match open_regular(&self.database(id)) {
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

/// Returns true if a directory contains only the files of a new file system.
fn is_empty(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != "lost+found" {
            return Ok(false);
        }
    }
    Ok(true)
}
