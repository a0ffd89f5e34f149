//! A failed fsync, the restart that follows, and a power cut: for uploads in one request, and for a resumable
//! one that goes on behind it all.

use std::process::ExitCode;

use filestore_workspace::http_client;
use reqwest::Method;

use crate::child::{Child, Start};
use crate::content::{self, Tag};
use crate::disk::Disk;
use crate::serve::POISONED;
use crate::tus;

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
    let mut resumed = Resumed::begin(&server, RESUMED).await;
    resumed.send(&server, 1).await;
    disk.fail_next_sync();
    assert_eq!(upload(&server, 5).await, None, "an upload whose commit was not synced");
    assert_eq!(server.ended().code(), Some(POISONED.into()));

    let server = Child::start_with(home.path(), &start);
    for tag in 6..26 {
        stored.push((upload(&server, tag).await.expect("a 201"), tag));
    }
    resumed.expect_told(&server).await;
    resumed.send(&server, 2).await;
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
    resumed.expect_told(&server).await;
    let id = resumed.send(&server, 3).await.expect("all bytes are there");
    assert_eq!(content(&server, &id).await, Some(RESUMED), "the resumed file");
    server.stop();
    println!("25 of 25 acknowledged files are there, and each offset that was told");
    ExitCode::SUCCESS
}

/// The content of the resumable upload.
const RESUMED: Tag = 101;

/// A resumable upload, and the offset that was told of it.
pub(crate) struct Resumed {
    pub(crate) upload: String,
    tag: Tag,
    pub(crate) told: u64,
}

impl Resumed {
    pub(crate) async fn begin(server: &Child, tag: Tag) -> Self {
        let http = http_client().build().expect("an HTTP client");
        let request = tus::create(&http, &server.url, "acme", content::of(tag).len());
        let reply = request.send().await.expect("the server answers");
        assert_eq!(reply.status(), 201);
        Self { upload: tus::upload_of(&reply), tag, told: 0 }
    }

    /// Sends bytes up to this third of the content; returns the file if that was the last one.
    pub(crate) async fn send(&mut self, server: &Child, third: usize) -> Option<String> {
        let reply = self.append(server, third).await;
        assert_eq!(reply.status(), 204);
        let offset = tus::offset_of(&reply).expect("an append tells the offset");
        assert!(offset > self.told, "{offset} after {}", self.told);
        self.told = offset;
        tus::file_of(&reply)
    }

    /// Sends bytes up to this third of the content; returns the reply.
    pub(crate) async fn append(&self, server: &Child, third: usize) -> reqwest::Response {
        let http = http_client().build().expect("an HTTP client");
        let bytes = content::of(self.tag);
        let start = usize::try_from(self.told).expect("a small number");
        let bytes = &bytes[start..bytes.len() * third / 3];
        let request = tus::append(&http, &server.url, &self.upload, self.told, bytes);
        request.send().await.expect("the server answers")
    }

    /// Expects that the upload is where it was told to be.
    pub(crate) async fn expect_told(&self, server: &Child) {
        let http = http_client().build().expect("an HTTP client");
        let request = tus::about(&http, &server.url, &self.upload, Method::HEAD);
        let reply = request.send().await.expect("the server answers");
        assert_eq!(tus::offset_of(&reply), Some(self.told), "{}", reply.status());
    }
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
