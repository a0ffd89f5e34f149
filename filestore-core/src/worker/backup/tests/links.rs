//! Snapshots that share files with the store by hard links.

use super::*;

#[tokio::test]
async fn hard_links_share_the_disk_and_say_so() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "linked").await;
    house.store.inner().uploads.publishing.idle().await;
    let options = BackupOptions { bytes: SnapshotBytes::HardLinked, ..BackupOptions::default() };
    house.back_up_as(options).await.unwrap();
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert!(verified.is_good());
    assert_eq!(verified.snapshot.bytes, SnapshotBytes::HardLinked);

    house.store.scoped(&Scope::All).delete(file.file_id).await.unwrap();
    assert_eq!(house.store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert!(verified.is_good(), "the second name keeps the bytes");
    house.close().await;
}

#[tokio::test]
async fn a_snapshot_of_copies_after_one_of_hard_links_shares_no_file_with_the_store() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "linked").await;
    house.store.inner().uploads.publishing.idle().await;
    let options = BackupOptions { bytes: SnapshotBytes::HardLinked, ..BackupOptions::default() };
    house.back_up_as(options).await.unwrap();

    let report = house.back_up().await;
    assert_eq!(report.snapshot.bytes, SnapshotBytes::Copied);
    assert_eq!((report.copied, report.reused), (1, 0), "a second name is no copy");
    std::fs::write(house.path("data/blobs").join(file.blob.key.as_str()), b"LINKED").unwrap();
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert!(verified.is_good(), "damage of the store leaves the snapshot alone: {verified:?}");

    let again = house.back_up().await;
    assert_eq!((again.copied, again.reused), (0, 1));
    house.close().await;
}

#[tokio::test]
async fn a_shared_content_that_is_damaged_is_copied_from_another_record() {
    let house = House::new().await;
    let files =
        [upload(&house.store, "42", "twin").await, upload(&house.store, "42", "twin").await];
    house.store.inner().uploads.publishing.idle().await;
    let options = BackupOptions { bytes: SnapshotBytes::HardLinked, ..BackupOptions::default() };
    house.back_up_as(options).await.unwrap();

    // The file that was linked, and with it the content of the backup.
    let linked = blobs(&house.path("backup")).remove(0);
    std::fs::write(&linked, b"TWIN").unwrap();
    let report = house.back_up().await;
    assert_eq!((report.copied, report.snapshot.damaged), (1, 0));
    assert_eq!(std::fs::read(&linked).unwrap(), b"twin");
    assert_eq!(blobs(&house.path("backup")), [linked], "nothing is left beside it");
    let stored = files.map(|file| house.path("data/blobs").join(file.blob.key.as_str()));
    assert!(stored.iter().any(|path| std::fs::read(path).unwrap() == b"TWIN"), "as it was found");
    house.close().await;
}

#[tokio::test]
async fn a_content_is_found_at_the_last_of_many_records() {
    let house = House::new().await;
    let mut twins = Vec::new();
    for _ in 0..40 {
        twins.push(upload(&house.store, "42", "twin").await);
    }
    house.store.inner().uploads.publishing.idle().await;
    twins.sort_by_key(|file| file.file_id);
    let path = |file: &FileRecord| house.path("data/blobs").join(file.blob.key.as_str());
    for twin in &twins[..39] {
        std::fs::remove_file(path(twin)).unwrap();
    }

    let report = house.back_up().await;
    assert_eq!((report.copied, report.snapshot.damaged, report.snapshot.files), (1, 0, 40));
    std::fs::remove_file(path(&twins[39])).unwrap();
    std::fs::remove_dir_all(house.path("backup")).unwrap();
    let report = house.back_up().await;
    assert_eq!((report.copied, report.snapshot.damaged, report.snapshot.files), (0, 1, 40));
    house.close().await;
}

#[tokio::test]
async fn a_file_of_other_bytes_is_not_linked() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "linked").await;
    house.store.inner().uploads.publishing.idle().await;
    std::fs::write(house.path("data/blobs").join(file.blob.key.as_str()), b"LINKED").unwrap();

    let options = BackupOptions { bytes: SnapshotBytes::HardLinked, ..BackupOptions::default() };
    let report = house.back_up_as(options).await.unwrap();
    assert_eq!((report.copied, report.snapshot.damaged), (0, 1));
    assert_eq!(report.faults[0].problem, BlobProblem::Wrong);
    house.close().await;
}
