//! Checks bytes that a crash may have lost, for `durability = "process"`.
//!
//! # Purpose
//! With [`Durability::Process`], an upload is acknowledged before its bytes are on the disk. After a power
//! cut, these bytes can be missing, cut, or zeros. The database therefore contains the time since which no
//! bytes were flushed. If an opening finds such a time, the last process did not stop properly. The store
//! then compares all files since that time with their size and digest, before it serves requests. Files that
//! fail go to `damaged/`, and count as damage until their record is removed.
//!
//! # Crash safety
//! The time is committed before the first upload, so the time precedes every surviving record. The time moves
//! forward only after the file system was flushed.
//!
//! A power cut can undo a deletion, and the file then needs its bytes. The store therefore removes bytes only
//! after the deletion is on the disk. For the same reason, a replaced blob stays until the new bytes are on
//! the disk.

use std::time::Duration;

use futures_util::StreamExt;
use sha2::Digest;
use tokio::time::Instant;

use crate::FileStore;
use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::Blob;
use crate::domain::id::Sha256;
use crate::domain::time::clock::Timestamp;

/// The setting for the time, in milliseconds. Empty while all bytes are flushed.
const SINCE: &str = "unflushed_since";

/// The maximum time by which a clock can be set back between two flushes.
const CLOCK_STEP: Duration = Duration::from_mins(5);

/// The number of records in one look-up.
const PAGE: usize = 500;

/// Checks the bytes that the last process may not have flushed. Then records the start time of this process's
/// unflushed writes. The caller does not serve requests yet.
pub(in crate::service) async fn settle(store: &FileStore) -> Result<()> {
    note_set_aside(store).await?;
    let since = since(store).await?;
    if let Some(since) = since {
        check_since(store, since.minus(CLOCK_STEP)).await?;
        store.inner().stores.local().flush_all().await?;
    }

    match store.config().durability {
        Durability::Process => put(store, Some(store.inner().now())).await,
        Durability::Full if since.is_some() => put(store, None).await,
        Durability::Full => Ok(()),
    }
}

/// Flushes all writes since the last flush, and moves the time forward. Does nothing if every upload is
/// flushed.
pub(crate) async fn flush(store: &FileStore) -> Result<()> {
    if store.config().durability == Durability::Full {
        return Ok(());
    }

    // Taken first: what is stored while the flush goes on may miss it.
    let (now, began) = (store.inner().now(), Instant::now());
    store.inner().stores.local().flush_all().await?;
    store.inner().metadata.flush().await?;
    *store.inner().flushed_at.lock() = Some(began);
    put(store, Some(now)).await
}

/// Flushes, unless a flush began within the last `age`. Older commits are then on the disk, together with
/// their bytes. Does nothing if every upload is flushed.
pub(crate) async fn flush_older_than(store: &FileStore, age: Duration) -> Result<()> {
    let flushed_at = *store.inner().flushed_at.lock();
    if flushed_at.is_some_and(|instant| instant.elapsed() < age) {
        Ok(())
    } else {
        flush(store).await
    }
}

/// Flushes everything at the end of a process, so that the next opening has nothing to check.
pub(in crate::service) async fn flush_at_end(store: &FileStore) -> Result<()> {
    if store.config().durability == Durability::Full {
        return Ok(());
    }
    store.inner().stores.local().flush_all().await?;
    put(store, None).await
}

async fn since(store: &FileStore) -> Result<Option<Timestamp>> {
    let settings = store.inner().metadata.settings().await?;
    let text = settings.get(SINCE).map_or("", String::as_str);
    // What cannot be read may hide any time.
    Ok((!text.is_empty()).then(|| Timestamp::from_millis(text.parse().unwrap_or(0))))
}

/// Writes the time. A full disk is not a failure, because an older time only causes more checks.
async fn put(store: &FileStore, since: Option<Timestamp>) -> Result<()> {
    let text = since.map(|since| since.as_millis().to_string()).unwrap_or_default();
    let written = store.inner().metadata.put_settings([(SINCE.to_owned(), text)].into()).await;
    match written {
        Err(error) if error.is_lack_of_room() => Ok(()),
        outcome => outcome,
    }
}

/// Compares the LOCAL files stored since that time with their records. Sets aside files that differ.
async fn check_since(store: &FileStore, since: Timestamp) -> Result<()> {
    let (mut checked, mut damaged, mut after) = (0_u64, 0_u64, None);
    loop {
        let page = store.inner().metadata.local_files_since(since, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.file_id);

        for record in &page {
            checked += 1;
            if let Err(fault) = compare(store, &record.blob).await {
                damaged += 1;
                tracing::error!(
                    file_id = %record.file_id,
                    key = %record.blob.key,
                    fault = %fault.chain(),
                    "a file did not survive the last stop: it is set aside, and not served"
                );
                store.inner().stores.local().set_aside(&record.blob.key).await?;
                store.inner().uploads.publishing.give_up(&record.blob.key);
            }
        }
    }

    if checked > 0 {
        tracing::info!(checked, damaged, "compared the files that the last process did not flush");
    }
    Ok(())
}

/// Reads a blob and compares it with its record.
async fn compare(store: &FileStore, blob: &Blob) -> Result<()> {
    let opened = store.inner().stores.local().open_blob(&blob.key, blob.size_bytes).await?;
    let opened = opened.ok_or_else(|| Error::not_found("blob"))?;
    let mut stream = std::pin::pin!(opened.into_stream(0..blob.size_bytes));
    let mut hasher = sha2::Sha256::new();
    while let Some(block) = stream.next().await.transpose()? {
        hasher.update(&block);
    }

    if Sha256(hasher.finalize().into()) == blob.sha256 {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::DigestMismatch, "the bytes are not those that were stored"))
    }
}

/// Reports files that earlier openings set aside and that records still name.
async fn note_set_aside(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let ids = inner.stores.local().set_aside_before().await?;
    for page in ids.chunks(PAGE) {
        for key in inner.metadata.live_local_keys(page).await? {
            inner.uploads.publishing.give_up(&key);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::access::scope::Scope;
    use crate::domain::file::record::FileRecord;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    async fn open(dir: &Path) -> FileStore {
        let builder = FileStore::builder(dir).durability(Durability::Process);
        builder.purge_grace(Duration::ZERO).open().await.unwrap()
    }

    async fn upload(store: &FileStore, bytes: &[u8]) -> FileRecord {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, bytes).await.unwrap()
    }

    /// Ends a store as a power cut does: nothing is closed, and `damage` is done to the files.
    async fn cut_power(dir: &Path, store: FileStore, damage: impl FnOnce(&Path)) {
        store.inner().uploads.publishing.idle().await;
        store.inner().metadata.close().await;
        drop(store);
        damage(&dir.join("blobs"));
    }

    #[tokio::test]
    async fn files_that_did_not_survive_are_set_aside_and_reported_and_the_others_served() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let mut records = Vec::new();
        for bytes in [b"whole", b"zeros", b"short", b"gone."] {
            records.push(upload(&store, bytes).await);
        }
        let [whole, zeros, short, gone] = &records[..] else { panic!("four") };
        cut_power(dir.path(), store, |blobs| {
            std::fs::write(blobs.join(zeros.blob.key.as_str()), [0; 5]).unwrap();
            std::fs::write(blobs.join(short.blob.key.as_str()), b"sho").unwrap();
            std::fs::remove_file(blobs.join(gone.blob.key.as_str())).unwrap();
        })
        .await;

        for opening in 0..2 {
            let store = open(dir.path()).await;
            assert_eq!(store.scoped(&Scope::All).read(whole.file_id).await.unwrap(), "whole");
            for record in [zeros, short, gone] {
                let error = store.scoped(&Scope::All).read(record.file_id).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Internal);
            }
            assert_eq!(store.damage().missing_blobs, 3, "opening {opening}");
            store.close().await;
        }
        let aside = dir.path().join("damaged").join(short.blob.key.blob_id().to_string());
        assert_eq!(std::fs::read(aside).unwrap(), b"sho", "kept for whoever wants to look");
    }

    #[tokio::test]
    async fn what_was_set_aside_goes_with_its_record() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let record = upload(&store, b"bytes").await;
        cut_power(dir.path(), store, |blobs| {
            std::fs::write(blobs.join(record.blob.key.as_str()), b"other").unwrap();
        })
        .await;

        let store = open(dir.path()).await;
        store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
        store.admin().purge(&NoProgress).await.unwrap();
        assert_eq!(std::fs::read_dir(dir.path().join("damaged")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn after_a_stop_by_itself_there_is_nothing_to_check() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let record = upload(&store, b"bytes").await;
        store.close().await;
        drop(store);

        // Not noticed: a scrub finds that, and no start.
        std::fs::write(dir.path().join("blobs").join(record.blob.key.as_str()), b"other").unwrap();
        let store = open(dir.path()).await;
        assert!(!store.damage().is_any());
        store.close().await;
    }

    #[tokio::test]
    async fn only_what_was_stored_since_the_last_flush_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let clock =
            crate::domain::time::clock::ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        let builder = || {
            let builder = FileStore::builder(dir.path()).durability(Durability::Process);
            builder.clock(clock.clock())
        };
        let store = builder().open().await.unwrap();
        let old = upload(&store, b"old..").await;
        clock.advance(Duration::from_hours(1));
        store.admin().upkeep().await.unwrap();
        let new = upload(&store, b"new..").await;
        cut_power(dir.path(), store, |blobs| {
            for record in [&old, &new] {
                std::fs::write(blobs.join(record.blob.key.as_str()), b"other").unwrap();
            }
        })
        .await;

        let store = builder().open().await.unwrap();
        assert_eq!(store.damage().missing_blobs, 1);
        assert!(store.scoped(&Scope::All).read(new.file_id).await.is_err());
        store.close().await;
    }

    #[tokio::test]
    async fn a_store_that_flushes_everything_checks_what_the_one_before_did_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        let record = upload(&store, b"bytes").await;
        cut_power(dir.path(), store, |blobs| {
            std::fs::write(blobs.join(record.blob.key.as_str()), [0; 5]).unwrap();
        })
        .await;

        let store = FileStore::open(dir.path()).await.unwrap();
        assert_eq!(store.damage().missing_blobs, 1);
        assert_eq!(since(&store).await.unwrap(), None);
        store.close().await;
    }
}
