//! Damaged rows are named, skipped and set aside.

use super::syncs::bind;
use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::file::listing::ListFilter;

/// A test helper that writes rows to an engine's database that filestore never writes.
pub(crate) trait Vandal {
    /// Runs a statement, even if the schema forbids it.
    fn run(&self, statement: &str);

    /// Counts a table's rows, optionally with a condition after its name.
    fn count(&self, rows: &str) -> i64;
}

fn damage(vandal: &dyn Vandal, record: &FileRecord, change: &str) {
    vandal.run(&format!("UPDATE files SET {change} WHERE file_id = '{}'", record.file_id));
}

async fn listed(metadata: &dyn Metadata) -> Vec<FileId> {
    let all = metadata.list_files(&ListFilter::default(), &Scope::All, None, 10).await.unwrap();
    all.records.iter().map(|record| record.file_id).collect()
}

pub(crate) async fn a_damaged_record_is_named_and_harms_no_other(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    let good = put(metadata, ready("acme")).await;

    let ways = ["blob_key = 'x'", "sync_status = 'SYNCED'", "width = 1", "organization_id = 'a b'"];
    for (before, way) in (0..).zip(ways) {
        let bad = put(metadata, ready("other")).await;
        damage(vandal, &bad, way);
        assert_eq!(metadata.damage().damaged_rows, before, "before it is met");

        assert_eq!(listed(metadata).await, [good.file_id], "{way}");
        let error = metadata.file(bad.file_id, &Scope::All).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RecordDamaged);
        assert!(error.to_string().ends_with(&bad.file_id.to_string()), "{error}");

        let found = metadata.damage();
        assert_eq!(found.damaged_rows, before + 1, "once, however often it is met");
        assert!(found.rows.iter().any(|row| row.row == format!("file {}", bad.file_id)));
    }
    assert_eq!(get(metadata, good.file_id).await.as_deref(), Some(&good));
}

pub(crate) async fn a_repaired_record_is_damaged_no_more(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    let record = put(metadata, ready("acme")).await;
    damage(vandal, &record, "width = 1");
    assert!(metadata.file(record.file_id, &Scope::All).await.is_err());

    damage(vandal, &record, "width = NULL");
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert!(!metadata.damage().is_any());
}

pub(crate) async fn damaged_records_do_not_keep_others_from_the_purge(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    for marked_at in 0..5 {
        let bad = put_deleted(metadata, ready("acme"), at(marked_at)).await;
        damage(vandal, &bad, "width = 1");
    }
    let good = put_deleted(metadata, ready("other"), at(10)).await;

    let (local, lease) = (ProviderCode::local(), lease("run", at(20), at(30)));
    let due = DueFiles::marked_before(at(20));
    let claims = metadata.claim_purges(lease, &local, due, 2).await.unwrap();
    let claimed: Vec<_> = claims.iter().map(|claim| claim.record.file_id).collect();
    assert_eq!(claimed, [good.file_id], "though a claim's worth of damaged ones comes first");
    assert_eq!(metadata.damage().damaged_rows, 5);

    let aside = "files WHERE purge_claimed AND purge_owner IS NULL AND purge_not_before > 1000000";
    assert_eq!(vandal.count(aside), 5, "set aside");
    let again = metadata.claim_purges(lease, &local, due, 2).await.unwrap();
    assert_eq!(again, [], "no claim meets them again");
}

pub(crate) async fn a_damaged_dropped_blob_keeps_its_own_file_only_from_the_purge(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    let bad = put_deleted(metadata, ready("acme"), at(0)).await;
    let good = put_deleted(metadata, ready("acme"), at(1)).await;
    vandal.run(&format!(
        "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
         VALUES ('{}', 'LOCAL', 'x', 0, 0)",
        bad.file_id
    ));

    let lease = lease("run", at(9), at(30));
    let claims = metadata
        .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(9)), 9)
        .await
        .unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].record.file_id, good.file_id);
}

pub(crate) async fn damaged_records_and_bindings_do_not_keep_others_from_their_provider(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    bind(metadata, 7, "s3").await;
    bind(metadata, 8, "s3").await;
    let bad = put(metadata, ready("7")).await;
    damage(vandal, &bad, "width = 1");
    let unreadable = put(metadata, ready("7")).await;
    damage(vandal, &unreadable, "organization_id = '7 '");
    put(metadata, ready("8")).await;
    vandal.run("UPDATE bindings SET storage_provider = 'no code' WHERE organization_id = 8");
    let good = put(metadata, ready("7")).await;

    assert_eq!(metadata.settle_sync(9).await.unwrap(), [], "a damaged binding settles nothing");
    let lease = lease("run", at(1), at(9));
    let mut claimed = Vec::new();
    loop {
        let claims = metadata.claim_syncs(lease, &[provider("s3")], &[], None, 9).await.unwrap();
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

pub(crate) async fn a_page_of_files_to_move_is_full_beside_damaged_ones(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    let s3 = provider("s3");
    let bad = put(metadata, ready("7")).await;
    damage(vandal, &bad, "width = 1");
    for _ in 0..3 {
        put(metadata, ready("7")).await;
    }

    let page = metadata.files_elsewhere(&organization("7"), &s3, None, 2).await.unwrap();
    assert_eq!(page.len(), 2, "a short page would mean the end");
    let (queued, next) = metadata.enqueue_sync(&organization("7"), &s3, None, 2).await.unwrap();
    assert_eq!((queued, next), (0, Some(page[1].file_id)), "they wait already");
}

pub(crate) async fn a_page_of_sub_systems_is_full_beside_damaged_ones(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    for name in ["a", "b", "c", "d", "e"] {
        put(metadata, FileRecord { sub_system: name.parse().unwrap(), ..ready("7") }).await;
    }
    // More rows than a sub-system has.
    for name in ["a", "b", "c", "d"] {
        vandal.run(&format!(
            "UPDATE sub_system_usage SET sub_system = '{name} ' WHERE sub_system = '{name}'"
        ));
    }

    let page = metadata.list_sub_systems(&organization("7"), None, 1).await.unwrap();
    let names: Vec<_> = page.iter().map(|one| one.sub_system.as_str()).collect();
    assert_eq!(names, ["e"], "a short page would mean the end");

    let found = metadata.damage();
    assert_eq!(found.damaged_rows, 4);
    let row = r#"a total of sub-system "a " of organization 7"#;
    assert!(found.rows.iter().any(|found| found.row == row), "{found:?}");
}

pub(crate) async fn an_organization_that_cannot_be_read_is_named(
    metadata: &dyn Metadata,
    vandal: &dyn Vandal,
) {
    for name in ["a", "b", "c"] {
        put(metadata, ready(name)).await;
    }
    for name in ["a", "b"] {
        vandal.run(&format!(
            "UPDATE organization_usage SET organization_id = '{name} ' WHERE organization_id = '{name}'"
        ));
    }

    let page = metadata.list_organizations(&Scope::All, None, 1).await.unwrap();
    let names: Vec<_> = page.iter().map(|one| one.organization_id.as_str()).collect();
    assert_eq!(names, ["c"], "a short page would mean the end");
    let rows: Vec<_> = metadata.damage().rows.into_iter().map(|found| found.row).collect();
    assert_eq!(rows, [r#"organization "a ""#, r#"organization "b ""#]);
}
