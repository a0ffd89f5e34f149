//! Snapshots at a provider.

use std::num::NonZeroUsize;
use std::sync::Arc;

use filestore_core::FileStore;
use filestore_core::admin::{
    BackupOptions, BackupReport, Backups, NoProgress, RestoredAs, Selection,
};
use filestore_core::config::BackupDestination;
use filestore_workspace::fixtures::noise;
use filestore_workspace::{Remote, TestServer, directory_in_memory};
use serde_json::json;

use super::{read, serve_with, sync_all};

const OFFSITE: &str = "offsite";

/// The directory of snapshots at a provider.
const SNAPSHOTS: &str = ".filestore-backup/";

async fn serve(remotes: &[&Remote], to: &Remote) -> TestServer {
    let place = to.config.code.clone();
    serve_with(remotes, |config| {
        config.store.backup_destinations = vec![BackupDestination::new(OFFSITE, place)];
    })
    .await
}

async fn back_up(server: &TestServer) -> BackupReport {
    let admin = server.store().admin();
    let backups = admin.backups(OFFSITE).await.expect("a destination");
    admin
        .backup(&backups, BackupOptions::default(), Arc::new(NoProgress))
        .await
        .expect("a snapshot")
}

/// Lists the names of objects in a directory of snapshots.
async fn parts(at: &Remote, directory: &str) -> Vec<String> {
    let below = format!("{SNAPSHOTS}{directory}/");
    let objects = at.objects().await;
    objects.into_iter().filter(|name| name.starts_with(&below)).collect()
}

pub(crate) async fn a_snapshot_is_made_verified_restored_and_pruned(one: &Remote, _: &Remote) {
    let server = serve(&[one], one).await;
    let mut files = Vec::new();
    for (number, length) in [(0, 1), (1, 3000), (2, 3000), (3, 12 << 20)] {
        let bytes = noise(number, length);
        files.push((server.upload(bytes.clone()).org("7").ok().await.file_id, bytes));
    }
    let first = back_up(&server).await;
    assert_eq!((first.copied, first.snapshot.blobs, first.snapshot.damaged), (4, 4, 0));

    // Over HTTP, as the command line has it.
    let path = |run: &str| format!("/api/v1/admin/backups/{OFFSITE}/{run}");
    let verified = server.post(&path("verify")).json(&json!({})).send().await.expect(200).json();
    assert_eq!((&verified["checked"], &verified["missing"]), (&json!(4), &json!(0)));
    assert_eq!((&verified["wrong"], &verified["database_ok"]), (&json!(0), &json!(true)));
    let again = server.post(&path("create")).json(&json!({})).send().await.expect(200).json();
    assert_eq!((&again["copied"], &again["reused"]), (&json!(0), &json!(4)));

    // Without a server, into an empty directory.
    let home = directory_in_memory();
    let backups = Backups::at_provider(&one.config).await.expect("snapshots");
    assert_eq!(backups.list().await.unwrap().len(), 2);
    let (into, progress) = (home.path().join("copy"), Arc::new(NoProgress));
    let restored = backups.restore(None, &into, RestoredAs::Copy, &[], progress).await.unwrap();
    assert_eq!((restored.restored, restored.failed), (4, 0));
    let copy = FileStore::open(&into).await.unwrap();
    for (id, bytes) in &files {
        let stored =
            copy.scoped(&filestore_core::Scope::All).read(id.parse().unwrap()).await.unwrap();
        assert!(stored == bytes[..], "{id}");
    }
    copy.close().await;

    // One file, into the running store.
    let (lost, bytes) = &files[3];
    server.delete(lost).await.expect(200);
    super::sweep(&server).await;
    server.content(lost).send().await.expect(404);
    let body = json!({ "file_id": lost });
    let back = server.post(&path("restore")).json(&body).send().await.expect(200).json();
    assert_eq!(back["restored"], json!(1));
    assert!(read(&server, lost).await == *bytes);

    server.delete(lost).await.expect(200);
    super::sweep(&server).await;
    back_up(&server).await;
    let body = json!({ "keep": 1 });
    let pruned = server.post(&path("prune")).json(&body).send().await.expect(200).json();
    assert_eq!(
        (&pruned["blobs_removed"], pruned["kept"].as_array().unwrap().len()),
        (&json!(1), 1)
    );
    assert_eq!(parts(one, "blobs").await.len(), 3);
    assert_eq!(parts(one, "snapshots").await.len(), 2);
    assert_eq!(parts(one, "runs").await, [""; 0]);
    let backups = server.store().admin().backups(OFFSITE).await.unwrap();
    assert!(backups.verify(None, Arc::new(NoProgress)).await.unwrap().is_good());
}

pub(crate) async fn two_snapshots_at_once_and_what_a_killed_run_left(one: &Remote, _: &Remote) {
    let (first, second) = (serve(&[one], one).await, serve(&[one], one).await);
    for number in 0..20 {
        for server in [&first, &second] {
            server.upload(noise(number, 2000)).org("7").ok().await;
        }
    }
    let (made, other) = tokio::join!(back_up(&first), back_up(&second));
    assert_eq!((made.snapshot.damaged, other.snapshot.damaged), (0, 0));
    let backups = Backups::at_provider(&one.config).await.unwrap();
    for snapshot in backups.list().await.unwrap() {
        let verified = backups.verify(Some(snapshot.id), Arc::new(NoProgress)).await.unwrap();
        assert!(verified.is_good(), "{verified:?}");
    }

    // As a run leaves it that is killed before its manifest: each content is there, and no snapshot.
    let keep = NonZeroUsize::new(1).unwrap();
    backups.prune(keep, Arc::new(NoProgress)).await.unwrap();
    let left = parts(one, "snapshots").await;
    let manifest = left
        .iter()
        .find(|name| name.rsplit_once('.').is_some_and(|(_, kind)| kind == "jsonl"))
        .expect("a manifest");
    one.remove(manifest).await;
    assert!(backups.list().await.unwrap().is_empty());
    let taken_up = back_up(&first).await;
    assert_eq!((taken_up.copied, taken_up.reused), (0, 20));
    backups.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((parts(one, "blobs").await.len(), parts(one, "snapshots").await.len()), (20, 2));
}

pub(crate) async fn files_at_one_provider_are_saved_at_another(one: &Remote, two: &Remote) {
    let server = serve(&[one, two], two).await;
    server.bind(7, one.code(), false).await;
    server.bind(8, two.code(), true).await;
    let through = server.upload(noise(1, 6 << 20)).org("7").ok().await.file_id;
    let beside = server.upload(noise(2, 3000)).org("8").ok().await.file_id;
    sync_all(&server).await;
    let made = back_up(&server).await;
    assert_eq!((made.copied, made.snapshot.elsewhere), (2, 0));

    for id in [&through, &beside] {
        server.delete(id).await.expect(200);
    }
    super::sweep(&server).await;
    let admin = server.store().admin();
    let backups = admin.backups(OFFSITE).await.unwrap();
    assert!(backups.verify(None, Arc::new(NoProgress)).await.unwrap().is_good());
    let selection = Selection::Organization("7".parse().unwrap());
    let back = admin.restore(&backups, None, selection, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((back.restored, back.failed), (1, 0));
    assert!(read(&server, &through).await == noise(1, 6 << 20));

    let files = server.store().scoped(&filestore_core::Scope::All);
    let gone = files.receipt(beside.parse().unwrap()).await.unwrap();
    assert_eq!(gone.receipt.backups[0].snapshots[0].id, made.snapshot.id);
}
