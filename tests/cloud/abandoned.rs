//! Uploads that nobody waits for any more, and uploads that take too long: nothing of them stays, nothing
//! of them comes later, and nobody else notices.

use std::time::Duration;

use filestore_workspace::fixtures::noise;
use filestore_workspace::s3::{Fault, On};
use filestore_workspace::{Neighbour, Remote, S3Server, TestServer, eventually};

use crate::suite::{read, serve_with};

const LARGE: usize = 6 << 20;
const CLIENTS: usize = 12;

/// A server with a provider that falls silent when told to, and a neighbour beside it.
async fn beside_a_neighbour(
    s3: &S3Server,
    adjust: impl FnOnce(&mut filestore_server::Config),
) -> (TestServer, Neighbour) {
    let (remote, neighbour) = (Remote::at(s3), Neighbour::start().await);
    let server = serve_with(&[&remote], |config| {
        config.store.providers.push(neighbour.provider());
        config.http.half_closed = Duration::from_millis(50);
        adjust(config);
    })
    .await;
    server.bind(7, remote.code(), false).await;
    neighbour.move_in(&server).await;
    (server, neighbour)
}

/// Waits until staging holds what `wanted` accepts. The neighbour's files pass through it as well.
async fn staged(server: &TestServer, wanted: impl Fn(usize) -> bool) {
    eventually("staging is as expected", async || wanted(server.staged()).then_some(())).await;
}

/// Uploads a file as soon as the provider's breaker lets one through.
async fn works_again(server: &TestServer) {
    eventually("the provider takes files again", async || {
        (server.upload("again").org("7").send().await.status == 201).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_whose_clients_gave_up_leave_nothing_and_never_become_files() {
    let s3 = S3Server::start().await;
    let (server, neighbour) = beside_a_neighbour(&s3, |_| ()).await;
    let kept = server.upload("kept").org("7").ok().await.file_id;

    let silent = s3.faults().every(On::Any, Fault::Hang);
    let bytes = noise(3, LARGE);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(server.upload(&bytes).org("7").call().try_send());
    }
    staged(&server, |files| files == CLIENTS).await;
    eventually("the provider is asked", async || (silent.count() > 0).then_some(())).await;
    neighbour.takes_a_turn(&server).await;

    clients.shutdown().await;
    staged(&server, |files| files == 0).await;
    neighbour.takes_a_turn(&server).await;

    s3.faults().clear();
    works_again(&server).await;
    neighbour.takes_a_turn(&server).await;
    assert_eq!(server.listed_of("7").await.len(), 2, "nothing was committed that nobody waits for");
    assert_eq!(read(&server, &kept).await, b"kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replace_whose_client_gave_up_changes_nothing() {
    let s3 = S3Server::start().await;
    let (server, neighbour) = beside_a_neighbour(&s3, |_| ()).await;
    let kept = server.upload("kept").org("7").ok().await;

    s3.faults().every(On::Any, Fault::Hang);
    let replacing =
        tokio::spawn(server.change(&kept.file_id).file(noise(4, LARGE)).call().try_send());
    staged(&server, |files| files == 1).await;
    replacing.abort();
    staged(&server, |files| files == 0).await;

    s3.faults().clear();
    neighbour.takes_a_turn(&server).await;
    assert_eq!(server.record(&kept.file_id).await.version, 1);
    assert_eq!(read(&server, &kept.file_id).await, b"kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_that_takes_too_long_is_502_and_says_when_to_retry() {
    let s3 = S3Server::start().await;
    // Enough for what is to succeed, also on a machine that does much else.
    let brief = Duration::from_secs(5);
    let (server, neighbour) =
        beside_a_neighbour(&s3, |config| config.store.limits.write_through = brief).await;
    let kept = server.upload("kept").org("7").ok().await.file_id;

    s3.faults().every(On::Any, Fault::Hang);
    let (refused, _) = neighbour.beside(&server, server.upload("late").org("7").send()).await;
    refused.problem(502, "provider_unavailable");
    assert_eq!(refused.only("retry-after"), "10");
    let replaced = server.change(&kept).file("late").send().await;
    replaced.problem(502, "provider_unavailable");

    staged(&server, |files| files == 0).await;
    assert_eq!(server.listed_of("7").await, [kept]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_silent_provider_is_bounded_for_each_organization() {
    let s3 = S3Server::start().await;
    let (server, neighbour) = beside_a_neighbour(&s3, |config| {
        config.store.limits.max_batch_items = 3;
        config.store.limits.staged_files_per_organization = 3;
    })
    .await;
    server.upload("kept").org("7").ok().await;

    s3.faults().every(On::Any, Fault::Hang);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..3 {
        clients.spawn(server.upload("waits").org("7").call().try_send());
    }
    staged(&server, |files| files == 3).await;

    let refused = server.upload("too many").org("7").send().await;
    assert_eq!(refused.problem(503, "busy").limit, Some(3));
    assert_eq!(refused.only("retry-after"), "5");
    neighbour.takes_a_turn(&server).await;

    clients.shutdown().await;
    staged(&server, |files| files == 0).await;
    s3.faults().clear();
    works_again(&server).await;
}
