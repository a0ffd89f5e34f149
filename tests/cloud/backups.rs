//! Snapshots at a provider that dies in the middle of a run: the run says so, everybody else goes on, and the
//! next one takes up what was stored.

use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::{Backups, FsckDepth, FsckMode, NoProgress};
use filestore_core::config::BackupDestination;
use filestore_workspace::fixtures::noise;
use filestore_workspace::s3::{Fault, On};
use filestore_workspace::{Neighbour, Remote, Reply, S3Server, TestServer};
use serde_json::json;

use crate::suite::fsck::fsck;
use crate::suite::{read, serve_with, sweep};

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
        let mut remote = Remote::at(&s3);
        remote.config.timeout = Duration::from_millis(500);
        remote.config.io_timeout = Duration::from_millis(500);
        remote.config.retries = 1;

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

    /// Asks again while the provider's breaker does not let through, or an earlier run has not ended.
    async fn ask_until_done(&self, run: &str) -> serde_json::Value {
        filestore_workspace::eventually("the provider takes a snapshot again", async || {
            let reply = self.ask(run).await;
            (reply.status == 200).then(|| reply.json()).filter(|report| report["error"].is_null())
        })
        .await
    }

    /// Whatever is listed must be whole.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_dies_in_the_middle_of_a_snapshot() {
    let scene = Scene::start().await;
    let (server, mut files) = (&scene.server, Vec::new());
    for number in 0..FILES {
        let bytes = noise(number, 3000);
        files.push((server.upload(bytes.clone()).org("7").ok().await.file_id, bytes));
    }

    for fault in EVERY {
        let died = scene.s3.faults().after(SOUND, On::Any, fault);
        let (refused, _) = scene.neighbour.beside(server, scene.ask("create")).await;
        assert_eq!(
            refused.expect(200).json()["error"]["code"],
            "provider_unavailable",
            "{fault:?}"
        );
        assert!(died.count() > 0, "{fault:?}");
        assert!(read(server, &files[0].0).await == files[0].1, "{fault:?}");
        scene.s3.faults().clear();
    }

    let made = scene.ask_until_done("create").await;
    let (copied, reused) = (made["copied"].as_u64().unwrap(), made["reused"].as_u64().unwrap());
    assert_eq!(copied + reused, FILES, "{made}");
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
