//! The files below a directory, in order of name.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::failure::{Failure, Result};

/// A regular file below the walked directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The path relative to that directory.
    pub(super) relative: PathBuf,
    pub(super) size_bytes: u64,
    /// Nanoseconds since the epoch (negative before it).
    pub(super) modified_ns: i64,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<Found>,
    /// Symbolic links, pipes, sockets and devices. The walk neither follows nor reads them.
    pub(super) left_out: Vec<PathBuf>,
    /// Failures to read directories and files.
    pub(super) failures: Vec<Failure>,
}

/// Walks `root`, including hidden files. Does not follow symbolic links below it. Skips the file
/// `except`, which is a journal inside the tree. Fails only if `root` itself is unreadable.
pub(super) fn walk(root: &Path, except: &Path) -> Result<Tree> {
    let except = except.canonicalize().ok();
    let mut tree = Tree::default();

    // The last entry is the next one.
    let mut pending = entries(root).map_err(|e| cannot_read(root, &e))?;
    while let Some(entry) = pending.pop() {
        let path = entry.path();
        match tree.visit(&entry, root, except.as_deref()) {
            Ok(true) => match entries(&path) {
                Ok(more) => pending.extend(more),
                Err(error) => tree.failed(&path, &error),
            },
            Ok(false) => {}
            Err(error) => tree.failed(&path, &error),
        }
    }

    Ok(tree)
}

impl Tree {
    /// Records an entry. Returns true if it is a directory to walk.
    fn visit(&mut self, entry: &DirEntry, root: &Path, except: Option<&Path>) -> io::Result<bool> {
        let path = entry.path();
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            return Ok(true);
        }

        if !metadata.is_file() {
            self.left_out.push(path);
            return Ok(false);
        }

        // Compares the names first, because the full comparison is slow.
        let may_be_except = except.is_some_and(|except| except.file_name() == path.file_name());
        if !(may_be_except && path.canonicalize().is_ok_and(|path| Some(path.as_path()) == except))
        {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let modified_ns = modified_ns(&metadata)?;
            self.files.push(Found { relative, size_bytes: metadata.len(), modified_ns });
        }

        Ok(false)
    }

    fn failed(&mut self, path: &Path, error: &io::Error) {
        self.failures.push(cannot_read(path, error));
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot read {}", path.display()), error)
}

/// Lists a directory's entries, last name first.
fn entries(dir: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.file_name()));
    Ok(entries)
}

/// Returns the time of a file's last change, in nanoseconds since the epoch.
pub(super) fn modified_ns(metadata: &Metadata) -> io::Result<i64> {
    Ok(match metadata.modified()?.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    })
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in ["b/z.txt", "b/a.txt", ".hidden", "c.txt", "b.txt", "a/deep/er.txt"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        dir
    }

    fn names(tree: &Tree) -> Vec<&str> {
        tree.files.iter().map(|found| found.relative.to_str().unwrap()).collect()
    }

    #[test]
    fn files_come_in_order_of_name_hidden_ones_included() {
        let dir = tree();
        let tree = walk(dir.path(), Path::new("")).unwrap();
        assert_eq!(
            names(&tree),
            [".hidden", "a/deep/er.txt", "b/a.txt", "b/z.txt", "b.txt", "c.txt"]
        );
    }

    #[test]
    fn links_are_left_out_and_never_walked_in_circles() {
        let dir = tree();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("b/round")).unwrap();
        std::os::unix::fs::symlink("c.txt", dir.path().join("link.txt")).unwrap();
        let tree = walk(dir.path(), Path::new("")).unwrap();
        assert_eq!(tree.files.len(), 6);
        assert_eq!(tree.left_out, [dir.path().join("b/round"), dir.path().join("link.txt")]);
    }

    #[test]
    fn the_journal_is_not_uploaded_with_the_rest() {
        let dir = tree();
        let tree = walk(dir.path(), &dir.path().join("b/a.txt")).unwrap();
        assert!(!names(&tree).contains(&"b/a.txt"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let failure = walk(Path::new("no/such"), Path::new("")).unwrap_err();
        assert!(failure.to_string().contains("no/such"));
    }
}
