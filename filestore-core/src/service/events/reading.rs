//! Reads a page of the log, part by part.

use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::{After, Event, EventFilter, EventId, EventNaming, EventPage};
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{EventBody, LogOrder, LogPart, LogRange, LoggedEvent};
use crate::service::Inner;

/// The maximum number of events that a page looks at.
const LOOKED_AT: usize = 5000;

/// The number of rows that are read at once if a filter can pass over some of them.
const CHUNK: usize = 1000;

/// The furthest position that an engine can store. A made-up id can name one beyond it, and no event is there.
const FURTHEST: u64 = i64::MAX.unsigned_abs();

/// A page, with the place to wait behind.
pub(super) struct Part {
    pub(super) page: EventPage,
    pub(super) settled: u64,
}

/// Reads a page of at most `limit` events.
pub(super) async fn part(
    inner: &Inner,
    scope: &Scope,
    filter: &EventFilter,
    (from, order): (After, LogOrder),
    limit: usize,
) -> Result<Part> {
    let organizations = organizations(scope, filter)?;
    let mut reading = Reading {
        inner,
        naming: inner.naming(),
        scope,
        filter,
        order,
        next: from,
        events: Vec::new(),
        left_to_look_at: LOOKED_AT,
    };
    loop {
        let range = reading.range(organizations.clone(), limit);
        let log = inner.metadata.read_events(&range).await?;
        if reading.has_another_key(&log) {
            continue;
        }
        reading.check(&log)?;

        let is_end = log.rows.len() < range.limit;
        let has_more = reading.take(&log.rows, limit) || (!is_end && reading.left_to_look_at == 0);
        if has_more || is_end {
            if !has_more {
                reading.reach_end(&log);
            }
            let looked_at = reading.looked_at(has_more, log.settled);
            let Reading { next, events, .. } = reading;
            let page = EventPage { events, next, has_more, looked_at };
            return Ok(Part { page, settled: log.settled });
        }
    }
}

/// Returns the organizations to read. `None` for the whole log.
fn organizations(scope: &Scope, filter: &EventFilter) -> Result<Option<Vec<OrganizationId>>> {
    if let Some(one) = &filter.organization {
        scope.check(one)?;
        return Ok(Some(vec![one.clone()]));
    }
    Ok(match scope {
        Scope::All => None,
        Scope::Organizations(list) => Some(list.clone()),
    })
}

/// A page that is being read.
struct Reading<'a> {
    inner: &'a Inner,
    naming: EventNaming,
    scope: &'a Scope,
    filter: &'a EventFilter,
    order: LogOrder,
    /// The last event that was looked at.
    next: After,
    events: Vec<Event>,
    left_to_look_at: usize,
}

impl Reading<'_> {
    fn range(&self, organizations: Option<Vec<OrganizationId>>, limit: usize) -> LogRange {
        let from = match &self.next {
            After::Start => Some(0),
            After::End => None,
            After::Event(id) => Some(self.naming.position(id).min(FURTHEST)),
        };
        let passes_all = self.filter.kinds.is_empty() && *self.scope == Scope::All;
        // One more than wanted, to know whether there is more.
        let rows = if passes_all { limit + 1 - self.events.len() } else { CHUNK };
        LogRange { from, order: self.order, organizations, limit: rows.min(self.left_to_look_at) }
    }

    /// Returns true if the log has another key than this page, and takes it over. Then the part must be read again,
    /// and cursors by the former key are gone.
    fn has_another_key(&mut self, log: &LogPart) -> bool {
        let Some(key) = log.key.filter(|key| !self.naming.is_of(*key)) else { return false };
        self.naming = EventNaming::new(key);
        *self.inner.naming.write() = self.naming.clone();
        true
    }

    /// Checks that the log is on and still has the event to go on from. While nothing is settled, the end is not
    /// known, and is not the start.
    fn check(&self, log: &LogPart) -> Result<()> {
        if !log.is_on {
            let message = "events are switched off in this store";
            return Err(Error::new(ErrorKind::EventsOff, message));
        }
        let is_unsettled = log.newest.is_none() && log.oldest.is_some();
        if is_unsettled && self.next == After::End {
            let message = "the end of the log of events is not known yet: try again";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let After::Event(id) = &self.next else { return Ok(()) };
        let position = self.naming.position(id);
        let is_there = log.edge_at.is_some_and(|at| self.naming.id(position, at) == *id);
        if is_there { Ok(()) } else { Err(gone(id)) }
    }

    /// Takes rows until the page is full. Returns true if a row is left over.
    fn take(&mut self, rows: &[LoggedEvent], limit: usize) -> bool {
        for row in rows {
            if self.events.len() == limit {
                return true;
            }
            let id = self.naming.id(row.position, row.at);
            self.next = After::Event(id);
            self.left_to_look_at -= 1;
            self.events.extend(self.shown(id, row));
        }
        false
    }

    /// Returns the event if the reader wants and may see it.
    fn shown(&self, id: EventId, row: &LoggedEvent) -> Option<Event> {
        let body = row.body.as_ref()?;
        let is_of_service = !body.kind.is_of_file() && !body.kind.is_for_all();
        if *self.scope != Scope::All && is_of_service {
            return None;
        }
        let event = event(id, row.at, body);
        self.filter.passes(&event).then_some(event)
    }

    /// Returns the position up to which the page has looked. At the end of the log, that is all there is to see.
    fn looked_at(&self, has_more: bool, settled: u64) -> u64 {
        match &self.next {
            After::Event(id) if has_more => self.naming.position(id),
            // Another server can have shown the reader more than is settled here.
            After::Event(id) => settled.max(self.naming.position(id)),
            After::Start | After::End => settled,
        }
    }

    /// Moves the cursor to the newest event of the log, so that it does not fall out of the log while a filter
    /// lets nothing pass.
    ///
    /// The cursor of an organization stays in the newer half of the log: if it moved at each event, it would tell
    /// how much other organizations do.
    ///
    /// The cursor never moves back. Another server can have shown events that are not settled here yet, and the reader
    /// would get them a second time.
    fn reach_end(&mut self, log: &LogPart) {
        let (LogOrder::Forward, Some((newest, at))) = (self.order, log.newest) else {
            if self.next == After::End {
                self.next = After::Start;
            }
            return;
        };
        let stays = match &self.next {
            After::Start | After::End => false,
            After::Event(id) => {
                let position = self.naming.position(id);
                let oldest = log.oldest.map_or(position, |(oldest, _)| oldest);
                let is_near = newest.saturating_sub(position) <= position.saturating_sub(oldest);
                newest < position || (is_near && *self.scope != Scope::All)
            }
        };
        if !stays {
            self.next = After::Event(self.naming.id(newest, at));
        }
    }
}

/// Makes the event of a row.
pub(super) fn event(id: EventId, at: Timestamp, body: &EventBody) -> Event {
    Event {
        id,
        kind: body.kind,
        at,
        organization_id: body.organization_id.clone(),
        sub_system: body.sub_system.clone(),
        file_id: body.file_id,
        version: body.version,
        details: body.details.clone(),
    }
}

fn gone(id: &EventId) -> Error {
    let message = format!(
        "the log of events no longer has this event, or is a new log. Read the records again, then follow the log \
         from its end: {id}"
    );
    Error::new(ErrorKind::EventsGone, message).with_field("after")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;
    use crate::domain::time::clock::Timestamp;

    #[tokio::test]
    async fn a_cursor_never_moves_back_at_a_server_that_has_settled_less() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let at = Timestamp::from_millis(1_795_000_000_000);
        let organization = Scope::Organizations(vec!["42".parse().unwrap()]);
        let naming = store.inner().naming();
        let log = |newest| LogPart {
            newest: Some((newest, at)),
            oldest: Some((1, at)),
            settled: newest,
            ..LogPart::default()
        };
        for scope in [Scope::All, organization] {
            let mut reading = Reading {
                inner: store.inner(),
                naming: naming.clone(),
                scope: &scope,
                filter: &EventFilter::new(),
                order: LogOrder::Forward,
                next: After::Event(naming.id(7, at)),
                events: Vec::new(),
                left_to_look_at: LOOKED_AT,
            };
            reading.reach_end(&log(5));
            assert_eq!(reading.next, After::Event(naming.id(7, at)), "{scope:?}");
            assert_eq!(reading.looked_at(false, 5), 7, "{scope:?}");

            reading.reach_end(&log(100));
            assert_eq!(reading.next, After::Event(naming.id(100, at)), "{scope:?}");
            assert_eq!(reading.looked_at(false, 101), 101, "{scope:?}");
        }
        store.close().await;
    }
}
