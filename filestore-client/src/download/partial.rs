//! A file that gets its name when it is complete.
//!
//! # Crash safety
//! The bytes are flushed before the rename, and the directory after it. After a power cut, the name
//! belongs to the old file or to the complete new file. A killed process leaves a
//! `.filestore-….part` file behind.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::error::{Error, Result};

/// A file with a temporary name in the directory of the target.
pub(crate) struct PartialFile {
    file: File,
    temporary: Temporary,
    target: PathBuf,
}

impl PartialFile {
    /// Creates a temporary file in the directory of `target`. The name does not contain the name of
    /// the target, which might already have the maximum length.
    pub(crate) async fn create(target: &Path) -> Result<Self> {
        if target.file_name().is_none() {
            let error =
                io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file");
            return Err(Error::io(&writing(target), error));
        }

        let name = format!(".filestore-{:016x}.part", fastrand::u64(..));
        let path = target.with_file_name(name);
        let opened = OpenOptions::new().write(true).create_new(true).open(&path).await;
        let file = opened.map_err(|error| Error::io(&writing(target), error))?;

        Ok(Self {
            file,
            temporary: Temporary { path, published: false },
            target: target.to_owned(),
        })
    }

    pub(crate) fn writer(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its final name.
    pub(crate) async fn publish(mut self) -> Result<()> {
        self.rename().await.map_err(|error| Error::io(&writing(&self.target), error))
    }

    async fn rename(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        fs::rename(&self.temporary.path, &self.target).await?;
        self.temporary.published = true;
        self.sync_directory().await
    }

    #[cfg(unix)]
    async fn sync_directory(&self) -> io::Result<()> {
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new("."))).await?.sync_all().await
    }

    #[cfg(not(unix))]
    async fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes the temporary file if it was not published, for example after a dropped download.
struct Temporary {
    path: PathBuf,
    published: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a partial download");
        }
    }
}

fn writing(target: &Path) -> String {
    format!("writing {}", target.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_abandoned_file_leaves_the_old_one_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.txt");
        std::fs::write(&target, "old").unwrap();
        let mut partial = PartialFile::create(&target).await.unwrap();
        partial.writer().write_all(b"half").await.unwrap();
        drop(partial);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_published_file_replaces_the_old_one_even_under_the_longest_name() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x".repeat(255));
        std::fs::write(&target, "old").unwrap();
        let mut partial = PartialFile::create(&target).await.unwrap();
        partial.writer().write_all(b"new").await.unwrap();
        partial.publish().await.unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
