//! Tests of moving files to the backend.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::domain::access::scope::Scope;
use crate::domain::config::{Durability, MetadataPlace};
use crate::domain::error::{Error, ErrorKind};
use crate::domain::file::record::FileRecord;
use crate::domain::provider::ProviderConfig;
use crate::metadata::postgres::tests::Schema;
use crate::service::{FileStore, NewUpload};
use crate::worker::copying::files::*;
use crate::worker::{NoProgress, are_records_copied, copy_records};

/// A data directory with a store in SQLite, and what it moves to.
struct Home {
    dir: tempfile::TempDir,
    schema: Schema,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), schema: Schema::new() }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The directory of the bytes.
    fn blobs(&self) -> PathBuf {
        self.data().join("blobs")
    }

    async fn sqlite(&self) -> FileStore {
        let config = StoreConfig {
            durability: Durability::Process,
            purge_grace: Duration::from_hours(1),
            ..StoreConfig::default()
        };
        FileStore::builder(self.data()).config(config).open().await.unwrap()
    }

    /// The configuration of servers that share the database and a backend.
    fn shared(&self) -> StoreConfig {
        let root = self.dir.path().join("house").to_str().unwrap().to_owned();
        let house = ProviderConfig::new("house".parse().unwrap(), "fs");
        let mut config = self.schema.store_config();
        let MetadataPlace::Postgres(place) = &mut config.metadata else { unreachable!() };
        place.only_server = false;
        config.purge_grace = Duration::from_hours(1);
        config.providers = vec![house.with_option("root", root).as_local_backend()];
        config
    }

    /// Opens the store as one of several servers, in a directory of its own.
    async fn server(&self, name: &str) -> Result<FileStore> {
        FileStore::builder(self.dir.path().join(name)).config(self.shared()).open().await
    }

    async fn copy_records(&self) {
        copy_records(&self.data(), &self.shared(), Arc::new(NoProgress)).await.unwrap();
    }

    async fn copy_files(&self) -> CopiedFiles {
        copy_files(&self.data(), &self.shared(), Arc::new(NoProgress)).await.unwrap()
    }
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_in(&path));
        } else if !path.ends_with(".store-id") {
            found.push(path);
        }
    }
    found
}

fn new(organization: &str) -> NewUpload {
    NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap())
}

/// Closes a store, and lets its directory go.
async fn close(store: FileStore) {
    store.close().await;
}

async fn upload(store: &FileStore, organization: &str, bytes: &'static [u8]) -> FileRecord {
    store.upload(new(organization), bytes).await.unwrap()
}

fn assert_unusable(error: &Error, part: &str) {
    assert_eq!(error.kind(), ErrorKind::Unusable, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn files_in_every_state_move_and_any_server_serves_them() {
    let home = Home::new();
    let store = home.sqlite().await;
    let plain = upload(&store, "42", b"plain").await;
    let empty = upload(&store, "acme", b"").await;
    let temp = store.upload(new("7").temp(), &b"temporary"[..]).await.unwrap();
    let deleted = upload(&store, "7", b"deleted").await;
    store.scoped(&Scope::All).delete(deleted.file_id).await.unwrap();
    let replaced = upload(&store, "42", b"before").await;
    store.scoped(&Scope::All).replace(replaced.file_id, &b"after"[..]).await.unwrap();
    close(store).await;

    home.copy_records().await;
    assert_unusable(&home.server("early").await.unwrap_err(), "still in a private directory");

    let copied = home.copy_files().await;
    assert_eq!((copied.files, copied.failed, copied.is_complete), (5, 0, true), "{copied:?}");
    assert_eq!(copied.bytes, 5 + 9 + 7 + 5);
    assert_eq!(files_in(&home.blobs()), Vec::<PathBuf>::new(), "dropped ones go as well");

    let one = home.server("one").await.unwrap();
    let other = home.server("other").await.unwrap();
    one.scoped(&Scope::All).restore(deleted.file_id).await.unwrap();
    for (record, bytes) in [
        (&plain, "plain"),
        (&empty, ""),
        (&temp, "temporary"),
        (&deleted, "deleted"),
        (&replaced, "after"),
    ] {
        assert_eq!(other.scoped(&Scope::All).read(record.file_id).await.unwrap(), bytes);
    }
    let now = other.scoped(&Scope::All).info(temp.file_id).await.unwrap();
    assert_eq!((now.state, now.expires_at), (temp.state, temp.expires_at));
    close(one).await;
    close(other).await;

    let again = home.copy_files().await;
    assert_eq!((again.files, again.is_complete), (0, true));
}

/// Progress that calls for a stop after some files.
struct StopAfter {
    files: AtomicU64,
    reached: Notify,
}

impl Progress for StopAfter {
    fn start(&self, _: Option<u64>) {}

    fn advance(&self, units: u64) {
        if self.files.fetch_sub(units, Ordering::Relaxed) <= units {
            self.reached.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_move_that_was_stopped_goes_on_also_after_a_server_ran() {
    let home = Home::new();
    let store = home.sqlite().await;
    let mut files = Vec::new();
    for _ in 0..30 {
        files.push(upload(&store, "42", b"one of many").await);
    }
    close(store).await;
    home.copy_records().await;

    let stop = Arc::new(StopAfter { files: AtomicU64::new(5), reached: Notify::new() });
    let (dir, mut config) = (home.data(), home.shared());
    config.sync.concurrency = 2;
    tokio::select! {
        biased;
        () = stop.reached.notified() => {}
        done = copy_files(&dir, &config, stop.clone()) => panic!("{done:?}"),
    }
    assert_unusable(&home.server("early").await.unwrap_err(), "still in a private directory");

    // Meanwhile the store can be used where it is: files are read from both places.
    let mut alone = home.shared();
    let MetadataPlace::Postgres(place) = &mut alone.metadata else { unreachable!() };
    place.only_server = true;
    let store = FileStore::builder(home.data()).config(alone).open().await.unwrap();
    for file in &files {
        assert_eq!(store.scoped(&Scope::All).read(file.file_id).await.unwrap(), "one of many");
    }
    files.push(upload(&store, "42", b"one of many").await);
    close(store).await;

    let copied = home.copy_files().await;
    assert!(copied.is_complete && copied.files <= 25, "{copied:?}");
    let server = home.server("one").await.unwrap();
    for file in &files {
        assert_eq!(server.scoped(&Scope::All).read(file.file_id).await.unwrap(), "one of many");
    }
    close(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_damaged_file_is_named_and_stays_while_the_others_move() {
    let home = Home::new();
    let store = home.sqlite().await;
    upload(&store, "42", b"sound").await;
    let damaged = upload(&store, "42", b"damaged").await;
    let missing = upload(&store, "42", b"missing").await;
    close(store).await;
    for path in files_in(&home.blobs()) {
        match &std::fs::read(&path).unwrap()[..] {
            b"damaged" => std::fs::write(path, "dAmaged").unwrap(),
            b"missing" => std::fs::remove_file(path).unwrap(),
            _ => {}
        }
    }

    home.copy_records().await;
    let copied = home.copy_files().await;
    assert_eq!((copied.files, copied.failed, copied.is_complete), (1, 2, false), "{copied:?}");
    let named: Vec<_> = copied.failures.iter().map(|failure| failure.file_id).collect();
    assert!(named.contains(&damaged.file_id) && named.contains(&missing.file_id), "{copied:?}");
    assert_unusable(&home.server("early").await.unwrap_err(), "still in a private directory");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_damaged_record_is_a_failure_of_the_move_and_is_named() {
    let home = Home::new();
    let store = home.sqlite().await;
    upload(&store, "42", b"sound").await;
    let damaged = upload(&store, "42", b"behind a damaged record").await;
    close(store).await;
    home.copy_records().await;

    let id = damaged.file_id;
    home.schema.run(&format!("UPDATE files SET organization_id = 'a b' WHERE file_id = '{id}'"));
    let copied = home.copy_files().await;
    assert_eq!((copied.files, copied.failed, copied.is_complete), (1, 1, false), "{copied:?}");
    assert_eq!(copied.damaged.len(), 1, "{copied:?}");
    assert_eq!(copied.damaged[0].row, format!("file {id}"));
    assert!(!copied.damaged[0].reason.is_empty());

    home.schema.run(&format!("UPDATE files SET organization_id = '42' WHERE file_id = '{id}'"));
    let copied = home.copy_files().await;
    assert_eq!((copied.files, copied.failed, copied.is_complete), (1, 0, true), "{copied:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn without_a_backend_or_beside_a_server_nothing_moves() {
    let home = Home::new();
    let store = home.sqlite().await;
    upload(&store, "42", b"bytes").await;
    close(store).await;

    let nowhere = home.dir.path().join("nowhere");
    let error = copy_files(&nowhere, &home.shared(), Arc::new(NoProgress)).await.unwrap_err();
    assert_unusable(&error, "no data directory");
    assert!(!nowhere.exists());
    assert!(!are_records_copied(&home.data(), &home.shared()).await.unwrap());
    home.copy_records().await;
    assert!(are_records_copied(&home.data(), &home.shared()).await.unwrap());

    let without = StoreConfig { providers: Vec::new(), ..home.shared() };
    let error = copy_files(&home.data(), &without, Arc::new(NoProgress)).await.unwrap_err();
    assert_unusable(&error, "local.backend");

    let mut alone = home.shared();
    let MetadataPlace::Postgres(place) = &mut alone.metadata else { unreachable!() };
    place.only_server = true;
    let store = FileStore::builder(home.data()).config(alone).open().await.unwrap();
    let error = copy_files(&home.data(), &home.shared(), Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    close(store).await;
    assert_eq!(files_in(&home.blobs()).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_backend_that_takes_no_files_is_found_before_anything_is_touched() {
    let home = Home::new();
    let store = home.sqlite().await;
    let file = upload(&store, "42", b"bytes").await;
    close(store).await;

    // A file in the place of the directory.
    std::fs::write(home.dir.path().join("house"), "").unwrap();
    let error = copy_records(&home.data(), &home.shared(), Arc::new(NoProgress)).await.unwrap_err();
    assert_unusable(&error, "house");

    let store = home.sqlite().await;
    assert_eq!(store.scoped(&Scope::All).read(file.file_id).await.unwrap(), "bytes");
    close(store).await;
}
