//! The log of events: each change tells what the rules say, and readers miss nothing.

use std::collections::BTreeMap;

use super::damage::Vandal;
use super::purges::claim as claim_purge;
use super::sync_claims::claim as claim_sync;
use super::syncs::bind;
use super::*;
use crate::domain::access::key::{ApiKey, KeyDigest, KeyScope};
use crate::domain::event::{EventDetails, EventKind, NewEvent, rules};
use crate::domain::file::lifecycle::Refused;
use crate::domain::file::record::Thumbhash;
use crate::domain::provider::binding::BindingChange;
use crate::domain::report::fsck::{Finding, FindingKind, FsckDepth, FsckMode};
use crate::domain::report::receipt::DeletedBy;
use crate::metadata::{
    AfterFailure, CheckName, CheckRun, KeyChange, LogBounds, LogOrder, LogPart, LogRange,
    LogSwitch, LoggedEvent, MendLocation, NamedBlob, StoredKey,
};

type Told = Vec<(EventKind, EventDetails)>;

const KEY: [u8; 32] = [7; 32];

async fn switch_on(metadata: &dyn Metadata) {
    assert_eq!(metadata.open_events(LogSwitch::On, KEY, at(0)).await.unwrap(), KEY);
}

fn range(from: u64, limit: usize) -> LogRange {
    LogRange { from: Some(from), order: LogOrder::Forward, organizations: None, limit }
}

async fn read(metadata: &dyn Metadata, range: &LogRange) -> LogPart {
    metadata.read_events(range).await.unwrap()
}

async fn all(metadata: &dyn Metadata) -> Vec<LoggedEvent> {
    read(metadata, &range(0, 10_000)).await.rows
}

fn kinds(rows: &[LoggedEvent]) -> Vec<&'static str> {
    rows.iter().map(|row| row.body.as_ref().map_or("", |body| body.kind.as_str())).collect()
}

/// Compares the log with the records: the events of each file are those that its change makes by the rules.
struct Bystander<'m> {
    metadata: &'m dyn Metadata,
    files: BTreeMap<FileId, Option<FileRecord>>,
    seen: u64,
}

impl<'m> Bystander<'m> {
    async fn new(metadata: &'m dyn Metadata) -> Self {
        switch_on(metadata).await;
        Self { metadata, files: BTreeMap::new(), seen: 0 }
    }

    /// Inserts the record, and checks its events.
    async fn put(&mut self, record: FileRecord) -> FileRecord {
        self.files.insert(record.file_id, None);
        let record = put(self.metadata, record).await;
        self.check("inserted", &DeletedBy::Library).await;
        record
    }

    /// Inserts the record, deletes the file, and checks both.
    async fn delete(&mut self, record: FileRecord, now: Timestamp) -> FileRecord {
        let old = self.put(record).await;
        let by = DeletedBy::Library;
        let update =
            UpdateFile { deleted_by: Some(by.clone()), ..change(&old, deleted(&old, now)) };
        let next = update.next.clone();
        assert_eq!(self.metadata.update_file(update).await.unwrap(), Updated::Done);
        assert_eq!(self.check("deleted", &by).await, ["file.deleted"]);
        next
    }

    /// Compares what was told since the last call. Returns the kinds.
    async fn check(&mut self, what: &str, by: &DeletedBy) -> Vec<&'static str> {
        let news = read(self.metadata, &range(self.seen, 10_000)).await.rows;
        let mut told: BTreeMap<FileId, Told> = BTreeMap::new();
        for event in &news {
            assert!(event.position > self.seen, "{what}: in order");
            self.seen = event.position;
            let body = event.body.as_ref().unwrap();
            if let Some(file) = body.file_id {
                told.entry(file).or_default().push((body.kind, body.details.clone()));
            }
        }

        for (id, old) in &mut self.files {
            let new = self.metadata.file(*id, &Scope::All).await.unwrap();
            let new = new.map(|new| (*new).clone());
            let expected = match (&*old, &new) {
                (_, Some(new)) if old.as_ref() == Some(new) => Vec::new(),
                (old, Some(new)) => rules::of(old.as_ref(), new, by),
                (Some(_), None) if *by == DeletedBy::Erasure => Vec::new(),
                (Some(_), None) => vec![(EventKind::FilePurged, EventDetails::default())],
                (None, None) => Vec::new(),
            };
            assert_eq!(told.remove(id).unwrap_or_default(), expected, "{what}: {old:?} {new:?}");
            *old = new;
        }
        assert!(told.is_empty(), "{what}: of no known file: {told:?}");
        kinds(&news)
    }
}

type Transition = (&'static str, fn(FileState) -> Result<FileState, Refused>);

/// All transitions of the lifecycle.
const TRANSITIONS: [Transition; 14] = [
    ("thumbnail", FileState::make_thumbnail),
    ("ready", FileState::make_ready),
    ("replace here", |state| state.replace_blob(Location::Local)),
    ("replace there", |state| state.replace_blob(Location::Cloud)),
    ("delete", |state| Ok(state.delete())),
    ("restore", |state| Ok(state.restore())),
    ("expire", FileState::expire),
    ("settle", FileState::settle),
    ("claim", FileState::claim),
    ("postpone", FileState::postpone),
    ("fail", FileState::fail),
    ("move here", |state| state.move_to(Location::Local)),
    ("move there", |state| state.move_to(Location::Cloud)),
    ("enqueue", FileState::enqueue),
];

/// Returns every state that a file can reach.
fn states() -> Vec<FileState> {
    let mut states = vec![
        FileState::uploaded(Location::Local),
        FileState::uploaded(Location::Cloud),
        FileState::uploaded_temp(),
    ];
    let mut next = 0;
    while let Some(&state) = states.get(next) {
        for (_, transition) in TRANSITIONS {
            let reached = transition(state).ok().filter(|reached| !states.contains(reached));
            states.extend(reached);
        }
        next += 1;
    }
    states
}

fn in_state(state: FileState, now: Timestamp) -> FileRecord {
    let record = uploaded("7", now);
    let record = match state.location() {
        Location::Local => record,
        Location::Cloud => in_cloud(record, "s3"),
    };
    let deletion = state.is_deleted().then(|| Deletion::at(now));
    FileRecord { state, deletion, ..record }
}

pub(crate) async fn every_transition_tells_what_the_rules_say(metadata: &dyn Metadata) {
    let mut bystander = Bystander::new(metadata).await;
    let by = DeletedBy::AdminSocket;
    for state in states() {
        for (name, transition) in TRANSITIONS {
            let Ok(next_state) = transition(state) else { continue };
            let old = bystander.put(in_state(state, at(0))).await;
            let mut next = FileRecord { state: next_state, updated_at: at(5), ..old.clone() };
            let deletion = || old.deletion.unwrap_or(Deletion::at(at(5)));
            next.deletion = next_state.is_deleted().then(deletion);
            let is_replaced = name.starts_with("replace");
            if is_replaced || next_state.location() != state.location() {
                let is_local = next_state.location() == Location::Local;
                next.blob = replaced(&old, 10, at(5)).blob;
                next.blob.provider = provider(if is_local { "LOCAL" } else { "s3" });
                next.version += u64::from(is_replaced);
                note(metadata, &next).await;
            }

            let update = UpdateFile { deleted_by: Some(by.clone()), ..change(&old, next) };
            let what = format!("{name} from {state:?}");
            assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done, "{what}");
            bystander.check(&what, &by).await;
        }
    }
}

pub(crate) async fn every_call_tells_what_the_rules_say(metadata: &dyn Metadata) {
    let mut bystander = Bystander::new(metadata).await;
    let library = DeletedBy::Library;
    let expiring = bystander.put(temp("acme")).await;
    assert_eq!(metadata.expire_temp(None, at(1000), 9).await.unwrap(), 1);
    assert_eq!(bystander.check("expired", &DeletedBy::Expiry).await, ["file.expired"]);

    bystander.put(ready("acme")).await;
    metadata.settle_sync(9).await.unwrap();
    assert!(bystander.check("settled", &library).await.is_empty());

    bind(metadata, 7, "s3").await;
    let synced = bystander.put(ready("7")).await;
    bystander.check("bound", &library).await;
    claim_sync(metadata, "run", at(0), 9).await;
    metadata.fail_sync("run", synced.file_id, AfterFailure::Postpone(at(1)), "out").await.unwrap();
    claim_sync(metadata, "run", at(1), 9).await;
    metadata.fail_sync("run", synced.file_id, AfterFailure::Excuse(at(2)), "out").await.unwrap();
    claim_sync(metadata, "run", at(2), 9).await;
    assert!(bystander.check("tried", &library).await.is_empty(), "attempts are not told");
    metadata.fail_sync("run", synced.file_id, AfterFailure::GiveUp(at(9)), "out").await.unwrap();
    assert_eq!(bystander.check("failed", &library).await, ["file.sync_failed"]);
    let last = all(metadata).await.pop().unwrap();
    assert_eq!((last.at, last.body.unwrap().details.attempts), (at(9), Some(2)));

    metadata.retry_sync(None, 9).await.unwrap();
    let claims = claim_sync(metadata, "run", at(10), 9).await;
    assert!(bystander.check("retried", &library).await.is_empty());
    let claimed = &claims[0].record;
    let mut flipped = moved(claimed, "s3");
    flipped.updated_at = at(11);
    note(metadata, &flipped).await;
    let update = UpdateFile { writes: Writes::Bytes, ..change(claimed, flipped.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    assert_eq!(bystander.check("synced", &library).await, ["file.synced"]);

    metadata.enqueue_sync(&organization("7"), &provider("gcs"), None, 9).await.unwrap();
    metadata
        .note_thumbhash(synced.file_id, &flipped.blob.sha256, &Thumbhash::new(&[7; 20]).unwrap())
        .await
        .unwrap();
    assert!(bystander.check("queued", &library).await.is_empty());

    let blob = NamedBlob::of(&flipped);
    assert!(metadata.inspection().mend_location(&blob, MendLocation::Local).await.unwrap());
    assert_eq!(bystander.check("mended", &library).await, ["file.migrated"]);

    let doomed = bystander.delete(ready("acme"), at(20)).await;
    let claims = claim_purge(metadata, "run", 2000, 9).await;
    let claimed: Vec<_> = claims.iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(sorted(claimed.clone()), sorted(vec![expiring.file_id, doomed.file_id]));
    metadata.postpone_purge("run", doomed.file_id, at(2001)).await.unwrap();
    assert!(bystander.check("claimed", &library).await.is_empty());
    metadata.finish_purges("run", &[Purged::of(expiring.file_id)], at(2002)).await.unwrap();
    assert_eq!(bystander.check("purged", &library).await, ["file.purged"]);
    let purged = all(metadata).await.pop().unwrap();
    let body = purged.body.unwrap();
    assert_eq!((purged.at, body.file_id, body.version), (at(2002), Some(expiring.file_id), None));
    assert_eq!(body.organization_id, Some(organization("acme")));
    claim_purge(metadata, "run", 3000, 9).await;
    metadata.finish_purges("run", &[Purged::of(doomed.file_id)], at(3000)).await.unwrap();
    assert_eq!(bystander.check("purged", &library).await, ["file.purged"]);

    // A file with the id of a purged one has a receipt already.
    let again = FileRecord { file_id: doomed.file_id, ..ready("acme") };
    bystander.delete(again, at(3001)).await;
    claim_purge(metadata, "run", 3001, 9).await;
    metadata.finish_purges("run", &[Purged::of(doomed.file_id)], at(3002)).await.unwrap();
    assert_eq!(bystander.check("purged again", &library).await, ["file.purged"]);
}

pub(crate) async fn an_erasure_tells_nothing_about_its_files(metadata: &dyn Metadata) {
    let mut bystander = Bystander::new(metadata).await;
    let record = bystander.put(ready("acme")).await;
    let next = deleted(&record, at(1));
    let update = UpdateFile { deleted_by: Some(DeletedBy::Erasure), ..change(&record, next) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    metadata.end_era(&record.organization_id, at(2)).await.unwrap();
    assert!(bystander.check("deleted", &DeletedBy::Erasure).await.is_empty());
    claim_purge(metadata, "run", 2, 9).await;
    metadata.finish_purges("run", &[Purged::of(record.file_id)], at(3)).await.unwrap();
    assert!(bystander.check("purged", &DeletedBy::Erasure).await.is_empty());

    let other = bystander.put(ready("other")).await;
    assert_eq!(metadata.left_of(&record.organization_id).await.unwrap().events, 1);
    let before = all(metadata).await;
    assert_eq!(metadata.blank_events(&record.organization_id, 9).await.unwrap(), 1);
    assert_eq!(metadata.blank_events(&record.organization_id, 9).await.unwrap(), 0);
    assert_eq!(metadata.left_of(&record.organization_id).await.unwrap().events, 0);
    let after = all(metadata).await;
    assert_eq!((after[0].position, after[0].at), (before[0].position, before[0].at));
    assert_eq!(after[0].body, None);
    assert_eq!(after[1].body.as_ref().unwrap().file_id, Some(other.file_id));
}

pub(crate) async fn an_edit_and_a_return_are_told_with_what_they_changed(metadata: &dyn Metadata) {
    let mut bystander = Bystander::new(metadata).await;
    let library = DeletedBy::Library;
    let old = bystander.put(ready("acme")).await;
    let mut next = FileRecord { original_name: "other.txt".into(), ..old.clone() };
    next.metadata = r#"{"a":1}"#.parse().unwrap();
    (next.updated_at, next.edited_at) = (at(1), Some(at(1)));
    assert_eq!(metadata.update_file(change(&old, next.clone())).await.unwrap(), Updated::Done);
    bystander.check("edited", &library).await;
    let told = all(metadata).await.pop().unwrap().body.unwrap();
    assert_eq!(told.details.changed, ["name", "metadata"]);

    let again = FileRecord {
        mime_type: "text/csv".into(),
        edited_at: Some(at(2)),
        updated_at: at(2),
        ..next.clone()
    };
    assert_eq!(metadata.update_file(change(&next, again)).await.unwrap(), Updated::Done);
    bystander.check("edited again", &library).await;
    assert_eq!(all(metadata).await.pop().unwrap().body.unwrap().details.changed, ["type"]);

    let back = FileRecord { updated_at: at(9), ..ready("acme") };
    bystander.put(back).await;
    let told = all(metadata).await.pop().unwrap();
    assert_eq!((told.at, told.body.unwrap().kind), (at(9), EventKind::FilePutBack));
}

pub(crate) async fn a_refused_change_tells_nothing(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    let record = put(metadata, ready("acme")).await;
    let before = all(metadata).await;

    let next = deleted(&record, at(1));
    let mut stale = change(&record, next);
    stale.expected.version = 9;
    assert_eq!(metadata.update_file(stale).await.unwrap(), Updated::Lost);
    let over = InsertFiles { quota_bytes: Some(15), ..insert([ready("acme")]) };
    assert_eq!(metadata.insert_files(over).await.unwrap(), Inserted::OverQuota);
    let twice = [ready("acme"), FileRecord { file_id: record.file_id, ..ready("acme") }];
    metadata.insert_files(insert(twice)).await.unwrap_err();
    assert_eq!(all(metadata).await, before);

    let batch = [ready("acme"), ready("acme"), ready("acme")];
    assert_eq!(metadata.insert_files(insert(batch)).await.unwrap(), Inserted::Done);
    assert_eq!(kinds(&all(metadata).await), ["file.uploaded"; 4], "one for each file of a batch");
}

pub(crate) async fn bindings_keys_and_checks_are_told(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    bind(metadata, 7, "s3").await;
    let terminate = BindingChange { is_active: Some(false), ..BindingChange::default() };
    metadata.change_binding(number(7), terminate, &[], at(1)).await.unwrap();
    let told = all(metadata).await;
    assert_eq!(kinds(&told), ["binding.created", "binding.changed"]);
    let last = told[1].body.as_ref().unwrap();
    assert_eq!(
        (last.details.ok, last.organization_id.clone()),
        (Some(false), Some(organization("7")))
    );
    assert_eq!(told[1].at, at(1));

    let key = StoredKey {
        key: ApiKey {
            id: KeyId::generate(at(2)),
            name: "name".into(),
            organizations: Arc::new(Scope::All),
            scopes: [KeyScope::Read].into_iter().collect(),
            created_at: at(2),
            expires_at: None,
            rotated_at: None,
            old_valid_until: None,
            revoked_at: None,
            last_used_at: None,
        },
        digest: KeyDigest::of(b"one"),
        former: None,
    };
    metadata.insert_key(key.clone(), 9).await.unwrap();
    let digest = KeyDigest::of(b"two");
    for change in [
        KeyChange::Rotate { digest, at: at(3), former_until: at(9) },
        KeyChange::Narrow {
            organizations: Scope::Organizations(vec![organization("7")]),
            at: at(4),
        },
        KeyChange::Revoke { at: at(5) },
        KeyChange::Revoke { at: at(6) },
    ] {
        metadata.change_key(key.key.id, change).await.unwrap();
    }
    let told = all(metadata).await.split_off(2);
    assert_eq!(kinds(&told), ["key.created", "key.rotated", "key.changed", "key.revoked"]);
    assert!(
        told.iter().all(|event| event.body.as_ref().unwrap().details.key_id == Some(key.key.id))
    );

    let record = put(metadata, ready("acme")).await;
    let run = CheckRun {
        name: CheckName::Asked,
        depth: FsckDepth::Deep,
        mode: FsckMode::DryRun,
        provider: None,
        started_at: at(7),
        ended_at: None,
        part: "files".into(),
        cursor: String::new(),
        files: 3,
        bytes: 0,
        names: 0,
        found: 0,
        repaired: 0,
        postponed: Vec::new(),
    };
    metadata.inspection().begin_check(&run).await.unwrap();
    let lost =
        Finding::new(FindingKind::MissingBytes, "LOCAL", "a", "detail").of_file(record.file_id);
    let orphan =
        Finding::new(FindingKind::OrphanBytes, "LOCAL", "b", "detail").of_file(record.file_id);
    for _ in 0..2 {
        metadata
            .inspection()
            .save_check(&run, vec![lost.clone(), orphan.clone()], at(8))
            .await
            .unwrap();
    }
    let ended = CheckRun { ended_at: Some(at(9)), found: 2, ..run };
    metadata.inspection().save_check(&ended, Vec::new(), at(9)).await.unwrap();
    let told = all(metadata).await.split_off(7);
    assert_eq!(kinds(&told), ["file.damaged", "fsck.ended"], "a finding is told once");
    let damaged = told[0].body.as_ref().unwrap();
    assert_eq!((damaged.file_id, damaged.version), (Some(record.file_id), Some(1)));
    assert_eq!(damaged.details.reason.as_deref(), Some("missing_bytes"));
    assert_eq!(told[1].body.as_ref().unwrap().details.ok, Some(false));
}

pub(crate) async fn parts_of_the_log_are_read_both_ways(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    let empty = read(metadata, &range(0, 9)).await;
    assert_eq!((empty.is_on, empty.newest, empty.oldest, empty.rows.len()), (true, None, None, 0));
    for organization in ["a", "b", "a", "c", "b"] {
        put(metadata, ready(organization)).await;
    }
    let log = all(metadata).await;
    let positions: Vec<_> = log.iter().map(|row| row.position).collect();
    assert!(positions.is_sorted() && positions.len() == 5);

    let part = read(metadata, &range(positions[1], 2)).await;
    assert_eq!(part.rows, log[2..4]);
    assert_eq!((part.edge_at, part.oldest), (Some(log[1].at), Some((positions[0], log[0].at))));
    assert_eq!(part.newest, Some((positions[4], log[4].at)));
    assert!(part.settled >= positions[4]);
    assert_eq!(read(metadata, &range(positions[4] + 9, 2)).await.edge_at, None);

    let end = LogRange { from: None, ..range(0, 9) };
    assert_eq!(read(metadata, &end).await.rows, []);
    let back = LogRange { order: LogOrder::Backward, ..end };
    let newest_first: Vec<_> = log.iter().rev().cloned().collect();
    assert_eq!(read(metadata, &back).await.rows, newest_first);
    let earlier = LogRange { from: Some(positions[3]), limit: 2, ..back.clone() };
    assert_eq!(read(metadata, &earlier).await.rows, newest_first[2..4]);

    let some = Some(vec![organization("a"), organization("c"), organization("unknown")]);
    let of_some = LogRange { organizations: some.clone(), ..range(0, 9) };
    let expected = [log[0].clone(), log[2].clone(), log[3].clone()];
    assert_eq!(read(metadata, &of_some).await.rows, expected);
    let two = LogRange { limit: 2, ..of_some };
    assert_eq!(read(metadata, &two).await.rows, expected[..2]);
    let back = LogRange { organizations: some, limit: 2, ..back };
    assert_eq!(read(metadata, &back).await.rows, [log[3].clone(), log[2].clone()]);
}

pub(crate) async fn old_events_are_forgotten_except_the_newest(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    for millis in 0..6 {
        put(metadata, uploaded("acme", at(millis))).await;
    }
    let log = all(metadata).await;
    let bounds = |before, most| LogBounds { before: at(before), most };

    assert_eq!(metadata.forget_events(bounds(0, 100), 2).await.unwrap(), 0);
    assert_eq!(metadata.forget_events(bounds(4, 100), 2).await.unwrap(), 2);
    assert_eq!(metadata.forget_events(bounds(4, 100), 2).await.unwrap(), 1);
    assert_eq!(metadata.forget_events(bounds(4, 100), 2).await.unwrap(), 0);
    assert_eq!(all(metadata).await, log[3..], "readers go on behind the last one that is old");
    assert_eq!(metadata.forget_events(bounds(0, 2), 9).await.unwrap(), 0);
    assert_eq!(metadata.forget_events(bounds(0, 1), 9).await.unwrap(), 1);
    assert_eq!(metadata.forget_events(bounds(9, 1), 9).await.unwrap(), 0, "the newest stays");
    assert_eq!(all(metadata).await, log[4..]);
    put(metadata, uploaded("acme", at(9))).await;
    assert!(all(metadata).await[2].position > log[5].position, "no position comes again");
}

pub(crate) async fn a_log_that_was_off_tells_its_gap(metadata: &dyn Metadata) {
    put(metadata, ready("acme")).await;
    let first = metadata.open_events(LogSwitch::Unchanged, KEY, at(1)).await.unwrap();
    assert_eq!(first, KEY, "a new log is switched on");
    put(metadata, ready("acme")).await;
    assert_eq!(metadata.open_events(LogSwitch::Off, [8; 32], at(2)).await.unwrap(), KEY);
    put(metadata, ready("acme")).await;
    bind(metadata, 7, "s3").await;
    metadata.open_events(LogSwitch::Off, [8; 32], at(3)).await.unwrap();
    metadata.open_events(LogSwitch::Unchanged, [8; 32], at(3)).await.unwrap();
    assert!(!read(metadata, &range(0, 9)).await.is_on);
    assert_eq!(kinds(&all(metadata).await), ["file.uploaded"]);

    let key = metadata.open_events(LogSwitch::On, [8; 32], at(4)).await.unwrap();
    assert_eq!(key, [8; 32], "no former id is valid");
    assert_eq!(metadata.open_events(LogSwitch::On, [9; 32], at(5)).await.unwrap(), key);
    put(metadata, ready("acme")).await;
    let part = read(metadata, &range(0, 9)).await;
    let told = part.rows;
    assert_eq!((kinds(&told), part.key), (vec!["log.gap", "file.uploaded"], Some(key)));
    assert_eq!(told[0].at, at(4));
    assert_eq!(told[0].body.as_ref().unwrap().details.off_since, Some(at(2)));

    let back = LogRange { from: None, order: LogOrder::Backward, ..range(0, 9) };
    let newest_first = read(metadata, &back).await.rows;
    assert_eq!(kinds(&newest_first), ["file.uploaded", "log.gap", "file.uploaded"]);
    let before = LogRange { from: Some(newest_first[2].position), ..range(0, 9) };
    assert_eq!(read(metadata, &before).await.rows, told);
}

pub(crate) async fn every_organization_sees_the_gap_of_the_log(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    put(metadata, ready("acme")).await;
    metadata.open_events(LogSwitch::Off, KEY, at(2)).await.unwrap();
    metadata.open_events(LogSwitch::On, [8; 32], at(4)).await.unwrap();
    put(metadata, ready("acme")).await;
    let told = all(metadata).await;
    assert_eq!(kinds(&told), ["log.gap", "file.uploaded"]);

    let of = |name: &str| Some(vec![organization(name)]);
    let start = LogRange { organizations: of("acme"), ..range(0, 9) };
    assert_eq!(read(metadata, &start).await.rows, told);
    let start = LogRange { organizations: of("other"), ..range(0, 9) };
    assert_eq!(read(metadata, &start).await.rows, told[..1]);
    let back = LogRange { from: None, order: LogOrder::Backward, ..start.clone() };
    assert_eq!(read(metadata, &back).await.rows, told[..1]);
    let behind = LogRange { from: Some(told[0].position), ..start };
    assert_eq!(read(metadata, &behind).await.rows, []);
    let before = LogRange { from: Some(told[0].position), ..back };
    assert_eq!(read(metadata, &before).await.rows, []);
}

pub(crate) async fn a_position_that_no_log_has_is_unknown(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    put(metadata, ready("acme")).await;
    for position in [99, u64::MAX / 2, u64::MAX] {
        let part = read(metadata, &range(position, 9)).await;
        assert_eq!((part.edge_at, part.rows.len()), (None, 0), "{position}");
    }
}

pub(crate) async fn a_waiting_reader_hears_of_the_next_event(metadata: &dyn Metadata) {
    switch_on(metadata).await;
    put(metadata, ready("acme")).await;
    let settled = read(metadata, &range(0, 9)).await.settled;
    metadata.await_events(settled - 1).await.unwrap();

    let (waited, ()) = tokio::join!(metadata.await_events(settled), async {
        put(metadata, ready("acme")).await;
    });
    waited.unwrap();
    assert_eq!(all(metadata).await.len(), 2);

    let event = NewEvent::new(EventKind::BackupEnded, at(3), EventDetails::default());
    let settled = read(metadata, &range(0, 9)).await.settled;
    let (waited, noted) =
        tokio::join!(metadata.await_events(settled), metadata.note_events(vec![event]));
    waited.unwrap();
    noted.unwrap();
    assert_eq!(kinds(&all(metadata).await)[2], "backup.ended");
}

/// Changes of several files by many tasks, beside a reader that goes on from part to part.
pub(crate) async fn a_reader_beside_many_writers_misses_nothing(metadata: &dyn Metadata) {
    const FILES: usize = 8;
    const CHANGES: u64 = 12;
    switch_on(metadata).await;
    let mut files = Vec::new();
    for number in 0..FILES {
        files.push(put(metadata, uploaded(&format!("o{}", number % 3), at(0))).await);
    }

    let writing = futures_util::future::join_all(files.iter().map(|file| async {
        let mut old = file.clone();
        for version in 2..=CHANGES {
            let millis = i64::try_from(version).unwrap();
            let next = replaced(&old, version, at(millis));
            let updated = metadata.update_file(change(&old, next.clone())).await.unwrap();
            assert_eq!(updated, Updated::Done);
            old = next;
        }
    }));
    let reading = async {
        let (mut seen, mut from) = (BTreeMap::<FileId, Vec<u64>>::new(), 0);
        let wanted = FILES * usize::try_from(CHANGES).unwrap();
        while seen.values().map(Vec::len).sum::<usize>() < wanted {
            let part = read(metadata, &range(from, 7)).await;
            for row in &part.rows {
                from = row.position;
                let body = row.body.as_ref().unwrap();
                seen.entry(body.file_id.unwrap()).or_default().push(body.version.unwrap());
            }
            if part.rows.is_empty() {
                metadata.await_events(part.settled).await.unwrap();
            }
        }
        seen
    };
    let reading = tokio::time::timeout(crate::tasks::HANG, reading);
    let (_, seen) = tokio::join!(writing, reading);
    for (file, versions) in seen.unwrap() {
        assert_eq!(versions, (1..=CHANGES).collect::<Vec<_>>(), "{file}: each once, in order");
    }
}

pub(crate) async fn a_damaged_event_keeps_its_place(metadata: &dyn Metadata, vandal: &dyn Vandal) {
    switch_on(metadata).await;
    for _ in 0..3 {
        put(metadata, ready("acme")).await;
    }
    let log = all(metadata).await;
    let damaged = log[1].position;
    vandal.run(&format!("UPDATE events SET details = '{{' WHERE position = {damaged}"));

    let found = all(metadata).await;
    assert_eq!((found[1].position, found[1].at), (damaged, log[1].at));
    assert_eq!(found[1].body, None);
    assert_eq!((&found[0], &found[2]), (&log[0], &log[2]));
    assert_eq!(metadata.damage().rows[0].row, format!("event {damaged}"));
}
