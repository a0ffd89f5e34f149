//! A provider as the backend of LOCAL: all that the service serves itself is there, and none of it in the
//! data directory.

use std::path::Path;

use filestore_core::admin::{FsckDepth, FsckMode};
use filestore_workspace::fixtures::{jpeg, noise};
use filestore_workspace::{Remote, TestServer};

use super::fsck::fsck;
use super::moves::migrate;
use super::{serve, serve_with, sweep, sweep_all, sync_all};

/// A server whose LOCAL files are at `backend`, beside the providers `others`.
async fn serve_behind(backend: &Remote, others: &[&Remote]) -> TestServer {
    let others: Vec<_> = others.iter().map(|remote| remote.config.clone()).collect();
    serve_with(&[], |config| {
        config.store.providers = others;
        config.store.providers.push(backend.config.clone().as_local_backend());
    })
    .await
}

/// Counts the files in a directory and all beneath it, markers left out.
fn files_in(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let counts = entries.map(|entry| {
        if entry.file_type().unwrap().is_dir() {
            files_in(&entry.path())
        } else {
            usize::from(!entry.file_name().to_string_lossy().starts_with('.'))
        }
    });
    counts.sum()
}

/// Asserts that the data directory has no bytes of files.
async fn holds_no_bytes(server: &TestServer) {
    assert_eq!(files_in(&server.data_dir().join("blobs")), 0);
    server.wait_for_empty_staging().await;
}

/// Reads a file that the service serves itself.
async fn read_here(server: &TestServer, file_id: &str) -> Vec<u8> {
    server.content(file_id).send().await.expect(200).body.to_vec()
}

async fn all_is_as_recorded(server: &TestServer) {
    let report = fsck(server, FsckDepth::Deep, FsckMode::DryRun).await;
    assert!(report.is_clean(), "{report:#?}");
}

pub(crate) async fn all_that_is_local_goes_to_the_backend(backend: &Remote, _: &Remote) {
    let server = serve_behind(backend, &[]).await;
    let ready = server.upload("ready").org("acme").ok().await;
    let temp = server.upload("temp").org("7").temp().ok().await;
    let mut batch = server.batch_of("7");
    for number in 0..5 {
        batch = batch.item(noise(number, 4000));
    }
    let batch = batch.ok().await;

    for record in [&ready, &temp].into_iter().chain(&batch) {
        let shown = (record.storage_location.as_str(), &*record.storage_provider);
        assert_eq!(shown, ("LOCAL", "LOCAL"));
        let bytes = read_here(&server, &record.file_id).await;
        assert_eq!(backend.object(&record.file_path).await, bytes);
    }
    holds_no_bytes(&server).await;
    assert_eq!(backend.objects().await.len(), 7);

    server.change(&temp.file_id).make_thumbnail().send().await.expect(200);
    server.change(&temp.file_id).file("another").send().await.expect(200);
    assert_eq!(read_here(&server, &temp.file_id).await, b"another");
    server.change(&temp.file_id).make_ready().send().await.expect(200);
    sync_all(&server).await;
    assert_eq!(server.record(&temp.file_id).await.sync_status, "NONE", "it has nowhere to go");

    let part = server.content(&ready.file_id).header("range", "bytes=1-3").send().await;
    assert_eq!(part.expect(206).body, "ead");
    let tag = format!("\"{}\"", ready.sha256);
    server.content(&ready.file_id).header("if-none-match", &tag).send().await.expect(304);

    let picture = server.upload(jpeg(900, 600)).org("7").ok().await;
    let variant = server.variant(&picture.file_id, 200).send().await.expect(200);
    assert_eq!(variant.only("content-type"), "image/webp");

    for record in [&ready, &temp, &picture].into_iter().chain(&batch) {
        server.delete(&record.file_id).await.expect(200);
    }
    sweep_all(&server, &[backend]).await;
    holds_no_bytes(&server).await;
}

pub(crate) async fn files_go_from_the_backend_to_a_cloud_and_back(
    backend: &Remote,
    cloud: &Remote,
) {
    let server = serve_behind(backend, &[cloud]).await;
    server.bind(7, cloud.code(), true).await;
    let record = server.upload("travels").org("7").ok().await;
    assert_eq!((record.storage_location.as_str(), backend.objects().await.len()), ("LOCAL", 1));

    sync_all(&server).await;
    let synced = server.record(&record.file_id).await;
    assert_eq!(
        (synced.storage_location.as_str(), &*synced.storage_provider),
        ("CLOUD", cloud.code())
    );
    sweep(&server).await;
    assert_eq!((backend.objects().await.len(), cloud.objects().await.len()), (0, 1));

    server.bind(7, "LOCAL", true).await;
    let moved = migrate(&server, "LOCAL").await;
    assert_eq!((moved.moved_files, moved.left_files, moved.failures), (1, 0, vec![]));
    let home = server.record(&record.file_id).await;
    assert_eq!((home.storage_location.as_str(), &*home.storage_provider), ("LOCAL", "LOCAL"));
    assert_eq!(read_here(&server, &record.file_id).await, b"travels");
    assert_eq!(backend.object(&home.file_path).await, b"travels");
    sweep(&server).await;
    assert_eq!((backend.objects().await.len(), cloud.objects().await.len()), (1, 0));
    holds_no_bytes(&server).await;
}

pub(crate) async fn files_of_the_data_directory_move_to_a_backend(backend: &Remote, _: &Remote) {
    let server = serve(&[]).await;
    let before = server.upload("before").org("7").ok().await;
    let config = backend.config.clone().as_local_backend();
    let server = server.restart_with(move |server| server.store.providers = vec![config]).await;

    let after = server.upload("after").org("7").ok().await;
    assert_eq!(read_here(&server, &before.file_id).await, b"before");
    assert_eq!(backend.objects().await, std::slice::from_ref(&after.file_path));

    sync_all(&server).await;
    let moved = migrate(&server, "LOCAL").await;
    assert_eq!((moved.moved_files, moved.left_files, moved.failures), (1, 0, vec![]));
    sweep(&server).await;
    holds_no_bytes(&server).await;
    for (record, bytes) in [(&before, "before"), (&after, "after")] {
        assert_eq!(read_here(&server, &record.file_id).await, bytes.as_bytes());
    }
    assert_eq!(backend.objects().await.len(), 2);
    all_is_as_recorded(&server).await;

    // And back.
    let config = backend.config.clone();
    let server = server.restart_with(move |server| server.store.providers = vec![config]).await;
    let new = server.upload("new").org("7").ok().await;
    let moved = migrate(&server, "LOCAL").await;
    assert_eq!((moved.moved_files, moved.left_files, moved.failures), (2, 0, vec![]));
    sweep_all(&server, &[backend]).await;
    for (record, bytes) in [(&before, "before"), (&after, "after"), (&new, "new")] {
        assert_eq!(read_here(&server, &record.file_id).await, bytes.as_bytes());
    }
    all_is_as_recorded(&server).await;
}

pub(crate) async fn nobody_names_the_backend(backend: &Remote, _: &Remote) {
    let server = serve_behind(backend, &[]).await;
    let binding = serde_json::json!({
        "organizationId": 7,
        "organizationName": "Seven",
        "storageProvider": backend.code(),
        "syncEnabled": true,
    });
    let create = server.post("/api/v1/organization-storage-bindings/create").json(&binding);
    let problem = create.send().await.problem(422, "unknown_provider");
    assert_eq!(problem.allowed, ["LOCAL"]);

    let shown = server.get("/api/v1/storage-providers").send().await.expect(200).text();
    assert!(shown.contains("LOCAL") && !shown.contains(backend.code()), "{shown}");
    server.bind(7, "LOCAL", false).await;
    let record = server.upload("bound to LOCAL").org("7").ok().await;
    assert_eq!(backend.object(&record.file_path).await, b"bound to LOCAL");
}
