//! Data directories and databases that do not belong together.

use std::fs;
use std::path::Path;

use filestore_core::{ErrorKind, FileId, FileStore, NewUpload, Scope};
use filestore_workspace::files_under;

/// Makes a store with one file, and closes it.
async fn left_behind(dir: &Path) -> FileId {
    let store = FileStore::open(dir).await.unwrap();
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let record = store.upload(new, &b"bytes"[..]).await.unwrap();
    store.close().await;
    record.file_id
}

/// Opens the directory and returns the refusal, which has to leave every file as it is.
async fn refusal(dir: &Path) -> String {
    let before = files_under(&dir.join("blobs")).len() + files_under(&dir.join("staging")).len();
    let error = FileStore::open(dir).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);

    let after = files_under(&dir.join("blobs")).len() + files_under(&dir.join("staging")).len();
    assert_eq!(after, before, "stored bytes were touched");
    error.message().to_owned()
}

/// Takes the database out of a directory, and returns its bytes.
fn take_database(dir: &Path) -> Vec<u8> {
    let database = dir.join("metadata.sqlite3");
    let bytes = fs::read(&database).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        // The log and its index may have gone with a clean close.
        let _ = fs::remove_file(dir.join(format!("metadata.sqlite3{suffix}")));
    }
    bytes
}

async fn reads(dir: &Path, id: FileId) -> bool {
    let store = FileStore::open(dir).await.unwrap();
    let bytes = store.scoped(&Scope::All).read(id).await;
    store.close().await;
    bytes.is_ok_and(|bytes| bytes == "bytes")
}

#[tokio::test]
async fn a_missing_database_beside_blobs_is_refused_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let id = left_behind(dir.path()).await;
    let database = take_database(dir.path());

    let message = refusal(dir.path()).await;
    assert!(message.contains("metadata.sqlite3 is missing"), "{message}");
    assert!(message.contains("from a backup") && message.contains("start again"), "{message}");
    assert!(!dir.path().join("metadata.sqlite3").exists(), "none is made in its place");

    fs::write(dir.path().join("metadata.sqlite3"), database).unwrap();
    assert!(reads(dir.path(), id).await);
}

#[tokio::test]
async fn a_missing_database_of_an_earlier_version_is_refused_for_a_staged_blob_alone() {
    let dir = tempfile::tempdir().unwrap();
    let staged = dir.path().join("staging").join("01M80BWY239DJDZF34J2FZ6HPG");
    fs::create_dir_all(staged.parent().unwrap()).unwrap();
    fs::write(&staged, b"committed, and not renamed yet").unwrap();
    assert!(refusal(dir.path()).await.contains("is missing"));
}

#[tokio::test]
async fn a_store_that_was_given_up_begins_anew_as_the_refusal_says() {
    let dir = tempfile::tempdir().unwrap();
    let id = left_behind(dir.path()).await;
    take_database(dir.path());
    refusal(dir.path()).await;

    for part in ["blobs", "staging"] {
        fs::remove_dir_all(dir.path().join(part)).unwrap();
    }
    fs::remove_file(dir.path().join("store-id")).unwrap();
    assert!(!reads(dir.path(), id).await);
}

#[tokio::test]
async fn a_database_of_another_store_is_refused() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    left_behind(first.path()).await;
    let id = left_behind(second.path()).await;
    take_database(first.path());
    fs::write(first.path().join("metadata.sqlite3"), take_database(second.path())).unwrap();

    let message = refusal(first.path()).await;
    assert!(message.contains("names the store"), "{message}");

    // As the refusal says, for the case that they do belong together.
    for marker in ["store-id", "blobs/.store-id"] {
        fs::copy(second.path().join(marker), first.path().join(marker)).unwrap();
    }
    assert!(!reads(first.path(), id).await, "its blobs are elsewhere");
}

#[tokio::test]
async fn blobs_on_a_disk_that_is_not_mounted_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let id = left_behind(dir.path()).await;
    let (blobs, unmounted) = (dir.path().join("blobs"), dir.path().join("unmounted"));
    fs::rename(&blobs, &unmounted).unwrap();

    let message = refusal(dir.path()).await;
    assert!(message.contains("blobs/.store-id is missing"), "{message}");

    fs::remove_dir(&blobs).unwrap();
    fs::rename(&unmounted, &blobs).unwrap();
    assert!(reads(dir.path(), id).await);
}

#[tokio::test]
async fn a_database_from_before_stores_had_ids_takes_that_of_its_directory() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/old_data/84e346b/data");
    let dir = tempfile::tempdir().unwrap();
    let restore_old = || {
        for name in ["metadata.sqlite3", "metadata.sqlite3-wal"] {
            fs::copy(old.join(name), dir.path().join(name)).unwrap();
        }
    };
    restore_old();
    let store = FileStore::open(dir.path()).await.unwrap();
    let id = store.id();
    store.close().await;
    drop(store);

    take_database(dir.path());
    restore_old();
    assert_eq!(FileStore::open(dir.path()).await.unwrap().id(), id);
}
