//! Writes of which nobody knows yet whether they were committed.
//!
//! # Crash safety
//! The connection was lost at the COMMIT, and for a while nobody answered, or the transaction did not come
//! to its end. It may be committed yet. So whatever depends on it waits ([`Engine::outcomes_known`]), while
//! its fate is asked for on and on. A process that ends before leaves it to the next one (`writers`).

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use crate::domain::error::Result;
use crate::tasks;

use super::fault;
use super::transaction::{Engine, Mark};

/// The pause between two questions, at first and at the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Questions at a time. Each may wait for the end of its transaction, on a connection.
const AT_ONCE: usize = 2;

/// The marks of writes without a fate.
#[derive(Default)]
struct Unknown {
    /// By their numbers, which only grow.
    marks: BTreeMap<i64, Mark>,
    /// True while somebody asks.
    is_asked: bool,
    is_closed: bool,
    /// The turns of those writes, which others do not get before their fates are known.
    turns: Vec<OwnedSemaphorePermit>,
}

impl Unknown {
    /// Gives back the turns of writes whose fate is known.
    fn give_turns_back(&mut self) {
        self.turns.truncate(self.marks.len());
    }

    /// Tells if there is nothing to wait for up to a number.
    fn is_over(&self, last: i64) -> bool {
        self.is_closed || self.marks.range(..=last).next().is_none()
    }
}

/// The writes of an engine of which nobody knows yet whether they were committed.
pub(super) struct Fates(watch::Sender<Unknown>);

impl Default for Fates {
    fn default() -> Self {
        Self(watch::Sender::new(Unknown::default()))
    }
}

impl Fates {
    /// Notes a write whose fate is unknown.
    pub(super) fn note(&self, mark: Mark) {
        self.0.send_modify(|unknown| {
            unknown.marks.insert(mark.number, mark);
        });
    }

    /// Keeps the turn of a write that was noted until its fate, or that of another one, is known.
    pub(super) fn keep(&self, turn: OwnedSemaphorePermit) {
        self.0.send_modify(|unknown| {
            unknown.turns.push(turn);
            unknown.give_turns_back();
        });
    }

    /// Ends all waits: nothing is asked for any more.
    pub(super) fn close(&self) {
        self.0.send_modify(|unknown| unknown.is_closed = true);
    }

    fn marks(&self) -> Vec<Mark> {
        self.0.borrow().marks.values().copied().collect()
    }

    fn forget(&self, mark: Mark) {
        self.0.send_modify(|unknown| {
            unknown.marks.remove(&mark.number);
            unknown.give_turns_back();
        });
    }

    /// Takes the part of the one who asks, if there is something to ask for and nobody does.
    fn begin_to_ask(&self) -> bool {
        self.0.send_if_modified(|unknown| {
            let is_wanted = !unknown.marks.is_empty() && !unknown.is_asked && !unknown.is_closed;
            unknown.is_asked |= is_wanted;
            is_wanted
        })
    }

    /// Gives that part back, if there is nothing left to ask for.
    fn end_asking(&self) -> bool {
        self.0.send_if_modified(|unknown| {
            let is_over = unknown.marks.is_empty() || unknown.is_closed;
            unknown.is_asked &= !is_over;
            is_over
        })
    }
}

impl Engine {
    /// Begins to ask for the fates that are unknown, in the background.
    pub(super) fn ask_for_fates(self: &Arc<Self>) {
        if self.fates.begin_to_ask() {
            // Weak: an engine that nobody uses any more has nobody who waits for an answer.
            tasks::spawn(ask_on(Arc::downgrade(self)));
        }
    }

    /// Asks once for each of the fates.
    async fn ask_for_each(&self) {
        let marks = futures_util::stream::iter(self.fates.marks());
        marks.for_each_concurrent(AT_ONCE, |mark| self.ask_for(mark)).await;
    }

    async fn ask_for(&self, mark: Mark) {
        match self.is_committed(mark).await {
            Ok(is_committed) => {
                tracing::info!(is_committed, "the outcome of an unanswered commit is known");
                self.give_back(mark);
                self.fates.forget(mark);
            }
            Err(fault) => tracing::debug!(%fault, "the outcome of a commit is still unknown"),
        }
    }

    /// Waits until the fates of all writes are known that are unknown now.
    pub(super) async fn outcomes_known(&self) -> Result<()> {
        let mut unknown = self.fates.0.subscribe();
        let Some(last) = unknown.borrow().marks.keys().next_back().copied() else {
            return Ok(());
        };

        match unknown.wait_for(|unknown| unknown.is_over(last)).await {
            Ok(unknown) if !unknown.is_closed => Ok(()),
            _ => Err(fault::closed()),
        }
    }
}

/// Asks until nothing is unknown, or the engine is closed or gone.
async fn ask_on(engine: Weak<Engine>) {
    let (mut pause, longest) = PAUSES;
    while let Some(engine) = engine.upgrade() {
        engine.ask_for_each().await;
        if engine.fates.end_asking() {
            return;
        }
        drop(engine);
        sleep(pause).await;
        pause = longest.min(pause * 2);
    }
}
