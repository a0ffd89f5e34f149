//! Unfinished uploads in parts, where the provider does what real ones seldom do.

use filestore_core::domain::clock::{ManualClock, Timestamp};
use filestore_core::{FindingKind, FsckMode, NewUpload};
use filestore_workspace::s3::{Fault, Operation};
use filestore_workspace::{Remote, S3Server, eventually};

use crate::suite::part_uploads::{A_DAY_AND_MORE, abort_left, fsck, open, unfinished};

const LARGE: usize = 12 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_under_way_for_days_is_left_alone() {
    let s3 = S3Server::start().await;
    let remote = Remote::at(&s3);
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let (store, _) = open(home.path(), &remote, &clock).await;

    s3.faults().every(Operation::UploadPart, Fault::Hang);
    let uploading = tokio::spawn({
        let store = store.clone();
        async move {
            let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
            store.upload(new, &vec![1_u8; LARGE][..]).await
        }
    });
    eventually("the upload has begun", async || {
        (unfinished(&store, &remote).await.len() == 1).then_some(())
    })
    .await;

    clock.advance(A_DAY_AND_MORE);
    assert_eq!(abort_left(&store, &remote).await, 0);
    let report = fsck(&store, FsckMode::DryRun).await;
    assert!(!report.found_by_kind.contains_key(&FindingKind::UnfinishedUpload), "{report:#?}");
    assert_eq!(unfinished(&store, &remote).await.len(), 1, "a note stands for it");
    uploading.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_lets_nobody_list_them_is_named_by_the_check() {
    let s3 = S3Server::start().await;
    let remote = Remote::at(&s3);
    let home = tempfile::tempdir().unwrap();
    let (store, _) = open(home.path(), &remote, &ManualClock::at(Timestamp::now())).await;

    s3.faults().every(Operation::ListMultipartUploads, Fault::AccessDenied);
    let report = fsck(&store, FsckMode::DryRun).await;
    assert!(report.is_clean() && report.postponed.is_empty(), "{report:#?}");
    let [named] = &report.not_looked_at[..] else { panic!("{:?}", report.not_looked_at) };
    assert!(named.contains(remote.code()) && named.contains("lifecycle rule"), "{named}");

    s3.faults().clear();
    assert!(fsck(&store, FsckMode::DryRun).await.not_looked_at.is_empty());
}
