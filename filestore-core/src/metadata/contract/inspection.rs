//! Operations for checks.

use super::*;
use crate::domain::report::fsck::{Finding, FindingKind, FindingOutcome, FsckDepth, FsckMode};
use crate::metadata::{
    CheckName, CheckRun, DriftedTotal, DroppedBlob, MendLocation, MendedRow, NamedBlob,
    PurgeClaimed, Referrer, Total, WalkedFile,
};

pub(crate) async fn a_walk_meets_every_record_once(metadata: &dyn Metadata) {
    let mut all = vec![put(metadata, ready("acme")).await];
    all.push(put(metadata, temp("7")).await);
    all.push(put_deleted(metadata, ready("7"), at(1)).await);
    let claimed = all[2].file_id;
    let lease = lease("run", at(1), at(9));
    metadata
        .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(1)), 9)
        .await
        .unwrap();

    let (mut met, mut after) = (Vec::new(), String::new());
    loop {
        let page = metadata.inspection().walk_files(&after, 2).await.unwrap();
        for file in page.files {
            let WalkedFile::Sound(record, is_claimed) = file else { panic!("{file:?}") };
            assert_eq!(is_claimed == PurgeClaimed::Yes, record.file_id == claimed);
            met.push(record.file_id);
        }
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(met, sorted(all.iter().map(|record| record.file_id).collect()));

    let unknown = FileId::generate(at(0));
    let known =
        metadata.inspection().known_files(&[claimed, unknown, all[0].file_id]).await.unwrap();
    assert_eq!(known, [true, false, true]);
    let blobs: Vec<_> = all.iter().map(NamedBlob::of).collect();
    let other = NamedBlob { holder: provider("s3"), ..blobs[0].clone() };
    let named = metadata
        .inspection()
        .still_named(&[other, blobs[0].clone(), blobs[2].clone()])
        .await
        .unwrap();
    assert_eq!(named, [false, true, false], "not at another holder, and not once it is claimed");
}

pub(crate) async fn orphans_are_what_nothing_refers_to(metadata: &dyn Metadata) {
    let record = put(metadata, ready("7")).await;
    let noted = in_cloud(ready("7"), "s3");
    note(metadata, &noted).await;
    let withdrawn = in_cloud(ready("7"), "s3");
    note(metadata, &withdrawn).await;
    metadata.withdraw_writes(std::slice::from_ref(&withdrawn.blob.key), at(5)).await.unwrap();
    let orphan = ready("7").blob.key;

    let (local, s3) = (ProviderCode::local(), provider("s3"));
    let keys = [record.blob.key.clone(), orphan.clone()];
    let found = metadata.inspection().referrers(&local, &keys).await.unwrap();
    assert_eq!(found, [Referrer::Record, Referrer::Nobody]);

    let keys = [noted.blob.key.clone(), withdrawn.blob.key, record.blob.key.clone(), orphan];
    let elsewhere = Referrer::Elsewhere {
        file_id: record.file_id.to_string(),
        holder: "LOCAL".into(),
        key: record.blob.key.as_str().into(),
    };
    let expected = [Referrer::Note, Referrer::Dropped, elsewhere, Referrer::Nobody];
    assert_eq!(metadata.inspection().referrers(&s3, &keys).await.unwrap(), expected);

    let adopted = metadata.inspection().adopt_orphans(&s3, &keys, at(50)).await.unwrap();
    assert_eq!(adopted, [false, false, false, true]);
    let due = metadata.due_blobs(&s3, at(50), 9).await.unwrap();
    assert_eq!(due.iter().map(|due| &due.blob.key).collect::<Vec<_>>(), [&keys[1], &keys[3]]);
    let old = metadata.inspection().old_writes(at(1), 9).await.unwrap();
    assert_eq!(old, [(s3, noted.blob.key)]);
}

pub(crate) async fn a_live_blob_is_spared(metadata: &dyn Metadata) {
    let record = put(metadata, in_cloud(ready("7"), "s3")).await;
    let other = put(metadata, ready("7")).await;
    // What no code of ours does: the blob of a live record is dropped, and noted.
    note(metadata, &record).await;
    let drop_blob = Some(DroppedBlob {
        file_id: record.file_id,
        provider: provider("s3"),
        key: record.blob.key.clone(),
        content: None,
        not_before: at(5),
    });
    let update = UpdateFile { drop_blob, ..change(&other, replaced(&other, 3, at(1))) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);

    let blob = NamedBlob::of(&record);
    let doomed = metadata.inspection().doomed_blobs(9).await.unwrap();
    assert_eq!(doomed, [blob.clone(), blob.clone()]);
    let stranger = NamedBlob { holder: provider("other"), ..blob.clone() };
    assert!(!metadata.inspection().spare_blob(&stranger).await.unwrap());
    assert!(metadata.inspection().spare_blob(&blob).await.unwrap());
    assert!(!metadata.inspection().spare_blob(&blob).await.unwrap());
    assert_eq!(metadata.inspection().doomed_blobs(9).await.unwrap(), []);
}

pub(crate) async fn a_location_is_set_right(metadata: &dyn Metadata) {
    let old = put(metadata, ready("7")).await;
    let copied = moved(&old, "s3");
    note(metadata, &copied).await;
    assert_eq!(metadata.update_file(change(&old, copied.clone())).await.unwrap(), Updated::Done);

    let blob = NamedBlob::of(&copied);
    assert!(
        !metadata.inspection().mend_location(&blob, MendLocation::Cloud).await.unwrap(),
        "it is right"
    );
    assert!(metadata.inspection().mend_location(&blob, MendLocation::Local).await.unwrap());
    let mended = get(metadata, old.file_id).await.unwrap();
    assert_eq!(mended.state, old.state, "LOCAL, and to be copied again");
    assert!(
        !metadata
            .inspection()
            .mend_location(&NamedBlob::of(&old), MendLocation::Local)
            .await
            .unwrap()
    );
}

pub(crate) async fn a_sound_row_is_left_alone_and_shown_whole(metadata: &dyn Metadata) {
    let record = put(metadata, ready("acme")).await;
    let id = record.file_id.to_string();
    assert_eq!(metadata.inspection().mend_file(&id).await.unwrap(), MendedRow::Sound);
    assert_eq!(metadata.inspection().mend_file("no id").await.unwrap(), MendedRow::Sound);
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));

    let text = metadata.inspection().row_text(&id).await.unwrap().unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(row["file_id"], id.as_str());
    assert_eq!(row["original_name"], "grüße 🎉.txt");
    assert_eq!(row["size_bytes"], 10);
    assert_eq!(row["sha256"], "07".repeat(32));
    assert_eq!(row["expires_at"], serde_json::Value::Null);
    assert_eq!(metadata.inspection().row_text("no id").await.unwrap(), None);
}

pub(crate) async fn totals_are_what_their_files_add_up_to(metadata: &dyn Metadata) {
    for organization in ["acme", "7", "B", "10"] {
        put(metadata, ready(organization)).await;
        put(metadata, in_cloud(ready(organization), "s3")).await;
    }
    let gone = put_deleted(metadata, ready("only-deleted"), at(1)).await;
    let lease = lease("run", at(1), at(9));
    metadata
        .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(1)), 9)
        .await
        .unwrap();
    assert_eq!(metadata.finish_purges("run", &[Purged::of(gone.file_id)], at(2)).await.unwrap(), 1);

    let all = metadata.inspection().organizations("", 9).await.unwrap();
    assert_eq!(all, ["10", "7", "B", "acme", "only-deleted"]);
    assert_eq!(metadata.inspection().organizations("7", 2).await.unwrap(), ["B", "acme"]);
    for organization in &all {
        assert_eq!(metadata.inspection().drifted_totals(Some(organization)).await.unwrap(), []);
    }
    assert_eq!(metadata.inspection().drifted_totals(None).await.unwrap(), []);

    // What was found at an earlier instant is right, once, whatever has come since.
    let usage = |location: &str, files: i64| DriftedTotal {
        total: Total::Usage { organization: "7".into(), location: location.into() },
        stored: (1, 10),
        counted: (1 + files, 10 + 10 * files),
    };
    let syncs = DriftedTotal {
        total: Total::Syncs { status: "PENDING".into() },
        stored: (1, 0),
        counted: (6, 0),
    };
    let before = metadata.sync_counts().await.unwrap();
    metadata
        .inspection()
        .correct_totals(&[usage("LOCAL", 2), usage("CLOUD", -1), syncs])
        .await
        .unwrap();
    let wrong = metadata.usage(&organization("7")).await.unwrap();
    assert_eq!((wrong.local.files, wrong.local.bytes, wrong.cloud.files), (3, 30, 0));
    assert_eq!(metadata.sync_counts().await.unwrap().pending, before.pending + 5);
    for drifted in [Some("7"), None] {
        let found = metadata.inspection().drifted_totals(drifted).await.unwrap();
        assert!(!found.is_empty());
        metadata.inspection().correct_totals(&found).await.unwrap();
        assert_eq!(metadata.inspection().drifted_totals(drifted).await.unwrap(), []);
    }
    put(metadata, ready("7")).await;
    assert_eq!(metadata.usage(&organization("7")).await.unwrap().local.files, 2, "they go on");
}

fn run() -> CheckRun {
    CheckRun {
        name: CheckName::Asked,
        depth: FsckDepth::Deep,
        mode: FsckMode::Repair,
        provider: Some(provider("s3")),
        started_at: at(1),
        ended_at: None,
        part: "records".into(),
        cursor: "x".into(),
        files: 3,
        bytes: 4,
        names: 5,
        found: 0,
        repaired: 0,
        postponed: vec![(provider("s3"), "two\nlines".into())],
    }
}

pub(crate) async fn a_check_goes_on_from_its_stored_state(metadata: &dyn Metadata) {
    assert_eq!(metadata.inspection().check_run(CheckName::Asked).await.unwrap(), None);
    metadata.inspection().begin_check(&run()).await.unwrap();
    let stored = CheckRun { postponed: vec![(provider("s3"), "two lines".into())], ..run() };
    assert_eq!(
        metadata.inspection().check_run(CheckName::Asked).await.unwrap(),
        Some(stored.clone())
    );
    assert_eq!(metadata.inspection().check_run(CheckName::Scrub).await.unwrap(), None);

    let (grave, light) = (FindingKind::ALL[0], *FindingKind::ALL.last().unwrap());
    let mut one = Finding::new(light, "s3", "name", "detail").of_file(FileId::generate(at(0)));
    let two = Finding::new(grave, "LOCAL", "b", "detail");
    let found = vec![one.clone(), two.clone()];
    assert_eq!(metadata.inspection().save_check(&stored, found, at(0)).await.unwrap(), (2, 0));
    assert_eq!(
        metadata.inspection().findings(CheckName::Asked, 9).await.unwrap(),
        [two.clone(), one.clone()]
    );

    one.outcome = FindingOutcome::Repaired("done".into());
    let later = CheckRun { found: 2, cursor: "y".into(), ..stored };
    assert_eq!(
        metadata.inspection().save_check(&later, vec![one.clone()], at(0)).await.unwrap(),
        (2, 1)
    );
    let kept = CheckRun { repaired: 1, ..later };
    assert_eq!(metadata.inspection().check_run(CheckName::Asked).await.unwrap(), Some(kept));
    assert_eq!(metadata.inspection().findings(CheckName::Asked, 1).await.unwrap(), [two]);
    let counts = metadata.inspection().count_findings(CheckName::Asked).await.unwrap();
    assert_eq!(counts, [(grave, 1, 0), (light, 1, 1)]);

    metadata.inspection().begin_check(&run()).await.unwrap();
    assert_eq!(metadata.inspection().findings(CheckName::Asked, 9).await.unwrap(), []);
}
