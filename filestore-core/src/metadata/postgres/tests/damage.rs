//! Damaged rows: named, passed over, set aside.

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
use crate::metadata::{Inspection, MendedRow, WalkedFile};

/// Lets the schema take what it forbids.
const NO_CONSTRAINTS: &str = "DO $$ DECLARE name text; BEGIN
     FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'files'::regclass AND contype = 'c' LOOP
     EXECUTE 'ALTER TABLE files DROP CONSTRAINT ' || quote_ident(name); END LOOP; END $$";

fn vandalized() -> (PostgresMetadata, Schema) {
    let (metadata, schema) = fresh();
    schema.run(NO_CONSTRAINTS);
    (metadata, schema)
}

fn damage(schema: &Schema, record: &FileRecord, change: &str) {
    schema.run(&format!("UPDATE files SET {change} WHERE file_id = '{}'", record.file_id));
}

async fn listed(metadata: &PostgresMetadata) -> Vec<FileId> {
    let all = metadata.list_files(&ListFilter::default(), &Scope::All, None, 10).await.unwrap();
    all.records.iter().map(|record| record.file_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_is_named_and_harms_no_other() {
    let (metadata, schema) = vandalized();
    let good = put(&metadata, ready("acme")).await;

    let ways = ["blob_key = 'x'", "sync_status = 'SYNCED'", "width = 1", "organization_id = 'a b'"];
    for (before, way) in (0..).zip(ways) {
        let bad = put(&metadata, ready("other")).await;
        damage(&schema, &bad, way);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repaired_record_is_damaged_no_more() {
    let (metadata, schema) = vandalized();
    let record = put(&metadata, ready("acme")).await;
    damage(&schema, &record, "width = 1");
    assert!(metadata.file(record.file_id, &Scope::All).await.is_err());

    damage(&schema, &record, "width = NULL");
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
    assert!(!metadata.damage().is_any());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_records_do_not_keep_others_from_the_purge() {
    let (metadata, schema) = vandalized();
    for marked_at in 0..5 {
        let bad = put_deleted(&metadata, ready("acme"), at(marked_at)).await;
        damage(&schema, &bad, "width = 1");
    }
    let good = put_deleted(&metadata, ready("other"), at(10)).await;

    let lease = lease("run", at(20), at(30));
    let local = ProviderCode::local();
    let claims = metadata.claim_purges(lease, &local, at(20), 2).await.unwrap();
    let claimed: Vec<_> = claims.iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [good.file_id], "though a claim's worth of damaged ones comes first");
    assert_eq!(metadata.damage().damaged_rows, 5);
    let again = metadata.claim_purges(lease, &local, at(20), 2).await.unwrap();
    assert_eq!(again, [], "set aside: no claim meets them again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_dropped_blob_keeps_its_own_file_only_from_the_purge() {
    let (metadata, schema) = fresh();
    let bad = put_deleted(&metadata, ready("acme"), at(0)).await;
    let good = put_deleted(&metadata, ready("acme"), at(1)).await;
    schema.run(&format!(
        "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
         VALUES ('{}', 'LOCAL', 'x', 0, 0)",
        bad.file_id
    ));

    let lease = lease("run", at(9), at(30));
    let claims = metadata.claim_purges(lease, &ProviderCode::local(), at(9), 9).await.unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].record.file_id, good.file_id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_records_and_bindings_do_not_keep_others_from_their_provider() {
    let (metadata, schema) = vandalized();
    let s3: ProviderCode = "s3".parse().unwrap();
    bind(&metadata, 7, "s3").await;
    bind(&metadata, 8, "s3").await;
    let bad = put(&metadata, ready("7")).await;
    damage(&schema, &bad, "width = 1");
    let unreadable = put(&metadata, ready("7")).await;
    damage(&schema, &unreadable, "organization_id = '7 '");
    put(&metadata, ready("8")).await;
    schema.run("UPDATE bindings SET storage_provider = 'no code' WHERE organization_id = 8");
    let good = put(&metadata, ready("7")).await;

    assert_eq!(metadata.settle_sync(9).await.unwrap(), [], "a damaged binding settles nothing");
    let lease = lease("run", at(1), at(9));
    let targets = [s3];
    let mut claimed = Vec::new();
    loop {
        let claims = metadata.claim_syncs(lease, &targets, &[], None, 9).await.unwrap();
        if claims.is_empty() {
            break;
        }
        claimed.extend(claims.into_iter().map(|claim| claim.record.file_id));
    }
    assert_eq!(claimed, [good.file_id]);
    metadata.backlog(at(1), at(1)).await.unwrap();

    let found = metadata.damage();
    for row in [format!("file {}", bad.file_id), r#"files of organization "7 ""#.to_owned()] {
        assert!(found.rows.iter().any(|found| found.row.starts_with(&row)), "{row}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_files_to_move_is_full_beside_damaged_ones() {
    let (metadata, schema) = vandalized();
    let s3: ProviderCode = "s3".parse().unwrap();
    let bad = put(&metadata, ready("7")).await;
    damage(&schema, &bad, "width = 1");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_from_the_rest_of_a_row_is_set_right() {
    let (metadata, schema) = vandalized();
    let ways = ["blob_key = 'x/' || right(blob_key, 26)", "sync_status = 'SYNCED'", "width = 1"];
    for way in ways {
        let record = put(&metadata, ready("acme")).await;
        damage(&schema, &record, way);
        let page = metadata.walk_files("", 9).await.unwrap();
        assert!(page.files.iter().any(|file| matches!(file, WalkedFile::Damaged { .. })), "{way}");

        let mended = metadata.mend_file(&record.file_id.to_string()).await.unwrap();
        assert!(matches!(mended, MendedRow::SetRight(_)), "{way}: {mended:?}");
        assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record), "{way}");
    }

    let hopeless = put_deleted(&metadata, ready("acme"), at(1)).await;
    damage(&schema, &hopeless, "status = 'ODD'");
    let id = hopeless.file_id.to_string();
    assert_eq!(metadata.mend_file(&id).await.unwrap(), MendedRow::SetAside);
    let lease = lease("run", at(9), at(30));
    let claims = metadata.claim_purges(lease, &ProviderCode::local(), at(9), 9).await.unwrap();
    assert_eq!(claims, []);
}
