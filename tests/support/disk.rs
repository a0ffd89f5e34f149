//! Data directories: where they are made, and how they look from outside.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use tempfile::TempDir;

/// The bytes that directories in memory may take: several of them are there at one time.
const MEMORY: u64 = 2 << 30;

/// Makes a temporary directory in memory, for the fsyncs' sake, where there is enough of it and it may be
/// written to; elsewhere on the disk.
///
/// # Panics
/// If neither can be made.
pub fn directory_in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = statvfs(memory).is_ok_and(|found| found.f_bavail * found.f_frsize >= MEMORY);
    let made = if has_room { TempDir::new_in(memory) } else { TempDir::new() };
    made.or_else(|_| TempDir::new()).expect("a temporary directory")
}

/// Every file below `dir`, sorted. Files that vanish while it looks are left out.
pub fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
        }
    }

    found.sort();
    found
}
