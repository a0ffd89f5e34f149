//! Turns: the one request that has an upload. A newer request ends the older request.
//!
//! # Locking
//! A request gets a number when it arrives. It raises the number of the upload to its own, and says which bytes of the
//! older request it wants to be kept. The older request then ends, and the newer request gets the lock. A request that
//! was delayed on its way here finds a higher number, and ends itself. This also holds after the newer request has told
//! its client the offset and has left: no older request moves this offset.
//!
//! # Broken connections
//! If a connection breaks, a browser repeats the request on another one. Both then arrive at once, and the broken one can
//! be the newer one here. So an append that is ended waits a moment for the end of its successor. If the successor fails,
//! the client of the append learns the offset and continues, instead of a refusal for good.

use std::collections::{HashMap, hash_map};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::transfer::superseded;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::UploadId;

/// The longest wait for the checkpoint of an older request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time in which the request of a broken connection fails.
const MOMENT: Duration = Duration::from_secs(1);

/// The number of uploads for which [`Turns::told`] has a request.
const TOLD: usize = 10_000;

/// The uploads that requests have now.
pub(in crate::service) struct Turns {
    shared: Mutex<HashMap<UploadId, Entry>>,
    /// The last request of an upload that told its client the offset.
    told: Cache<UploadId, Arrival>,
    /// The number of the request that arrived last.
    arrived: AtomicU64,
}

impl Default for Turns {
    fn default() -> Self {
        Self { shared: Mutex::default(), told: Cache::new(TOLD), arrived: AtomicU64::default() }
    }
}

/// The place of a request among all that arrived at this process, from
/// [`ResumableUploads::arrive`](super::ResumableUploads::arrive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(u64);

/// An upload of which one request has the turn, and others wait.
struct Entry {
    shared: Arc<Shared>,
    requests: usize,
}

struct Shared {
    newest: watch::Sender<Newest>,
    ended: watch::Sender<Ended>,
    lock: Arc<AsyncMutex<()>>,
}

impl Shared {
    /// `told` is the last request that told its client the offset.
    fn after(told: Arrival) -> Self {
        let newest = Newest { number: told, wish: Wish::Keep };
        let ended = Ended { number: told, outcome: Outcome::Done, has_left: true };
        let (newest, ended) = (watch::Sender::new(newest), watch::Sender::new(ended));
        Self { newest, ended, lock: Arc::default() }
    }
}

/// The newest request of an upload.
#[derive(Debug, Clone, Copy)]
struct Newest {
    number: Arrival,
    wish: Wish,
}

/// The newest request that ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    number: Arrival,
    outcome: Outcome,
    /// False until the bytes of the request are durable.
    has_left: bool,
}

/// The end of a request, as the request that it ended sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    /// Another request has ended this one.
    Untold,
}

/// What a newer request wants of the older request that it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// The bytes that have arrived, for example to tell their number.
    Keep,
    /// Its turn, to send the bytes after this offset itself. Otherwise two requests at one offset could end each
    /// other, and the newer request would always come too late.
    From(u64),
}

/// The right of one request to an upload.
pub(in crate::service) struct Turn {
    turns: Arc<Turns>,
    id: UploadId,
    shared: Arc<Shared>,
    number: Arrival,
    wish: Wish,
    guard: Option<OwnedMutexGuard<()>>,
    outcome: Outcome,
}

impl Turns {
    /// Notes that a request arrives now.
    pub(super) fn arrive(&self) -> Arrival {
        Arrival(self.arrived.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Ends the request that has the upload, and waits for its end. `Busy` if that takes too long. If a request has the
    /// upload that arrived later, the error of [`defeat`](Turn::defeat).
    pub(super) async fn enter(
        self: &Arc<Self>,
        id: UploadId,
        number: Arrival,
        wish: Wish,
    ) -> Result<Turn> {
        let shared = {
            let mut shared = self.shared.lock();
            let entry = shared.entry(id).or_insert_with(|| {
                let told = self.told.get(&id).unwrap_or(Arrival(0));
                Entry { shared: Arc::new(Shared::after(told)), requests: 0 }
            });
            entry.requests += 1;
            Arc::clone(&entry.shared)
        };
        let lock = Arc::clone(&shared.lock);
        let outcome = Outcome::Failed;
        let mut turn =
            Turn { turns: Arc::clone(self), id, shared, number, wish, guard: None, outcome };
        turn.shared.newest.send_if_modified(|newest| {
            let is_newest = newest.number <= number;
            if is_newest {
                *newest = Newest { number, wish };
            }
            is_newest
        });
        if turn.is_superseded() {
            return Err(turn.defeat().await);
        }
        let guard = tokio::select! {
            biased;
            _ = turn.superseded() => return Err(turn.defeat().await),
            guard = timeout(PATIENCE, lock.lock_owned()) => guard,
        };
        let Ok(guard) = guard else {
            let message = "another request of this upload does not end";
            return Err(Error::new(ErrorKind::Busy, message).with_retry_after_secs(5));
        };
        turn.guard = Some(guard);
        if wish == Wish::Keep {
            turn.succeed();
        }
        Ok(turn)
    }

    /// Tests whether a request has the upload.
    pub(super) fn has(&self, id: UploadId) -> bool {
        self.shared.lock().contains_key(&id)
    }

    /// Returns the number of uploads that requests have.
    pub(super) fn count(&self) -> usize {
        self.shared.lock().len()
    }
}

impl Turn {
    /// Resolves when a newer request wants the upload, with its wish.
    pub(super) async fn superseded(&self) -> Wish {
        let mut newest = self.shared.newest.subscribe();
        let newer = newest.wait_for(|newest| newest.number > self.number).await;
        newer.expect("the turn holds the sender").wish
    }

    /// Marks the request as successful. Without this call, the turn of an append counts as failed.
    pub(super) fn succeed(&mut self) {
        self.outcome = Outcome::Done;
    }

    /// Ends the turn. An append that it ended is told to continue.
    pub(super) fn fail(mut self) {
        self.outcome = Outcome::Failed;
    }

    /// Tells that the body has broken, before the received bytes are durable.
    pub(super) fn break_off(&mut self) {
        self.outcome = Outcome::Failed;
        self.tell(false);
    }

    /// Gives the turn to the newer request, and returns the error for this one: `UploadSuperseded`, or
    /// `UploadOffsetMismatch` without an offset if this one appends and the newer one failed.
    pub(super) async fn defeat(mut self) -> Error {
        self.guard = None;
        self.outcome = Outcome::Untold;
        if self.wish != Wish::Keep && self.newer_failed().await {
            let message = "a newer request of this upload failed: continue at the offset";
            return Error::new(ErrorKind::UploadOffsetMismatch, message)
                .with_field("Upload-Offset");
        }
        superseded()
    }

    /// Waits a moment for the end of the newer request. If it failed, waits until its bytes are durable.
    async fn newer_failed(&self) -> bool {
        let mut ended = self.shared.ended.subscribe();
        let newer = timeout(MOMENT, ended.wait_for(|ended| ended.number > self.number)).await;
        let Ok(Ok(newer)) = newer.map(|newer| newer.map(|newer| *newer)) else { return false };
        if newer.outcome != Outcome::Failed {
            return false;
        }
        let left = |ended: &Ended| ended.has_left || ended.number > newer.number;
        // After so long, the offset that the row has is still right.
        _ = timeout(PATIENCE, ended.wait_for(left)).await;
        true
    }

    /// Tells the older requests the end of this one.
    fn tell(&self, has_left: bool) {
        self.shared.ended.send_if_modified(|ended| {
            let is_newest = ended.number <= self.number;
            if is_newest {
                *ended = Ended { number: self.number, outcome: self.outcome, has_left };
            }
            is_newest
        });
    }

    /// Tests whether a newer request wants the upload.
    pub(super) fn is_superseded(&self) -> bool {
        self.shared.newest.borrow().number > self.number
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.guard = None;
        if self.outcome != Outcome::Untold {
            self.tell(true);
        }
        if self.wish == Wish::Keep && self.outcome == Outcome::Done {
            self.turns.told.insert(self.id, self.number);
        }
        let mut turns = self.turns.shared.lock();
        if let hash_map::Entry::Occupied(mut entry) = turns.entry(self.id) {
            entry.get_mut().requests -= 1;
            if entry.get().requests == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;
    use crate::tasks;

    #[tokio::test]
    async fn a_newer_request_ends_the_older_one_and_gets_the_upload() {
        let turns = Arc::new(Turns::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let old = turns.enter(id, turns.arrive(), Wish::Keep).await.unwrap();
        assert!(!old.is_superseded());

        let (waiting, wanted) = (Arc::clone(&turns), id);
        let new = tasks::spawn(async move {
            let arrived = waiting.arrive();
            waiting.enter(wanted, arrived, Wish::From(7)).await.unwrap()
        });
        assert_eq!(old.superseded().await, Wish::From(7));
        assert!(old.is_superseded());
        drop(old);
        let new = new.await.unwrap();
        assert!(!new.is_superseded() && turns.has(id));
        drop(new);
        assert_eq!(turns.count(), 0, "nothing is left");
    }

    #[tokio::test]
    async fn a_request_that_was_delayed_does_not_end_a_newer_one() {
        let turns = Arc::new(Turns::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let (delayed, newer) = (turns.arrive(), turns.arrive());
        let new = turns.enter(id, newer, Wish::From(7)).await.unwrap();
        let refused = turns.enter(id, delayed, Wish::From(0)).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::UploadSuperseded);
        assert!(!new.is_superseded());
        drop(new);
        assert_eq!(turns.count(), 0);
        // The newer one failed, and told no offset.
        drop(turns.enter(id, delayed, Wish::From(0)).await.unwrap());
        // The same request again, as after a commit that it waited for.
        drop(turns.enter(id, newer, Wish::From(7)).await.unwrap());
        turns.enter(id, newer, Wish::From(7)).await.unwrap();
    }

    #[tokio::test]
    async fn an_offset_that_was_told_stays_true_for_older_requests() {
        let turns = Arc::new(Turns::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let delayed = turns.arrive();
        drop(turns.enter(id, turns.arrive(), Wish::Keep).await.unwrap());
        assert_eq!(turns.count(), 0);
        let refused = turns.enter(id, delayed, Wish::From(0)).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::UploadSuperseded);
        turns.enter(id, turns.arrive(), Wish::From(0)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_append_continues_if_its_successor_fails_and_ends_if_not() {
        type Act = fn(Turn);
        let cases: [(Wish, Act, ErrorKind); 5] = [
            (Wish::From(0), drop, ErrorKind::UploadOffsetMismatch),
            (
                Wish::From(0),
                |mut turn| {
                    turn.break_off();
                    drop(turn);
                },
                ErrorKind::UploadOffsetMismatch,
            ),
            (Wish::From(0), |mut turn| turn.succeed(), ErrorKind::UploadSuperseded),
            (Wish::Keep, drop, ErrorKind::UploadSuperseded),
            (Wish::Keep, Turn::fail, ErrorKind::UploadOffsetMismatch),
        ];
        for (wish, end, told) in cases {
            let turns = Arc::new(Turns::default());
            let id = UploadId::generate(Timestamp::from_millis(1));
            let old = turns.enter(id, turns.arrive(), Wish::From(0)).await.unwrap();
            let waiting = Arc::clone(&turns);
            let newer = tasks::spawn(async move {
                let arrived = waiting.arrive();
                end(waiting.enter(id, arrived, wish).await.unwrap());
            });
            old.superseded().await;
            assert_eq!(old.defeat().await.kind(), told, "{wish:?}");
            newer.await.unwrap();
            assert_eq!(turns.count(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_append_waits_until_the_bytes_of_its_failed_successor_are_durable() {
        let turns = Arc::new(Turns::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let delayed = turns.arrive();
        let mut newer = turns.enter(id, turns.arrive(), Wish::From(0)).await.unwrap();
        newer.break_off();
        let refused = turns.enter(id, delayed, Wish::From(0));
        tokio::pin!(refused);
        assert!(timeout(MOMENT * 5, &mut refused).await.is_err(), "it waits for the checkpoint");
        drop(newer);
        assert_eq!(refused.await.err().unwrap().kind(), ErrorKind::UploadOffsetMismatch);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_end_is_not_waited_for_forever() {
        let turns = Arc::new(Turns::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let old = turns.enter(id, turns.arrive(), Wish::Keep).await.unwrap();
        let refused = turns.enter(id, turns.arrive(), Wish::Keep).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        drop(old);
        turns.enter(id, turns.arrive(), Wish::Keep).await.unwrap();
        assert_eq!(turns.count(), 0);
    }
}
