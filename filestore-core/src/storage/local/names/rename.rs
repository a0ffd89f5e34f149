//! Renames files without replacing existing files.

use std::fs::File;

use rustix::fs::{AtFlags, linkat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Renames `from_dir/from` to `to_dir/to`, which must not exist ([`Errno::EXIST`]).
///
/// The rename is atomic if the system has `renameat2(RENAME_NOREPLACE)` or `renameatx_np(RENAME_EXCL)`, and
/// the file system supports it. Otherwise a link and an unlink replace the rename. A crash between the two
/// leaves one file under both names. On a file system without links, a look-up and a plain rename are used.
/// This is safe only because keys are never reused.
pub(super) fn no_replace(
    from_dir: &File,
    from: &str,
    to_dir: &File,
    to: &str,
) -> Result<(), Errno> {
    match exclusive(from_dir, from, to_dir, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        settled => return settled,
    }

    match linkat(from_dir, from, to_dir, to, AtFlags::empty()) {
        Ok(()) => unlinkat(from_dir, from, AtFlags::empty()),
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => {
            match statat(to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(from_dir, from, to_dir, to),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exclusive(from_dir: &File, from: &str, to_dir: &File, to: &str) -> Result<(), Errno> {
    rustix::fs::renameat_with(from_dir, from, to_dir, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exclusive(_: &File, _: &str, _: &File, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_existing_name_is_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let dir = File::open(home.path()).unwrap();
        fs::write(home.path().join("new"), b"new").unwrap();
        fs::write(home.path().join("old"), b"old").unwrap();
        assert_eq!(no_replace(&dir, "new", &dir, "old"), Err(Errno::EXIST));
        assert_eq!(fs::read(home.path().join("old")).unwrap(), b"old");
        assert_eq!(no_replace(&dir, "new", &dir, "other"), Ok(()));
        assert_eq!(fs::read(home.path().join("other")).unwrap(), b"new");
        assert_eq!(no_replace(&dir, "new", &dir, "third"), Err(Errno::NOENT));
    }
}
