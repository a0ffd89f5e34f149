//! Writes with an unknown outcome.
//!
//! # Crash safety
//! The connection was lost at the COMMIT and the database did not answer for a while, or the transaction did
//! not end. The write can still be committed later. Dependent work therefore waits ([`Fates::known`]), while
//! the outcome is queried again and again. If the process ends before that, the next process resolves the
//! outcome (`writers`).

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use crate::domain::error::Result;

use super::fault::{self, Fault};
use super::marks::Mark;

/// The first and the longest pause between two queries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The number of concurrent queries. Each can wait on a connection for the end of its transaction.
const AT_ONCE: usize = 2;

/// The marks of writes with an unknown outcome.
#[derive(Default)]
struct Unknown {
    /// The marks by number. Numbers only grow.
    marks: BTreeMap<i64, Mark>,
    /// True while a task queries the outcomes.
    is_asked: bool,
    is_closed: bool,
    /// The write permits of these writes. The permits are not reused before the outcomes are known.
    turns: Vec<OwnedSemaphorePermit>,
}

impl Unknown {
    /// Returns the write permits of resolved writes.
    fn give_turns_back(&mut self) {
        self.turns.truncate(self.marks.len());
    }

    /// Returns true if no outcome up to this number is unknown.
    fn is_over(&self, last: i64) -> bool {
        self.is_closed || self.marks.range(..=last).next().is_none()
    }
}

/// The writes of an engine with an unknown outcome.
pub(in crate::metadata::postgres) struct Fates(watch::Sender<Unknown>);

impl Default for Fates {
    fn default() -> Self {
        Self(watch::Sender::new(Unknown::default()))
    }
}

impl Fates {
    /// Records a write with an unknown outcome.
    pub(in crate::metadata::postgres) fn note(&self, mark: Mark) {
        self.0.send_modify(|unknown| {
            unknown.marks.insert(mark.number, mark);
        });
    }

    /// Keeps the permit of a recorded write until an outcome is known.
    pub(in crate::metadata::postgres) fn keep(&self, turn: OwnedSemaphorePermit) {
        self.0.send_modify(|unknown| {
            unknown.turns.push(turn);
            unknown.give_turns_back();
        });
    }

    /// Ends all waits. No outcome is queried any longer.
    pub(in crate::metadata::postgres) fn close(&self) {
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

    /// Becomes the task that queries, if there is an unknown outcome and no such task.
    pub(super) fn begin_to_ask(&self) -> bool {
        self.0.send_if_modified(|unknown| {
            let is_wanted = !unknown.marks.is_empty() && !unknown.is_asked && !unknown.is_closed;
            unknown.is_asked |= is_wanted;
            is_wanted
        })
    }

    /// Ends this role if no outcome is unknown.
    fn end_asking(&self) -> bool {
        self.0.send_if_modified(|unknown| {
            let is_over = unknown.marks.is_empty() || unknown.is_closed;
            unknown.is_asked &= !is_over;
            is_over
        })
    }

    /// Waits until all currently unknown outcomes are known.
    pub(super) async fn known(&self) -> Result<()> {
        let mut unknown = self.0.subscribe();
        let Some(last) = unknown.borrow().marks.keys().next_back().copied() else {
            return Ok(());
        };

        match unknown.wait_for(|unknown| unknown.is_over(last)).await {
            Ok(unknown) if !unknown.is_closed => Ok(()),
            _ => Err(fault::closed()),
        }
    }
}

/// An engine that can query the outcome of a write.
pub(super) trait Asks: Send + Sync + 'static {
    /// Returns the unknown outcomes.
    fn fates(&self) -> &Fates;

    /// Queries once whether a write was committed. Waits for its end.
    fn is_committed(&self, mark: Mark) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Frees the row of a mark for another write, after the outcome of this write is known.
    fn give_back(&self, mark: Mark);
}

/// Queries until no outcome is unknown, or the engine is closed or dropped.
pub(super) async fn ask_on(engine: Weak<impl Asks>) {
    let (mut pause, longest) = PAUSES;
    while let Some(engine) = engine.upgrade() {
        let marks = futures_util::stream::iter(engine.fates().marks());
        marks.for_each_concurrent(AT_ONCE, |mark| ask_for(&*engine, mark)).await;
        if engine.fates().end_asking() {
            return;
        }
        drop(engine);
        sleep(pause).await;
        pause = longest.min(pause * 2);
    }
}

/// Queries one outcome once.
async fn ask_for(engine: &impl Asks, mark: Mark) {
    match engine.is_committed(mark).await {
        Ok(is_committed) => {
            tracing::info!(is_committed, "the outcome of an unanswered commit is known");
            engine.give_back(mark);
            engine.fates().forget(mark);
        }
        Err(fault) => tracing::debug!(%fault, "the outcome of a commit is still unknown"),
    }
}
