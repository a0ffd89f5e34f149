//! Removes a directory that a hostile command wrote.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::scratch::random_name;

/// Removes a directory with all files in it. If the directory is missing, the call succeeds. Blocks.
///
/// Directories of any depth and without permissions are removed. Links are removed, but not followed. For
/// example, a program removes the scratch directories that a killed process left:
///
/// ```
/// # let parent = tempfile::tempdir().unwrap();
/// # let parent = parent.path().join("runs");
/// filestore_sandbox::remove_tree(&parent)?;
/// let scratch = filestore_sandbox::Scratch::new_in(&parent)?;
/// # Ok::<_, std::io::Error>(())
/// ```
pub fn remove_tree(directory: impl AsRef<Path>) -> io::Result<()> {
    remove(directory.as_ref())
}

/// Removes a tree without recursion, because a deep tree would overflow the stack or use all file
/// descriptors. Instead, deep directories are moved up to `directory`, and the loop finds them there.
fn remove(directory: &Path) -> io::Result<()> {
    let mut moved = MovedUp { to: directory, prefix: random_name()?, number: 0 };
    loop {
        let before = moved.number;
        let listed = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed?,
        };
        for entry in listed {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                moved.empty(&entry.path())?;
                fs::remove_dir(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }

        if moved.number == before {
            return fs::remove_dir(directory);
        }
    }
}

/// The directory that inner directories move to, and the number of directories that moved.
struct MovedUp<'a> {
    to: &'a Path,
    prefix: String,
    number: u64,
}

impl MovedUp<'_> {
    /// Removes a directory's files, and moves its directories up.
    fn empty(&mut self, directory: &Path) -> io::Result<()> {
        allow_all(directory)?;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }

            // To be moved, a directory must be writable itself.
            allow_all(&entry.path())?;
            self.number += 1;
            fs::rename(entry.path(), self.next())?;
        }
        Ok(())
    }

    fn next(&self) -> PathBuf {
        self.to.join(format!("{}-{}", self.prefix, self.number))
    }
}

/// Gives the owner all permissions for a directory.
fn allow_all(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))
}
