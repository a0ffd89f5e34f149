//! The process's limit of open files, and its division.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// macOS refuses a higher soft limit (`OPEN_MAX`), even where the hard one is "none".
const OPEN_MAX: u64 = 10_240;

/// The most descriptors that are kept for the rest of the process: the database, providers, sources of
/// variants, 256 variants as files in memory, and a file for each of the 512 threads on which files are opened.
const KEPT: usize = 1024;

/// Raises the soft limit of open descriptors to the hard limit where that is allowed, and returns the
/// new soft limit; `None` means unlimited. To be called once, at the start: every connection and every
/// open blob takes a descriptor.
pub fn raise_descriptor_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let below_open_max = current.is_some_and(|current| current < OPEN_MAX);

    if current != maximum && !set_soft_limit(maximum, maximum) && below_open_max {
        set_soft_limit(Some(OPEN_MAX), maximum);
    }

    descriptor_limit()
}

/// Returns the limit of open descriptors; `None` means unlimited.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Sets the soft limit beside the hard one; false where that is not allowed.
fn set_soft_limit(soft: Option<u64>, hard: Option<u64>) -> bool {
    setrlimit(Resource::Nofile, Rlimit { current: soft, maximum: hard }).is_ok()
}

/// The division of the descriptors between connections and uploads, so that connections which do
/// nothing cannot take what those that are served need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorBudget {
    /// Connections at one time.
    pub connections: usize,
    /// Uploads whose files may stay open.
    pub uploads: usize,
    /// Files that are kept open to be sent.
    pub files: usize,
}

impl DescriptorBudget {
    /// Divides `limit` descriptors: a quarter at most is kept for the process, another for `uploads`, a sixteenth
    /// for `files`, and two thirds of the rest are for `connections`, because a connection to which a large file
    /// is sent holds that open as well.
    pub fn divide(limit: Option<u64>, connections: usize, uploads: usize, files: usize) -> Self {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let kept = KEPT.min(limit / 4);
        let uploads = uploads.min(limit / 4).max(1);
        let files = files.min(limit / 16);
        let rest = limit.saturating_sub(kept).saturating_sub(uploads).saturating_sub(files);
        Self { connections: connections.min(rest / 3 * 2).max(1), uploads, files }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_not_lowered() {
        let before = getrlimit(Resource::Nofile);
        let after = raise_descriptor_limit();
        let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        assert!(number(after) >= number(before.current));
        assert!(number(after) <= number(before.maximum));
        assert_eq!(raise_descriptor_limit(), after);
    }

    #[test]
    fn connections_leave_descriptors_for_what_they_ask_for() {
        for (limit, connections, uploads, files) in [
            (None, 20_000, 1024, 256),
            (Some(1_048_576), 20_000, 1024, 256),
            (Some(20_000), 11_796, 1024, 256),
            (Some(4096), 1194, 1024, 256),
            (Some(1024), 298, 256, 64),
            (Some(0), 1, 1, 0),
        ] {
            let budget = DescriptorBudget::divide(limit, 20_000, 1024, 256);
            assert_eq!(budget, DescriptorBudget { connections, uploads, files }, "{limit:?}");
        }
    }
}
