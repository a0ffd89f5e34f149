use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::domain::config::StoreConfig;
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, Deletion};
use crate::domain::file::status::{Location, PurgeStatus, Status, SyncStatus};
use crate::domain::id::{BlobId, Sha256};
use crate::domain::provider::Provider;
use crate::domain::provider::binding::{Binding, NewBinding};
use crate::domain::provider::health::{BreakerHealth, BreakerState, ProviderFault, ProviderHealth};
use crate::domain::report::receipt::{AwaitedBlob, Content, DeletedBy, RemovedBlob};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(1_795_248_930_000 + secs * 1000)
}

fn code(text: &str) -> ProviderCode {
    text.parse().unwrap()
}

/// A READY, PENDING file of organization 42 in the data directory.
fn file() -> FileWork {
    let organization: OrganizationId = "42".parse().unwrap();
    let sub_system = "gallery".parse().unwrap();
    let key = BlobKey::new(&organization, &sub_system, at(0), BlobId::generate(at(0)));
    let blob = Blob::new(ProviderCode::local(), key, 5, Sha256([7; 32]), at(0));
    let state = FileState::uploaded(Location::Local);
    FileWork {
        record: FileRecord::new(FileId::generate(at(0)), organization, sub_system, state, blob),
        deleted_by: None,
        sync_not_before: Timestamp::from_millis(0),
        purge: PurgeWork {
            is_claimed: false,
            is_leased: false,
            not_before: Timestamp::from_millis(0),
            attempts: 0,
        },
        replaced: Vec::new(),
        writes: Vec::new(),
        held_until: None,
        replaced_held_until: None,
        binding: None,
    }
}

/// The same file, deleted at `at(0)`.
fn deleted_file() -> FileWork {
    let mut work = file();
    work.record.state = work.record.state.delete();
    work.record.deletion = Some(Deletion::at(at(0)));
    work.deleted_by = Some(DeletedBy::OpenMode);
    work
}

fn binding(provider: &str) -> Binding {
    let new = NewBinding::new(42.try_into().unwrap(), "Acme", code(provider)).with_sync();
    Binding::begun(1, &new, at(0))
}

fn known(text: &str, location: Location) -> KnownProvider {
    let provider = Provider { code: code(text), name: text.to_owned(), location, is_active: true };
    let breaker = BreakerHealth {
        state: BreakerState::Closed,
        since: at(0),
        consecutive_failures: 0,
        last_error: None,
        next_trial: None,
    };
    let health = ProviderHealth {
        provider: code(text),
        writes: breaker.clone(),
        reads: breaker,
        is_misplaced: false,
    };
    KnownProvider { provider, health: (text != "LOCAL").then_some(health) }
}

/// Opens the breaker for writes at `at(5)`, until a trial at `trial`.
fn down(mut known: KnownProvider, trial: i64) -> KnownProvider {
    let writes = &mut known.health.as_mut().unwrap().writes;
    (writes.state, writes.since) = (BreakerState::Open, at(5));
    writes.next_trial = Some(at(trial));
    writes.last_error = Some(ProviderFault { at: at(5), text: "refused by 10.0.0.1".into() });
    known
}

/// The state of a store, at `at(10)`.
struct World {
    config: StoreConfig,
    providers: Vec<KnownProvider>,
    migration: Option<ProviderCode>,
    may_remove: bool,
    reader: Reader,
}

impl World {
    fn new() -> Self {
        let providers = vec![
            known("LOCAL", Location::Local),
            known("house", Location::Local),
            known("eu", Location::Cloud),
            known("us", Location::Cloud),
        ];
        let config = StoreConfig::default();
        Self { config, providers, migration: None, may_remove: true, reader: Reader::Organization }
    }

    fn with(mut self, changed: KnownProvider) -> Self {
        self.providers.retain(|known| known.provider.code != changed.provider.code);
        self.providers.push(changed);
        self
    }

    fn without(mut self, provider: &str) -> Self {
        self.providers.retain(|known| known.provider.code.as_str() != provider);
        self
    }

    fn seen(&self) -> Circumstances<'_> {
        Circumstances {
            now: at(10),
            config: &self.config,
            providers: &self.providers,
            migration: self.migration.clone(),
            may_remove: self.may_remove,
            reader: self.reader,
        }
    }

    fn explain(&self, work: &FileWork) -> Explanation {
        explain(work, &self.seen())
    }

    fn step(&self, work: &FileWork) -> Step {
        self.explain(work).next.swap_remove(0)
    }
}

fn codes(facts: &[Fact]) -> Vec<&'static str> {
    facts.iter().map(|fact| fact.code.as_str()).collect()
}

/// Returns every state that the lifecycle allows.
fn all_states() -> Vec<FileState> {
    let mut states = Vec::new();
    for &status in Status::ALL {
        for &sync in SyncStatus::ALL {
            for purge in [None, Some(PurgeStatus::SystemPurge)] {
                for &location in Location::ALL {
                    states.extend(FileState::from_row(status, sync, purge, location));
                }
            }
        }
    }
    states
}

#[test]
fn every_state_with_every_binding_has_one_next_step() {
    let world = World::new();
    let mut met = BTreeSet::new();

    for state in all_states() {
        let holder = if state.location() == Location::Cloud { "eu" } else { "LOCAL" };
        for bound in [None, Some("LOCAL"), Some("eu"), Some("us")] {
            let mut work = file();
            work.record.state = state;
            work.record.blob.provider = code(holder);
            work.record.deletion = state.is_deleted().then(|| Deletion::at(at(0)));
            work.record.expires_at = (state.status() == Status::Temp).then(|| at(20));
            work.binding = bound.map(binding);

            let explained = world.explain(&work);
            let [step] = &explained.next[..] else { panic!("{state:?} {bound:?}: {explained:?}") };
            let bound_to = bound.map(code);
            let awaits = work.record.awaits_copy(bound_to.as_ref());
            let expected = match (state.is_deleted(), state.status(), state.sync()) {
                (true, ..) => StepCode::Purge,
                (false, Status::Temp, _) => StepCode::Expire,
                (false, Status::Ready, SyncStatus::Pending) if awaits => StepCode::Copy,
                (false, Status::Ready, SyncStatus::Pending) => StepCode::Settle,
                (false, Status::Ready, SyncStatus::Syncing) => StepCode::Copying,
                (false, Status::Ready, SyncStatus::Failed) => StepCode::RetryByHand,
                (false, Status::Thumbnail, _)
                | (false, Status::Ready, SyncStatus::None | SyncStatus::Synced) => {
                    StepCode::Nothing
                }
            };
            assert_eq!(step.code, expected, "{state:?} at {holder}, bound to {bound:?}");
            let is_timed = !matches!(expected, StepCode::Nothing | StepCode::RetryByHand);
            assert_eq!(step.not_before.is_some(), is_timed, "{step:?}");
            assert!(!explained.place.is_empty() && !explained.why.is_empty(), "{explained:?}");
            met.insert(expected.as_str());
        }
    }
    assert_eq!(met.len(), 7, "{met:?}");
}

#[test]
fn a_copy_waits_after_a_failure_and_says_which_attempt_is_next() {
    let mut work = file();
    work.binding = Some(binding("eu"));
    work.sync_not_before = at(60);
    (work.record.sync_attempts, work.record.sync_error) = (3, Some("timed out".into()));

    let explained = World::new().explain(&work);
    let step = &explained.next[0];
    assert_eq!((step.code, step.not_before, step.attempt), (StepCode::Copy, Some(at(60)), Some(4)));
    assert!(step.waits_for.is_empty());
    assert_eq!(codes(&step.then), ["served", "old_bytes_removed"]);
    assert_eq!(codes(&explained.tried), ["copy_failed"]);
    assert_eq!(explained.tried[0].error.as_deref(), Some("timed out"));
}

#[test]
fn an_outage_is_named_and_can_end_the_wait_before_its_time() {
    let mut work = file();
    work.binding = Some(binding("eu"));
    work.sync_not_before = at(60);
    let mut world = World::new().with(down(known("eu", Location::Cloud), 30));

    let step = world.step(&work);
    assert_eq!((step.not_before, codes(&step.waits_for)), (Some(at(30)), vec!["provider_down"]));
    let outage = &step.waits_for[0];
    assert_eq!((outage.since, outage.until), (Some(at(5)), Some(at(30))));
    assert_eq!(outage.error, None, "an organization sees no words of a provider");

    world.reader = Reader::Operator;
    let error = world.step(&work).waits_for[0].error.clone();
    assert_eq!(error.as_deref(), Some("refused by 10.0.0.1"));
}

#[test]
fn a_provider_that_is_gone_or_inactive_keeps_its_work_waiting() {
    let mut work = file();
    work.binding = Some(binding("eu"));
    let missing = World::new().without("eu").step(&work);
    assert_eq!(
        (missing.code, codes(&missing.waits_for)),
        (StepCode::Copy, vec!["provider_missing"])
    );

    let mut inactive = known("eu", Location::Cloud);
    inactive.provider.is_active = false;
    let step = World::new().with(inactive).step(&work);
    assert_eq!(codes(&step.waits_for), ["provider_inactive"]);

    let mut deleted = deleted_file();
    deleted.record.blob.provider = code("eu");
    let step = World::new().without("eu").step(&deleted);
    assert_eq!((step.code, codes(&step.waits_for)), (StepCode::Purge, vec!["provider_missing"]));
}

#[test]
fn a_deleted_file_can_be_restored_until_its_purge_begins() {
    let mut work = deleted_file();
    let world = World::new();
    let due = at(0).plus(world.config.purge_grace);
    let step = world.step(&work);
    assert_eq!((step.not_before, step.undo), (Some(due), Some("restore")));
    assert_eq!(step.then[0].until, Some(due.plus(world.config.receipt_retention)));

    work.purge.is_claimed = true;
    (work.purge.not_before, work.purge.attempts) = (at(30), 2);
    let explained = world.explain(&work);
    let step = &explained.next[0];
    assert_eq!((step.not_before, step.undo, step.attempt), (Some(at(30)), None, Some(3)));
    assert_eq!(codes(&explained.why), ["no_binding", "deleted", "claimed_by_purge"]);
    assert_eq!(codes(&explained.tried), ["purge_failed"]);
}

#[test]
fn a_hold_and_an_unsettled_clock_delay_what_removes_bytes() {
    let mut work = deleted_file();
    work.held_until = Some(at(40));
    let mut world = World::new();
    world.may_remove = false;
    assert_eq!(codes(&world.step(&work).waits_for), ["clock_unsettled", "snapshot_hold"]);

    work.purge.is_claimed = true;
    let step = world.step(&work);
    assert_eq!(codes(&step.waits_for), ["clock_unsettled"], "a claim is older than the snapshot");
}

#[test]
fn a_purge_waits_for_replaced_content_at_other_providers() {
    let mut work = deleted_file();
    work.purge.is_claimed = true;
    for provider in ["LOCAL", "eu", "eu"] {
        ReplacedBlobs::add_to(&mut work.replaced, code(provider), at(20), 0);
    }

    let explained = World::new().explain(&work);
    let steps: Vec<_> = explained.next.iter().map(|step| step.code).collect();
    assert_eq!(steps, [StepCode::AwaitReplaced, StepCode::RemoveReplaced]);
    let awaited = &explained.next[0].waits_for[0];
    assert_eq!((awaited.provider.clone(), awaited.count), (Some(code("eu")), Some(2)));
    assert_eq!(explained.next[1].not_before, Some(at(20)));
}

#[test]
fn replaced_content_goes_after_its_grace_period_also_if_a_removal_failed() {
    let mut work = file();
    ReplacedBlobs::add_to(&mut work.replaced, ProviderCode::local(), at(50), 1);
    ReplacedBlobs::add_to(&mut work.replaced, ProviderCode::local(), at(20), 0);
    work.replaced_held_until = Some(at(30));

    let explained = World::new().explain(&work);
    let removal = &explained.next[1];
    assert_eq!((removal.code, removal.not_before), (StepCode::RemoveReplaced, Some(at(20))));
    assert_eq!(codes(&removal.waits_for), ["snapshot_hold"]);
    assert_eq!(codes(&explained.tried), ["removal_failed"]);
}

#[test]
fn a_running_migration_moves_ready_files_that_are_not_at_its_target() {
    let mut world = World::new();
    world.migration = Some(code("us"));
    let mut work = file();
    work.record.state = work.record.state.settle().unwrap();
    assert_eq!(world.step(&work).code, StepCode::Move);
    assert!(codes(&world.explain(&work).why).contains(&"migration"));

    work.record.blob.provider = code("us");
    assert_eq!(world.step(&work).code, StepCode::Nothing);
}

#[test]
fn the_backend_of_local_has_its_name_only_for_the_operator() {
    let mut work = file();
    work.record.blob.provider = code("house");
    let mut world = World::new();
    let place = &world.explain(&work).place[0];
    assert_eq!((place.code, &place.provider), (FactCode::Backend, &Some(ProviderCode::local())));
    assert!(!place.sentence.contains("house"), "{place:?}");

    world.reader = Reader::Operator;
    assert_eq!(world.explain(&work).place[0].provider, Some(code("house")));
}

#[test]
fn a_purged_file_is_told_from_its_receipt() {
    let record = file().record;
    let removed = |absent_at| RemovedBlob {
        holder: code("eu"),
        key: record.blob.key.clone(),
        content: Some(Content::of(&record.blob)),
        absent_at,
        checked_at: absent_at,
    };
    let awaited =
        AwaitedBlob { holder: code("us"), key: record.blob.key.clone(), due_at: Some(at(90)) };
    let purged = PurgedFile {
        file_id: record.file_id,
        organization_id: record.organization_id.clone(),
        created_at: at(0),
        deleted_at: at(1),
        deleted_by: DeletedBy::Expiry,
        purged_at: at(5),
        removed: vec![removed(at(3)), removed(at(4))],
        unlisted: 0,
        awaited: vec![awaited],
    };

    let world = World::new();
    let explained = explain_purged(&purged, &world.seen());
    assert_eq!(codes(&explained.place), ["removed", "awaited"]);
    assert_eq!((explained.place[0].count, explained.place[0].since), (Some(2), Some(at(4))));
    assert_eq!(codes(&explained.why), ["deleted", "purged"]);
    let kept_until = at(5).plus(world.config.receipt_retention);
    let steps: Vec<_> = explained.next.iter().map(|step| (step.code, step.not_before)).collect();
    assert_eq!(
        steps,
        [(StepCode::ForgetReceipt, Some(kept_until)), (StepCode::RemoveReplaced, Some(at(90)))]
    );
}

#[test]
fn no_sentence_has_a_time_or_a_full_stop_at_its_end() {
    let mut work = deleted_file();
    work.binding = Some(binding("eu"));
    work.record.sync_attempts = 1;
    work.held_until = Some(at(40));
    ReplacedBlobs::add_to(&mut work.replaced, code("eu"), at(50), 1);
    let mut world = World::new().with(down(known("eu", Location::Cloud), 30));
    world.config.purge_grace = Duration::from_secs(90);

    let Explanation { place, why, next, tried, .. } = world.explain(&work);
    let steps = next.iter().flat_map(|step| step.waits_for.iter().chain(&step.then));
    let facts = place.iter().chain(&why).chain(&tried).chain(steps).map(|fact| &fact.sentence);
    for sentence in facts.chain(next.iter().map(|step| &step.sentence)) {
        assert!(!sentence.ends_with('.') && !sentence.contains("2026"), "{sentence}");
    }
}
