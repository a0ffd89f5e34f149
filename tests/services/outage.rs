//! A node of the Garage cluster is killed in the middle of the work, and its neighbours do not notice.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filestore_core::ProviderCode;
use filestore_core::admin::{MigrateOptions, NoProgress};
use filestore_workspace::fixtures::noise;
use filestore_workspace::{Neighbour, Remote, TestServer, eventually, sha256_hex};

use crate::garage::CLUSTER;
use crate::suite::{read, serve_with, sweep, sync_all};
use crate::variable;

const FILES: u64 = 150;

/// Kills or starts a node of the cluster, counted from 1.
fn node(action: &str, number: usize) {
    let directory = format!("{}/{number}", variable("FILESTORE_TEST_GARAGE_NODES"));
    let status =
        Command::new(variable("FILESTORE_TEST_SERVICE")).arg(action).arg(directory).status();
    assert!(status.expect("the script runs").success(), "{action} {number}");
}

/// Brings a node back, whatever becomes of the test.
struct Killed(usize);

impl Killed {
    fn now(number: usize) -> Self {
        node("kill", number);
        Self(number)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        node("start", self.0);
    }
}

fn remote(node: usize) -> Remote {
    let endpoints = variable("FILESTORE_TEST_GARAGE_ENDPOINTS");
    let mut remote = Remote::s3(
        endpoints.split(' ').nth(node - 1).expect("three nodes"),
        &variable("FILESTORE_TEST_GARAGE_REGION"),
        &variable("FILESTORE_TEST_GARAGE_BUCKET"),
        &variable("FILESTORE_TEST_GARAGE_KEY_ID"),
        &variable("FILESTORE_TEST_GARAGE_SECRET"),
    );
    remote.config.retries = 1;
    remote
}

async fn upload(server: &TestServer) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..FILES {
        ids.push(server.upload(noise(number, 20_000)).org("7").ok().await.file_id);
    }
    ids
}

async fn all_are_whole(server: &TestServer, ids: &[String]) {
    for (number, id) in (0..).zip(ids) {
        let what = format!("{id} can be read");
        let bytes = eventually(&what, async || {
            let reply = server.content(id).send().await;
            let url = reply.header("location")?.to_owned();
            let found = filestore_workspace::Call::bare(reqwest::Method::GET, &url)
                .try_send()
                .await
                .ok()?;
            (found.status == 200).then_some(found.body)
        });
        assert_eq!(sha256_hex(&bytes.await), sha256_hex(&noise(number, 20_000)));
    }
}

/// One test, so that no two nodes are down at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn syncs_and_migrations_outlive_a_killed_node() {
    let _alone = CLUSTER.write().await;
    a_sync_goes_on_with_the_other_two().await;
    a_migration_through_the_killed_node_stops_and_goes_on().await;
}

async fn a_sync_goes_on_with_the_other_two() {
    let (remote, neighbour) = (remote(1), Neighbour::start().await);
    let server = serve_with(&[&remote], |config| {
        config.store.sync.max_attempts = 1000;
        config.store.providers.push(neighbour.provider());
    })
    .await;
    neighbour.move_in(&server).await;
    let ids = upload(&server).await;

    sync_all(&server).await;
    server.bind(7, remote.code(), true).await;
    server.store().admin().sync_enqueue(7.try_into().unwrap()).await.unwrap();
    eventually("some files are there", async || {
        (server.store().admin().sync_status().await.unwrap().synced > 20).then_some(())
    })
    .await;
    let killed = Killed::now(3);

    let arriving = eventually("all files are there", async || {
        for id in &ids {
            if server.record(id).await.sync_status != "SYNCED" {
                return None;
            }
        }
        Some(())
    });
    neighbour.beside(&server, arriving).await;
    all_are_whole(&server, &ids).await;
    drop(killed);
    server.bind(7, "LOCAL", true).await;
    migrate(&server, "LOCAL").await;
    sweep(&server).await;
}

async fn a_migration_through_the_killed_node_stops_and_goes_on() {
    let (remote, neighbour) = (remote(2), Neighbour::start().await);
    let server =
        serve_with(&[&remote], |config| config.store.providers.push(neighbour.provider())).await;
    neighbour.move_in(&server).await;
    let ids = upload(&server).await;

    // Or the sync worker would take them along.
    sync_all(&server).await;
    server.bind(7, remote.code(), true).await;
    let (half_way, code) = (AtomicBool::new(false), remote.code());
    let kill = async {
        eventually("some files have moved", async || {
            (server.store().admin().sync_status().await.unwrap().synced > 20).then_some(())
        })
        .await;
        let killed = Killed::now(2);
        half_way.store(true, Ordering::SeqCst);
        killed
    };

    let migrating = async { tokio::join!(migrate(&server, code), kill) };
    let ((first, killed), _) = neighbour.beside(&server, migrating).await;
    neighbour.takes_a_turn(&server).await;
    assert!(half_way.load(Ordering::SeqCst));
    assert!(!first.failures.is_empty(), "the node was killed too late to be missed");
    assert_eq!(first.moved_files + first.left_files, FILES);

    // What had not moved yet is served from where it was.
    for (number, id) in (0..).zip(&ids) {
        if server.record(id).await.storage_location == "LOCAL" {
            assert_eq!(sha256_hex(&read(&server, id).await), sha256_hex(&noise(number, 20_000)));
        }
    }

    drop(killed);
    eventually("the migration comes to its end", async || {
        let report = migrate(&server, code).await;
        (report.left_files == 0).then_some(())
    })
    .await;

    all_are_whole(&server, &ids).await;
    eventually("no object is left that no record refers to", async || {
        let _ = server.store().admin().purge(&NoProgress).await;
        (remote.objects().await.len() == ids.len()).then_some(())
    })
    .await;
}

async fn migrate(server: &TestServer, to: &str) -> filestore_core::admin::MigrateReport {
    let to: ProviderCode = to.parse().unwrap();
    let options = MigrateOptions::default();
    server
        .store()
        .admin()
        .migrate(7.try_into().unwrap(), &to, options, &|| false, Arc::new(NoProgress))
        .await
        .unwrap()
}
