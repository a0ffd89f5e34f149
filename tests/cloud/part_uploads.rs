//! Unfinished uploads in parts, where the provider does what real ones seldom do.

use filestore_core::admin::{FindingKind, FsckMode};
use filestore_core::{BlobId, ErrorKind, ManualClock, NewUpload, Timestamp};
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

    let refused = store.admin().abort_left_uploads(&remote.config.code, &|| false).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unusable);

    s3.faults().clear();
    assert!(fsck(&store, FsckMode::DryRun).await.not_looked_at.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_fails_to_list_them_is_postponed_by_the_check() {
    let s3 = S3Server::start().await;
    let mut remote = Remote::at(&s3);
    remote.config.retries = 0;
    let home = tempfile::tempdir().unwrap();
    let (store, _) = open(home.path(), &remote, &ManualClock::at(Timestamp::now())).await;

    s3.faults().every(Operation::ListMultipartUploads, Fault::InternalError);
    let report = fsck(&store, FsckMode::DryRun).await;
    assert!(report.postponed.contains_key(&remote.config.code), "{report:#?}");
    assert!(report.not_looked_at.is_empty(), "{:?}", report.not_looked_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_cannot_be_aborted_keeps_no_other_from_it() {
    let s3 = S3Server::start().await;
    let remote = Remote::at(&s3);
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let (store, stored) = open(home.path(), &remote, &clock).await;
    for _ in 0..4 {
        remote.begin_upload(stored.sibling(BlobId::generate(Timestamp::now())).as_str()).await;
    }
    clock.advance(A_DAY_AND_MORE);

    s3.faults().next(1, Operation::AbortMultipartUpload, Fault::AccessDenied);
    let aborted = store.admin().abort_left_uploads(&remote.config.code, &|| false).await;
    assert!(aborted.is_err(), "one failed");
    assert_eq!(unfinished(&store, &remote).await.len(), 1);
    assert_eq!(abort_left(&store, &remote).await, 1);
}
