//! Tests of moving records to PostgreSQL.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use super::copying::copy;
use crate::domain::access::key::{ApiKey, KeyScope, NewKey};
use crate::domain::access::scope::Scope;
use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind};
use crate::domain::event::{After, EventFilter, EventKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::PurgeStatus;
use crate::domain::file::usage::Usage;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::{Binding, NewBinding};
use crate::metadata::copying::Page;
use crate::metadata::postgres::tests::Schema;
use crate::service::{FileStore, ListRequest, NewUpload};
use crate::worker::NoProgress;
use crate::worker::copying::records::*;

async fn open(dir: &Path, config: StoreConfig) -> Result<FileStore> {
    FileStore::builder(dir).config(config).open().await
}

async fn open_sqlite(dir: &Path) -> Result<FileStore> {
    open(dir, StoreConfig { durability: Durability::Process, ..StoreConfig::default() }).await
}

async fn upload(store: &FileStore, organization: &str, bytes: &'static [u8]) -> FileRecord {
    let new = NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap());
    let new = new.with_metadata(r#"{"color":"red","number":7}"#.parse().unwrap());
    store.upload(new.with_name("Zoë 写真.txt"), bytes).await.unwrap()
}

/// A store with some of everything that lasts.
async fn fill(store: &FileStore) {
    for organization in ["42", "7", "acme"] {
        upload(store, organization, b"first").await;
        let second = upload(store, organization, b"the second one").await;
        store.scoped(&Scope::All).delete(second.file_id).await.unwrap();
        upload(store, organization, b"").await;
    }
    let purged = upload(store, "42", b"gone").await;
    store.scoped(&Scope::All).delete(purged.file_id).await.unwrap();
    let binding = NewBinding::new("42".parse().unwrap(), "ACME", ProviderCode::local());
    store.bindings().create(binding).await.unwrap();
    store.keys().create(NewKey::new("shop", Scope::All, [KeyScope::Read])).await.unwrap();
}

/// All that a store shows of itself.
#[derive(Debug, PartialEq)]
struct Shown {
    files: Vec<FileRecord>,
    usage: Vec<Usage>,
    bindings: Vec<Binding>,
    keys: Vec<ApiKey>,
}

async fn shown(store: &FileStore) -> Shown {
    let (mut files, mut usage) = (Vec::new(), Vec::new());
    for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
        let mut request = ListRequest::default();
        request.filter.purge_status = purge_status;
        request.limit = Some(1000);
        files.extend(store.scoped(&Scope::All).list(&request).await.unwrap().items);
    }
    for organization in ["42", "7", "acme"] {
        let organization = organization.parse().unwrap();
        usage.push(store.inner().metadata.usage(&organization).await.unwrap());
    }
    let bindings = store.bindings().list(None).await.unwrap();
    Shown { files, usage, bindings, keys: store.keys().list() }
}

async fn close(store: FileStore) {
    store.close().await;
}

/// Pages of two rows.
const SHORT: Page = Page { rows: 2, bytes: usize::MAX };

async fn copy_all(dir: &Path, schema: &Schema) -> Result<CopiedRecords> {
    copy(dir, &schema.store_config(), &NoProgress, SHORT).await
}

fn assert_unusable(error: &Error, part: &str) {
    assert_eq!(error.kind(), ErrorKind::Unusable, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_store_goes_on_in_postgres_with_all_that_it_had() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    let (id, before) = (store.inner().metadata.store_id(), shown(&store).await);
    close(store).await;

    let copied = copy_all(dir.path(), &schema).await.unwrap();
    assert_eq!(copied.files, before.files.len() as u64);
    assert!(copied.rows > copied.files);
    assert!(copied.former_database.exists() && !dir.path().join("metadata.sqlite3").exists());

    let error = open_sqlite(dir.path()).await.unwrap_err();
    assert_unusable(&error, "PostgreSQL");

    let store = open(dir.path(), schema.store_config()).await.unwrap();
    assert_eq!(store.inner().metadata.store_id(), id);
    assert_eq!(shown(&store).await, before);
    for file in before.files.iter().filter(|file| file.state.purge().is_none()) {
        let bytes = store.scoped(&Scope::All).read(file.file_id).await.unwrap();
        assert_eq!(bytes.len() as u64, file.blob.size_bytes);
    }

    let (of_acme, filter) =
        (Scope::Organizations(vec!["acme".parse().unwrap()]), EventFilter::new());
    let log = store.events(&of_acme).page(&filter, After::Start, 9).await.unwrap();
    let told: Vec<_> = log.events.iter().map(|event| event.kind).collect();
    assert_eq!(told, [EventKind::LogGap], "every reader learns that the log begins again");

    // What is new comes behind what was copied.
    let newest = before.bindings.iter().map(|binding| binding.id).max().unwrap();
    let binding = NewBinding::new("7".parse().unwrap(), "Seven", ProviderCode::local());
    assert!(store.bindings().create(binding).await.unwrap().id > newest);
    let one = upload(&store, "42", b"later").await;
    assert_eq!(store.scoped(&Scope::All).read(one.file_id).await.unwrap(), "later");
    let deleted = before.files.iter().find(|file| file.state.purge().is_some()).unwrap();
    store.scoped(&Scope::All).restore(deleted.file_id).await.unwrap();
    close(store).await;
}

/// Progress that calls for a stop after some rows.
struct StopAfter {
    rows: AtomicU64,
    reached: Notify,
}

impl Progress for StopAfter {
    fn start(&self, _: Option<u64>) {}

    fn advance(&self, units: u64) {
        if self.rows.fetch_sub(units, Ordering::Relaxed) <= units {
            self.reached.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_copy_that_was_stopped_goes_on_whatever_the_store_did_meanwhile() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    close(store).await;

    let config = schema.store_config();
    let stop = StopAfter { rows: AtomicU64::new(6), reached: Notify::new() };
    tokio::select! {
        biased;
        () = stop.reached.notified() => {}
        done = copy(dir.path(), &config, &stop, SHORT) => panic!("{done:?}"),
    }
    let error = open(dir.path(), config.clone()).await.unwrap_err();
    assert_unusable(&error, "are being copied");

    // The store is used again: a file comes, one goes, one changes.
    let store = open_sqlite(dir.path()).await.unwrap();
    let files = shown(&store).await.files;
    store
        .scoped(&Scope::All)
        .delete(files[files.len() - 1].file_id)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    upload(&store, "acme", b"meanwhile").await;
    let before = shown(&store).await;
    close(store).await;

    copy_all(dir.path(), &schema).await.unwrap();
    let store = open(dir.path(), config).await.unwrap();
    assert_eq!(shown(&store).await, before);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_stop_before_the_last_step_leaves_it_to_the_next_run() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    let (id, before) = (store.inner().metadata.store_id(), shown(&store).await);
    close(store).await;
    copy_all(dir.path(), &schema).await.unwrap();

    schema.run(&format!(
        "CREATE TABLE copy_under_way (store_id text NOT NULL); INSERT INTO copy_under_way VALUES ('{id}')"
    ));
    assert_unusable(&open_sqlite(dir.path()).await.unwrap_err(), "PostgreSQL");
    let error = open(dir.path(), schema.store_config()).await.unwrap_err();
    assert_unusable(&error, "are being copied");

    copy_all(dir.path(), &schema).await.unwrap();
    let store = open(dir.path(), schema.store_config()).await.unwrap();
    assert_eq!(shown(&store).await, before);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_schema_in_use_and_a_directory_without_records_are_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let schema = Schema::new();
    let error = copy_all(&dir.path().join("none"), &schema).await.unwrap_err();
    assert_unusable(&error, "no data directory");

    close(open(other.path(), schema.store_config()).await.unwrap()).await;
    let store = open_sqlite(dir.path()).await.unwrap();
    let error = copy_all(dir.path(), &schema).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    close(store).await;
    let error = copy_all(dir.path(), &schema).await.unwrap_err();
    assert_unusable(&error, "has the records of a store");
    close(open_sqlite(dir.path()).await.unwrap()).await;
    close(open(other.path(), schema.store_config()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn records_are_copied_once() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    close(store).await;
    copy_all(dir.path(), &schema).await.unwrap();

    let another = Schema::new();
    for schema in [&schema, &another] {
        let error = copy_all(dir.path(), schema).await.unwrap_err();
        assert_unusable(&error, "were copied to PostgreSQL before");
    }
    let store = open(dir.path(), schema.store_config()).await.unwrap();
    let later = upload(&store, "42", b"later").await;
    assert_eq!(store.scoped(&Scope::All).read(later.file_id).await.unwrap(), "later");
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_database_that_was_put_back_is_not_copied_over_its_own_copy() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    close(store).await;
    let copied = copy_all(dir.path(), &schema).await.unwrap();

    std::fs::rename(copied.former_database, dir.path().join("metadata.sqlite3")).unwrap();
    let error = copy_all(dir.path(), &schema).await.unwrap_err();
    assert_unusable(&error, "the records of this store were copied to the schema");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_was_started_too_early_is_no_obstacle() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    let (id, before) = (store.inner().metadata.store_id(), shown(&store).await);
    close(store).await;

    let error = open(dir.path(), schema.store_config()).await.unwrap_err();
    assert_unusable(&error, "metadata copy");
    copy_all(dir.path(), &schema).await.unwrap();
    let store = open(dir.path(), schema.store_config()).await.unwrap();
    assert_eq!(store.inner().metadata.store_id(), id);
    assert_eq!(shown(&store).await, before);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_schema_with_records_is_refused_with_what_to_do() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let schema = Schema::new();
    let store = open(other.path(), schema.store_config()).await.unwrap();
    upload(&store, "42", b"theirs").await;
    close(store).await;
    close(open_sqlite(dir.path()).await.unwrap()).await;

    let error = copy_all(dir.path(), &schema).await.unwrap_err();
    assert_unusable(&error, "its table files is not empty");
    assert_unusable(&error, &format!("DROP SCHEMA \"{}\" CASCADE", schema.name()));
    let store = open(other.path(), schema.store_config()).await.unwrap();
    assert_eq!(shown(&store).await.files.len(), 1);
    close(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_page_ends_with_its_bytes_and_the_copy_goes_on_behind_it() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let store = open_sqlite(dir.path()).await.unwrap();
    fill(&store).await;
    let before = shown(&store).await;
    close(store).await;

    let page = Page { rows: 1000, bytes: 1 };
    copy(dir.path(), &schema.store_config(), &NoProgress, page).await.unwrap();
    let store = open(dir.path(), schema.store_config()).await.unwrap();
    assert_eq!(shown(&store).await, before);
    close(store).await;
}
