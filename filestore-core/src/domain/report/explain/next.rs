//! The next steps of a file, by state and binding.

use std::time::Duration;

use super::facts::counted;
use super::{Bound, Circumstances, Fact, FactCode, ReplacedBlobs, Step, StepCode, Subject};
use crate::domain::file::status::{Location, PurgeStatus, Status, SyncStatus};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::health::{BreakerHealth, BreakerState};
use crate::domain::time::clock::Timestamp;

impl Subject<'_> {
    /// Lists the step of the file itself, and then the removal of replaced content.
    pub(super) fn next(&self) -> Vec<Step> {
        let replaced = self.work.replaced.iter().filter(|group| self.goes_alone(group));
        let removals = replaced.map(|group| self.remove_replaced(group));
        std::iter::once(self.main_step()).chain(removals).collect()
    }

    /// Returns the step of the file. Every state and binding has an arm, so that a new one does not
    /// compile without a decision.
    fn main_step(&self) -> Step {
        let state = self.record().state;
        match state.purge() {
            Some(PurgeStatus::SystemPurge) => return self.purge(),
            None => {}
        }
        match state.status() {
            Status::Temp => return self.expire(),
            Status::Thumbnail => return Self::nothing(),
            Status::Ready => {}
        }
        match (state.sync(), self.bound()) {
            (SyncStatus::Pending, Bound::Nowhere | Bound::Local | Bound::Here) => self.settle(),
            (SyncStatus::Pending, Bound::Elsewhere(to)) => self.copy(to),
            (
                SyncStatus::Syncing,
                Bound::Nowhere | Bound::Local | Bound::Here | Bound::Elsewhere(_),
            ) => self.copying(),
            (
                SyncStatus::Failed,
                Bound::Nowhere | Bound::Local | Bound::Here | Bound::Elsewhere(_),
            ) => self.migrated().unwrap_or_else(|| self.retry_by_hand()),
            (
                SyncStatus::None | SyncStatus::Synced,
                Bound::Nowhere | Bound::Local | Bound::Here,
            ) => self.migrated().unwrap_or_else(Self::nothing),
            (SyncStatus::None | SyncStatus::Synced, Bound::Elsewhere(to)) => {
                self.migrated().unwrap_or_else(|| self.stays_elsewhere(to))
            }
        }
    }

    fn settle(&self) -> Step {
        let sentence = "the sync status becomes NONE, because the file needs no copy";
        Step::new(StepCode::Settle, sentence).not_before(self.seen.now)
    }

    fn copy(&self, to: &ProviderCode) -> Step {
        let record = self.record();
        let obstacles = self.seen.obstacles_to_copy(self.holder(), to);
        let due = self.sooner_after_an_outage(self.work.sync_not_before, &obstacles);
        let attempt = record.sync_attempts + 1;
        let step = Step::new(StepCode::Copy, format!("the sync worker copies the content to {to}"))
            .at(to.clone())
            .not_before(due)
            .attempt(attempt)
            .waiting_for(obstacles)
            .then(self.effects_of_a_copy(to));
        Step { max_attempts: Some(self.seen.config.sync.max_attempts), ..step }
    }

    fn copying(&self) -> Step {
        let to = self.work.writes.first().map(|write| &write.provider);
        let to = to.or_else(|| match self.bound() {
            Bound::Elsewhere(to) => Some(to),
            Bound::Nowhere | Bound::Local | Bound::Here => None,
        });
        let step = Step::new(StepCode::Copying, "the content is being copied to its provider")
            .not_before(self.seen.now)
            .attempt(self.record().sync_attempts + 1);
        let step = Step { max_attempts: Some(self.seen.config.sync.max_attempts), ..step };
        match to {
            Some(to) => step.then(self.effects_of_a_copy(to)).at(to.clone()),
            None => step,
        }
    }

    /// Describes the state after a copy. The bytes at the old place stay for readers that have begun.
    fn effects_of_a_copy(&self, to: &ProviderCode) -> [Fact; 2] {
        let (from, to) = (self.seen.shown(self.holder()), self.seen.shown(to));
        let grace = self.seen.config.blob_grace;
        let served = format!("the file is SYNCED, and {to} stores the content");
        let removed = format!("the bytes at {from} are removed {} later", span(grace));
        [
            Fact::new(FactCode::Served, served).at(to),
            Fact::new(FactCode::OldBytesRemoved, removed).at(from),
        ]
    }

    /// Describes the running migration, if the file is not at its target. The migration passes a file
    /// that arrived behind its position.
    fn migrated(&self) -> Option<Step> {
        let target = self.seen.migration.as_ref().filter(|target| *target != self.holder())?;
        let provider = self.seen.shown(target);
        let sentence = format!("the running migration moves the content to {provider}");
        let obstacles = self.seen.obstacles_to_copy(self.holder(), target);
        Some(Step::new(StepCode::Move, sentence).at(provider).waiting_for(obstacles))
    }

    fn retry_by_hand(&self) -> Step {
        let attempts = u64::from(self.record().sync_attempts);
        let sentence = format!(
            "filestore tries no further copy after {}: `filestore sync retry` starts again",
            counted(attempts, "failed attempt")
        );
        Step::new(StepCode::RetryByHand, sentence)
    }

    fn nothing() -> Step {
        Step::new(StepCode::Nothing, "no work waits for the file: it stays where it is")
    }

    fn stays_elsewhere(&self, to: &ProviderCode) -> Step {
        let organization = &self.record().organization_id;
        let sentence = format!(
            "the file stays where it is: `filestore sync enqueue --org {organization}` or `filestore migrate \
             run` moves it to {to}"
        );
        Step::new(StepCode::Nothing, sentence)
    }

    fn expire(&self) -> Step {
        let grace = span(self.seen.config.purge_grace);
        let effect = format!("the file is deleted, and purged {grace} later");
        let step =
            Step::new(StepCode::Expire, "the TEMP file expires, unless it is promoted before");
        let step = step
            .waiting_for(self.seen.clock_obstacle().into_iter().collect())
            .then([Fact::new(FactCode::DeletedByExpiry, effect)]);
        let expires_at = self.record().expires_at.map(|at| self.not_past(at));
        Step { not_before: expires_at, undo: Some("ready"), ..step }
    }

    fn purge(&self) -> Step {
        if !self.work.purge.is_claimed {
            return self.first_purge();
        }
        if self.work.purge.is_leased && self.work.purge.not_before > self.seen.now {
            let sentence = "the purge is removing the bytes and the record";
            return self.ending(Step::new(StepCode::Purge, sentence).not_before(self.seen.now));
        }

        let elsewhere = self.work.replaced.iter().filter(|group| self.is_elsewhere(group));
        let awaited: Vec<_> = elsewhere.map(|group| self.awaited(group)).collect();
        let mut obstacles = self.seen.obstacles_to_removal(self.holder());
        let due = self.sooner_after_an_outage(self.work.purge.not_before, &obstacles);
        let (code, sentence) = if awaited.is_empty() {
            (StepCode::Purge, "the purge removes the bytes and then the record")
        } else {
            (StepCode::AwaitReplaced, "the purge removes the record after the replaced content")
        };
        obstacles.extend(awaited);
        let step = Step::new(code, sentence).not_before(due).waiting_for(obstacles);
        self.ending(step.attempt(self.work.purge.attempts + 1))
    }

    /// Describes the purge of a file that can still be restored.
    fn first_purge(&self) -> Step {
        let due = self.record().purge_due_at(self.seen.config.purge_grace);
        let mut obstacles = self.seen.obstacles_to_removal(self.holder());
        obstacles.extend(held(self.work.held_until));
        let step = Step::new(StepCode::Purge, "the purge removes the bytes and then the record");
        let step = step.waiting_for(obstacles).attempt(1);
        let not_before = due.map(|due| self.not_past(due));
        self.ending(Step { not_before, undo: Some("restore"), ..step })
    }

    /// Adds the receipt to a purge.
    fn ending(&self, step: Step) -> Step {
        let kept = self.seen.config.receipt_retention;
        let until = step.not_before.map(|at| at.plus(kept));
        let sentence = format!("a purge receipt proves for {} that the file is gone", span(kept));
        step.then([Fact::new(FactCode::Receipt, sentence).until(until)])
    }

    /// Tests whether a lane of its own removes the replaced blobs. The purge of a claimed file removes
    /// the blobs at the file's provider and on the local disk itself.
    fn goes_alone(&self, group: &ReplacedBlobs) -> bool {
        !self.work.purge.is_claimed || self.is_elsewhere(group)
    }

    fn is_elsewhere(&self, group: &ReplacedBlobs) -> bool {
        !group.provider.is_local() && group.provider != *self.holder()
    }

    fn awaited(&self, group: &ReplacedBlobs) -> Fact {
        let provider = self.seen.shown(&group.provider);
        let sentence = format!("{} at {provider}", counted(group.count, "replaced blob"));
        Fact::new(FactCode::ReplacedElsewhere, sentence).at(provider).counting(group.count)
    }

    fn remove_replaced(&self, group: &ReplacedBlobs) -> Step {
        let mut obstacles = self.seen.obstacles_to_removal(&group.provider);
        let due = self.sooner_after_an_outage(group.first_due_at, &obstacles);
        obstacles.extend(held(self.work.replaced_held_until));
        let provider = self.seen.shown(&group.provider);
        let sentence = format!("the replaced content at {provider} is removed");
        let step = Step::new(StepCode::RemoveReplaced, sentence).at(provider);
        step.not_before(due).waiting_for(obstacles).attempt(group.attempts + 1)
    }

    /// Returns the due time of work. During an outage, a trial can succeed before, and then ends all waits.
    fn sooner_after_an_outage(&self, due: Timestamp, obstacles: &[Fact]) -> Timestamp {
        let outages = obstacles.iter().filter(|fact| fact.code == FactCode::ProviderDown);
        let trial = outages.map(|outage| outage.until.unwrap_or(self.seen.now)).min();
        self.not_past(trial.map_or(due, |trial| trial.min(due)))
    }
}

impl Circumstances<'_> {
    /// Lists the obstacles to a copy from `holder` to `target`.
    fn obstacles_to_copy(&self, holder: &ProviderCode, target: &ProviderCode) -> Vec<Fact> {
        let mut obstacles = Vec::new();
        match self.provider(target) {
            None => obstacles.push(self.missing(target)),
            Some(known)
                if !target.is_local()
                    && (!known.provider.is_active
                        || known.provider.location != Location::Cloud) =>
            {
                let sentence = format!("{target} accepts no copies");
                let fact = Fact::new(FactCode::ProviderInactive, sentence);
                obstacles.push(fact.at(self.shown(target)));
            }
            Some(_) => {}
        }
        obstacles.extend(self.outage(target, |health| &health.writes));

        if self.provider(holder).is_none() {
            obstacles.push(self.missing(holder));
        }
        obstacles.extend(self.outage(holder, |health| &health.reads));
        obstacles
    }

    /// Lists the obstacles to a removal at `holder`.
    pub(super) fn obstacles_to_removal(&self, holder: &ProviderCode) -> Vec<Fact> {
        let missing = self.provider(holder).is_none().then(|| self.missing(holder));
        let outage = self.outage(holder, |health| &health.writes);
        self.clock_obstacle().into_iter().chain(missing).chain(outage).collect()
    }

    fn missing(&self, code: &ProviderCode) -> Fact {
        let provider = self.shown(code);
        let sentence = format!("{provider} is not configured: the work rests until it is");
        Fact::new(FactCode::ProviderMissing, sentence).at(provider)
    }

    /// Describes the outage of a provider, if one of its breakers is open.
    fn outage(
        &self,
        code: &ProviderCode,
        breaker: impl Fn(&crate::domain::provider::health::ProviderHealth) -> &BreakerHealth,
    ) -> Option<Fact> {
        let health = self.provider(code)?.health.as_ref()?;
        let breaker = breaker(health);
        let provider = self.shown(code);
        let (code, sentence) = if health.is_misplaced {
            let sentence = format!("{provider} does not show the marker of the store");
            (FactCode::ProviderMisplaced, sentence)
        } else if breaker.state == BreakerState::Closed {
            return None;
        } else {
            let sentence = format!("{provider} does not answer: each trial might end the wait");
            (FactCode::ProviderDown, sentence)
        };
        let error = breaker.last_error.as_ref().map(|fault| fault.text.clone());
        let error = error.filter(|_| self.reader == super::Reader::Operator);
        let fact = Fact::new(code, sentence).at(provider).since(breaker.since);
        Some(fact.until(breaker.next_trial).because(error))
    }

    fn clock_obstacle(&self) -> Option<Fact> {
        let settle = span(self.config.clock_settle);
        (!self.may_remove).then(|| {
            let sentence =
                format!("the clock jumped forward: the store removes nothing until it was stable for {settle}");
            Fact::new(FactCode::ClockUnsettled, sentence)
        })
    }
}

/// Describes the hold of a running snapshot.
fn held(until: Option<Timestamp>) -> Option<Fact> {
    let sentence = "a running snapshot protects the bytes, and renews its hold";
    until.map(|until| Fact::new(FactCode::SnapshotHold, sentence).until(Some(until)))
}

/// Writes a duration in its largest whole unit, for example `30 days`.
fn span(duration: Duration) -> String {
    let secs = duration.as_secs();
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let unit = units.into_iter().find(|(unit, _)| secs >= *unit && secs.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "second"));
    counted(secs / unit, name)
}
