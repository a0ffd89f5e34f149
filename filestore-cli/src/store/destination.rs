//! The destination of a download: a complete file, or no file.
//!
//! A download writes to a temporary file in the same directory and renames it at the end. A failed
//! or interrupted download leaves the old file in place. On stdout, the output of a failed download
//! ends early, and the exit status reports the failure.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::mask::hand_over;
use crate::failure::{Failure, Result};

/// The output of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf, Overwrite),
}

/// The treatment of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overwrite {
    Refuse,
    Replace,
}

impl Destination {
    /// Fails early if the end of the download would fail because of an existing file.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::File(path, Overwrite::Refuse) if path.symlink_metadata().is_ok() => {
                Err(exists(path))
            }
            Self::Stdout | Self::File(..) => Ok(()),
        }
    }
}

/// A running download.
pub(crate) struct Delivery {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    file: Option<Arriving>,
}

/// A file with its temporary name.
struct Arriving {
    file: File,
    temp: TempPath,
    path: PathBuf,
    overwrite: Overwrite,
}

impl Delivery {
    /// Prepares to write to `to`.
    pub(crate) fn begin(to: &Destination) -> Result<Self> {
        match to {
            Destination::Stdout => Ok(Self { writer: Box::new(tokio::io::stdout()), file: None }),
            Destination::File(path, overwrite) => {
                let (file, temp) =
                    create_beside(path).map_err(|e| creating(path, &e))?.into_parts();
                let writer =
                    tokio::fs::File::from_std(file.try_clone().map_err(|e| writing(path, &e))?);
                let arriving = Arriving { file, temp, path: path.clone(), overwrite: *overwrite };
                Ok(Self { writer: Box::new(writer), file: Some(arriving) })
            }
        }
    }

    /// Returns the writer.
    pub(crate) fn writer(&mut self) -> &mut (dyn AsyncWrite + Send + Unpin) {
        &mut *self.writer
    }

    /// Writes the next bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.writer.write_all(bytes).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Completes the download. A file gets its final name.
    pub(crate) async fn finish(mut self) -> Result<()> {
        if let Err(error) = self.writer.flush().await {
            return Err(self.failed(&error));
        }
        let Some(arriving) = self.file else { return Ok(()) };
        tokio::task::spawn_blocking(move || arriving.place())
            .await
            .expect("placing a file does not panic")
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        match &self.file {
            Some(arriving) => writing(&arriving.path, error),
            None => Failure::io("cannot write to stdout", error),
        }
    }
}

impl Arriving {
    /// Flushes before the rename, so that a power cut cannot leave a file of zeros under the final
    /// name.
    fn place(self) -> Result<()> {
        let Self { file, temp, path, overwrite } = self;
        file.sync_all().map_err(|e| writing(&path, &e))?;
        let placed = match overwrite {
            Overwrite::Replace => temp.persist(&path),
            Overwrite::Refuse => temp.persist_noclobber(&path),
        };
        placed.map_err(|e| match e.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&path),
            _ => writing(&path, &e.error),
        })
    }
}

fn create_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;

    let made = tempfile::Builder::new()
        .prefix(".filestore-")
        .suffix(".part")
        // The umask reduces the mode, as for any new file.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory_of(path))?;
    hand_over(made.as_file())?;
    Ok(made)
}

/// Returns the directory of a file.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Describes a failed creation. The error of tempfile names the temporary file, so only its kind is
/// shown.
fn creating(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        let directory = directory_of(path).display();
        return Failure::failed(format!("the directory {directory} does not exist"))
            .doing(format!("cannot write {}", path.display()))
            .hint("create the directory, or choose another one with -o");
    }
    writing(path, &error.kind().into())
        .hint("check that the directory exists and that you can write to it")
}

fn writing(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

fn exists(path: &Path) -> Failure {
    Failure::failed(format!("{} already exists", path.display()))
        .hint("use --force to overwrite it, or -o for another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, overwrite: Overwrite) -> Destination {
        Destination::File(path.to_owned(), overwrite)
    }

    #[tokio::test]
    async fn a_download_that_is_given_up_leaves_the_old_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let mut delivery = Delivery::begin(&file(&path, Overwrite::Replace)).unwrap();
        delivery.write(b"new").await.unwrap();
        drop(delivery);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_file_that_appeared_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut delivery = Delivery::begin(&file(&path, Overwrite::Refuse)).unwrap();
        delivery.write(b"new").await.unwrap();
        std::fs::write(&path, "other").unwrap();
        assert!(delivery.finish().await.unwrap_err().to_string().contains("already exists"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "other");
    }

    #[test]
    fn a_directory_that_is_not_there_is_told_without_the_temporary_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent/a");
        let said = Delivery::begin(&file(&path, Overwrite::Refuse)).err().unwrap().to_string();
        assert!(said.starts_with(&format!("cannot write {}: ", path.display())), "{said}");
        let directory = dir.path().join("absent");
        let missing = format!("the directory {} does not exist", directory.display());
        assert!(said.ends_with(&missing), "{said}");
    }

    #[tokio::test]
    async fn a_finished_download_is_in_place_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let mut delivery = Delivery::begin(&file(&path, Overwrite::Replace)).unwrap();
        delivery.write(b"new ").await.unwrap();
        delivery.write(b"bytes").await.unwrap();
        delivery.finish().await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new bytes");
    }
}
