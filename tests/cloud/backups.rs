//! Snapshots at a provider that dies in the middle of a run: the run says so, everybody else goes on, and the
//! next one takes up what was stored.

use std::sync::Arc;

use filestore_core::admin::{Backups, FsckDepth, FsckMode, NoProgress};
use filestore_core::config::BackupDestination;
use filestore_workspace::fixtures::noise;
use filestore_workspace::s3::{Fault, On};
use filestore_workspace::{Neighbour, Remote, Reply, S3Server, TestServer, eventually};
use serde_json::json;

use crate::suite::fsck::fsck;
use crate::suite::{read, serve_with, sweep};

/// Files that come before each run.
const FILES: u64 = 40;

/// Requests to the provider after which it dies: in the middle of the contents.
const SOUND: usize = 60;

const EVERY: [Fault; 5] =
    [Fault::Close, Fault::InternalError, Fault::AccessDenied, Fault::Hang, Fault::StoreHalf];

/// A server whose snapshots go to a provider, with a neighbour beside it.
struct Scene {
    s3: S3Server,
    remote: Remote,
    server: TestServer,
    neighbour: Neighbour,
}

impl Scene {
    async fn start() -> Self {
        let s3 = S3Server::start().await;
        let remote = Remote::at(&s3).given_up_on_soon();

        let neighbour = Neighbour::start().await;
        let server = serve_with(&[&remote], |config| {
            config.store.providers.push(neighbour.provider());
            let place = remote.config.code.clone();
            config.store.backup_destinations = vec![BackupDestination::new("offsite", place)];
        })
        .await;
        neighbour.move_in(&server).await;
        Self { s3, remote, server, neighbour }
    }

    async fn ask(&self, run: &str) -> Reply {
        let path = format!("/api/v1/admin/backups/offsite/{run}");
        self.server.post(&path).json(&json!({})).send().await
    }

    /// Waits until the provider's breaker lets requests through.
    async fn wait_for_provider(&self) {
        eventually("the provider is asked again", async || {
            let reply = self.server.get("/api/v1/admin/backups/offsite").send().await;
            (reply.status == 200).then_some(())
        })
        .await;
    }

    /// Asks again while the provider's breaker does not let through, or an earlier run has not ended.
    async fn ask_until_done(&self, run: &str) -> serde_json::Value {
        eventually("the provider takes a snapshot again", async || {
            let reply = self.ask(run).await;
            (reply.status == 200).then(|| reply.json()).filter(|report| report["error"].is_null())
        })
        .await
    }

    /// Asserts that each listed snapshot is whole; returns how many there are.
    async fn every_snapshot_is_whole(&self) -> usize {
        let backups = Backups::at_provider(&self.remote.config).await.unwrap();
        let listed = backups.list().await.unwrap();
        for snapshot in &listed {
            let verified = backups.verify(Some(snapshot.id), Arc::new(NoProgress)).await.unwrap();
            assert!(verified.is_good(), "{verified:?}");
        }
        listed.len()
    }
}

/// Returns the code of what a run failed with: in its report, or before it had begun one.
fn code_of(reply: &Reply) -> serde_json::Value {
    let mut told = reply.json();
    let error = if reply.status == 200 { &mut told["error"] } else { &mut told };
    error["code"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_dies_in_the_middle_of_a_snapshot() {
    let scene = Scene::start().await;
    let (server, mut files) = (&scene.server, Vec::new());

    for (turn, fault) in (0..).zip(EVERY) {
        // New contents, so that each run has as much to send.
        for number in turn * FILES..(turn + 1) * FILES {
            let bytes = noise(number, 3000);
            files.push((server.upload(bytes.clone()).org("7").ok().await.file_id, bytes));
        }
        scene.wait_for_provider().await;
        let died = scene.s3.faults().after(SOUND, On::Any, fault);
        // The breaker may refuse a run before its first request.
        eventually("a run meets the fault", async || {
            let (refused, _) = scene.neighbour.beside(server, scene.ask("create")).await;
            assert_eq!(code_of(&refused), "provider_unavailable", "{fault:?}");
            (died.count() > 0).then_some(())
        })
        .await;
        assert!(read(server, &files[0].0).await == files[0].1, "{fault:?}");
        scene.s3.faults().clear();
    }

    let made = scene.ask_until_done("create").await;
    let (copied, reused) = (made["copied"].as_u64().unwrap(), made["reused"].as_u64().unwrap());
    assert_eq!(copied + reused, FILES * EVERY.len() as u64, "{made}");
    assert!(reused > 0, "what the runs had stored is not sent again: {made}");
    assert_eq!(scene.every_snapshot_is_whole().await, 1);

    // No hold stays: what is deleted is purged.
    let (lost, _) = files.pop().unwrap();
    server.delete(&lost).await.expect(200);
    sweep(server).await;
    server.content(&lost).send().await.expect(404);
    let found = fsck(server, FsckDepth::Deep, FsckMode::DryRun).await;
    assert!(found.is_clean(), "{found:?}");
}
