//! The watch over a run, beyond the limits that the kernel keeps for each process and file: all its
//! processes together, and all that they wrote. And the end of its directory.
//!
//! The converter is hostile: its directories may be deeper than any path, more than can be listed, or
//! closed to their reader. All looks are bounded, and what cannot be looked at counts as too much.

use std::collections::HashSet;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::tasks;

/// The processes of a run at most, besides the launcher.
pub(super) const PROCESSES: usize = 128;
/// The files and directories of a run at most.
const FILES: usize = 10_000;

/// The processes that `leader` and those it started have started and that are still there, or some of them
/// where they are more than [`PROCESSES`]. Empty where the kernel lists no children
/// (`CONFIG_PROC_CHILDREN`).
pub(super) struct Processes(Vec<i32>);

impl Processes {
    /// Lists the processes below `leader`. Blocks.
    pub(super) fn below(leader: Pid) -> Self {
        let mut all = vec![leader.as_raw_pid()];
        let mut seen = 0;
        while seen < all.len() && all.len() <= PROCESSES + 1 {
            let parent = all[seen];
            all.extend(children(parent));
            seen += 1;
        }

        all.swap_remove(0);
        Self(all)
    }

    /// Tells if there are more than a run may have.
    pub(super) fn are_too_many(&self) -> bool {
        self.0.len() > PROCESSES
    }

    /// Adds up their address spaces. Blocks.
    pub(super) fn address_bytes(&self) -> u64 {
        let kib = self.0.iter().filter_map(|process| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
            size.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        kib.fold(0, u64::saturating_add).saturating_mul(1024)
    }

    /// Adds up the files that have no name any more and are open. Blocks.
    fn nameless_bytes(&self) -> u64 {
        let mut counted = HashSet::new();
        let mut bytes = 0_u64;
        for process in &self.0 {
            let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { continue };
            for file in open.flatten().filter_map(|entry| fs::metadata(entry.path()).ok()) {
                let is_nameless = file.is_file() && file.nlink() == 0;
                if is_nameless && counted.insert((file.dev(), file.ino())) {
                    bytes = bytes.saturating_add(on_disk(&file));
                }
            }
        }
        bytes
    }
}

fn children(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());

    let mut children = Vec::new();
    for list in lists {
        children.extend(list.split_whitespace().filter_map(|number| number.parse::<i32>().ok()));
    }
    children
}

/// Adds up what a run wrote below `directory` and to files that have no name, as the file system counts
/// it. `None` if that cannot be told. Blocks.
pub(super) fn written(directory: &Path, processes: &Processes) -> Option<u64> {
    let mut bytes = processes.nameless_bytes();
    let mut entries = 0;
    let mut pending = vec![directory.to_owned()];

    while let Some(directory) = pending.pop() {
        let listed = match fs::read_dir(&directory) {
            Ok(listed) => listed,
            // Removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in listed {
            entries += 1;
            let entry = entry.ok().filter(|_| entries <= FILES)?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => pending.push(entry.path()),
                Ok(metadata) => bytes = bytes.saturating_add(on_disk(&metadata)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
    }
    Some(bytes)
}

fn on_disk(file: &Metadata) -> u64 {
    file.blocks() * 512
}

/// Removes a directory with all that is in it, if it is there. Blocks.
///
/// Any depth, and directories without rights, are no obstacle: a recursion would end the process that
/// removes them, or take all its files. What is deep is moved up and found there.
pub(super) fn remove_tree(directory: &Path) -> io::Result<()> {
    let mut moved = MovedUp { to: directory, prefix: tasks::random_name(), number: 0 };
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

/// The place that the directories within others are moved to, and the number of those that were.
struct MovedUp<'a> {
    to: &'a Path,
    prefix: String,
    number: u64,
}

impl MovedUp<'_> {
    /// Removes the files of a directory, and moves its directories up.
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

/// Lets the owner do everything with a directory.
fn allow_all(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    fn nobody() -> Processes {
        Processes(Vec::new())
    }

    #[test]
    fn a_tree_is_removed_however_deep_and_whatever_its_rights() {
        let all = tempfile::tempdir().unwrap();
        let outside = all.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();

        // Built from the innermost directory outward: no path to it is short enough.
        let tree = all.path().join("tree");
        let (mut inner, mut outer) = (all.path().join("a"), all.path().join("b"));
        fs::create_dir(&inner).unwrap();
        File::create_new(inner.join("file")).unwrap();
        symlink(&outside, inner.join("link")).unwrap();
        for _ in 0..5000 {
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join("deeper")).unwrap();
            std::mem::swap(&mut inner, &mut outer);
        }
        fs::rename(&inner, &tree).unwrap();
        let closed = tree.join("closed");
        fs::create_dir_all(closed.join("within")).unwrap();
        fs::set_permissions(closed.join("within"), Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();

        assert_eq!(written(&tree, &nobody()), None, "too deep to be looked at");
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
        remove_tree(&tree).expect("nothing is there");
    }

    #[test]
    fn what_was_written_is_counted_at_any_depth_and_no_link_is_followed() {
        let all = tempfile::tempdir().unwrap();
        let work = all.path().join("work");
        let deep = work.join("1/2/3/4/5/6/7/8/9/10/11/12");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 100_000]).unwrap();
        fs::write(all.path().join("other"), vec![1; 1_000_000]).unwrap();
        symlink(all.path(), work.join("link")).unwrap();

        let bytes = written(&work, &nobody()).unwrap();
        assert!((100_000..300_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn more_files_than_a_run_may_have_are_too_many() {
        let all = tempfile::tempdir().unwrap();
        for number in 0..FILES {
            File::create_new(all.path().join(number.to_string())).unwrap();
        }
        assert_eq!(written(all.path(), &nobody()), Some(0));
        File::create_new(all.path().join("one more")).unwrap();
        assert_eq!(written(all.path(), &nobody()), None);
    }
}
