//! Creates, writes and removes files and directories of a backup destination on disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::domain::error::{Error, ErrorKind, Result};

/// The name of this work in errors.
pub(super) const BACKING_UP: &str = "writing a snapshot";
/// The name of this work in errors.
pub(super) const READING: &str = "reading a snapshot";

/// True if each file is flushed separately, because the file system cannot be flushed as a whole.
pub(super) const SYNCS_EACH: bool = !cfg!(target_os = "linux");

/// Creates a file that only its owner can read.
pub(super) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Removes a file. A missing file is not an error.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a directory that only its owner can enter, and its missing parents.
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

/// Opens a file of a destination to read it. A pipe or device in its place is an error, and does not wait for a
/// writer.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("this is not a regular file"));
    }
    Ok(file)
}

/// Writes a small file, and flushes the file and its name.
pub(super) fn write_durably(path: &Path, text: &str) -> Result<()> {
    let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = written.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    });
    written.map_err(|error| full(Error::io(BACKING_UP, error)))
}

/// Adds to the error for a full disk that it is the destination's disk.
pub(super) fn full(error: Error) -> Error {
    if error.kind() != ErrorKind::StorageFull {
        return error;
    }
    let message = "the destination disk is full. The copied files remain, and the next run continues with the rest";
    Error::new(ErrorKind::StorageFull, message).with_field("destination").with_source(error)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_content_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("blob");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();

        assert!(open_regular(&pipe).is_err());
        assert_eq!(
            open_regular(&dir.path().join("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        fs::write(dir.path().join("file"), "content").unwrap();
        assert_eq!(open_regular(&dir.path().join("file")).unwrap().metadata().unwrap().len(), 7);
    }
}
