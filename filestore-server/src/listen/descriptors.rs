//! The process's limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// macOS refuses a higher soft limit (`OPEN_MAX`), even where the hard one is "none".
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of open descriptors to the hard limit where that is allowed, and returns the
/// new soft limit; `None` means unlimited. To be called once, at the start: every connection and every
/// open blob takes a descriptor.
pub fn raise_descriptor_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let below_open_max = current.is_some_and(|current| current < OPEN_MAX);

    if current != maximum && !set_soft_limit(maximum, maximum) && below_open_max {
        set_soft_limit(Some(OPEN_MAX), maximum);
    }

    getrlimit(Resource::Nofile).current
}

/// Sets the soft limit beside the hard one; false where that is not allowed.
fn set_soft_limit(soft: Option<u64>, hard: Option<u64>) -> bool {
    setrlimit(Resource::Nofile, Rlimit { current: soft, maximum: hard }).is_ok()
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
}
