//! Reading the log of events.
//!
//! # No event is missed
//! The engine shows an event only when all earlier events are settled, so a reader goes on behind the last event
//! that it looked at. Every read asks whether the log still has that event. If not, the reader fails with
//! `EventsGone`, because it could have missed events.
//!
//! A log that was off for a time, at any server, has another key since. Every read compares the key, so earlier cursors
//! fail. The log then begins with an event `log.gap`, which every reader sees.

mod history;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::time::{Instant, sleep, timeout_at};

use self::reading::Part;
use super::{FileStore, Inner};
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::event::{
    After, Event, EventDetails, EventFilter, EventKind, EventNaming, EventPage, NewEvent,
};
use crate::domain::id::OrganizationId;
use crate::domain::report::load::EventLogLoad;
use crate::metadata::{LogOrder, LogRange, LoggedEvent};

/// The maximum number of events on a page.
const MOST: usize = 1000;

/// The pause of a waiting reader after events that were not for it.
const AFTER_NOTHING: Duration = Duration::from_millis(50);

/// The log of events, for the organizations in a scope. Made by [`FileStore::events`].
///
/// Readers of an organization see the events of its files. Only [`Scope::All`] sees the other kinds. Exception:
/// [`EventKind::LogGap`] is for every reader.
///
/// All calls fail with `EventsOff` if events are switched off, with `Forbidden` for an organization outside the
/// scope, and with `EventsGone` if the log no longer has the event to go on from. Then read the records again, and
/// follow from [`After::End`].
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

    /// Reads a page of at most `limit` (1 to 1000) events behind `after`, oldest first. A page looks at 5,000
    /// events at most.
    ///
    /// ```
    /// use filestore_core::events::{After, EventFilter, EventKind};
    /// # use filestore_core::{FileStore, NewUpload, Scope};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = FileStore::open(dir.path()).await?;
    /// let upload = NewUpload::new("42".parse()?, "gallery".parse()?);
    /// let record = store.upload(upload, &b"hello"[..]).await?;
    ///
    /// let page = store.events(&Scope::All).page(&EventFilter::new(), After::Start, 100).await?;
    /// assert_eq!(page.events[0].kind, EventKind::FileUploaded);
    /// assert_eq!(page.events[0].file_id, Some(record.file_id));
    /// # store.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn page(self, filter: &EventFilter, after: After, limit: usize) -> Result<EventPage> {
        check_limit(limit)?;
        Ok(self.part(filter, after, LogOrder::Forward, limit).await?.page)
    }

    /// Like [`page`](Self::page), but waits at most `wait` for the first event if there is none.
    pub async fn wait(
        self,
        filter: &EventFilter,
        after: After,
        limit: usize,
        wait: Duration,
    ) -> Result<EventPage> {
        check_limit(limit)?;
        let until = Instant::now() + wait;
        let mut part = self.part(filter, after, LogOrder::Forward, limit).await?;
        let mut pause = Duration::ZERO;
        while part.page.events.is_empty() && !part.page.has_more {
            let waiting = async {
                sleep(pause).await;
                self.store.inner.metadata.await_events(part.settled).await
            };
            match timeout_at(until, waiting).await {
                Ok(waited) => waited?,
                Err(_) => break,
            }
            pause = AFTER_NOTHING;
            part = self.part(filter, part.page.next, LogOrder::Forward, limit).await?;
        }
        Ok(part.page)
    }

    /// Reads a page of at most `limit` (1 to 1000) events, newest first, before `before` ([`After::End`]: from
    /// the newest).
    pub async fn page_back(
        self,
        filter: &EventFilter,
        before: After,
        limit: usize,
    ) -> Result<EventPage> {
        check_limit(limit)?;
        Ok(self.part(filter, before, LogOrder::Backward, limit).await?.page)
    }

    /// Follows the log behind `after`: each event once, in order, for as long as the stream is polled. The stream
    /// holds one page, and costs nothing once it is dropped. While it exists, the store stays
    /// open, and its directory locked.
    ///
    /// An error ends the stream. After a temporary error, follow again behind the last event.
    ///
    /// ```
    /// use std::pin::pin;
    ///
    /// use filestore_core::events::{After, EventFilter, EventKind};
    /// use futures_util::StreamExt;
    /// # use filestore_core::{FileStore, NewUpload, Scope};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = FileStore::open(dir.path()).await?;
    /// # let upload = NewUpload::new("42".parse()?, "gallery".parse()?);
    /// # store.upload(upload, &b"hello"[..]).await?;
    /// let uploads = EventFilter::new().kinds([EventKind::FileUploaded]);
    /// let mut events = pin!(store.events(&Scope::All).follow(uploads, After::Start));
    /// while let Some(event) = events.next().await {
    ///     println!("{} at {:?}", event?.kind, store.now());
    /// #   break;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(
        self,
        filter: EventFilter,
        after: After,
    ) -> impl Stream<Item = Result<Event>> + Send + 'static {
        let follower = Follower {
            store: self.store.clone(),
            scope: self.scope.clone(),
            filter,
            next: after,
            settled: None,
            events: VecDeque::new(),
        };
        stream::unfold(Some(follower), |follower| async move {
            let mut follower = follower?;
            match follower.next().await {
                Ok(event) => Some((Ok(event), Some(follower))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Returns the position of an event in the log, for programs that join pages with other events. Show it to
    /// nobody, because it counts the events of all organizations.
    pub fn position(self, event: &Event) -> u64 {
        self.store.inner.naming().position(&event.id)
    }

    async fn part(
        self,
        filter: &EventFilter,
        from: After,
        order: LogOrder,
        limit: usize,
    ) -> Result<Part> {
        reading::part(&self.store.inner, self.scope, filter, (from, order), limit).await
    }
}

fn check_limit(limit: usize) -> Result<()> {
    if (1..=MOST).contains(&limit) {
        return Ok(());
    }
    Err(Error::invalid("limit", format!("limit is 1 to {MOST}, not {limit}")))
}

/// The state of a stream.
struct Follower {
    store: FileStore,
    scope: Scope,
    filter: EventFilter,
    /// The place behind `events`.
    next: After,
    /// Set if the log ends at `next`: the position to wait behind.
    settled: Option<u64>,
    events: VecDeque<Event>,
}

impl Follower {
    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(settled) = self.settled.take() {
                self.store.inner.metadata.await_events(settled).await?;
            }
            let log = Events { store: &self.store, scope: &self.scope };
            let part = log.part(&self.filter, self.next, LogOrder::Forward, MOST).await?;
            self.next = part.page.next;
            self.settled = (!part.page.has_more).then_some(part.settled);
            self.events = part.page.events.into();
        }
    }
}

impl Inner {
    /// Returns the names of events, by the key of the last read.
    pub(crate) fn naming(&self) -> EventNaming {
        self.naming.read().clone()
    }

    /// Returns what the log keeps. Reads a few rows.
    pub(crate) async fn event_log(&self) -> Result<EventLogLoad> {
        let (from, order) = (Some(0), LogOrder::Forward);
        let range = LogRange { from, order, organizations: None, limit: 1 };
        let log = self.metadata.read_events(&range).await?;
        let ends = log.newest.zip(log.oldest);
        // A log with a gap begins there for readers.
        let is_gap =
            |row: &&LoggedEvent| row.body.as_ref().is_some_and(|body| body.kind.is_for_all());
        Ok(EventLogLoad {
            is_on: log.is_on,
            kept: ends.map_or(0, |((newest, _), (oldest, _))| newest.saturating_sub(oldest) + 1),
            oldest_at: log.oldest.map(|(_, at)| at),
            gap_at: log.rows.first().filter(is_gap).map(|row| row.at),
            held_back: log.held_back.0,
            held_back_for: log.held_back.1,
        })
    }

    /// Writes an event of the end of a run. A failure is only a warning, because the run is done.
    pub(crate) async fn note_event(
        &self,
        kind: EventKind,
        organization: Option<OrganizationId>,
        details: EventDetails,
    ) {
        let mut event = NewEvent::new(kind, self.now(), details);
        event.organization_id = organization;
        if let Err(error) = self.metadata.note_events(vec![event]).await {
            tracing::warn!(%kind, error = %error.chain(), "an event was not written");
        }
    }
}

impl FileStore {
    /// Returns the log of events of the organizations in `scope`.
    pub fn events<'a>(&'a self, scope: &'a Scope) -> Events<'a> {
        Events::of(self, scope)
    }
}
