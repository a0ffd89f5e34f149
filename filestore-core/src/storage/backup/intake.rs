//! Writes bytes into a directory with snapshots.
//!
//! # Crash safety
//! A new content can get its name before all its bytes are written. Leftovers of interrupted runs are
//! therefore read before they count. A content that replaces another content gets the name only when it is
//! complete.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::Digest;

use super::copy::{self, CopyError, Copying};
use super::directory::BackupDirectory;
use super::files::{BACKING_UP, SYNCS_EACH, full, new_file, remove_if_there};
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;
use crate::tasks::step::{Step, reached};

/// The extension of a file that will replace a content with the same digest.
pub(super) const INCOMING: &str = "new";

/// The result of taking a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The directory has its bytes.
    Whole,
    /// The bytes do not match. The directory has none of them.
    Other,
    /// The file could not be read to its end. The directory has none of it.
    Unreadable,
}

/// A content that arrives in pieces.
#[derive(Debug)]
pub(super) struct BlobIntake {
    file: File,
    /// The path to write to. The path is the content's path, unless a file exists there.
    path: PathBuf,
    /// The path of the content.
    kept_at: PathBuf,
    expected: Copying,
    hasher: sha2::Sha256,
    size_bytes: u64,
}

impl BackupDirectory {
    /// Replaces a content that shares its file by a separate copy. If the bytes do not match, returns false
    /// and leaves the content unchanged.
    pub(super) fn unshare(&self, expected: Copying, buffer: &mut Vec<u8>) -> Result<bool> {
        match self.open_blob(expected.sha256)? {
            Some(shared) => Ok(self.take_file(&shared, expected, buffer)? == Taken::Whole),
            None => Ok(false),
        }
    }

    /// Copies a file to the name of its expected digest and size.
    pub(super) fn take_file(
        &self,
        from: &File,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<Taken> {
        let intake = self.intake(expected)?;
        match copy::copy(from, &intake.file, buffer) {
            Ok(found) if found == expected => intake.keep().map(|()| Taken::Whole),
            Ok(_) => intake.discard().map(|()| Taken::Other),
            Err(CopyError::Read(error)) => {
                tracing::error!(%error, sha256 = %expected.sha256, "a file cannot be read into a snapshot");
                intake.discard().map(|()| Taken::Unreadable)
            }
            Err(CopyError::Write(error)) => {
                // A full disk is free of the part. What stays is found not to count by the next run.
                intake.discard().ok();
                Err(full(Error::io(BACKING_UP, error)))
            }
        }
    }

    /// Gives a file a second name with its expected digest. Reads every byte first. `None` if the file is
    /// absent, and `InvalidField` if it is on another file system.
    pub(super) fn link_file(
        &self,
        from: &Path,
        expected: Copying,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Taken>> {
        let found = match File::open(from).and_then(|file| copy::digest(&file, buffer)) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                tracing::error!(%error, sha256 = %expected.sha256, "a file cannot be read for a snapshot");
                return Ok(Some(Taken::Unreadable));
            }
        };
        if found != expected {
            return Ok(Some(Taken::Other));
        }

        match replace_by_link(from, &self.blob_path(expected.sha256)) {
            Ok(()) => {
                reached(Step::ContentTaken);
                Ok(Some(Taken::Whole))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Err(Error::invalid(
                "hard_links",
                "hard links need the snapshots on the file system of the data directory",
            )),
            Err(error) => Err(full(Error::io(BACKING_UP, error))),
        }
    }

    /// Begins to take bytes in pieces. An existing content with the same digest stays until the new bytes are
    /// complete, because an older snapshot might need it.
    pub(super) fn intake(&self, expected: Copying) -> Result<BlobIntake> {
        let kept_at = self.blob_path(expected.sha256);
        let mut path = kept_at.clone();
        let mut made = in_its_directory(&path, || new_file(&path));
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            path.set_extension(INCOMING);
            made = remove_if_there(&path).and_then(|()| new_file(&path));
        }

        let file = made.map_err(|error| full(Error::io(BACKING_UP, error)))?;
        let hasher = sha2::Sha256::new();
        Ok(BlobIntake { file, path, kept_at, expected, hasher, size_bytes: 0 })
    }
}

impl BlobIntake {
    /// Writes a piece.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<()> {
        self.hasher.update(piece);
        self.size_bytes += piece.len() as u64;
        self.file.write_all(piece).map_err(|error| full(Error::io(BACKING_UP, error)))
    }

    /// Ends the intake. If the bytes do not match, returns false and removes them.
    pub(super) fn finish(self) -> Result<bool> {
        let sha256 = Sha256(self.hasher.clone().finalize().into());
        let is_whole = Copying { size_bytes: self.size_bytes, sha256 } == self.expected;
        if is_whole { self.keep() } else { self.discard() }?;
        Ok(is_whole)
    }

    fn keep(self) -> Result<()> {
        let synced = if SYNCS_EACH { self.file.sync_all() } else { Ok(()) };
        let kept = synced.and_then(|()| {
            if self.path == self.kept_at { Ok(()) } else { fs::rename(&self.path, &self.kept_at) }
        });
        kept.map_err(|error| full(Error::io(BACKING_UP, error)))?;
        reached(Step::ContentTaken);
        Ok(())
    }

    fn discard(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(|error| Error::io(BACKING_UP, error))
    }
}

/// Runs `make`. If the directory of `path` is missing, creates it and runs `make` again.
fn in_its_directory<T>(path: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = path.parent() else { return Err(error) };
            match DirBuilder::new().mode(0o700).create(parent) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => make(),
            }
        }
        made => made,
    }
}

/// Gives the file `from` the name `path`. Replaces an existing file.
fn replace_by_link(from: &Path, path: &Path) -> io::Result<()> {
    let linked = in_its_directory(path, || fs::hard_link(from, path));
    if !linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        return linked;
    }

    let incoming = path.with_extension(INCOMING);
    remove_if_there(&incoming)?;
    fs::hard_link(from, &incoming)?;
    fs::rename(&incoming, path)?;
    // rename(2) leaves both names if they are of one file already.
    remove_if_there(&incoming)
}
