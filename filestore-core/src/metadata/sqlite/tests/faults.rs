//! Full disks, broken files, long logs.

use std::os::unix::fs::FileExt;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::error::ErrorKind;
use crate::metadata::Updated;
use crate::metadata::contract::{at, change, deleted, get, insert, put, ready, uploaded};
use crate::metadata::prelude::*;

async fn limit_pages(metadata: &SqliteMetadata, pages: &str) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    let limit = move |tx: &mut crate::metadata::sqlite::session::writer::WriteTx<'_>| {
        Ok(tx.sql.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
    };
    metadata.writer.run("test", limit).await.unwrap();
}

#[tokio::test]
async fn a_full_database_refuses_inserts_and_recovers() {
    let (metadata, _directory) = fresh();
    let kept = put(&metadata, ready("acme")).await;
    // SQLite never goes below the present size.
    limit_pages(&metadata, "1").await;
    let batch: Vec<_> = (0..500).map(|_| ready("acme")).collect();
    let error = metadata.insert_files(insert(batch.clone())).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(get(&metadata, batch[0].file_id).await, None);

    let dead = deleted(&kept, at(1));
    assert_eq!(
        metadata.update_file(change(&kept, dead)).await.unwrap(),
        Updated::Done,
        "deletes still work"
    );

    limit_pages(&metadata, "1000000").await;
    metadata.insert_files(insert(batch.clone())).await.unwrap();
    assert_eq!(get(&metadata, batch[499].file_id).await.as_deref(), Some(&batch[499]));
}

#[tokio::test]
async fn a_corrupt_file_is_an_error_and_poisons() {
    let directory = tempfile::tempdir().unwrap();
    let metadata = open(&directory);
    let batch: Vec<_> = (0..500).map(|_| ready("acme")).collect();
    metadata.insert_files(insert(batch.clone())).await.unwrap();
    metadata.close().await;
    drop(metadata);
    // All but the first page, which holds the header, and the schema's.
    let raw = std::fs::OpenOptions::new().write(true).open(file(&directory)).unwrap();
    let pages = raw.metadata().unwrap().len() / 4096;
    let schema_pages = 96;

    assert!(pages > schema_pages + 20);

    for page in schema_pages..pages {
        raw.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }

    let metadata = open(&directory);
    let mut kinds = Vec::new();
    for record in &batch {
        if let Err(error) = metadata.file(record.file_id, &Scope::All).await {
            kinds.push(error.kind());
        }
    }

    assert!(kinds.len() > 1 && kinds.iter().all(|kind| *kind == ErrorKind::Internal), "{kinds:?}");
    assert!(metadata.poisoned().await.contains("malformed"));
    assert_eq!(metadata.ping().await.unwrap_err().kind(), ErrorKind::Internal, "for good");
    assert!(metadata.insert_files(insert([ready("acme")])).await.is_err());
    assert_eq!(metadata.cached_file(batch[0].file_id, &Scope::All), None);

    metadata.close().await;
}

#[tokio::test]
async fn the_log_stays_short() {
    let (metadata, directory) = fresh();
    let log = directory.path().join("metadata.db-wal");
    let mut longest = 0;

    for round in 0..300 {
        // As time passes ids grow, so that a batch touches few pages.
        let batch: Vec<_> = (0..100).map(|_| uploaded("acme", at(round))).collect();
        metadata.insert_files(insert(batch)).await.unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }

    let database = std::fs::metadata(file(&directory)).unwrap().len();
    assert!(database > 12 << 20, "wrote a good deal: {database}");
    assert!(longest < 10 << 20, "the log was up to {longest} bytes long");
}
