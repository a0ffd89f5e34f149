//! Sending: begins attempts, and notes their answers.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Lane;
use crate::domain::event::EventId;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{Answer, Verdict, wait_after};
use crate::metadata::{FailureRow, Retried, RetriedFailure};
use crate::service::webhooks::Delivery;
use crate::tasks::step::{Step, reached};

/// The subject of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// An event in the window.
    First(EventId),
    /// An event that failed before.
    Again(FailureRow),
}

impl Attempt {
    fn event(&self) -> EventId {
        match self {
            Self::First(id) => *id,
            Self::Again(row) => row.event,
        }
    }
}

impl Lane {
    /// Begins as many attempts as are allowed now.
    pub(super) async fn begin_sends(&mut self) {
        let config = self.config();
        let most = self.health.at_once(config.concurrency, self.now());
        // A trial is for one kind in turn. Otherwise an event that always fails could be the only trial.
        if most == 1 && self.is_turn_of_first {
            self.begin_first(most);
        }
        // Half of the turns are for events that failed before, so that neither kind waits for the other.
        while self.sending.len() < most && self.retrying.len() < most.div_ceil(2) {
            if !self.begin_again(most).await {
                break;
            }
        }
        self.begin_first(most);
    }

    /// Begins first attempts.
    fn begin_first(&mut self, most: usize) {
        while self.sending.len() < most && self.has_lease() {
            let Some(permit) = self.place() else { return };
            let Some(next) = self.window.next() else { return };
            self.send(Attempt::First(next.id), next.id, next.body, permit);
        }
    }

    /// Begins further attempts of events that are due. Returns false if there is none.
    async fn begin_again(&mut self, most: usize) -> bool {
        let now = self.now();
        if self.next_due.is_none_or(|due| due > now) || !self.has_lease() {
            return false;
        }
        let metadata = &self.shared.store.inner().metadata;
        let limit = most + self.retrying.len();
        let due = match metadata.due_failures(self.row.id, now, limit).await {
            Ok(due) => due,
            Err(error) => {
                self.rest(&error, "looking for due events");
                return false;
            }
        };
        let free = due.into_iter().filter(|row| !self.retrying.contains(&row.row));
        let (mut free, mut has_begun) = (free.collect::<Vec<_>>().into_iter(), false);
        while self.sending.len() < most && self.retrying.len() < most.div_ceil(2) {
            let Some(permit) = self.place() else { break };
            let Some(again) = free.next() else { break };
            self.retrying.insert(again.row);
            let (id, body) = (again.event, Bytes::from(again.body.clone()));
            self.send(Attempt::Again(again), id, body, permit);
            has_begun = true;
        }
        has_begun
    }

    /// Takes a place for a delivery. If slow endpoints have all of them, a lane can still send one event at a time.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        let own = || take(&self.shared.own_places).filter(|_| self.sending.is_empty());
        take(&self.shared.places).or_else(own)
    }

    fn send(&mut self, attempt: Attempt, id: EventId, body: Bytes, permit: OwnedSemaphorePermit) {
        self.is_turn_of_first = matches!(attempt, Attempt::Again(_));
        let (store, row) = (self.shared.store.clone(), Arc::clone(&self.row));
        self.sending.spawn(async move {
            let state = &store.inner().webhooks;
            let (url, secrets) = (&row.url, &row.secrets);
            let delivery = Delivery { url, secrets, id: id.to_string(), body, at: store.now() };
            let answer = state.deliver(&store.config().webhooks, &delivery).await;
            state.count(answer.verdict());
            (attempt, answer, permit)
        });
    }

    pub(super) fn note(&mut self, attempt: Attempt, answer: Answer) {
        reached(Step::DeliveryAnswered);
        let now = self.now();
        let is_trusted = self.shared.store.inner().background.may_remove();
        let patience = is_trusted.then_some(self.config().disable_after);
        let disable = self.health.note(attempt.event(), answer, now, patience, fastrand::f64());
        self.unsaved.disable = self.unsaved.disable.or(disable);
        self.unsaved.is_answered = true;
        match attempt {
            Attempt::First(id) => self.note_first(id, answer, now),
            Attempt::Again(row) => self.note_again(&row, answer, now),
        }
        if self.unsaved.disable.is_some() {
            self.is_stopping = true;
        }
    }

    fn note_first(&mut self, id: EventId, answer: Answer, now: Timestamp) {
        match answer.verdict() {
            Verdict::Delivered => self.window.finish(id),
            Verdict::Gone | Verdict::EndpointFault(_) => self.window.put_back(id),
            Verdict::EventFault => {
                let wait = wait_after(1, fastrand::f64()).unwrap_or_default();
                let rows = self.window.fail(id, now.plus(wait), answer.status());
                self.unsaved.failed.extend(rows);
            }
        }
    }

    fn note_again(&mut self, row: &FailureRow, answer: Answer, now: Timestamp) {
        self.retrying.remove(&row.row);
        let attempts = row.attempts + 1;
        let outcome = match answer.verdict() {
            Verdict::Delivered => Retried::Delivered,
            Verdict::Gone | Verdict::EndpointFault(_) => return,
            Verdict::EventFault => match wait_after(attempts, fastrand::f64()) {
                Some(wait) => Retried::Postponed(now.plus(wait)),
                None => Retried::GivenUp,
            },
        };
        if outcome == Retried::GivenUp {
            let (webhook, event) = (self.row.id, row.event);
            tracing::warn!(%webhook, %event, "all attempts to send an event have failed");
        }
        self.unsaved.retried.push(RetriedFailure {
            row: row.row,
            file: row.file,
            outcome,
            attempts,
            status: answer.status(),
        });
    }
}
