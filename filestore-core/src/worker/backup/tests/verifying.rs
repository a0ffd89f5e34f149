//! Snapshots that are read again, and damage that a run finds.

use super::*;

#[tokio::test]
async fn what_a_run_that_broke_off_has_left_is_read_before_it_counts() {
    let house = House::new().await;
    upload(&house.store, "42", "whole").await;
    upload(&house.store, "42", "zeros").await;
    let report = house.back_up().await;

    // As a power cut before the manifest leaves it.
    let snapshot = house.path("backup/snapshots").join(report.snapshot.id.to_string());
    std::fs::remove_file(snapshot.join("manifest.jsonl")).unwrap();
    let damaged = blobs(&house.path("backup"))
        .into_iter()
        .find(|path| std::fs::read(path).unwrap() == b"zeros")
        .unwrap();
    std::fs::write(&damaged, [0; 5]).unwrap();
    assert!(house.backups().await.list().await.unwrap().is_empty());

    let report = house.back_up().await;
    assert_eq!((report.copied, report.reused), (1, 1));
    assert!(!snapshot.exists());
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert!(verified.is_good(), "{verified:?}");
    house.close().await;
}

#[tokio::test]
async fn verifying_names_what_is_missing_and_what_is_wrong() {
    let house = House::new().await;
    for text in ["good", "gone", "flipped"] {
        upload(&house.store, "42", text).await;
    }
    house.back_up().await;
    for path in blobs(&house.path("backup")) {
        match std::fs::read(&path).unwrap().as_slice() {
            b"gone" => std::fs::remove_file(&path).unwrap(),
            b"flipped" => std::fs::write(&path, b"flippEd").unwrap(),
            _ => {}
        }
    }

    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((verified.checked, verified.missing, verified.wrong), (3, 1, 1));
    assert!(verified.database_is_good && !verified.is_good());
    assert_eq!(verified.faults.len(), 2);

    let (report, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_eq!((report.restored, report.failed), (1, 2), "never other bytes than recorded");
    restored.close().await;

    let id = verified.snapshot.id.to_string();
    std::fs::write(house.path("backup/snapshots").join(id).join("metadata.sqlite3"), b"x").unwrap();
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert!(!verified.database_is_good);
    house.close().await;
}

#[tokio::test]
async fn what_verifying_found_wrong_is_set_aside_and_taken_anew() {
    let house = House::new().await;
    upload(&house.store, "42", "whole").await;
    let kept = upload(&house.store, "42", "flipped").await;
    house.back_up().await;
    let path = blobs(&house.path("backup"))
        .into_iter()
        .find(|path| std::fs::read(path).unwrap() == b"flipped")
        .unwrap();
    std::fs::write(&path, b"flippEd").unwrap();

    let verify = async || house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    let verified = verify().await;
    assert_eq!((verified.wrong, verified.set_aside, verified.missing), (1, 1, 0));
    let aside = house.path("backup/damaged").join(kept.blob.sha256.to_hex());
    assert_eq!(std::fs::read(&aside).unwrap(), b"flippEd", "nothing is thrown away");

    let keep = NonZeroUsize::new(2).unwrap();
    let prune = async || house.backups().await.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!(prune().await.blobs_removed, 0, "there is no other of it");
    let verified = verify().await;
    assert_eq!((verified.wrong, verified.set_aside, verified.missing), (0, 0, 1));

    let again = house.back_up().await;
    assert_eq!((again.copied, again.reused), (1, 1));
    assert!(verify().await.is_good());
    let backups = house.backups().await;
    let first = backups.list().await.unwrap()[0].id;
    let healed = backups.verify(Some(first), Arc::new(NoProgress)).await.unwrap();
    assert!(healed.is_good(), "the older snapshot has it again: {healed:?}");
    drop(backups);
    assert_eq!((prune().await.blobs_removed, aside.exists()), (1, false));
    house.close().await;
}

#[tokio::test]
async fn a_damaged_manifest_is_refused_and_nothing_is_pruned_by_it() {
    let house = House::new().await;
    upload(&house.store, "42", "one").await;
    let report = house.back_up().await;
    let manifest =
        house.path("backup/snapshots").join(report.snapshot.id.to_string()).join("manifest.jsonl");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace("\"size_bytes\":3", "\"size_bytes\":4");
    std::fs::write(&manifest, lines.join("\n") + "\n").unwrap();

    let backups = house.backups().await;
    let verified = backups.verify(None, Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(verified.kind(), ErrorKind::Unusable);
    let keep = NonZeroUsize::new(1).unwrap();
    backups.prune(keep, Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(blobs(&house.path("backup")).len(), 1);

    std::fs::write(&manifest, &text[..text.len() - 20]).unwrap();
    backups.list().await.unwrap_err();
    drop(backups);
    house.close().await;
}

/// Tells when a run has begun.
#[derive(Default)]
struct Begun(tokio::sync::Notify);

impl crate::worker::Progress for Begun {
    fn accepted(&self) {
        self.0.notify_one();
    }

    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, _units: u64) {}
}

#[tokio::test]
async fn nothing_is_pruned_verified_or_restored_under_a_run_that_makes_a_snapshot() {
    let house = House::new().await;
    upload(&house.store, "42", "one").await;
    house.back_up().await;
    let (backups, keep) = (house.backups().await, NonZeroUsize::new(1).unwrap());
    let clone = backups.clone();

    let begun = Arc::new(Begun::default());
    let options = BackupOptions::default();
    let making = house.store.admin().backup(&backups, options, Arc::<Begun>::clone(&begun));
    let mut making = Box::pin(making);
    tokio::select! {
        biased;
        () = begun.0.notified() => {}
        made = &mut making => panic!("it waits for the disk: {made:?}"),
    }

    let kind = |outcome: Option<crate::Error>| outcome.map(|error| error.kind());
    let none = Arc::new(NoProgress);
    let pruned = clone.prune(keep, none.clone()).await.err();
    let verified = clone.verify(None, none.clone()).await.err();
    let twice = house.store.admin().backup(&clone, options, none.clone());
    let selection = Selection::Organization("42".parse().unwrap());
    let restored = house.store.admin().restore(&clone, None, selection, none.clone()).await.err();
    for refused in [pruned, verified, twice.await.err(), restored] {
        assert_eq!(kind(refused), Some(ErrorKind::Locked));
    }

    making.as_mut().await.unwrap();
    drop(making);
    assert_eq!(clone.prune(keep, none).await.unwrap().removed.len(), 1);
    drop((backups, clone));
    house.close().await;
}
