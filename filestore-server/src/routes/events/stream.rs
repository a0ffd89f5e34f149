//! The stream of events (WHATWG HTML section 9.2): the log from a place on, for as long as the client reads.
//!
//! A reader begins in the log, in pages. At the end of the log it goes over to the newest events, which all readers
//! share, and goes back if it falls behind them. It looks for an event only after the socket took the last one, so a
//! slow reader holds no queue. The listener cuts a client that takes nothing.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::Result;
use filestore_core::events::{After, EventFilter};
use futures_util::stream;
use http::{HeaderMap, Method};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use warp::reply::Response;

use super::query::{Direction, EventsQuery, place};
use crate::admission::limiter::Client;
use crate::reply::{self, Failure};
use crate::request::call::{Call, Proof};
use crate::request::log_sight::LogSight;
use crate::streams::{BEGIN, KEEP_ALIVE, Newest, Seat, Told, TooManyStreams, of_event, of_place};

/// The header with which a client continues a stream.
const LAST_EVENT_ID: &str = "last-event-id";

/// The longest silence of a stream.
const SILENCE: Duration = Duration::from_secs(15);

/// The shortest life of a stream. Up to [`LIFE_SPREAD`] more is random, so that clients do not come back together.
const LIFE: Duration = Duration::from_mins(54);
const LIFE_SPREAD: Duration = Duration::from_mins(12);

/// The number of events in a page of the log: about 32 KiB.
const PAGE: usize = 100;

/// The number of events that are passed over before the client learns the place.
const PASSED_OVER: usize = 1000;

/// Opens a stream. The first page is read before the head of the reply, so that a refusal has its status.
pub(super) async fn open(
    call: Arc<Call>,
    query: &EventsQuery,
    sight: LogSight,
    filter: EventFilter,
) -> Result<Response, Failure> {
    let Direction::Forward(after) = query.direction else {
        let message = "a stream has the order asc";
        return Err(filestore_core::Error::invalid("order", message).with_allowed(["asc"]).into());
    };
    let after = last_event_id(&call.headers)?.unwrap_or(after);
    if call.method == Method::HEAD {
        call.store().events(&call.caller.scope).page(&filter, after, 1).await?;
        return Ok(reply::event_stream(stream::empty::<Result<Bytes, Infallible>>()));
    }

    let seat = take_seat(&call, sight)?;
    let newest = Arc::clone(seat.newest());
    let mut cursor = Cursor::new(call, filter, after, newest);
    cursor.read_log().await?;
    Ok(reply::event_stream(blocks(Reading { end: seat.end(), cursor, _seat: seat })))
}

/// Takes a place among the readers. It ends when the caller's rights change.
pub(super) fn take_seat(call: &Arc<Call>, sight: LogSight) -> Result<Seat, TooManyStreams> {
    let asking = Arc::clone(call);
    let still_entitled = Box::new(move || sight.is_current(&asking));
    call.app.streams.enter(&call.app.store, client_of(call), still_entitled)
}

/// Reads the place after which the client continues. An empty header means that it saw no event.
fn last_event_id(headers: &HeaderMap) -> Result<Option<After>> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    place("Last-Event-ID", text).map(Some)
}

/// Returns the client whose streams are limited together.
fn client_of(call: &Call) -> Option<Client> {
    match (&call.caller.proof, call.client) {
        (Proof::Key(id), _) => Some(Client::Key(*id)),
        (_, client) => client.map(|client| Client::Address(client.address())),
    }
}

/// A stream in progress.
struct Reading {
    cursor: Cursor,
    end: watch::Receiver<bool>,
    _seat: Seat,
}

/// Returns the blocks until the end of the stream.
fn blocks(
    reading: Reading,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(reading, |mut reading| async move {
        let Reading { cursor, end, .. } = &mut reading;
        let block = tokio::select! {
            biased;
            // An error would mean that the reader is no longer counted, which is an end as well.
            _ = end.wait_for(|over| *over) => None,
            block = cursor.next() => block,
        };
        block.map(|block| (Ok(block), reading))
    })
}

/// A reader's place in the log, and the blocks that it has to send.
struct Cursor {
    call: Arc<Call>,
    filter: EventFilter,
    newest: Arc<Newest>,
    changes: watch::Receiver<()>,
    place: Place,
    /// The position in the log up to which the reader has looked.
    seen: u64,
    /// The place to read on in the log.
    next: After,
    /// The newest place that the client may learn. It does not tell how much other organizations do.
    known: After,
    /// The number of events that the client may see, and does not want, since it last learned a place.
    passed: usize,
    ready: VecDeque<Bytes>,
    sent_at: Instant,
    end_at: Instant,
}

/// The source of a reader's next events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The log, behind the last event.
    Log,
    /// The log has been read to its end. The newest events have not come as far yet.
    EndOfLog,
    /// The newest events, from this number on.
    Newest(u64),
}

/// The result of looking for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// There can be more.
    More,
    /// There is nothing until the newest events change.
    Nothing,
}

impl Cursor {
    fn new(call: Arc<Call>, filter: EventFilter, after: After, newest: Arc<Newest>) -> Self {
        let now = Instant::now();
        let changes = newest.changes();
        Self {
            call,
            filter,
            newest,
            changes,
            place: Place::Log,
            seen: 0,
            next: after,
            known: after,
            passed: 0,
            ready: VecDeque::from([BEGIN]),
            sent_at: now,
            end_at: now + LIFE + LIFE_SPREAD.mul_f64(fraction()),
        }
    }

    /// Returns the next block. `None` at the end of the stream's life, or if the log cannot be read: the client
    /// connects again, and learns the reason.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(block) = self.ready.pop_front() {
                self.sent_at = Instant::now();
                return Some(block);
            }
            if Instant::now() >= self.end_at {
                return None;
            }
            // Seen before the look: a change during the look wakes the reader again.
            self.changes.mark_unchanged();
            match self.look().await {
                Ok(Looked::More) => {}
                Ok(Looked::Nothing) => self.wait().await,
                Err(error) => {
                    tracing::debug!(request_id = %self.call.id, error = %error.chain(), "a stream of events ended");
                    return None;
                }
            }
        }
    }

    /// Looks for events, among the newest or in the log.
    async fn look(&mut self) -> Result<Looked> {
        if !matches!(self.place, Place::Newest(_))
            && let Some(number) = self.newest.behind(self.seen)
        {
            self.place = Place::Newest(number);
        }
        match self.place {
            Place::Newest(number) => Ok(self.take_newest(number)),
            Place::Log => self.read_log().await.map(|()| Looked::More),
            Place::EndOfLog => Ok(Looked::Nothing),
        }
    }

    /// Takes some of the newest events. A reader that has fallen behind them goes back to the log.
    fn take_newest(&mut self, number: u64) -> Looked {
        let Some(told) = self.newest.from(number, PAGE) else {
            self.place = Place::Log;
            return Looked::More;
        };
        // The log can have shown some of them already.
        let seen = self.seen;
        told.iter().filter(|told| told.position > seen).for_each(|told| self.look_at(told));
        self.place = Place::Newest(number + told.len() as u64);
        if told.is_empty() { Looked::Nothing } else { Looked::More }
    }

    /// Sends one of the newest events, or passes over it.
    fn look_at(&mut self, told: &Told) {
        (self.seen, self.next) = (told.position, After::Event(told.event.id));
        if !LogSight::shows(&self.call.caller.scope, &told.event) {
            return;
        }
        self.known = self.next;
        if self.filter.passes(&told.event) {
            self.ready.push_back(told.block.clone());
            self.passed = 0;
        } else {
            self.passed += 1;
            if self.passed >= PASSED_OVER {
                self.tell_place();
            }
        }
    }

    /// Reads a page of the log. A few readers do this at a time.
    async fn read_log(&mut self) -> Result<()> {
        let turn = self.call.app.streams.turn().await;
        let events = self.call.store().events(&self.call.caller.scope);
        let page = events.page(&self.filter, self.next, PAGE).await?;
        drop(turn);

        self.ready.extend(page.events.iter().map(of_event));
        let shown = page.events.last().map_or(self.known, |event| After::Event(event.id));
        (self.seen, self.next, self.known) = (page.looked_at, page.next, page.next);
        if page.next != shown {
            self.tell_place();
        }
        self.place = if page.has_more { Place::Log } else { Place::EndOfLog };
        Ok(())
    }

    /// Tells the client a place behind its last event.
    fn tell_place(&mut self) {
        self.passed = 0;
        if let After::Event(id) = self.known {
            self.ready.push_back(of_place(id));
        }
    }

    /// Waits until the newest events change, or until the client must hear of the stream again.
    async fn wait(&mut self) {
        tokio::select! {
            // The sender lives as long as `newest`.
            _ = self.changes.changed() => {
                if self.place == Place::EndOfLog && self.newest.behind(self.seen).is_none() {
                    self.place = Place::Log;
                }
            }
            () = sleep_until(self.end_at.min(self.sent_at + SILENCE)) => {
                if self.passed > 0 {
                    self.tell_place();
                }
                self.ready.push_back(KEEP_ALIVE);
            }
        }
    }
}

/// Returns a random number from 0 to 1.
fn fraction() -> f64 {
    let random = ulid::Ulid::generate().random();
    #[expect(clippy::cast_precision_loss, reason = "a random time needs few digits")]
    let thousandths = (random % 1000) as f64;
    thousandths / 1000.0
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use filestore_core::{FileStore, NewUpload};
    use futures_util::StreamExt as _;

    use super::*;
    use crate::audit::Audit;
    use crate::config::ServiceOptions;
    use crate::http::base::Base;
    use crate::listen::Peer;
    use crate::reply::RequestId;
    use crate::request::call::Caller;
    use crate::state::App;

    /// A request for events on the admin socket.
    fn call(store: &FileStore) -> Arc<Call> {
        let options = ServiceOptions::default();
        let app = App::new(store.clone(), options, Base::default(), Audit::default());
        Arc::new(Call {
            app: Arc::new(app),
            id: RequestId::fresh(),
            route: None,
            caller: Caller::anyone(),
            signed: None,
            peer: Some(Peer::Unix),
            client: None,
            takes_files: false,
            method: Method::GET,
            headers: HeaderMap::new(),
            query: String::new(),
            notes: None,
            era: store.uploads().era(),
            arrived: store.resumable().arrive(),
        })
    }

    /// Opens a stream, and returns its blocks as text.
    async fn opened(call: &Arc<Call>) -> impl futures_util::Stream<Item = String> + use<> {
        let newest = Arc::default();
        let filter = EventFilter::new();
        let mut cursor = Cursor::new(Arc::clone(call), filter, After::Start, newest);
        cursor.read_log().await.unwrap();
        stream::unfold(cursor, |mut cursor| async move {
            let block = cursor.next().await?;
            Some((String::from_utf8(block.to_vec()).unwrap(), cursor))
        })
    }

    #[tokio::test]
    async fn a_silent_stream_says_that_it_lives_until_its_end_after_about_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let upload = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
        store.upload(upload, &b"bytes"[..]).await.unwrap();
        let call = call(&store);
        let mut blocks = pin!(opened(&call).await);
        assert_eq!(blocks.next().await.unwrap(), "retry: 2000\n\n");
        assert!(blocks.next().await.unwrap().contains("\nevent: file.uploaded\ndata: {"));

        tokio::time::pause();
        let began = Instant::now();
        let mut comments = 0;
        while let Some(block) = blocks.next().await {
            assert_eq!(block, ":\n\n");
            comments += 1;
            // The first silence began before the clock stopped.
            assert!(began.elapsed() >= SILENCE * (comments - 1));
        }
        assert!(began.elapsed() + SILENCE > LIFE && comments >= 54 * 4 - 1, "{comments}");
    }

    #[test]
    fn a_client_continues_after_its_last_event() {
        let header = |text: &str| {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(LAST_EVENT_ID),
                text.parse().unwrap(),
            )]);
            last_event_id(&headers)
        };
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
        assert_eq!(header("").unwrap(), None);
        assert!(matches!(header("BwcHBwcHBwcAAAAAAAAwOQ").unwrap(), Some(After::Event(_))));
        let error = header("yesterday").unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("Last-Event-ID"));
    }

    #[test]
    fn a_life_is_about_an_hour() {
        for _ in 0..1000 {
            assert!((0.0..=1.0).contains(&fraction()));
        }
    }
}
