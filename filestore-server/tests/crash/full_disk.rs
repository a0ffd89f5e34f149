//! Starts on a disk with nothing free: the reserve makes room, so that deletes work.
//!
//! The disk is a tmpfs in a mount namespace of the test alone, which needs root or the right to make
//! user namespaces.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::child::Child;
use crate::support::http_client;
use crate::{migration, power_cut};

/// Set in the process that runs within the namespace.
const WITHIN: &str = "FILESTORE_IN_NAMESPACE";

#[tokio::test]
async fn a_crashed_store_starts_on_a_full_disk() {
    let Some(disk) = small_disk("a_crashed_store_starts_on_a_full_disk") else { return };
    let server = Child::start(disk.path());
    let id = power_cut::upload(&server, 1).await.expect("a 201");
    let data_dir = server.data_dir.clone();
    server.kill();
    // As after a power cut, or in a copy: the index of the log is never synced.
    fs::remove_file(data_dir.join("metadata.sqlite3-shm")).expect("a killed server left it");
    fill(disk.path());

    let server = Child::start(disk.path());
    assert!(!data_dir.join("reserve").exists(), "the reserve was not needed");
    check_full(&server, &id).await;
    server.stop();
}

#[tokio::test]
async fn an_old_database_is_migrated_on_a_full_disk() {
    let Some(disk) = small_disk("an_old_database_is_migrated_on_a_full_disk") else { return };
    let data_dir = disk.path().join("data");
    migration::copy_old_data(&data_dir);
    fs::write(data_dir.join("reserve"), vec![0; 8 << 20]).expect("there is room");
    let manifest = migration::manifest();
    let id = manifest["files"].as_object().expect("files").keys().next().expect("a file").clone();
    fs::write(disk.path().join("filestore.toml"), vec![b'#'; 4096]).expect("there is room");
    fill(disk.path());

    let server = Child::start(disk.path());
    check_full(&server, &id).await;
    server.stop();
}

/// P7: on a full disk deletes work, and uploads are refused with 507.
async fn check_full(server: &Child, id: &str) {
    let http = http_client().build().expect("an HTTP client");
    let url = format!("{}/api/v1/files/{id}", server.url);
    let deleted = http.delete(&url).send().await.expect("the server answers");
    assert_eq!(deleted.status(), 200);
    assert_eq!(http.get(&url).send().await.expect("the server answers").status(), 404);

    let refused = power_cut::send(server, 2).await.expect("the server answers");
    assert_eq!(refused.status(), 507);
    let problem: Value = refused.json().await.expect("a problem");
    assert_eq!(problem["code"], "storage_full");
}

/// Writes until nothing is free.
fn fill(disk: &Path) {
    let mut ballast = fs::File::create(disk.join("ballast")).expect("a file can be made");
    for size in [1 << 20, 4096, 1] {
        let block = vec![0; size];
        loop {
            match ballast.write_all(&block) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Mounts a small disk. Outside of a namespace, runs the test named `test` again within one, and
/// returns `None`.
fn small_disk(test: &str) -> Option<tempfile::TempDir> {
    if std::env::var_os(WITHIN).is_none() {
        run_within_namespace(test);
        return None;
    }

    let disk = tempfile::tempdir().expect("a temporary directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"])
        .arg(disk.path())
        .status()
        .expect("mount runs");
    assert!(mounted.success(), "{mounted}");
    Some(disk)
}

fn run_within_namespace(test: &str) {
    let mut namespace = vec!["--mount"];
    if !rustix::process::geteuid().is_root() {
        namespace.extend(["--user", "--map-root-user"]);
    }

    let allowed = Command::new("unshare").args(&namespace).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("NOT TESTED: this user may make no mount namespace, so there is no small disk");
        return;
    }

    let status = Command::new("unshare")
        .args(&namespace)
        .arg(std::env::current_exe().expect("a path"))
        .args(["--exact", &format!("full_disk::{test}"), "--nocapture"])
        .env(WITHIN, "1")
        .status()
        .expect("unshare runs");
    assert!(status.success(), "{status}");
}
