//! Observes a run beyond the kernel's limits for each process and file: all its processes together, and all
//! bytes that they wrote.
//!
//! The command is hostile. The directories of a command can be deeper than any path, larger than a process
//! can list, or unreadable. All inspections are therefore limited. An unreadable directory counts as too
//! much.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::Pid;

/// The maximum number of processes in a run, without the launcher.
pub(crate) const PROCESSES: usize = 128;
/// The maximum number of files and directories in a run.
const FILES: usize = 10_000;

/// The running descendants of `leader`, or only some descendants if there are more than [`PROCESSES`]. Empty
/// if the kernel does not list children (`CONFIG_PROC_CHILDREN`).
pub(crate) struct Processes(Vec<i32>);

impl Processes {
    /// Lists the processes below `leader`. Blocks.
    pub(crate) fn below(leader: Pid) -> Self {
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

    /// Returns true if there are more processes than allowed.
    pub(crate) fn are_too_many(&self) -> bool {
        self.0.len() > PROCESSES
    }

    /// Returns the sum of their address spaces. Blocks.
    pub(crate) fn address_bytes(&self) -> u64 {
        let kib = self.0.iter().filter_map(|process| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
            size.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        kib.fold(0, u64::saturating_add).saturating_mul(1024)
    }

    /// Returns the size of open files without a name. Blocks.
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

/// Returns the size of all files that a run wrote, below `directory` and without a name, as the file system
/// counts it. `None` if it is unknown. Blocks.
pub(crate) fn written(directory: &Path, processes: &Processes) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::tree::remove_tree;

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
