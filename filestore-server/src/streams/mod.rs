//! The streams of events: who reads, and the newest events that all readers share.
//!
//! # Purpose
//! A thousand readers at the end of the log must cost about as much as one. So one follower reads the log for all
//! of them, and encodes each event once ([`Newest`]). Readers at the end wait for one shared signal, and ask no
//! database. The follower runs only while there are readers, and pauses for a moment between two announcements, so
//! that a busy store wakes its readers a few times a second, and not once for each event.
//!
//! # Rights
//! One task asks once a second for each reader whether its right still holds. A reader whose right has changed ends,
//! and so does every reader at a stop. A client then connects again, and learns the reason from the status.
//!
//! # Bounds
//! A server has a limited number of streams, and so has each key and each address. A page that waits for its first
//! event counts as a stream. A reader has no queue: it looks
//! for its next event after the socket took the last one. Readers behind the newest events read pages from the
//! database, a few at a time.
//!
//! # Locking
//! One lock protects the list of readers. It is held when a reader comes and goes, and once a second to copy the
//! list. Another lock protects the newest events: readers share it, and the follower takes it to add events.

mod block;
mod follower;
mod newest;

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};
use std::time::Duration;

use filestore_core::FileStore;
use filestore_core::keys::Recency;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

pub(crate) use block::{BEGIN, KEEP_ALIVE, of_event, of_place};
pub(crate) use newest::{Newest, Told};

use crate::admission::limiter::Client;
use crate::http::forwarded::subscriber;

/// The maximum number of streams of one key.
const MOST_OF_A_KEY: usize = 32;

/// The maximum number of streams of one address without a key.
const MOST_OF_AN_ADDRESS: usize = 16;

/// The number of readers that can read pages of the log at the same time.
const PAGES_AT_ONCE: usize = 8;

/// The time between two checks of the rights of all readers.
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);

/// Asks whether a reader's right is still what it was at the start.
pub(crate) type StillEntitled = Box<dyn Fn() -> bool + Send + Sync>;

/// The streams of a server.
#[derive(Debug)]
pub(crate) struct Streams {
    most: AtomicUsize,
    readers: Mutex<Readers>,
    pages: Semaphore,
    refused: AtomicU64,
    stopping: AtomicBool,
}

/// The readers, and what runs for them.
#[derive(Debug, Default)]
struct Readers {
    next: u64,
    all: HashMap<u64, Arc<Reader>>,
    by_client: HashMap<Client, usize>,
    shared: Option<Shared>,
}

/// The newest events, and the tasks that run while there are readers. Dropping it ends the tasks.
#[derive(Debug)]
struct Shared {
    newest: Arc<Newest>,
    _tasks: JoinSet<()>,
}

/// One reader.
struct Reader {
    still_entitled: StillEntitled,
    over: watch::Sender<bool>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("over", &*self.over.borrow()).finish_non_exhaustive()
    }
}

/// The refusal of a stream, because there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyStreams {
    /// The exceeded limit.
    pub(crate) limit: usize,
    /// The owner of the limit: `server`, `key` or `address`.
    pub(crate) of: &'static str,
}

impl Streams {
    /// Starts without readers. Admits `most` of them.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: AtomicUsize::new(most),
            readers: Mutex::default(),
            pages: Semaphore::new(PAGES_AT_ONCE),
            refused: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Sets the maximum number of streams. Running streams continue.
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Relaxed);
    }

    /// Returns the number of streams.
    pub(crate) fn count(&self) -> usize {
        self.readers.lock().all.len()
    }

    /// Returns the number of refused streams.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Ends all streams and waits, also those that begin later. The lock of the readers decides which ones are later.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.end_all();
    }

    /// Admits a reader. `client` is `None` on the admin socket, which has no share of its own.
    pub(crate) fn enter(
        self: &Arc<Self>,
        store: &FileStore,
        client: Option<Client>,
        still_entitled: StillEntitled,
    ) -> Result<Seat, TooManyStreams> {
        let client = client.map(by_subscriber);
        let mut readers = self.readers.lock();
        if let Err(refusal) = readers.check(client, self.most.load(Relaxed)) {
            self.refused.fetch_add(1, Relaxed);
            return Err(refusal);
        }

        let shared = readers.shared.get_or_insert_with(|| Shared::start(self, store));
        let newest = Arc::clone(&shared.newest);
        let over = watch::Sender::new(self.stopping.load(Relaxed));
        let end = over.subscribe();
        let number = readers.add(client, Reader { still_entitled, over });
        drop(readers);
        Ok(Seat { streams: Arc::clone(self), number, client, newest, end })
    }

    /// Waits for a turn to read a page of the log.
    pub(crate) async fn turn(&self) -> SemaphorePermit<'_> {
        self.pages.acquire().await.expect("the semaphore is never closed")
    }

    /// Ends the streams whose right has changed.
    fn end_without_right(&self) {
        let all: Vec<_> = self.readers.lock().all.values().cloned().collect();
        let changed = all.iter().filter(|reader| !(reader.still_entitled)());
        changed.for_each(|reader| _ = reader.over.send_replace(true));
    }

    fn end_all(&self) {
        self.readers.lock().all.values().for_each(|reader| _ = reader.over.send_replace(true));
    }

    fn leave(&self, number: u64, client: Option<Client>) {
        let mut readers = self.readers.lock();
        readers.remove(number, client);
        let unused = if readers.all.is_empty() { readers.shared.take() } else { None };
        drop(readers);
        // The tasks end outside the lock.
        drop(unused);
    }
}

impl Shared {
    fn start(streams: &Arc<Streams>, store: &FileStore) -> Self {
        let newest = Arc::new(Newest::default());
        let mut tasks = JoinSet::new();
        let (all, events) = (Arc::downgrade(streams), Arc::clone(&newest));
        tasks.spawn(follower::follow(store.clone(), events, move || {
            if let Some(streams) = all.upgrade() {
                streams.end_all();
            }
        }));
        tasks.spawn(check_rights(Arc::downgrade(streams), store.clone()));
        Self { newest, _tasks: tasks }
    }
}

/// Checks the rights of all readers, once a second. The database is asked once for all of them.
async fn check_rights(streams: Weak<Streams>, store: FileStore) {
    let mut ticks = interval(BETWEEN_CHECKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Without the database, what is known here still counts.
        let refresh = store.shared().refresh_secrets(Recency::Present);
        if let Ok(Err(error)) = timeout(BETWEEN_CHECKS, refresh).await {
            tracing::debug!(error = %error.chain(), "the rights of streams were checked from memory");
        }
        let Some(streams) = streams.upgrade() else { return };
        streams.end_without_right();
    }
}

impl Readers {
    fn check(&self, client: Option<Client>, most: usize) -> Result<(), TooManyStreams> {
        if self.all.len() >= most {
            return Err(TooManyStreams { limit: most, of: "server" });
        }
        let Some(client) = client else { return Ok(()) };
        let (limit, of) = match client {
            Client::Key(_) => (MOST_OF_A_KEY, "key"),
            Client::Address(_) => (MOST_OF_AN_ADDRESS, "address"),
        };
        let held = self.by_client.get(&client).copied().unwrap_or_default();
        if held < limit { Ok(()) } else { Err(TooManyStreams { limit, of }) }
    }

    fn add(&mut self, client: Option<Client>, reader: Reader) -> u64 {
        self.next += 1;
        self.all.insert(self.next, Arc::new(reader));
        if let Some(client) = client {
            *self.by_client.entry(client).or_default() += 1;
        }
        self.next
    }

    fn remove(&mut self, number: u64, client: Option<Client>) {
        self.all.remove(&number);
        let Some(client) = client else { return };
        if let Some(held) = self.by_client.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                self.by_client.remove(&client);
            }
        }
    }
}

/// Counts the addresses of one subscriber as one client.
fn by_subscriber(client: Client) -> Client {
    match client {
        Client::Key(_) => client,
        Client::Address(address) => Client::Address(subscriber(address)),
    }
}

/// The place of one reader. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Seat {
    streams: Arc<Streams>,
    number: u64,
    client: Option<Client>,
    newest: Arc<Newest>,
    end: watch::Receiver<bool>,
}

impl Seat {
    /// Returns the newest events of the store.
    pub(crate) fn newest(&self) -> &Arc<Newest> {
        &self.newest
    }

    /// Returns a receiver that becomes true when the stream must end.
    pub(crate) fn end(&self) -> watch::Receiver<bool> {
        self.end.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.streams.leave(self.number, self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn store() -> (tempfile::TempDir, FileStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        (dir, store)
    }

    fn forever() -> StillEntitled {
        Box::new(|| true)
    }

    fn address(text: &str) -> Client {
        Client::Address(text.parse().unwrap())
    }

    #[tokio::test]
    async fn an_address_has_its_share_and_the_server_a_limit() {
        let (_dir, store) = store().await;
        let streams = Arc::new(Streams::new(MOST_OF_AN_ADDRESS + 1));
        let enter = |client| streams.enter(&store, client, forever());

        let mut seats: Vec<_> =
            (0..MOST_OF_AN_ADDRESS).map(|_| enter(Some(address("2001:db8::1"))).unwrap()).collect();
        let refused = enter(Some(address("2001:db8::2"))).unwrap_err();
        assert_eq!(refused, TooManyStreams { limit: MOST_OF_AN_ADDRESS, of: "address" });

        seats.push(enter(None).unwrap());
        let refused = enter(Some(address("10.0.0.1"))).unwrap_err();
        assert_eq!(refused, TooManyStreams { limit: MOST_OF_AN_ADDRESS + 1, of: "server" });
        assert_eq!((streams.count(), streams.refused()), (MOST_OF_AN_ADDRESS + 1, 2));

        seats.clear();
        assert!(streams.readers.lock().by_client.is_empty());
        assert!(streams.readers.lock().shared.is_none(), "nothing runs without readers");
        assert!(enter(Some(address("2001:db8::2"))).is_ok());
    }

    #[tokio::test]
    async fn a_reader_ends_when_its_right_has_changed_and_others_stay() {
        let (_dir, store) = store().await;
        let streams = Arc::new(Streams::new(2));
        let entitled = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&entitled);
        let one = streams.enter(&store, None, Box::new(move || asked.load(Relaxed))).unwrap();
        let other = streams.enter(&store, None, forever()).unwrap();

        streams.end_without_right();
        assert!(!*one.end().borrow());
        entitled.store(false, Relaxed);
        one.end().wait_for(|over| *over).await.unwrap();
        assert!(!*other.end().borrow());
    }

    #[tokio::test]
    async fn a_stop_ends_every_reader_also_one_that_comes_later() {
        let (_dir, store) = store().await;
        let streams = Arc::new(Streams::new(2));
        let early = streams.enter(&store, None, forever()).unwrap();
        streams.stop();
        let late = streams.enter(&store, None, forever()).unwrap();
        assert!(*early.end().borrow() && *late.end().borrow());
    }
}
