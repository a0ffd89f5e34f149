use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::config::StoreConfig;
use crate::domain::error::ErrorKind;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{BlobId, FileId};
use crate::domain::provider::ProviderConfig;
use crate::domain::provider::binding::NewBinding;
use crate::domain::report::fsck::{
    Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode, FsckStart,
};
use crate::domain::time::clock::Timestamp;
use crate::metadata::WriteIntent;
use crate::service::NewUpload;
use crate::worker::NoProgress;

struct House {
    dir: tempfile::TempDir,
    store: FileStore,
}

impl House {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        for (number, provider) in [(8, "disk")] {
            let binding = NewBinding {
                organization: number.try_into().unwrap(),
                organization_name: "x".into(),
                provider: provider.parse().unwrap(),
                sync_enabled: false,
            };
            store.bindings().create(binding).await.unwrap();
        }
        Self { dir, store }
    }

    async fn upload(&self, organization: &str, bytes: &[u8]) -> FileRecord {
        let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
        let record = self.store.upload(new, bytes).await.unwrap();
        self.store.inner().uploads.publishing.idle().await;
        record
    }

    fn blob(&self, record: &FileRecord) -> PathBuf {
        self.data().join("blobs").join(record.blob.key.as_str())
    }

    fn object(&self, record: &FileRecord) -> PathBuf {
        self.dir.path().join("disk").join(record.blob.key.as_str())
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn sql(&self, sql: &str, id: FileId) {
        let vandal = Connection::open(self.store.data_dir().database()).unwrap();
        vandal.pragma_update(None, "ignore_check_constraints", true).unwrap();
        assert_eq!(vandal.execute(sql, [id.to_string()]).unwrap(), 1, "{sql}");
    }

    async fn check(&self, depth: FsckDepth, mode: FsckMode) -> FsckReport {
        let options = FsckOptions { depth, mode, ..FsckOptions::default() };
        self.store.admin().fsck(options, &|| false, &NoProgress).await.unwrap()
    }

    async fn quick(&self) -> FsckReport {
        self.check(FsckDepth::Quick, FsckMode::DryRun).await
    }

    async fn deep(&self) -> FsckReport {
        self.check(FsckDepth::Deep, FsckMode::DryRun).await
    }

    async fn repair(&self) -> FsckReport {
        self.check(FsckDepth::Deep, FsckMode::Repair).await
    }
}

async fn open(path: &Path) -> FileStore {
    let root = path.join("disk").to_str().unwrap().to_owned();
    let disk = ProviderConfig::new("disk".parse().unwrap(), "fs").with_option("root", root);
    let purge_grace = std::time::Duration::ZERO;
    let config = StoreConfig { providers: vec![disk], purge_grace, ..StoreConfig::default() };
    FileStore::builder(path.join("data")).config(config).open().await.unwrap()
}

fn only(report: &FsckReport) -> &Finding {
    assert_eq!((report.found, report.findings.len()), (1, 1), "{report:?}");
    &report.findings[0]
}

fn is_repaired(finding: &Finding) -> bool {
    matches!(finding.outcome, FindingOutcome::Repaired(_))
}

/// Puts a file among the blobs that no record names.
fn stray(blobs: &Path) -> BlobKey {
    let now = Timestamp::now();
    let blob = BlobId::generate(now);
    let key = BlobKey::new(&"7".parse().unwrap(), &"docs".parse().unwrap(), now, blob);
    std::fs::create_dir_all(blobs.join(key.directory())).unwrap();
    std::fs::write(blobs.join(key.as_str()), "stray").unwrap();
    key
}

#[tokio::test]
async fn a_sound_store_is_clean_to_the_last_byte() {
    let house = House::new().await;
    house.upload("7", b"here").await;
    house.upload("8", b"there").await;
    let deleted = house.upload("7", b"deleted").await;
    house.store.scoped(&Scope::All).delete(deleted.file_id).await.unwrap();

    let report = house.deep().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.checked_files, report.checked_bytes), (3, 16));
    assert!(house.quick().await.is_clean() && house.repair().await.is_clean());
    assert!(!house.data().join("quarantine").exists());
}

#[tokio::test]
async fn bytes_that_are_missing_or_have_another_length_are_told_by_a_quick_look() {
    let house = House::new().await;
    let (gone, cut) = (house.upload("7", b"gone").await, house.upload("7", b"cut short").await);
    let (gone_there, cut_there) =
        (house.upload("8", b"gone there").await, house.upload("8", b"cut there").await);
    std::fs::remove_file(house.blob(&gone)).unwrap();
    std::fs::remove_file(house.object(&gone_there)).unwrap();
    std::fs::write(house.blob(&cut), "cut").unwrap();
    std::fs::write(house.object(&cut_there), "cut").unwrap();

    let report = house.quick().await;
    let mut found: Vec<_> =
        report.findings.iter().map(|one| (one.kind, one.file_id.unwrap())).collect();
    found.sort();
    let mut expected = vec![
        (FindingKind::MissingBytes, gone.file_id),
        (FindingKind::MissingBytes, gone_there.file_id),
        (FindingKind::WrongSize, cut.file_id),
        (FindingKind::WrongSize, cut_there.file_id),
    ];
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(report.found_by_kind[&FindingKind::MissingBytes], 2);
    assert!(!report.is_clean());
}

#[tokio::test]
async fn a_thousand_flipped_bytes_are_a_thousand_findings() {
    let house = House::new().await;
    let mut flipped = Vec::new();
    for number in 0..1000_u32 {
        let organization = if number % 10 == 0 { "8" } else { "7" };
        let bytes: Vec<u8> =
            (0..200).map(|at| (number.wrapping_mul(31) + at).to_le_bytes()[0]).collect();
        let record = house.upload(organization, &bytes).await;
        let path = if organization == "8" { house.object(&record) } else { house.blob(&record) };

        let mut stored = std::fs::read(&path).unwrap();
        let at = (number as usize * 7) % stored.len();
        stored[at] ^= 1 << (number % 8);
        std::fs::write(&path, stored).unwrap();
        flipped.push(record.file_id);
    }
    let sound = house.upload("7", b"sound").await;

    assert!(house.quick().await.is_clean(), "names and sizes are what they were");
    let report = house.deep().await;
    assert_eq!(report.found, 1000);
    let mut found: Vec<_> = report.findings.iter().filter_map(|one| one.file_id).collect();
    found.sort();
    flipped.sort();
    assert_eq!(found, flipped);
    assert!(report.findings.iter().all(|one| one.kind == FindingKind::WrongDigest));
    assert!(!found.contains(&sound.file_id));
}

#[tokio::test]
async fn damaged_bytes_are_moved_aside_and_can_be_put_back() {
    let house = House::new().await;
    let record = house.upload("7", b"sound").await;
    std::fs::write(house.blob(&record), b"sOund").unwrap();

    let report = house.repair().await;
    let finding = only(&report);
    assert_eq!((finding.kind, is_repaired(finding)), (FindingKind::WrongDigest, true));
    let place = finding.outcome.text().strip_prefix("moved to ").unwrap();
    assert_eq!(std::fs::read(house.data().join(place)).unwrap(), b"sOund");
    assert!(!house.blob(&record).exists());
    assert!(house.store.scoped(&Scope::All).read(record.file_id).await.is_err(), "no wrong bytes");
    assert_eq!(only(&house.quick().await).kind, FindingKind::MissingBytes);

    std::fs::create_dir_all(house.blob(&record).parent().unwrap()).unwrap();
    std::fs::rename(house.data().join(place), house.blob(&record)).unwrap();
    std::fs::write(house.blob(&record), b"sound").unwrap();
    assert!(house.deep().await.is_clean());
    assert_eq!(house.store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "sound");
}

#[tokio::test]
async fn bytes_that_nothing_refers_to_are_told_and_set_aside() {
    let house = House::new().await;
    house.upload("8", b"there").await;
    let here = stray(&house.data().join("blobs"));
    let there = stray(&house.dir.path().join("disk"));

    let report = house.quick().await;
    let found: Vec<_> = report.findings.iter().map(|one| (&*one.place, &*one.name)).collect();
    assert_eq!(found, [("LOCAL", here.as_str()), ("disk", there.as_str())]);
    assert!(report.findings.iter().all(|one| one.kind == FindingKind::OrphanBytes));
    assert!(house.data().join("blobs").join(here.as_str()).exists(), "a dry run changes nothing");

    let report = house.repair().await;
    assert!(report.findings.iter().all(is_repaired), "{report:?}");
    let place = report.findings[0].outcome.text().strip_prefix("moved to ").unwrap();
    assert_eq!(std::fs::read(house.data().join(place)).unwrap(), b"stray");
    assert!(house.dir.path().join("disk").join(there.as_str()).exists(), "not at once");

    let inner = house.store.inner();
    let later = inner.now().plus(std::time::Duration::from_hours(25));
    let due = inner.metadata.due_blobs(&"disk".parse().unwrap(), later, 9).await.unwrap();
    assert_eq!(due.iter().map(|one| &one.blob.key).collect::<Vec<_>>(), [&there]);
    assert!(house.quick().await.is_clean(), "what waits for the purge has its referrer");
}

#[tokio::test]
async fn what_the_database_refers_to_in_any_way_is_no_orphan() {
    let house = House::new().await;
    let (old, _) = (house.upload("7", b"old").await, house.upload("8", b"there").await);
    house.store.scoped(&Scope::All).replace(old.file_id, &b"new"[..]).await.unwrap();
    house.store.inner().uploads.publishing.idle().await;
    assert!(house.blob(&old).exists(), "within its grace period");

    let noted = stray(&house.dir.path().join("disk"));
    let intent = WriteIntent {
        file_id: FileId::generate(Timestamp::now()),
        provider: "disk".parse().unwrap(),
        key: noted,
        begun_at: Timestamp::now(),
        owner: None,
    };
    house.store.inner().metadata.begin_writes(vec![intent]).await.unwrap();
    let mut under_way = house.store.uploads().begin_unclaimed();
    under_way.write("under way".into()).await.unwrap();
    under_way.finish_files().await.unwrap();
    let report = house.repair().await;
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_blob_in_the_wrong_directory_goes_back_to_where_its_record_names_it() {
    let house = House::new().await;
    let record = house.upload("7", b"bytes").await;
    let wrong = house.data().join("blobs/9/docs/2026/01/01");
    std::fs::create_dir_all(&wrong).unwrap();
    let moved = wrong.join(record.blob.key.blob_id().to_string());
    std::fs::rename(house.blob(&record), &moved).unwrap();

    let report = house.quick().await;
    let kinds: Vec<_> = report.findings.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [FindingKind::MissingBytes, FindingKind::MisplacedBytes]);

    let report = house.repair().await;
    assert!(is_repaired(&report.findings[1]), "{report:?}");
    assert!(house.blob(&record).exists() && !moved.exists());
    assert!(house.deep().await.is_clean());
}

#[tokio::test]
async fn names_that_are_no_blobs_are_shown_and_left_alone() {
    let house = House::new().await;
    house.upload("8", b"there").await;
    for name in ["data/blobs/notes.txt", "disk/notes.txt", "data/staging/notes.txt"] {
        std::fs::write(house.dir.path().join(name), "x").unwrap();
    }
    let report = house.repair().await;
    assert_eq!(report.found_by_kind[&FindingKind::ForeignName], 3);
    assert_eq!(report.found, 3);
    assert!(house.dir.path().join("data/blobs/notes.txt").exists());
    assert!(house.dir.path().join("disk/notes.txt").exists());
}

#[tokio::test]
async fn a_provider_that_is_not_mounted_is_left_out_and_has_lost_nothing() {
    let house = House::new().await;
    let (here, there) = (house.upload("7", b"here").await, house.upload("8", b"there").await);
    std::fs::rename(house.dir.path().join("disk"), house.dir.path().join("away")).unwrap();
    std::fs::create_dir(house.dir.path().join("disk")).unwrap();
    std::fs::remove_file(house.blob(&here)).unwrap();

    let report = house.repair().await;
    assert_eq!(only(&report).file_id, Some(here.file_id));
    let reason = &report.postponed[&"disk".parse().unwrap()];
    assert!(reason.contains("marker"), "{reason}");
    assert_eq!(std::fs::read_dir(house.dir.path().join("disk")).unwrap().count(), 0);

    std::fs::remove_dir(house.dir.path().join("disk")).unwrap();
    std::fs::rename(house.dir.path().join("away"), house.dir.path().join("disk")).unwrap();
    let report = house.deep().await;
    assert_eq!(only(&report).file_id, Some(here.file_id));
    assert!(report.postponed.is_empty() && house.object(&there).exists());
}

#[tokio::test]
async fn damaged_rows_are_set_right_where_the_rest_says_how_and_else_set_aside() {
    let house = House::new().await;
    let (owner, key, hopeless, sound) = (
        house.upload("7", b"owner").await,
        house.upload("7", b"key").await,
        house.upload("7", b"hopeless").await,
        house.upload("7", b"sound").await,
    );
    house.sql(
        "UPDATE files SET organization_id = 'no/organization' WHERE file_id = ?1",
        owner.file_id,
    );
    let cut = "UPDATE files SET blob_key = 'x/' || substr(blob_key, -26) WHERE file_id = ?1";
    house.sql(cut, key.file_id);
    house
        .sql("UPDATE files SET storage_provider = 'no code!' WHERE file_id = ?1", hopeless.file_id);

    let report = house.quick().await;
    assert_eq!(report.found_by_kind[&FindingKind::DamagedRow], 3, "{report:?}");
    assert_eq!(report.checked_files, 4, "a damaged row fails no page");

    let report = house.repair().await;
    let outcome_of = |file: FileId| {
        let of_file =
            |one: &&Finding| one.kind == FindingKind::DamagedRow && one.file_id == Some(file);
        report.findings.iter().find(of_file).unwrap().outcome.text().to_owned()
    };
    assert!(outcome_of(owner.file_id).starts_with("set right: its organization"), "{report:?}");
    assert!(outcome_of(key.file_id).starts_with("set right: its key"), "{report:?}");
    assert!(outcome_of(hopeless.file_id).starts_with("set aside"), "{report:?}");

    for record in [&owner, &key, &sound] {
        let again = house.store.scoped(&Scope::All).record(record.file_id).await.unwrap();
        assert_eq!(
            (&again.blob.key, &again.organization_id),
            (&record.blob.key, &record.organization_id)
        );
        house.store.scoped(&Scope::All).read(record.file_id).await.unwrap();
    }
    let error = house.store.scoped(&Scope::All).record(hopeless.file_id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RecordDamaged);
    assert!(house.blob(&hopeless).exists(), "the bytes of a damaged row stay");
    let rows = std::fs::read_dir(house.data().join("quarantine")).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_to_string(rows.path().join("rows.jsonl")).unwrap();
    assert!(kept.lines().count() == 3 && kept.contains("no code!"), "{kept}");
}

#[tokio::test]
async fn a_location_that_is_not_its_providers_is_set_right() {
    let house = House::new().await;
    let (here, there) = (house.upload("7", b"here").await, house.upload("8", b"there").await);
    house.sql("UPDATE files SET storage_location = 'CLOUD' WHERE file_id = ?1", here.file_id);
    let local =
        "UPDATE files SET storage_location = 'LOCAL', sync_status = 'NONE' WHERE file_id = ?1";
    house.sql(local, there.file_id);

    assert_eq!(house.quick().await.found_by_kind[&FindingKind::WrongLocation], 2);
    assert!(house.repair().await.findings.iter().all(is_repaired));
    assert!(house.deep().await.is_clean());
    assert_eq!(house.store.scoped(&Scope::All).read(there.file_id).await.unwrap(), "there");
    assert_eq!(house.store.scoped(&Scope::All).read(here.file_id).await.unwrap(), "here");
}

#[tokio::test]
async fn a_live_blob_that_is_noted_to_be_removed_is_spared() {
    let house = House::new().await;
    let record = house.upload("7", b"bytes").await;
    let doom = "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
         SELECT file_id, storage_provider, blob_key, 0, 0 FROM files WHERE file_id = ?1";
    house.sql(doom, record.file_id);

    assert_eq!(only(&house.quick().await).kind, FindingKind::DoomedBytes);
    assert!(is_repaired(only(&house.repair().await)));
    house.store.admin().purge(&NoProgress).await.unwrap();
    assert!(house.blob(&record).exists() && house.deep().await.is_clean());
}

#[tokio::test]
async fn drifted_totals_are_counted_anew() {
    let house = House::new().await;
    let record = house.upload("7", b"bytes").await;
    let usage = "UPDATE organization_usage SET files = 9, bytes = 1 WHERE organization_id =
         (SELECT organization_id FROM files WHERE file_id = ?1)";
    house.sql(usage, record.file_id);
    let syncs = "UPDATE sync_totals SET files = files + 5 WHERE sync_status =
         (SELECT sync_status FROM files WHERE file_id = ?1)";
    house.sql(syncs, record.file_id);

    let report = house.quick().await;
    assert_eq!(report.found_by_kind[&FindingKind::DriftedTotal], 2, "{report:?}");
    assert!(report.findings[1].detail.contains("9 files and 1 bytes, counted are 1 files and 5"));
    assert!(house.repair().await.findings.iter().all(is_repaired));
    let usage = house.store.scoped(&Scope::All).usage(&"7".parse().unwrap()).await.unwrap();
    assert_eq!((usage.local.files, usage.local.bytes), (1, 5));
    assert!(house.quick().await.is_clean());
}

#[tokio::test]
async fn a_check_of_the_variants_goes_on_after_the_page_at_which_it_was_stopped() {
    let house = House::new().await;
    let mut stale = Vec::new();
    for millis in 0..5 {
        // All in one part of the cache.
        let id = FileId::generate(Timestamp::from_millis(millis));
        let file = format!("{}AA", &id.to_string()[..24]);
        let variants = house.data().join("variants").join("AA").join(&file);
        std::fs::create_dir_all(&variants).unwrap();
        std::fs::write(variants.join("0".repeat(32)), "stale").unwrap();
        stale.push(file);
    }

    let checks = &house.store.inner().background.checks;
    let stop =
        || checks.running().is_some_and(|run| run.part == "variants" && run.checked_names > 0);
    let options = FsckOptions::default();
    let stopped = house.store.admin().fsck(options, &stop, &NoProgress).await.unwrap();
    assert_eq!((stopped.ended_at, stopped.checked_names, stopped.found), (None, 2, 2));

    let whole = house.quick().await;
    assert_eq!((whole.is_resumed, whole.checked_names, whole.found), (true, 5, 5));
    let mut told: Vec<_> = whole.findings.iter().map(|finding| finding.name.clone()).collect();
    told.sort();
    stale.sort();
    assert_eq!(told, stale, "each once");
}

#[tokio::test]
async fn what_comes_between_the_count_and_the_correction_of_a_total_is_counted_too() {
    let house = House::new().await;
    let record = house.upload("7", b"bytes").await;
    let usage = "UPDATE organization_usage SET files = 9, bytes = 1 WHERE organization_id =
         (SELECT organization_id FROM files WHERE file_id = ?1)";
    house.sql(usage, record.file_id);

    let metadata = &house.store.inner().metadata;
    let drifted = metadata.inspection().drifted_totals(Some("7")).await.unwrap();
    house.upload("7", b"more").await;
    metadata.inspection().correct_totals(&drifted).await.unwrap();

    let usage = house.store.scoped(&Scope::All).usage(&"7".parse().unwrap()).await.unwrap();
    assert_eq!((usage.local.files, usage.local.bytes), (2, 9));
    assert_eq!(metadata.inspection().drifted_totals(Some("7")).await.unwrap(), []);
}

#[tokio::test]
async fn leftover_uploads_notes_and_variants_are_told_and_taken_away() {
    let house = House::new().await;
    house.upload("8", b"there").await;
    let long_ago = Timestamp::now().minus(std::time::Duration::from_hours(48));
    let staged = house.data().join("staging").join(BlobId::generate(long_ago).to_string());
    std::fs::write(&staged, "half").unwrap();
    let opened = std::fs::File::options().write(true).open(&staged).unwrap();
    opened.set_modified(long_ago.to_system_time()).unwrap();

    let blob = BlobId::generate(long_ago);
    let key = BlobKey::new(&"8".parse().unwrap(), &"docs".parse().unwrap(), long_ago, blob);
    let intent = WriteIntent {
        file_id: FileId::generate(long_ago),
        provider: "disk".parse().unwrap(),
        key,
        begun_at: long_ago,
        owner: None,
    };
    house.store.inner().metadata.begin_writes(vec![intent]).await.unwrap();

    let file = FileId::generate(long_ago).to_string();
    let variants = house.data().join("variants").join(&file[24..]).join(&file);
    std::fs::create_dir_all(&variants).unwrap();
    std::fs::write(variants.join("0".repeat(32)), "stale").unwrap();

    let kinds =
        [FindingKind::LeftoverStaging, FindingKind::LeftoverNote, FindingKind::StaleVariant];
    let report = house.quick().await;
    let found: Vec<_> = report.findings.iter().map(|one| one.kind).collect();
    assert_eq!(found, kinds, "{report:?}");
    assert!(staged.exists() && variants.exists());

    let report = house.repair().await;
    assert!(report.findings.iter().all(is_repaired), "{report:?}");
    assert!(!staged.exists() && !variants.exists());
    assert!(house.deep().await.is_clean());
}

#[tokio::test]
async fn the_staged_bytes_of_a_resumable_upload_are_no_leftover() {
    let house = House::new().await;
    let new = crate::NewUpload::new("8".parse().unwrap(), "docs".parse().unwrap());
    house.store.resumable().create(crate::uploads::NewResumable::new(new)).await.unwrap();
    let made = std::fs::read_dir(house.data().join("staging")).unwrap().next().unwrap().unwrap();

    // As one that has gone on for days.
    let long_ago = Timestamp::now().minus(std::time::Duration::from_hours(48));
    let old = BlobId::generate(long_ago).to_string();
    let staged = house.data().join("staging").join(&old);
    std::fs::rename(made.path(), &staged).unwrap();
    let database = rusqlite::Connection::open(house.store.data_dir().database()).unwrap();
    database.execute("UPDATE resumable_uploads SET blob_id = ?1", [&old]).unwrap();

    let report = house.repair().await;
    assert!(report.is_clean(), "{report:?}");
    assert!(staged.exists());
}

#[tokio::test]
async fn a_staged_upload_that_is_still_written_to_stays() {
    let house = House::new().await;
    let long_ago = Timestamp::now().minus(std::time::Duration::from_hours(48));
    let staged = house.data().join("staging").join(BlobId::generate(long_ago).to_string());
    std::fs::write(&staged, "half").unwrap();

    let report = house.repair().await;
    assert_eq!(report.found_by_kind[&FindingKind::LeftoverStaging], 1, "{report:?}");
    assert!(staged.exists() && !report.findings.iter().any(is_repaired), "{report:?}");
}

#[tokio::test]
async fn a_check_that_was_stopped_goes_on_where_it_was_also_after_a_restart() {
    let house = House::new().await;
    let mut records = Vec::new();
    for number in 0..100 {
        records.push(house.upload("7", format!("file {number}").as_bytes()).await);
    }
    for record in [&records[1], &records[90]] {
        std::fs::write(house.blob(record), "other!").unwrap();
    }

    let deep = FsckOptions { depth: FsckDepth::Deep, ..FsckOptions::default() };
    let looks = std::sync::atomic::AtomicU32::new(0);
    let stop = || looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 60;
    let stopped = house.store.admin().fsck(deep.clone(), &stop, &NoProgress).await.unwrap();
    assert_eq!(stopped.ended_at, None);
    assert!((1..100).contains(&stopped.checked_files) && stopped.found == 1, "{stopped:?}");

    let House { dir, store } = house;
    store.close().await;
    drop(store);
    let house = House { store: open(dir.path()).await, dir };
    let other = FsckOptions { depth: FsckDepth::Quick, ..deep.clone() };
    let whole = house.store.admin().fsck(deep.clone(), &|| false, &NoProgress).await.unwrap();
    assert!(whole.is_resumed && whole.ended_at.is_some());
    assert_eq!((whole.checked_files, whole.found), (100, 2));
    assert_eq!(whole.started_at, stopped.started_at);
    assert!(whole.checked_bytes < 1000, "{whole:?}");

    let again = house.store.admin().fsck(deep, &|| false, &NoProgress).await.unwrap();
    assert!(!again.is_resumed && again.found == 2, "one that ended begins anew");
    let other = house.store.admin().fsck(other, &|| true, &NoProgress).await.unwrap();
    assert!(!other.is_resumed);
    let anew = FsckOptions { start: FsckStart::Anew, ..FsckOptions::default() };
    assert!(!house.store.admin().fsck(anew, &|| false, &NoProgress).await.unwrap().is_resumed);
}

#[tokio::test]
async fn one_holder_can_be_looked_at_alone_and_an_unknown_one_is_refused() {
    let house = House::new().await;
    let (here, there) = (house.upload("7", b"here").await, house.upload("8", b"there").await);
    std::fs::remove_file(house.blob(&here)).unwrap();
    std::fs::remove_file(house.object(&there)).unwrap();

    for (provider, file) in [("LOCAL", here.file_id), ("disk", there.file_id)] {
        let provider = Some(provider.parse().unwrap());
        let options = FsckOptions { provider, ..FsckOptions::default() };
        let report = house.store.admin().fsck(options, &|| false, &NoProgress).await.unwrap();
        assert_eq!(only(&report).file_id, Some(file));
    }

    let provider = Some("nowhere".parse().unwrap());
    let options = FsckOptions { provider, ..FsckOptions::default() };
    let refused = house.store.admin().fsck(options, &|| false, &NoProgress).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnknownProvider);
}

#[tokio::test]
async fn a_store_that_changes_under_a_check_gives_no_false_alarm() {
    let house = House::new().await;
    for number in 0..50 {
        house.upload(if number % 2 == 0 { "7" } else { "8" }, b"bytes").await;
    }

    let store = house.store.clone();
    let churn = tokio::spawn(async move {
        let mut rounds = 0;
        for _ in 0..60 {
            for organization in ["7", "8"] {
                let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
                let record = store.upload(new, &b"comes and goes"[..]).await.unwrap();
                store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
            }
            store.admin().purge(&NoProgress).await.unwrap();
            rounds += 1;
        }
        rounds
    });
    let mut checks = 0;
    while !churn.is_finished() || checks == 0 {
        let report = house.repair().await;
        assert!(report.is_clean(), "{report:?}");
        checks += 1;
    }
    assert_eq!(churn.await.unwrap(), 60);
}
