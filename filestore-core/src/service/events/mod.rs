//! Reading the log of events.

use std::time::Duration;

use futures_util::Stream;

use super::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::event::{After, Event, EventFilter, EventPage};

/// The log of events, for the organizations in a scope. Made by [`FileStore::events`].
///
/// Readers of an organization see the events of its files. Only [`Scope::All`] sees the other kinds.
#[derive(Clone, Copy)]
#[must_use]
pub struct Events<'a> {
    store: &'a FileStore,
    scope: &'a Scope,
}

impl<'a> Events<'a> {
    /// Makes the handle.
    pub(crate) fn of(store: &'a FileStore, scope: &'a Scope) -> Self {
        Self { store, scope }
    }

    /// Reads a page of at most `limit` (1 to 1000) events behind `after`, oldest first.
    pub async fn page(self, filter: &EventFilter, after: After, limit: usize) -> Result<EventPage> {
        todo!("{:?} {after:?} {limit} {filter:?} {}", self.scope, self.store.id())
    }

    /// Like [`page`](Self::page), but waits at most `wait` for the first event if there is none.
    pub async fn wait(
        self,
        filter: &EventFilter,
        after: After,
        limit: usize,
        wait: Duration,
    ) -> Result<EventPage> {
        todo!("{filter:?} {after:?} {limit} {wait:?}")
    }

    /// Reads a page of at most `limit` events, newest first, before `before` ([`After::End`]: from the newest).
    pub async fn page_back(
        self,
        filter: &EventFilter,
        before: After,
        limit: usize,
    ) -> Result<EventPage> {
        todo!("{filter:?} {before:?} {limit}")
    }

    /// Follows the log behind `after`: each event once, in order, for as long as the stream is polled.
    pub fn follow(
        self,
        filter: EventFilter,
        after: After,
    ) -> impl Stream<Item = Result<Event>> + Send + 'static {
        let _ = (filter, after);
        futures_util::stream::empty()
    }
}

impl FileStore {
    /// Returns the log of events of the organizations in `scope`.
    pub fn events<'a>(&'a self, scope: &'a Scope) -> Events<'a> {
        Events::of(self, scope)
    }
}
