//! Locked files.
//!
//! # Locking
//! A lock of `flock` belongs to the open file and not to the process. Another thread that starts a program
//! makes a copy of all open files, and the new process has the copy until its `exec`. On a busy machine this
//! can take longer than an opener waits. So [`FileLock`] ends the lock itself, and does not leave this to the
//! last copy.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

/// A file that this process has locked. A drop releases the lock at once.
#[derive(Debug)]
pub(super) struct FileLock(File);

impl FileLock {
    /// Takes a file that is locked already.
    pub(super) fn of(locked: File) -> Self {
        Self(locked)
    }

    /// Returns a copy of the open file, as a child process inherits it.
    #[cfg(test)]
    pub(super) fn duplicate(&self) -> File {
        self.0.try_clone().expect("there are file descriptors left")
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If this fails, the lock ends with the last copy of the file.
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}
