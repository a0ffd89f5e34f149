//! Snapshots of files that are at providers, or at the backend of LOCAL.

use super::*;

/// A store whose LOCAL files are at the provider.
async fn behind(home: &Path) -> FileStore {
    let providers = providers(home).into_iter().map(ProviderConfig::as_local_backend).collect();
    let purge_grace = Duration::ZERO;
    let config = StoreConfig { purge_grace, providers, ..StoreConfig::default() };
    FileStore::builder(home.join("data")).config(config).open().await.unwrap()
}

#[tokio::test]
async fn a_snapshot_of_local_files_has_those_at_their_backend() {
    let home = tempfile::tempdir().unwrap();
    let store = behind(home.path()).await;
    let record = upload(&store, "42", "at the backend").await;

    let backups = Backups::create(home.path().join("backup")).await.unwrap();
    let options = BackupOptions { clouds: SnapshotClouds::Noted, ..BackupOptions::default() };
    let report = store.admin().backup(&backups, options, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.snapshot.blobs, report.snapshot.elsewhere), (1, 0));
    store.close().await;

    let into = home.path().join("copy");
    let progress = Arc::new(NoProgress);
    let report = backups.restore(None, &into, RestoredAs::Copy, &[], progress).await.unwrap();
    assert_eq!((report.restored, report.failed), (1, 0));
    let copy = FileStore::open(&into).await.unwrap();
    assert_eq!(text_of(&copy, record.file_id).await.unwrap(), "at the backend");
    copy.close().await;
}

#[tokio::test]
async fn a_file_that_comes_back_goes_to_the_backend() {
    let home = tempfile::tempdir().unwrap();
    let store = behind(home.path()).await;
    let record = upload(&store, "42", "lost").await;
    let backups = Backups::create(home.path().join("backup")).await.unwrap();
    let options = BackupOptions::default();
    store.admin().backup(&backups, options, Arc::new(NoProgress)).await.unwrap();
    store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);

    let selection = Selection::File(record.file_id);
    let restored = store.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await;
    assert_eq!((restored.as_ref().unwrap().restored, restored.unwrap().failed), (1, 0));
    let back = store.scoped(&Scope::All).record(record.file_id).await.unwrap();
    let place = (back.blob.provider.as_str(), back.state.location());
    assert_eq!(place, ("disk", Location::Local));
    assert_ne!(back.blob.key, record.blob.key, "a key is written once");
    assert_eq!(text_of(&store, record.file_id).await.unwrap(), "lost");
    assert_eq!(std::fs::read_dir(home.path().join("data/staging")).unwrap().count(), 0);
    store.close().await;
}

#[tokio::test]
async fn files_at_providers_can_be_left_there() {
    let house = House::new().await;
    let local = upload(&house.store, "42", "local").await;
    let cloud = upload(&house.store, "7", "cloud").await;
    let options = BackupOptions { clouds: SnapshotClouds::Noted, ..BackupOptions::default() };
    let report = house.back_up_as(options).await.unwrap();
    assert_eq!((report.snapshot.blobs, report.snapshot.elsewhere), (1, 1));

    let (report, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_eq!((report.restored, report.failed), (1, 1), "a copy has none of them");
    assert_eq!(report.faults[0].file_id, Some(cloud.file_id));
    restored.close().await;

    let (report, restored) = house.restored("original", RestoredAs::Original).await;
    assert_eq!((report.restored, report.left_at_providers, report.failed), (1, 1, 0));
    assert_eq!(text_of(&restored, cloud.file_id).await.unwrap(), "cloud");
    assert_eq!(text_of(&restored, local.file_id).await.unwrap(), "local");
    restored.close().await;
    house.close().await;
}

#[tokio::test]
async fn what_a_provider_has_lost_comes_back_from_the_snapshot() {
    let house = House::new().await;
    let cloud = upload(&house.store, "7", "cloud").await;
    house.back_up().await;
    std::fs::remove_file(house.path("disk").join(cloud.blob.key.as_str())).unwrap();

    let (report, restored) = house.restored("original", RestoredAs::Original).await;
    assert_eq!((report.restored, report.left_at_providers, report.failed), (1, 0, 0));
    let record = restored.scoped(&Scope::All).record(cloud.file_id).await.unwrap();
    assert_eq!(record.state.location(), Location::Local, "the sync follows");
    assert_eq!(text_of(&restored, cloud.file_id).await.unwrap(), "cloud");
    restored.close().await;
    house.close().await;
}
