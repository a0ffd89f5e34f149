//! A kill at each step of the migration of an old data directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use filestore_workspace::sha256_hex;
use rustix::process::Signal;
use serde_json::Value;

use crate::child::{Child, Start};
use crate::disk::Disk;

/// The oldest data directory there is.
const OLD_DATA: &str = "tests/integration/old_data/84e346b";

/// Kills a server at each operation on the log of an old database, and compares what is left.
pub(crate) async fn run() -> ExitCode {
    let manifest = manifest();
    let mut kills = 0;
    for step in 1.. {
        let home = tempfile::tempdir().expect("a temporary directory");
        copy_old_data(&home.path().join("data"));
        if !is_killed_at(step, home.path()) {
            break;
        }

        kills += 1;
        let server = Child::start(home.path());
        check_files(&server, &manifest).await;
        server.stop();
    }
    println!("killed at {kills} steps");
    assert!(kills > 5, "a migration writes its pages and syncs them: {kills} steps");
    ExitCode::SUCCESS
}

/// Reads what the old server had acknowledged.
pub(crate) fn manifest() -> Value {
    let manifest = std::fs::read(old_data().join("manifest.json")).expect("a manifest");
    serde_json::from_slice(&manifest).expect("JSON")
}

/// Copies the old data directory.
pub(crate) fn copy_old_data(to: &Path) {
    copy(&old_data().join("data"), to);
}

fn old_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(OLD_DATA)
}

/// Starts a server of `home` that is killed at the `step`-th operation on its log; false if it
/// starts before it comes to that.
fn is_killed_at(step: u32, home: &Path) -> bool {
    let disk = Disk::build(home);
    let step = OsString::from(step.to_string());
    let [library, held] = disk.variables();
    let dies: (&str, &OsStr) = ("FILESTORE_DISK_DIES_AT", &step);
    let start = Start { variables: vec![library, held, dies], ..Start::default() };

    match Child::try_start(home, &start) {
        Ok(server) => {
            server.kill();
            false
        }
        Err(status) => {
            assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status}");
            true
        }
    }
}

/// P1: each file that the old server had acknowledged, and that is stored here, has its bytes.
async fn check_files(server: &Child, manifest: &Value) {
    let http = filestore_workspace::http_client().build().expect("an HTTP client");
    let mut checked = 0;

    for (id, expected) in manifest["files"].as_object().expect("files") {
        let url = format!("{}/api/v1/files/{id}", server.url);
        let info = http.get(format!("{url}/info")).send().await.expect("the server answers");
        let info: Value = info.json().await.expect("JSON");
        // A TEMP file's day is over, and the provider of others is not configured here.
        if expected["note"] == "temp" || info["storage_location"] != "LOCAL" {
            continue;
        }

        let reply = http.get(&url).send().await.expect("the server answers");
        assert_eq!(reply.status(), 200, "{expected}");
        let digest = sha256_hex(&reply.bytes().await.expect("a whole reply"));
        assert_eq!(expected["content_sha256"], digest, "{expected}");
        checked += 1;
    }
    assert!(checked > 3, "only {checked} files were looked at");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory can be made");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
