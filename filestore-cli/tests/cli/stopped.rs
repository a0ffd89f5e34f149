//! Commands on the data directory of a server that is stopped, without its configuration.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use filestore_core::config::ProviderConfig;
use filestore_core::{FileStore, NewUpload, Scope, StoreConfig};

use crate::support::{filestore, text};

/// Leaves what a server with this configuration leaves: a store with a deleted file. Returns its id.
fn left_by_a_server(data: &Path, config: StoreConfig) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = FileStore::builder(data).config(config).open().await.unwrap();
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
        store.close().await;
        record.file_id.to_string()
    })
}

fn run(data: &Path, args: &[&str]) -> Output {
    filestore(data.parent().unwrap()).arg("--data-dir").arg(data).args(args).output().unwrap()
}

#[test]
fn a_purge_keeps_what_the_servers_grace_keeps() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut config = StoreConfig::default();
    config.purge_grace = Duration::from_hours(30 * 24);
    let deleted = left_by_a_server(&data, config);

    let purge = run(&data, &["purge", "run"]);
    assert!(purge.status.success(), "{}", text(&purge.stderr));
    assert!(text(&purge.stdout).starts_with("purged 0 files"), "{}", text(&purge.stdout));

    let restored = run(&data, &["restore", &deleted]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    assert_eq!(text(&run(&data, &["get", &deleted, "-o", "-"]).stdout), "bytes");
}

#[test]
fn runs_that_need_the_servers_providers_ask_for_its_configuration() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut config = StoreConfig::default();
    let disk = ProviderConfig::new("disk".parse().unwrap(), "fs");
    config.providers =
        vec![disk.with_option("root", home.path().join("second").display().to_string())];
    left_by_a_server(&data, config);

    for command in [&["purge", "run"][..], &["sync", "run"]] {
        let refused = run(&data, command);
        assert!(!refused.status.success(), "{command:?}");
        let said = text(&refused.stderr);
        assert!(said.contains("configuration: disk") && said.contains("--config"), "{said}");
    }
    assert!(run(&data, &["purge", "run", "--dry-run"]).status.success(), "which changes nothing");
}

#[test]
fn a_directory_that_lost_its_database_is_not_taken_for_a_new_one() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    left_by_a_server(&data, StoreConfig::default());
    std::fs::remove_file(data.join("metadata.sqlite3")).unwrap();

    let refused = run(&data, &["list"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("metadata.sqlite3 is missing") && said.contains("backup"), "{said}");
}
