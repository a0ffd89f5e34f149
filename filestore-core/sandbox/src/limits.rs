//! The limits of a run.

use std::time::Duration;

/// A run's limits. The kernel enforces some limits for each process and file. The other limits apply to
/// all processes of a run together, which the crate inspects ten times a second.
///
/// Two limits are fixed. A run has at most 128 processes and 10,000 files and directories.
///
/// ```
/// use std::time::Duration;
///
/// let mut limits = filestore_sandbox::Limits::default();
/// limits.time = Duration::from_secs(5);
/// limits.memory_bytes = 500_000_000;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum duration (default 20 seconds).
    pub time: Duration,
    /// The maximum processor time of each process, in whole seconds, at least 1 (default 20 seconds).
    pub cpu: Duration,
    /// The maximum address space of each process, in bytes (default 2 GiB). All processes together can use
    /// twice as much.
    pub memory_bytes: u64,
    /// The maximum size of each file that the command writes, in bytes (default 256 MiB).
    pub file_bytes: u64,
    /// The maximum size of all files in the scratch directory, including the input, in bytes (default 1 GiB).
    pub scratch_bytes: u64,
    /// The maximum number of open files in each process (default 64).
    pub open_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(20),
            cpu: Duration::from_secs(20),
            memory_bytes: 2 << 30,
            file_bytes: 256 << 20,
            scratch_bytes: 1 << 30,
            open_files: 64,
        }
    }
}
