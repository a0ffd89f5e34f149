//! The active binding of an organization, or that it has none. Never stale.
//!
//! # Purpose
//! Each upload asks where its file goes. From memory the answer costs no thread switch.
//!
//! # Locking
//! The protocol is that of the [records](super::records), with one epoch for all: bindings rarely
//! change.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::domain::binding::Binding;
use crate::domain::id::OrganizationNumber;

/// Organizations in memory at most; the next one makes all of them be asked for again.
const CAPACITY: usize = 10_000;

/// The active bindings in memory.
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

/// Bindings are being changed; none is kept until this is dropped.
#[derive(Debug)]
pub(in crate::metadata::sqlite) struct Changing<'c>(&'c BindingCache);

impl BindingCache {
    pub(in crate::metadata::sqlite) fn new() -> Self {
        Self(Mutex::new(State { epoch: 0, active: HashMap::new() }))
    }

    /// Returns the active binding, or that there is none, if that is in memory; else a ticket, with which
    /// what is read from now on may be kept.
    pub(in crate::metadata::sqlite) fn get(
        &self,
        organization: OrganizationNumber,
    ) -> Result<Option<Binding>, Ticket> {
        let state = self.0.lock();
        state.active.get(&organization).cloned().ok_or(Ticket(state.epoch))
    }

    /// Keeps what was read, unless a binding may have changed since `ticket` was taken.
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

    /// Forgets all bindings and keeps none until the result is dropped.
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
