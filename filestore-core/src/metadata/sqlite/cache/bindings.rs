//! A cache of organizations' active bindings, or their absence. Never stale.
//!
//! # Purpose
//! Each upload asks for the place of its file. An answer from memory costs no thread switch.
//!
//! # Locking
//! The protocol is that of the [records](super::records), with a single epoch, because bindings rarely
//! change.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::domain::id::OrganizationNumber;
use crate::domain::provider::binding::Binding;

/// The maximum number of cached organizations. The next one clears the cache.
const CAPACITY: usize = 10_000;

/// The cached active bindings.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct BindingCache(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Odd from before the COMMIT of a change until after it.
    epoch: u64,
    active: HashMap<OrganizationNumber, Option<Binding>>,
}

/// The epoch before a binding was read.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::sqlite) struct Ticket(u64);

/// A running change of bindings. No binding is cached until this value is dropped.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct Changing<'c>(&'c BindingCache);

impl BindingCache {
    pub(in crate::metadata::sqlite) fn new() -> Self {
        Self(Mutex::new(State { epoch: 0, active: HashMap::new() }))
    }

    /// Returns the cached binding or its absence. Otherwise returns a ticket with which a later read can be
    /// cached.
    pub(in crate::metadata::sqlite) fn get(
        &self,
        organization: OrganizationNumber,
    ) -> Result<Option<Binding>, Ticket> {
        let state = self.0.lock();
        state.active.get(&organization).cloned().ok_or(Ticket(state.epoch))
    }

    /// Caches a read, unless a binding may have changed since `ticket` was taken.
    pub(in crate::metadata::sqlite) fn insert(
        &self,
        ticket: Ticket,
        organization: OrganizationNumber,
        active: Option<&Binding>,
    ) {
        let mut state = self.0.lock();
        if state.epoch != ticket.0 || !state.epoch.is_multiple_of(2) {
            return;
        }

        if state.active.len() >= CAPACITY {
            state.active.clear();
        }
        state.active.insert(organization, active.cloned());
    }

    /// Clears the cache, and disables it until the result is dropped.
    pub(super) fn changing(&self) -> Changing<'_> {
        let mut state = self.0.lock();
        state.epoch += 1;
        state.active.clear();
        Changing(self)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.0.lock().epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> OrganizationNumber {
        OrganizationNumber::try_from(number).unwrap()
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let cache = BindingCache::new();
        let organization = number(42);

        let before = cache.get(organization).unwrap_err();
        let changing = cache.changing();
        cache.insert(before, organization, None);
        let during = cache.get(organization).expect_err("between the change and its commit");
        cache.insert(during, organization, None);
        cache.get(organization).expect_err("read during the change");

        drop(changing);
        cache.insert(before, organization, None);
        cache.insert(during, organization, None);
        let after = cache.get(organization).expect_err("the change is committed");

        cache.insert(after, organization, None);
        assert_eq!(cache.get(organization).unwrap(), None, "it is known that there is none");

        drop(cache.changing());
        cache.get(organization).unwrap_err();
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = BindingCache::new();
        for organization in (1..=25_000).map(number) {
            let ticket = cache.get(organization).unwrap_err();
            cache.insert(ticket, organization, None);
            cache.get(organization).unwrap();
        }
        assert!(cache.0.lock().active.len() <= CAPACITY);
    }
}
