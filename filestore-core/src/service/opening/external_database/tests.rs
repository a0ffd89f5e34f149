//! Tests of stores whose records are in PostgreSQL.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::domain::access::scope::Scope;
use crate::domain::config::{MetadataPlace, StoreConfig};
use crate::domain::error::ErrorKind;
use crate::domain::provider::ProviderConfig;
use crate::metadata::postgres::tests::proxy::{AtCommit, Proxy, SlowCommits};
use crate::metadata::postgres::tests::{Schema, store_config_at};
use crate::service::{FileStore, ListRequest, NewUpload};
use crate::tasks::HANG;

mod several;

/// The data directory of a process that another test kills, and the schema of its records.
const KILLED: [&str; 2] = ["FILESTORE_TEST_KILLED_DIRECTORY", "FILESTORE_TEST_KILLED_SCHEMA"];

async fn open(dir: &Path, schema: &Schema) -> crate::domain::error::Result<FileStore> {
    FileStore::builder(dir).config(schema.store_config()).open().await
}

fn new() -> NewUpload {
    NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_store_keeps_its_records_in_postgres_and_its_bytes_in_its_directory() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open(dir.path(), &schema).await.unwrap();
    let id = store.inner.metadata.store_id();
    let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
    assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "bytes");
    store.close().await;
    drop(store);
    assert!(!dir.path().join("metadata.sqlite3").exists());

    let again = open(dir.path(), &schema).await.unwrap();
    assert_eq!(again.inner.metadata.store_id(), id);
    assert_eq!(again.scoped(&Scope::All).read(record.file_id).await.unwrap(), "bytes");
    again.close().await;
}

/// The configuration of a store whose LOCAL files are in `shared`, as on a file system that several machines
/// mount.
fn behind(schema: &Schema, shared: &Path) -> StoreConfig {
    let root = shared.to_str().unwrap();
    let provider = ProviderConfig::new("house".parse().unwrap(), "fs").with_option("root", root);
    StoreConfig { providers: vec![provider.as_local_backend()], ..schema.store_config() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn with_a_backend_a_lost_data_directory_loses_nothing() {
    let (shared, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let open = async |dir: &Path| {
        FileStore::builder(dir).config(behind(&schema, shared.path())).open().await
    };
    let lost = tempfile::tempdir().unwrap();
    let store = open(lost.path()).await.unwrap();
    let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
    store.close().await;
    drop((store, lost));

    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await.unwrap();
    assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "bytes");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_empty_directory_is_refused_while_files_are_in_the_lost_one() {
    let (shared, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let first = tempfile::tempdir().unwrap();
    let store = open(first.path(), &schema).await.unwrap();
    store.upload(new(), &b"on the disk"[..]).await.unwrap();
    store.close().await;
    drop((store, first));

    let dir = tempfile::tempdir().unwrap();
    let config = behind(&schema, shared.path());
    let error = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert!(error.to_string().contains("store-id"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn another_stores_directory_is_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sqlite = FileStore::open(other.path()).await.unwrap();
    sqlite.close().await;
    drop(sqlite);

    let schema = Schema::new();
    for _ in ["new records", "records that were made by the first attempt"] {
        let error = open(other.path(), &schema).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable, "{error}");
    }
    let store = open(dir.path(), &schema).await.unwrap();
    store.close().await;
    drop(store);

    let elsewhere = tempfile::tempdir().unwrap();
    let error = open(elsewhere.path(), &schema).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Unusable,
        "an empty directory is not the one of these records"
    );
    let error = FileStore::open(dir.path()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable, "nor is SQLite what has them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_private_directory_needs_the_word_that_there_is_no_other_server() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let mut config = schema.store_config();
    let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
    place.only_server = false;
    let error = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert!(error.to_string().contains("postgres.only_server"), "{error}");
}

fn staged(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("staging")).unwrap().count()
}

/// Asserts that the store has one file, with its bytes.
async fn assert_has_the_file(store: &FileStore) {
    let files = store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items;
    assert_eq!(files.len(), 1);
    assert_eq!(store.scoped(&Scope::All).read(files[0].file_id).await.unwrap(), "bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that another test kills"]
async fn uploads_until_the_end() {
    let [dir, schema] = KILLED.map(std::env::var);
    let (Ok(dir), Ok(schema)) = (dir, schema) else { return };
    let address = std::env::var("FILESTORE_TEST_POSTGRES").unwrap();
    let store =
        FileStore::builder(dir).config(store_config_at(address, &schema)).open().await.unwrap();
    store.upload(new(), &b"bytes"[..]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_start_waits_for_the_commit_of_a_killed_process() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    open(dir.path(), &schema).await.unwrap().close().await;
    let slow = SlowCommits::of(&schema).await;

    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("{}::uploads_until_the_end", module())])
        .env(KILLED[0], dir.path())
        .env(KILLED[1], schema.name())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let committing = tokio::time::timeout(HANG, slow.session()).await;
    committing.expect("the process comes to its commit");
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(staged(dir.path()), 1);

    let name = schema.name().to_owned();
    let address = std::env::var("FILESTORE_TEST_POSTGRES").unwrap();
    let config = store_config_at(format!("{address}?application_name={name}"), &name);
    let opening = FileStore::builder(dir.path()).config(config).open();
    let opening = tokio::spawn(opening);
    while !opening.is_finished() && !slow.is_asked_for(&name).await {
        tokio::task::yield_now().await;
    }
    assert!(!opening.is_finished(), "the commit is still under way");

    slow.go_on().await;
    let store = opening.await.unwrap().unwrap();
    assert_has_the_file(&store).await;
    store.close().await;
}

/// Returns the path of this module, without the name of the crate.
fn module() -> &'static str {
    module_path!().split_once("::").unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn staged_bytes_stay_until_it_is_known_whether_they_have_a_record() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    open(dir.path(), &schema).await.unwrap().close().await;
    let slow = SlowCommits::of(&schema).await;
    let proxy = Proxy::before(&schema).await;
    let config = store_config_at(proxy.address.clone(), schema.name());
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();

    proxy.set(AtCommit::CutAtOnce);
    let uploading = store.clone();
    let uploading =
        tokio::spawn(async move { uploading.upload(new(), &b"bytes"[..]).await.unwrap_err() });
    while proxy.cuts() == 0 {
        tokio::task::yield_now().await;
    }

    // The database answers, and the commit still waits: nothing is decided by what is there now.
    proxy.set(AtCommit::Forward);
    let error = uploading.await.unwrap();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{}", error.chain());
    assert!(
        store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items.is_empty()
    );
    assert_eq!(staged(dir.path()), 1);

    slow.go_on().await;
    let settled = async {
        while staged(dir.path()) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, settled).await.expect("the fate is asked for");
    assert_has_the_file(&store).await;
    store.close().await;
}
