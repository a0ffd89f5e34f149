//! A failed fsync, the restart that follows, and a power cut.

use std::process::ExitCode;

use crate::child::{Child, Start};
use crate::content::{self, Tag};
use crate::disk::Disk;
use crate::serve::POISONED;

/// Uploads after a failed fsync and a restart survive a power cut.
pub(crate) async fn run() -> ExitCode {
    let home = tempfile::tempdir().expect("a temporary directory");
    let disk = Disk::build(home.path());
    let start = Start { variables: disk.variables().into(), ..Start::default() };
    let mut stored = Vec::new();

    let server = Child::start_with(home.path(), &start);
    for tag in 0..5 {
        stored.push((upload(&server, tag).await.expect("a 201"), tag));
    }
    disk.fail_next_sync();
    assert_eq!(upload(&server, 5).await, None, "an upload whose commit was not synced");
    assert_eq!(server.ended().code(), Some(POISONED.into()));

    let server = Child::start_with(home.path(), &start);
    for tag in 6..26 {
        stored.push((upload(&server, tag).await.expect("a 201"), tag));
    }
    let data_dir = server.data_dir.clone();
    server.kill();
    disk.cut_power(&data_dir);

    let server = Child::start_with(home.path(), &start);
    let mut lost = Vec::new();
    for (id, tag) in &stored {
        if content(&server, id).await != Some(*tag) {
            lost.push(*tag);
        }
    }
    assert!(lost.is_empty(), "{} of {} acknowledged files are lost: {lost:?}", lost.len(), 25);
    server.stop();
    println!("25 of 25 acknowledged files are there");
    ExitCode::SUCCESS
}

/// Uploads the content of `tag`; returns the file's id if the server acknowledged it.
pub(crate) async fn upload(server: &Child, tag: Tag) -> Option<String> {
    let reply = send(server, tag).await?;
    if reply.status() != 201 {
        return None;
    }
    let record: serde_json::Value = reply.json().await.expect("a record");
    Some(record["file_id"].as_str().expect("a file_id").to_owned())
}

/// Sends the content of `tag`; returns the reply if there was one.
pub(crate) async fn send(server: &Child, tag: Tag) -> Option<reqwest::Response> {
    let form = reqwest::multipart::Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "power")
        .part("file", reqwest::multipart::Part::bytes(content::of(tag)).file_name("content"));
    let http = filestore_workspace::http_client().build().expect("an HTTP client");
    let url = format!("{}/api/v1/files/upload", server.url);

    http.post(url).multipart(form).send().await.ok()
}

/// Returns the tag of a file's content, if the server has the file.
async fn content(server: &Child, id: &str) -> Option<Tag> {
    let http = filestore_workspace::http_client().build().expect("an HTTP client");
    let reply = http.get(format!("{}/api/v1/files/{id}", server.url)).send().await;
    let reply = reply.expect("the server answers");
    if reply.status() != 200 {
        return None;
    }
    content::identify(&reply.bytes().await.expect("a whole reply"))
}
