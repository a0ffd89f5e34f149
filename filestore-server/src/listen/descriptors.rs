//! The process's limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// macOS refuses a higher soft limit (`OPEN_MAX`), even where the hard one is "none".
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of open descriptors to the hard one where that is allowed, and returns the
/// limit as it is then; `None` means there is none. To be called once, at the start: every connection
/// and every open blob takes one.
pub fn raise_descriptor_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raise = |to| setrlimit(Resource::Nofile, Rlimit { current: to, maximum }).is_ok();
    let lower = |limit: u64| current.is_some_and(|current| current < limit);
    if current != maximum && !raise(maximum) && lower(OPEN_MAX) {
        raise(Some(OPEN_MAX));
    }
    getrlimit(Resource::Nofile).current
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
