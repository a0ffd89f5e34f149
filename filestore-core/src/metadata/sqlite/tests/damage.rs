//! Damaged rows: named, passed over, set aside.

use rusqlite::Connection;

use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::id::FileId;
use crate::domain::listing::ListFilter;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::metadata::contract::sync::bind;
use crate::metadata::contract::{at, get, lease, organization, put, put_deleted, ready};
use crate::metadata::prelude::*;

/// A connection that writes what the schema forbids.
fn vandal(directory: &TempDir) -> Connection {
    let connection = Connection::open(file(directory)).unwrap();
    connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    connection
}

fn damage(vandal: &Connection, record: &FileRecord, change: &str) {
    let sql = format!("UPDATE files SET {change} WHERE file_id = ?1");
    assert_eq!(vandal.execute(&sql, [record.file_id.to_string()]).unwrap(), 1);
}

async fn listed(metadata: &SqliteMetadata) -> Vec<FileId> {
    let all = metadata.list_files(&ListFilter::default(), &Scope::All, None, 10).await.unwrap();
    all.records.iter().map(|record| record.file_id).collect()
}

#[tokio::test]
async fn a_damaged_record_is_named_and_harms_no_other() {
    let (metadata, directory) = fresh();
    let good = put(&metadata, ready("acme")).await;
    let vandal = vandal(&directory);

    let ways = ["blob_key = 'x'", "sync_status = 'SYNCED'", "width = 1", "organization_id = 'a b'"];
    for (before, way) in (0..).zip(ways) {
        let bad = put(&metadata, ready("other")).await;
        damage(&vandal, &bad, way);
        assert_eq!(metadata.damage().damaged_rows, before, "before it is met");

        assert_eq!(listed(&metadata).await, [good.file_id], "{way}");
        let error = metadata.file(bad.file_id, &Scope::All).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RecordDamaged);
        assert!(error.to_string().ends_with(&bad.file_id.to_string()), "{error}");

        let found = metadata.damage();
        assert_eq!(found.damaged_rows, before + 1, "once, however often it is met");
        assert!(found.rows.iter().any(|row| row.row == format!("file {}", bad.file_id)));
    }
    assert_eq!(get(&metadata, good.file_id).await.as_deref(), Some(&good));
}

#[tokio::test]
async fn a_repaired_record_is_damaged_no_more() {
    let (metadata, directory) = fresh();
    let record = put(&metadata, ready("acme")).await;
    let vandal = vandal(&directory);
    damage(&vandal, &record, "width = 1");
    assert!(metadata.file(record.file_id, &Scope::All).await.is_err());

    damage(&vandal, &record, "width = NULL");
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
    assert!(!metadata.damage().is_any());
}

#[tokio::test]
async fn damaged_records_do_not_keep_others_from_the_purge() {
    let (metadata, directory) = fresh();
    let vandal = vandal(&directory);
    for marked_at in 0..5 {
        let bad = put_deleted(&metadata, ready("acme"), at(marked_at)).await;
        damage(&vandal, &bad, "width = 1");
    }
    let good = put_deleted(&metadata, ready("other"), at(10)).await;

    let claims = metadata
        .claim_purges(lease("run", at(20), at(30)), &ProviderCode::local(), at(20), 2)
        .await
        .unwrap();
    let claimed: Vec<_> = claims.iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [good.file_id], "though a claim's worth of damaged ones comes first");
    assert_eq!(metadata.damage().damaged_rows, 5);

    let sql = "SELECT count(*) FROM files WHERE purge_claimed = 1 AND purge_owner IS NULL
         AND purge_not_before > 1000000";
    let aside: i64 = vandal.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(aside, 5, "set aside: no claim meets them again");
}

#[tokio::test]
async fn a_damaged_dropped_blob_keeps_its_own_file_only_from_the_purge() {
    let (metadata, directory) = fresh();
    let bad = put_deleted(&metadata, ready("acme"), at(0)).await;
    let good = put_deleted(&metadata, ready("acme"), at(1)).await;
    let sql = "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before)
         VALUES (?1, 'LOCAL', 'x', 0)";
    vandal(&directory).execute(sql, [bad.file_id.to_string()]).unwrap();

    let claims = metadata
        .claim_purges(lease("run", at(9), at(30)), &ProviderCode::local(), at(9), 9)
        .await
        .unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].record.file_id, good.file_id);
}

#[tokio::test]
async fn damaged_records_and_bindings_do_not_keep_others_from_their_provider() {
    let (metadata, directory) = fresh();
    let s3: ProviderCode = "s3".parse().unwrap();
    let vandal = vandal(&directory);
    bind(&metadata, 7, "s3").await;
    bind(&metadata, 8, "s3").await;
    let bad = put(&metadata, ready("7")).await;
    damage(&vandal, &bad, "width = 1");
    let unreadable = put(&metadata, ready("7")).await;
    damage(&vandal, &unreadable, "organization_id = '7 '");
    put(&metadata, ready("8")).await;
    vandal
        .execute("UPDATE bindings SET storage_provider = 'no code' WHERE organization_id = 8", [])
        .unwrap();
    let good = put(&metadata, ready("7")).await;

    assert_eq!(metadata.settle_sync(9).await.unwrap(), [], "a damaged binding settles nothing");
    let claims =
        metadata.claim_syncs(lease("run", at(1), at(9)), &[s3], &[], None, 9).await.unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].record.file_id, good.file_id);
    metadata.backlog(at(1), at(1)).await.unwrap();
    let found = metadata.damage();
    for row in [format!("file {}", bad.file_id), r#"files of organization "7 ""#.to_owned()] {
        assert!(found.rows.iter().any(|found| found.row.starts_with(&row)), "{row}: {found:?}");
    }
}

#[tokio::test]
async fn a_page_of_files_to_move_is_full_beside_damaged_ones() {
    let (metadata, directory) = fresh();
    let s3: ProviderCode = "s3".parse().unwrap();
    let bad = put(&metadata, ready("7")).await;
    damage(&vandal(&directory), &bad, "width = 1");
    let mut good = Vec::new();
    for _ in 0..3 {
        good.push(put(&metadata, ready("7")).await.file_id);
    }
    good.sort_unstable();

    let page = metadata.files_elsewhere(&organization("7"), &s3, None, 2).await.unwrap();
    assert_eq!(page.len(), 2, "a short page would mean the end");
    let (queued, next) = metadata.enqueue_sync(&organization("7"), &s3, None, 2).await.unwrap();
    assert_eq!((queued, next), (0, Some(page[1].file_id)), "they wait already");
}
