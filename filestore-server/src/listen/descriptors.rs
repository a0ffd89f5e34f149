//! The process's limit of open files, and its division.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// macOS refuses a higher soft limit (`OPEN_MAX`), even if the hard limit is "none".
const OPEN_MAX: u64 = 10_240;

/// The maximum number of descriptors for the rest of the process: the database, providers, sources of
/// variants, 256 variants as files in memory, and one file for each of the 512 threads that open files.
const KEPT: usize = 1024;

/// Raises the soft limit of open descriptors to the hard limit, if possible. Returns the new soft limit, or
/// `None` for unlimited. Call this function once at startup, because every connection and every open blob
/// needs a descriptor.
pub fn raise_descriptor_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let below_open_max = current.is_some_and(|current| current < OPEN_MAX);

    if current != maximum && !set_soft_limit(maximum, maximum) && below_open_max {
        set_soft_limit(Some(OPEN_MAX), maximum);
    }

    descriptor_limit()
}

/// Returns the limit of open descriptors. `None` means unlimited.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Sets the soft limit. Returns false if this is not allowed.
fn set_soft_limit(soft: Option<u64>, hard: Option<u64>) -> bool {
    setrlimit(Resource::Nofile, Rlimit { current: soft, maximum: hard }).is_ok()
}

/// The division of descriptors between connections and uploads. The division prevents idle connections from
/// using descriptors that active connections need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescriptorBudget {
    /// The maximum number of connections.
    pub connections: usize,
    /// The maximum number of uploads with open files.
    pub uploads: usize,
    /// The maximum number of files kept open for sending.
    pub files: usize,
}

impl DescriptorBudget {
    /// Divides `limit` descriptors. At most a quarter is for the process, a quarter for `uploads`, and a
    /// sixteenth for `files`. Two thirds of the rest are for `connections`, because a connection that
    /// receives a large file also keeps this file open.
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
