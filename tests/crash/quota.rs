//! An exceeded disk quota: uploads are refused, deletes work, nothing ends, and uploads go on when there is
//! room again.

use std::process::ExitCode;

use serde_json::Value;

use crate::child::{Child, Start};
use crate::disk::Disk;
use crate::failed_sync::{send, upload};

/// Exceeds the quota of a simulated disk under a running server.
pub(crate) async fn run() -> ExitCode {
    let home = tempfile::tempdir().expect("a temporary directory");
    let disk = Disk::build(home.path());
    let start = Start { variables: disk.variables().into(), ..Start::default() };
    let server = Child::start_with(home.path(), &start);
    let http = filestore_workspace::http_client().build().expect("an HTTP client");

    let mut stored = Vec::new();
    for tag in 1..4 {
        stored.push(upload(&server, tag).await.expect("a 201"));
    }
    disk.exceed_quota();

    for tag in 4..8 {
        let refused = send(&server, tag).await.expect("the server answers");
        assert_eq!(refused.status(), 507, "an upload over the quota");
        let problem: Value = refused.json().await.expect("a problem");
        assert_eq!(problem["code"], "storage_full");
    }
    for id in &stored {
        let url = format!("{}/api/v1/files/{id}", server.url);
        assert_eq!(http.delete(&url).send().await.expect("the server answers").status(), 200);
        assert_eq!(http.get(&url).send().await.expect("the server answers").status(), 404);
    }

    disk.raise_quota();
    upload(&server, 9).await.expect("a 201 without a restart");
    server.stop();
    println!("over a disk quota deletes work, uploads are refused, and go on afterwards");
    ExitCode::SUCCESS
}
