//! A reader of explanations, and their oracle: what an explanation says must come, and not before.

use std::cell::RefCell;
use std::time::Duration;

use filestore_core::events::EventKind;
use filestore_core::explain::{ExplainedFile, Explanation, Reader, Step, StepCode};
use filestore_core::internals::tasks::simulation;
use filestore_core::receipts::DeletedBy;
use filestore_core::{Clock, ErrorKind, FileId, FileRecord, FileStore, Scope, Timestamp};
use tokio::time::sleep;

use super::client::{pause, pause_for};
use super::model::{Fate, Model};

/// The longest time to wait for a step. Steps that come later, for example the end of a receipt, are not
/// followed.
const HORIZON: Duration = Duration::from_mins(25);

/// The time that a due step takes on the local disk: the longest pause of a worker, several times.
const LOCAL_PATIENCE: Duration = Duration::from_mins(1);

/// The time that a due step takes at a provider, whose failing calls keep the places of a lane until each
/// has met its time limits.
const CLOUD_PATIENCE: Duration = Duration::from_mins(12);

/// The pause between two looks at a step that is due.
const LOOK_MILLIS: u64 = 5_000;

/// Explains files, and waits for what was said.
pub(crate) struct Explainer<'a> {
    pub(crate) store: &'a FileStore,
    pub(crate) clock: &'a Clock,
    pub(crate) model: &'a RefCell<Model>,
}

impl Explainer<'_> {
    /// Follows one file after the other, for ever.
    pub(crate) async fn run(&self) {
        loop {
            pause(5, 60).await;
            if let Some(id) = self.some_file() {
                self.follow(id).await;
            }
        }
    }

    /// Explains a file, waits until a step that was said must have come, and checks that it has.
    async fn follow(&self, id: FileId) {
        let Some(said) = self.explain(id).await else { return };
        let chosen = usize::try_from(simulation::below(said.next.len() as u64)).unwrap();
        let step = &said.next[chosen];
        let Some(due) = step.not_before else { return };
        if !step.waits_for.is_empty() || due > said.explained_at.plus(HORIZON) {
            return;
        }
        simulation::note(|| format!("{} explains {id}: {} at {due}", said.explained_at, step.code));

        self.sleep_until(due.minus(Duration::from_secs(1))).await;
        self.expect_not_before(id, &said, step).await;
        self.sleep_until(due).await;
        self.expect_soon(id, &said, step).await;
    }

    /// Expects that replaced content is still listed a second before its time.
    async fn expect_not_before(&self, id: FileId, said: &Explanation, step: &Step) {
        let is_replaced = step.code == StepCode::RemoveReplaced && step.attempt == Some(1);
        let (Some(before), true) = (live(said), is_replaced) else { return };
        let Some(now) = self.explain(id).await else { return };
        // Work that is due already can be done at any time.
        let is_early = step.not_before > Some(now.explained_at);
        if is_early && live(&now).is_some_and(|record| record.blob == before.blob) {
            let is_listed = same_step(&now, step).is_some();
            assert!(is_listed || !self.is_untouched(id), "{id} lost {step:?} too early: {now:?}");
        }
    }

    /// Expects that a due step comes, is tried, gets an obstacle, or that the file changes in another way.
    async fn expect_soon(&self, id: FileId, said: &Explanation, step: &Step) {
        let is_local = step.provider.as_ref().is_none_or(filestore_core::ProviderCode::is_local)
            && record(said).is_none_or(|record| record.blob.provider.is_local());
        let patience = if is_local { LOCAL_PATIENCE } else { CLOUD_PATIENCE };
        let end = self.clock.now().plus(patience);

        loop {
            let Some(now) = self.explain(id).await else { return };
            self.expect_not_too_early(id, said, step, &now);
            let is_changed = record(&now) != record(said);
            let Some(still) = same_step(&now, step).filter(|_| !is_changed) else {
                self.model.borrow_mut().explained += 1;
                return;
            };
            let is_postponed = still.not_before > Some(now.explained_at);
            if !still.waits_for.is_empty() || is_postponed {
                return;
            }
            assert!(now.explained_at < end, "{id} waits for ever at {step:?}: {now:?}");
            pause_for(LOOK_MILLIS).await;
        }
    }

    /// Expects that a file neither expired nor was purged before the time that was said.
    fn expect_not_too_early(&self, id: FileId, said: &Explanation, step: &Step, now: &Explanation) {
        match (&said.file, &now.file, step.code) {
            (ExplainedFile::Stored(before), ExplainedFile::Purged(purged), StepCode::Purge)
                if step.undo.is_some() =>
            {
                let is_same = before.deletion.map(|it| it.deleted_at) == Some(purged.deleted_at);
                let is_early = is_same && Some(purged.purged_at) < step.not_before;
                assert!(!is_early || !self.is_untouched(id), "{id} was purged early: {step:?}");
            }
            (ExplainedFile::Stored(_), ExplainedFile::Stored(record), StepCode::Expire) => {
                let has_expired = now.why.iter().any(|fact| fact.sentence.contains("expired"));
                let at = record.deletion.map(|deletion| deletion.deleted_at);
                assert!(!has_expired || at >= step.not_before, "{id} expired early: {step:?}");
            }
            _ => {}
        }
    }

    /// Explains a file. `None` if the database or the store is not able to.
    async fn explain(&self, id: FileId) -> Option<Explanation> {
        let all = self.store.scoped(&Scope::All);
        match all.explain(id, Reader::Operator).await {
            Ok(explained) => {
                expect_history(&explained);
                Some(explained)
            }
            Err(error) => {
                assert_ne!(
                    error.kind(),
                    ErrorKind::NotFound,
                    "{id} has neither record nor receipt"
                );
                assert_ne!(error.kind(), ErrorKind::Internal, "{}", error.chain());
                None
            }
        }
    }

    async fn sleep_until(&self, at: Timestamp) {
        let millis = at.as_millis() - self.clock.now().as_millis();
        sleep(Duration::from_millis(u64::try_from(millis).unwrap_or(0))).await;
    }

    /// Tells if no erasure can have touched the file.
    fn is_untouched(&self, id: FileId) -> bool {
        let mut model = self.model.borrow_mut();
        let (origin, moment) = (model.files[&id].origin, model.next_moment());
        model.fate(origin, moment) == Fate::Untouched
    }

    /// Chooses a file, mostly one of the latest.
    fn some_file(&self) -> Option<FileId> {
        let model = self.model.borrow();
        let files = model.files.len() as u64;
        let back =
            simulation::below(files.min(if simulation::below(4) == 0 { files } else { 12 }).max(1));
        model.files.keys().rev().nth(usize::try_from(back).unwrap()).copied()
    }
}

/// Checks that no work is left for a file after a calm.
pub(crate) async fn nothing_is_left_to_come(store: &FileStore, model: &RefCell<Model>) {
    let files: Vec<FileId> = model.borrow().files.keys().copied().collect();
    for id in files {
        let explained = store.scoped(&Scope::All).explain(id, Reader::Operator).await.unwrap();
        let is_quiet =
            |step: &Step| matches!(step.code, StepCode::Nothing | StepCode::ForgetReceipt);
        assert!(explained.next.iter().all(is_quiet), "after the calm: {explained:?}");
    }
}

/// Expects that a whole history tells of the version that the record has, and of a purge.
fn expect_history(explained: &Explanation) {
    let history = &explained.history;
    if !history.is_whole {
        return;
    }
    let told = history.events.iter().filter_map(|event| event.version).max();
    match &explained.file {
        // The history is read after the record, and can be newer.
        ExplainedFile::Stored(record) => {
            assert!(told >= Some(record.version), "{told:?} in the history of {record:?}");
        }
        // An erasure tells nothing of single files.
        ExplainedFile::Purged(purged) if purged.deleted_by == DeletedBy::Erasure => {}
        ExplainedFile::Purged(_) => {
            let last = history.events.last().map(|event| event.kind);
            assert_eq!(last, Some(EventKind::FilePurged), "{explained:?}");
        }
    }
}

fn record(explained: &Explanation) -> Option<&FileRecord> {
    match &explained.file {
        ExplainedFile::Stored(record) => Some(record),
        ExplainedFile::Purged(_) => None,
    }
}

fn live(explained: &Explanation) -> Option<&FileRecord> {
    record(explained).filter(|record| !record.state.is_deleted())
}

/// Finds the step in another explanation: the same work at the same attempt.
fn same_step<'e>(explained: &'e Explanation, step: &Step) -> Option<&'e Step> {
    let key = |one: &Step| (one.code, one.provider.clone(), one.attempt, one.undo);
    explained.next.iter().find(|one| key(one) == key(step))
}
