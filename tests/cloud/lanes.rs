//! One provider that does not answer: purge, expiry, dropped blobs and sync of everything else go on.

use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::NoProgress;
use filestore_workspace::s3::{Fault, Operation};
use filestore_workspace::{Remote, S3Server, TestServer, eventually};

use crate::suite::{serve_with, sync_all};

/// A server with a provider that is to fail, which is given up on quickly, and a healthy one.
async fn with_two(failing: &S3Server, healthy: &S3Server) -> (TestServer, Remote, Remote) {
    let one = Remote::at(failing).given_up_on_soon();
    let other = Remote::at(healthy);

    let server = serve_with(&[&one, &other], |config| {
        config.store.temp_ttl = Duration::from_secs(1);
    })
    .await;
    server.bind(7, one.code(), false).await;
    server.bind(8, other.code(), false).await;
    (server, one, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_hangs_keeps_nobody_elses_bytes_from_being_removed() {
    let (silent, healthy) = (S3Server::start().await, S3Server::start().await);
    let (server, one, other) = with_two(&silent, &healthy).await;

    let mut at_the_silent = Vec::new();
    for number in 0..40 {
        at_the_silent.push(server.upload(format!("{number}")).org("7").ok().await.file_id);
    }
    let at_the_healthy = server.upload("there").org("8").ok().await.file_id;
    let here = server.upload("here").org("acme").ok().await.file_id;
    let replaced = server.upload("old").org("acme").ok().await;
    let temp = server.upload("temp").org("acme").temp().ok().await.file_id;

    silent.faults().every(Operation::DeleteObject, Fault::Hang);
    silent.faults().every(Operation::GetObject, Fault::Hang);
    silent.faults().every(Operation::PutObject, Fault::Hang);
    for id in at_the_silent.iter().chain([&at_the_healthy, &here]) {
        server.delete(id).await.expect(200);
    }
    server.change(&replaced.file_id).file("new").send().await.expect(200);

    let gone = async |id: &str| (server.info(id).await.status == 404).then_some(());
    eventually("the deleted LOCAL file is gone", async || gone(&here).await).await;
    eventually("the file of the healthy provider is gone", async || gone(&at_the_healthy).await)
        .await;
    assert!(other.objects().await.is_empty());

    // What a run finds at the silent provider it leaves to later, and says so.
    let report = server.store().admin().purge(&NoProgress).await.unwrap();
    let left: u64 = report.postponed.values().sum();
    assert_eq!((left, report.postponed.contains_key(&one.config.code)), (40, true), "{report:?}");
    let dropped = server.data_dir().join("blobs").join(&replaced.file_path);
    assert!(!dropped.exists(), "a dropped blob is removed");

    eventually("the expired TEMP file is gone", async || gone(&temp).await).await;
    let tries = silent.requests(Operation::DeleteObject);
    assert!(tries < 200, "{tries} requests to a provider that does not answer");

    silent.faults().clear();
    eventually("the silent provider's files are gone", async || {
        (one.objects().await.is_empty()
            && server.info(at_the_silent.last().expect("forty")).await.status == 404)
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_to_one_provider_do_not_wait_for_another() {
    let (silent, healthy) = (S3Server::start().await, S3Server::start().await);
    let (server, one, other) = with_two(&silent, &healthy).await;
    // The first write finds out what a provider can do.
    for organization in ["7", "8"] {
        server.upload("first").org(organization).ok().await;
    }
    server.bind(7, one.code(), true).await;
    server.bind(8, other.code(), true).await;
    silent.faults().every(Operation::PutObject, Fault::Hang);

    for number in 0..40 {
        server.upload(format!("{number}")).org("7").ok().await;
    }
    let mut copied = Vec::new();
    for number in 0..5 {
        copied.push(server.upload(format!("{number}")).org("8").ok().await.file_id);
    }

    for id in &copied {
        eventually("the file is at the healthy provider", async || {
            (server.record(id).await.sync_status == "SYNCED").then_some(())
        })
        .await;
    }
    // What the server's own worker tries just now is not among what waits.
    eventually("all is left to later, and the report says so", async || {
        let report = server.store().admin().sync(Arc::new(NoProgress)).await.unwrap();
        (report.postponed.get(&one.config.code) == Some(&40)).then_some(())
    })
    .await;

    silent.faults().clear();
    let report = sync_all(&server).await;
    assert_eq!(report.failed, 0);
}
