//! Checks of the whole store, with objects at providers.

use std::time::Duration;

use filestore_core::admin::{
    FindingKind, FsckDepth, FsckMode, FsckOptions, FsckReport, NoProgress,
};
use filestore_workspace::fixtures::noise;
use filestore_workspace::{Remote, TestServer};

use super::{serve_with, sync_all};

pub(crate) async fn fsck(server: &TestServer, depth: FsckDepth, mode: FsckMode) -> FsckReport {
    let mut options = FsckOptions::default();
    (options.depth, options.mode) = (depth, mode);
    server.store().admin().fsck(options, &|| false, &NoProgress).await.unwrap()
}

pub(crate) async fn objects_are_checked_in_both_directions(one: &Remote, two: &Remote) {
    let server = serve_with(&[one, two], |config| {
        config.store.blob_grace = Duration::from_mins(5);
    })
    .await;
    server.bind(7, one.code(), false).await;
    server.bind(8, two.code(), true).await;
    for number in 0..5 {
        server.upload(noise(number, 3000)).org("7").ok().await;
        server.upload(noise(number, 3000)).org("8").ok().await;
    }
    server.upload(noise(9, 9 << 20)).org("7").ok().await;
    sync_all(&server).await;

    let report = fsck(&server, FsckDepth::Deep, FsckMode::DryRun).await;
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!((report.checked_files, report.checked_bytes), (11, 30_000 + (9 << 20)));

    // The same objects are nobody's for a store that has no record of them.
    let code = one.config.code.clone();
    let database = server.store().data_dir().database();
    let gone = server.listed_of("7").await.pop().unwrap();
    let key = server.record(&gone).await.file_path;
    let vandal = rusqlite::Connection::open(database).unwrap();
    assert_eq!(vandal.execute("DELETE FROM files WHERE file_id = ?1", [&gone]).unwrap(), 1);

    let report = fsck(&server, FsckDepth::Quick, FsckMode::Repair).await;
    assert_eq!(report.found_by_kind, [(FindingKind::OrphanBytes, 1)].into(), "{report:#?}");
    assert_eq!((&report.findings[0].place, &report.findings[0].name), (&code.to_string(), &key));
    assert!(one.objects().await.contains(&key), "not removed at once");
    assert!(fsck(&server, FsckDepth::Quick, FsckMode::DryRun).await.is_clean());
}

pub(crate) async fn an_organization_is_erased_at_its_provider(one: &Remote, two: &Remote) {
    let server = super::serve(&[one, two]).await;
    server.bind(7, one.code(), false).await;
    server.bind(8, one.code(), false).await;
    for number in 0..4 {
        server.upload(noise(number, 3000)).org("7").ok().await;
    }
    let kept = server.upload(noise(9, 3000)).org("8").ok().await.file_id;

    let organization = "7".parse().unwrap();
    let admin = server.store().admin();
    let receipt = admin.erase_organization(&organization, &|| false, &NoProgress).await.unwrap();
    assert!(receipt.is_complete && receipt.removed.files == 4, "{receipt:#?}");
    assert_eq!(one.objects().await, [server.record(&kept).await.file_path]);
}
