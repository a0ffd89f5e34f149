//! The data directory of one store.
//!
//! ```text
//! filestore.lock      held by the one process that works on the directory
//! metadata.sqlite3    the records
//! blobs/<key>         blobs under their final names
//! staging/<blob id>   blobs that are being received, or not renamed yet
//! variants/           a cache; may be deleted at any time
//! scratch/            copies of the database on their way to a provider, or from one
//! damaged/            blobs that did not survive a power cut, by id; only with `durability = "process"`
//! store-id            the id of the store, see `identity`
//! server-id           the name of the server, where several share a database
//! reserve             space kept for deletes on a full disk
//! admin.sock          the administration of a running server
//! ```
//!
//! # Locking
//! [`DataDir`] holds an exclusive `flock` on `filestore.lock` until its last clone is dropped. The kernel
//! releases the lock whenever the process ends, so there are no stale locks. A drop releases the lock even if a
//! child process that is being started has inherited the file. The directory must be on a local
//! file system, because SQLite's write-ahead log needs shared memory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, FlockOperation, Mode, OFlags, access, flock, open};
use rustix::io::Errno;

use super::access::check_data_directory;
use super::file_lock::FileLock;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks::step::{Step, reached};

pub(super) const LOCK_FILE: &str = "filestore.lock";

/// The file that marks a directory whose restore is not complete.
pub(super) const RESTORING_NOTE: &str = "filestore-restoring";

/// The number of lock attempts, and the pause between them. [`DataDir::is_held`] takes the lock for a moment.
/// An opener must not mistake this moment for a running server.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A locked data directory. Clones share the lock. Dropping the last clone releases the lock.
#[derive(Debug, Clone)]
pub struct DataDir {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    path: PathBuf,
    _lock: FileLock,
    is_temporary: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_temporary
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a temporary directory stays");
        }
    }
}

impl DataDir {
    /// Opens and locks the directory. Creates a missing directory and its parents durably, with mode 0700.
    ///
    /// Returns [`ErrorKind::Locked`] if another process, or another opener in this process, holds the
    /// directory. Returns [`ErrorKind::Unusable`] if the path is not a directory, is not writable, is
    /// writable for other accounts, or belongs to another account. Blocks for a moment.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, false)
    }

    /// Opens a directory that is removed with its last clone. Errors as for [`open`](Self::open).
    pub(crate) fn open_temporary(path: &Path) -> Result<Self> {
        Self::open_as(path, true)
    }

    fn open_as(path: &Path, is_temporary: bool) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| unusable(path, error))?;
        create_with_parents(&path).map_err(|error| unusable(&path, error))?;
        let lock = lock(&path)?;
        if path.join(RESTORING_NOTE).exists() {
            let text = format!(
                "a snapshot is being restored into {}: restore it to the end, or remove the directory",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unusable, text));
        }
        let dir = Self { held: Arc::new(Held { path, _lock: lock, is_temporary }) };

        // A process that was killed left it.
        match fs::remove_dir_all(dir.scratch()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unusable(dir.path(), error));
            }
            _ => {}
        }

        for part in [dir.blobs(), dir.staging(), dir.variants()] {
            create_with_parents(&part).map_err(|error| unusable(dir.path(), error))?;
        }
        reached(Step::DirectoryOpened);
        Ok(dir)
    }

    /// Returns true if `path` was opened as a data directory before. Creates no files.
    pub fn exists(path: &Path) -> bool {
        path.join(LOCK_FILE).is_file()
    }

    /// Returns true if a process holds the directory at `path`. A missing directory is not held. Creates no
    /// files.
    pub fn is_held(path: &Path) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let Ok(file) = open(path.join(LOCK_FILE), flags, Mode::empty()) else {
            return false;
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                drop(FileLock::of(file.into()));
                false
            }
            Err(error) => error == Errno::WOULDBLOCK,
        }
    }

    /// Checks that `path` can become a data directory, or is one that this account can use. Locks and
    /// creates nothing. [`ErrorKind::Unusable`] if it is no directory, if this account cannot write to it or
    /// cannot create it, if others may write to it, or if it belongs to another account.
    pub fn check(path: &Path) -> Result<()> {
        let path = std::path::absolute(path).map_err(|error| unusable(path, error))?;
        if fs::metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(unusable(&path, io::ErrorKind::NotADirectory.into()));
        }
        check_data_directory(&path)?;
        check_can_create(&path).map_err(|error| unusable(&path, error))
    }

    /// Returns the directory's absolute path.
    pub fn path(&self) -> &Path {
        &self.held.path
    }

    /// Returns the SQLite database path.
    pub fn database(&self) -> PathBuf {
        Self::database_in(self.path())
    }

    /// Returns the path that the SQLite database of a directory has, whether or not it exists.
    pub(crate) fn database_in(path: &Path) -> PathBuf {
        path.join("metadata.sqlite3")
    }

    /// Returns the path to which the SQLite database moves after its records were copied to another database.
    pub fn former_database(&self) -> PathBuf {
        self.path().join("metadata.sqlite3.copied")
    }

    /// Returns the working directory for converters.
    pub fn converters(&self) -> PathBuf {
        self.path().join("converters")
    }

    /// Returns the directory for files that no later process needs. The directory is created when needed.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path().join("scratch")
    }

    /// Returns the existing variant cache directory.
    pub fn variants(&self) -> PathBuf {
        self.path().join("variants")
    }

    /// Returns the path for the admin socket of a running server.
    pub fn admin_socket(&self) -> PathBuf {
        self.path().join("admin.sock")
    }

    /// Returns the directory of the blobs under their final names. It exists.
    pub(super) fn blobs(&self) -> PathBuf {
        self.path().join("blobs")
    }

    /// Returns the directory of the blobs that were set aside. The directory is created when needed.
    pub(super) fn damaged(&self) -> PathBuf {
        self.path().join("damaged")
    }

    /// Returns the directory of the blobs under their staged names. It exists.
    pub(super) fn staging(&self) -> PathBuf {
        self.path().join("staging")
    }
}

/// Locks a directory that no other account can change. Tries several times.
#[expect(clippy::disallowed_methods, reason = "flock has no way to wait with a limit")]
pub(super) fn lock(path: &Path) -> Result<FileLock> {
    check_data_directory(path)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = open(path.join(LOCK_FILE), flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| unusable(path, error.into()))?;

    for attempt in 1.. {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => {
                let text = format!("another process holds the data directory {}", path.display());
                return Err(Error::new(ErrorKind::Locked, text));
            }
            Err(error) => return Err(unusable(path, error.into())),
        }
    }

    Ok(FileLock::of(file.into()))
}

/// Creates `path` and its missing parents. All new names are durable when this returns.
fn create_with_parents(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_parent(path),

        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if path.is_dir() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }

        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = path.parent() else { return Err(error) };
            create_with_parents(parent)?;
            DirBuilder::new().mode(0o700).create(path)?;
            sync_parent(path)
        }

        Err(error) => Err(error),
    }
}

/// Checks that a directory exists, or that this account can create it. Creates nothing.
pub(super) fn check_directory(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        _ => check_can_create(&std::path::absolute(path)?),
    }
}

/// Checks that this account can write to the directory at an absolute path, or to the nearest directory above
/// that exists.
fn check_can_create(path: &Path) -> io::Result<()> {
    for place in path.ancestors() {
        match fs::metadata(place) {
            Ok(found) if !found.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => {
                return access(place, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let what = match error.kind() {
        io::ErrorKind::NotADirectory => "the data directory is not a directory",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "the data directory cannot be written"
        }
        io::ErrorKind::StorageFull => "the disk of the data directory is full",
        _ => "the data directory cannot be opened",
    };
    Error::new(ErrorKind::Unusable, format!("{what}: {}", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_created_with_its_parents_and_for_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/data");
        let dir = DataDir::open(&path).unwrap();
        assert_eq!(dir.path(), path);
        for made in [dir.path().to_owned(), dir.blobs(), dir.staging(), dir.variants()] {
            assert_eq!(
                fs::metadata(&made).unwrap().permissions().mode() & 0o777,
                0o700,
                "{made:?}"
            );
        }
        assert_eq!(fs::metadata(path.join(LOCK_FILE)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_second_opener_is_refused_by_name_until_the_last_clone_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let first = DataDir::open(home.path()).unwrap();
        let clone = first.clone();
        drop(first);
        let error = DataDir::open(home.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.message().contains(home.path().to_str().unwrap()), "{error}");
        drop(clone);
        DataDir::open(home.path()).unwrap();
    }

    #[test]
    fn a_process_that_is_being_started_does_not_hold_the_lock_of_one_that_let_go() {
        let home = tempfile::tempdir().unwrap();
        let lock = lock(home.path()).unwrap();
        // As a child has it between its fork and its exec.
        let inherited = lock.duplicate();
        assert!(DataDir::is_held(home.path()));
        drop(lock);
        assert!(!DataDir::is_held(home.path()));
        DataDir::open(home.path()).unwrap();
        drop(inherited);
    }

    #[test]
    fn asking_whether_it_is_held_creates_nothing_and_keeps_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("data");
        assert!(!DataDir::is_held(&path));
        assert!(!path.exists());
        let dir = DataDir::open(&path).unwrap();
        assert!(DataDir::is_held(&path));
        drop(dir);
        assert!(!DataDir::is_held(&path));
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn one_that_others_may_write_to_is_refused_and_nothing_is_made_in_it() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = DataDir::open(home.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        // In it, a directory of its own is fine.
        DataDir::open(&home.path().join("own")).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_refused_by_a_check_that_creates_nothing() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), b"x").unwrap();
        let error = DataDir::check(&home.path().join("file/a/b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
        assert!(error.message().starts_with("the data directory is not a directory"), "{error}");
        DataDir::check(&home.path().join("a/b")).unwrap();
        assert!(!home.path().join("a").exists());

        if rustix::process::geteuid().is_root() {
            eprintln!("skipped: root can write to every directory");
            return;
        }
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o500)).unwrap();
        for bad in [home.path().to_owned(), home.path().join("a/b")] {
            let (checked, opened) = (DataDir::check(&bad), DataDir::open(&bad));
            let checked = checked.unwrap_err().message().to_owned();
            assert!(checked.starts_with("the data directory cannot be written"), "{checked}");
            assert_eq!(checked, opened.unwrap_err().message());
        }
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_file_in_its_place_is_unusable() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, b"x").unwrap();
        for bad in [path.clone(), path.join("below")] {
            let error = DataDir::open(&bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unusable);
            assert!(
                error.message().starts_with("the data directory is not a directory"),
                "{error}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}
