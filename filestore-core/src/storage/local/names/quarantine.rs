//! The quarantine: `quarantine/<run>/`, to which a check moves suspect files.
//!
//! ```text
//! quarantine/<run>/blobs/<key>       a blob that nothing refers to, or whose bytes are not its record's
//! quarantine/<run>/staging/<name>    a staged upload that nobody works on
//! quarantine/<run>/rows.jsonl        damaged rows, as they were
//! ```
//!
//! # Crash safety
//! A blob is renamed, and both directories are synced, so it always has one of the two names. The store never
//! deletes quarantined files. An administrator deletes them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::domain::time::clock::Timestamp;
use crate::storage::local::{LocalStore, Shared};

const DIRECTORY: &str = "quarantine";
const COUNTING: &str = "counting blobs";
const MOVING: &str = "moving a blob into the quarantine";

impl LocalStore {
    /// Moves a blob, under either of its names, to the quarantine of `run`. Returns its new path within the
    /// data directory. `None` if the blob is absent.
    pub async fn quarantine(&self, run: &str, key: &BlobKey) -> Result<Option<String>> {
        let (run, key) = (run.to_owned(), key.clone());
        self.on_pool(MOVING, move |shared| {
            let to = shared.quarantine_of(&run).join("blobs").join(key.as_str());
            let named = shared.dir.blobs().join(key.as_str());
            let staged = shared.dir.staging().join(key.blob_id().to_string());

            let mut is_moved = false;
            for from in [named, staged] {
                is_moved =
                    is_moved || move_to(&from, &to).map_err(|error| Error::io(MOVING, error))?;
            }
            shared.in_memory.forget(key.blob_id());
            shared.open_files.forget(key.blob_id());
            shared.directories.prune(key.directory());
            Ok(is_moved.then(|| shared.within(&to)))
        })
        .await
    }

    /// Moves a staged upload to the quarantine of `run`. Returns its new path within the data directory.
    /// `None` if the upload is absent, or was written to since `touched_before`.
    pub async fn quarantine_staged(
        &self,
        run: &str,
        id: BlobId,
        touched_before: Timestamp,
    ) -> Result<Option<String>> {
        let run = run.to_owned();
        self.on_pool(MOVING, move |shared| {
            let name = id.to_string();
            let from = shared.dir.staging().join(&name);
            let touched = fs::symlink_metadata(&from).and_then(|found| found.modified());
            if touched.is_ok_and(|at| Timestamp::from(at) >= touched_before) {
                return Ok(None);
            }

            let to = shared.quarantine_of(&run).join("staging").join(&name);
            let moved = move_to(&from, &to);
            let is_moved = moved.map_err(|error| Error::io(MOVING, error))?;
            Ok(is_moved.then(|| shared.within(&to)))
        })
        .await
    }

    /// Writes the text of a row to the quarantine of `run`. Returns the path of the file within the data
    /// directory.
    pub async fn quarantine_row(&self, run: &str, row: String) -> Result<String> {
        const KEEPING: &str = "keeping a row in the quarantine";

        let run = run.to_owned();
        self.on_pool(KEEPING, move |shared| {
            let to = shared.quarantine_of(&run).join("rows.jsonl");
            append(&to, &row).map_err(|error| Error::io(KEEPING, error))?;
            Ok(shared.within(&to))
        })
        .await
    }

    /// Moves a blob from the wrong key to the key in its record, if there is no file yet. Returns true if the
    /// blob was moved.
    pub async fn put_back(&self, from: &BlobKey, to: &BlobKey) -> Result<bool> {
        let (from, to) = (from.clone(), to.clone());
        self.on_pool("moving a blob back", move |shared| {
            let (source, target) =
                (shared.dir.blobs().join(from.as_str()), shared.dir.blobs().join(to.as_str()));
            let moved = move_to(&source, &target);
            let is_moved = moved.map_err(|error| Error::io("moving a blob back", error))?;
            shared.directories.prune(from.directory());
            Ok(is_moved)
        })
        .await
    }
}

impl LocalStore {
    /// Counts the blobs of an organization under their final names.
    pub async fn left_of(&self, organization: &str) -> Result<u64> {
        let organization = organization.to_owned();
        self.on_pool(COUNTING, move |shared| {
            let below = shared.dir.blobs().join(organization);
            count_below(&below).map_err(|error| Error::io(COUNTING, error))
        })
        .await
    }

    /// Counts the blobs of an organization in the quarantine.
    pub async fn left_in_quarantine(&self, organization: &str) -> Result<u64> {
        let organization = organization.to_owned();
        self.on_pool(COUNTING, move |shared| {
            let counted = entries(&shared.dir.path().join(DIRECTORY)).and_then(|runs| {
                runs.iter().map(|run| count_below(&run.join("blobs").join(&organization))).sum()
            });
            counted.map_err(|error: io::Error| Error::io(COUNTING, error))
        })
        .await
    }
}

impl LocalStore {
    /// Counts the blobs with these keys in the quarantine.
    pub async fn quarantined(&self, keys: Vec<BlobKey>) -> Result<u64> {
        self.on_pool(COUNTING, move |shared| {
            let counted = entries(&shared.dir.path().join(DIRECTORY)).and_then(|runs| {
                let mut count = 0;
                for key in &keys {
                    for run in &runs {
                        count += u64::from(run.join("blobs").join(key.as_str()).try_exists()?);
                    }
                }
                Ok(count)
            });
            counted.map_err(|error: io::Error| Error::io(COUNTING, error))
        })
        .await
    }
}

/// Counts the files below a directory. 0 if the directory does not exist.
fn count_below(directory: &Path) -> io::Result<u64> {
    let mut count = 0;
    for path in entries(directory)? {
        count += if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            count_below(&path)?
        } else {
            1
        };
    }
    Ok(count)
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

impl Shared {
    fn quarantine_of(&self, run: &str) -> PathBuf {
        self.dir.path().join(DIRECTORY).join(run)
    }

    /// Returns a path relative to the data directory.
    fn within(&self, path: &Path) -> String {
        path.strip_prefix(self.dir.path()).unwrap_or(path).display().to_string()
    }
}

/// Renames durably without replacing. Returns false if the source does not exist.
fn move_to(from: &Path, to: &Path) -> io::Result<bool> {
    create_durably(parent(to))?;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::NOENT) if !from.try_exists()? => return Ok(false),
        // A file system without it: the new name is looked for first.
        Err(Errno::INVAL | Errno::NOSYS) if !to.try_exists()? => fs::rename(from, to)?,
        Err(error) => return Err(error.into()),
    }

    File::open(parent(to))?.sync_all()?;
    File::open(parent(from))?.sync_all()?;
    Ok(true)
}

fn parent(path: &Path) -> &Path {
    path.parent().expect("all paths here are below the data directory")
}

/// Creates a directory and its missing parents. All new names are durable when this returns.
fn create_durably(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    create_durably(parent(directory))?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(parent(directory))?.sync_all(),
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    create_durably(parent(path))?;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    File::open(parent(path))?.sync_all()
}
