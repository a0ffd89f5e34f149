//! Starts on a disk with nothing free: the reserve makes room, so that deletes work.
//!
//! The disk is a tmpfs in a mount namespace of the test alone, which needs root or the right to make
//! user namespaces.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use filestore_workspace::http_client;
use reqwest::Method;
use serde_json::Value;

use crate::child::{Child, text_for};
use crate::failed_sync::Resumed;
use crate::{failed_sync, old_data, tus};

/// Set in the process that runs within the namespace.
const WITHIN: &str = "FILESTORE_IN_NAMESPACE";

/// Starts on a full disk, after a crash and with an old database.
pub(crate) async fn run() -> ExitCode {
    if std::env::var_os(WITHIN).is_none() {
        return run_within_namespace();
    }

    a_crashed_store_starts().await;
    an_old_database_is_migrated().await;
    println!("on a full disk both start, deletes work, and uploads are refused");
    ExitCode::SUCCESS
}

async fn a_crashed_store_starts() {
    let disk = small_disk();
    configure(disk.path());
    let server = Child::start(disk.path());
    let id = failed_sync::upload(&server, 1).await.expect("a 201");
    let mut resumed = Resumed::begin(&server, 9).await;
    resumed.send(&server, 1).await;
    let data_dir = server.data_dir.clone();
    server.kill();
    // As after a power cut, or in a copy: the index of the log is never synced.
    fs::remove_file(data_dir.join("metadata.sqlite3-shm")).expect("a killed server left it");
    fill(disk.path());

    let server = Child::start(disk.path());
    assert!(!data_dir.join("reserve").exists(), "the reserve was not needed");
    check_full(&server, &id).await;
    check_resumed(&server, &resumed).await;
    server.stop();
}

/// P7: on a full disk a resumable upload is where it was told to be, takes no more bytes, and can be cancelled.
async fn check_resumed(server: &Child, resumed: &Resumed) {
    resumed.expect_told(server).await;
    assert_eq!(resumed.append(server, 2).await.status(), 507);
    resumed.expect_told(server).await;

    let http = http_client().build().expect("an HTTP client");
    let about = |method| tus::about(&http, &server.url, &resumed.upload, method).send();
    assert_eq!(about(Method::DELETE).await.expect("the server answers").status(), 204);
    assert_eq!(about(Method::HEAD).await.expect("the server answers").status(), 404);
}

async fn an_old_database_is_migrated() {
    let disk = small_disk();
    let data_dir = disk.path().join("data");
    old_data::copy_old_data(&data_dir);
    fs::write(data_dir.join("reserve"), vec![0; 8 << 20]).expect("there is room");
    let manifest = old_data::manifest();
    let id = manifest["files"].as_object().expect("files").keys().next().expect("a file").clone();
    configure(disk.path());
    fill(disk.path());

    let server = Child::start(disk.path());
    check_full(&server, &id).await;
    server.stop();
}

/// Keeps back what a server keeps back by default: the log of a migration has to fit in.
fn configure(home: &Path) {
    let text = text_for(home, "full").replace("reserve_bytes = 65536", "reserve_bytes = 8388608");
    fs::write(home.join("filestore.toml"), text).expect("the configuration can be written");
}

/// P7: on a full disk deletes work, and uploads are refused with 507.
async fn check_full(server: &Child, id: &str) {
    let http = http_client().build().expect("an HTTP client");
    let url = format!("{}/api/v1/files/{id}", server.url);
    let deleted = http.delete(&url).send().await.expect("the server answers");
    assert_eq!(deleted.status(), 200);
    assert_eq!(http.get(&url).send().await.expect("the server answers").status(), 404);

    let refused = failed_sync::send(server, 2).await.expect("the server answers");
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

/// Mounts a small disk.
fn small_disk() -> tempfile::TempDir {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"])
        .arg(disk.path())
        .status()
        .expect("mount runs");
    assert!(mounted.success(), "{mounted}");
    disk
}

fn run_within_namespace() -> ExitCode {
    let mut namespace = vec!["--mount"];
    if !rustix::process::geteuid().is_root() {
        namespace.extend(["--user", "--map-root-user"]);
    }

    let allowed = Command::new("unshare").args(&namespace).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("NOT TESTED: this user may make no mount namespace, so there is no small disk");
        return ExitCode::SUCCESS;
    }

    let status = Command::new("unshare")
        .args(&namespace)
        .arg(std::env::current_exe().expect("a path"))
        .arg("full-disk")
        .env(WITHIN, "1")
        .status()
        .expect("unshare runs");
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
