//! Holds of running snapshots.

use super::*;
use crate::metadata::DroppedBlob;
use crate::metadata::sqlite::SnapshotDatabase;

/// Claims files at `now` for ten milliseconds, without a grace period.
async fn claimed(metadata: &dyn Metadata, now: i64) -> Vec<FileId> {
    let lease = lease("run", at(now), at(now + 10));
    let claims = metadata
        .claim_purges(lease, &ProviderCode::local(), DueFiles::marked_before(at(now)), 10)
        .await
        .unwrap();
    claims.iter().map(|claim| claim.record.file_id).collect()
}

async fn due(metadata: &dyn Metadata, now: i64) -> usize {
    metadata.due_blobs(&ProviderCode::local(), at(now), 10).await.unwrap().len()
}

/// Replaces the blob of `record`. The old blob is due at once.
async fn drop_a_blob(metadata: &dyn Metadata, record: &FileRecord) {
    let next = replaced(record, 5, at(1));
    let drop_blob = Some(DroppedBlob {
        file_id: record.file_id,
        provider: record.blob.provider.clone(),
        key: record.blob.key.clone(),
        content: None,
        not_before: at(0),
    });
    let update = UpdateFile { drop_blob, ..change(record, next) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
}

pub(crate) async fn what_a_hold_keeps_waits_until_it_ends(metadata: &dyn Metadata) {
    let replaced = put(metadata, ready("acme")).await;
    let before = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(claimed(metadata, 0).await, [before.file_id]);

    metadata.take_hold("one", at(0), at(100)).await.unwrap();
    let named = put_deleted(metadata, ready("acme"), at(0)).await;
    drop_a_blob(metadata, &replaced).await;
    assert_eq!(claimed(metadata, 20).await, [before.file_id], "it was claimed before");
    assert_eq!(due(metadata, 20).await, 0);

    // The three files above are the rows that the snapshot names.
    metadata.narrow_hold("one", 3).await.unwrap();
    let newer = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(sorted(claimed(metadata, 40).await), sorted(vec![before.file_id, newer.file_id]));

    metadata.release_hold("one").await.unwrap();
    let all = vec![before.file_id, newer.file_id, named.file_id];
    assert_eq!(sorted(claimed(metadata, 60).await), sorted(all));
    assert_eq!(due(metadata, 60).await, 1);
}

pub(crate) async fn a_hold_lasts_as_long_as_it_is_renewed(metadata: &dyn Metadata) {
    metadata.take_hold("one", at(0), at(10)).await.unwrap();
    let named = put_deleted(metadata, ready("acme"), at(0)).await;
    assert!(metadata.renew_hold("one", at(9), at(20)).await.unwrap());
    assert!(claimed(metadata, 19).await.is_empty());

    assert_eq!(claimed(metadata, 20).await, [named.file_id], "whoever held it is gone");
    assert!(!metadata.renew_hold("one", at(20), at(30)).await.unwrap());
    assert!(!metadata.renew_hold("another", at(0), at(30)).await.unwrap());
}

pub(crate) async fn a_start_ends_all_holds(metadata: &dyn Metadata) {
    metadata.take_hold("one", at(0), at(1_000_000)).await.unwrap();
    let named = put_deleted(metadata, ready("acme"), at(0)).await;
    assert!(claimed(metadata, 5).await.is_empty());

    leases::end_leases(metadata).await;
    assert_eq!(claimed(metadata, 5).await, [named.file_id]);
}

pub(crate) async fn a_snapshot_names_the_files_that_no_purge_had_claimed(metadata: &dyn Metadata) {
    let kept = put(metadata, ready("acme")).await;
    let purged = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(claimed(metadata, 0).await, [purged.file_id]);
    metadata.take_hold("one", at(0), at(100)).await.unwrap();
    metadata.end_era(&organization("gone"), at(7)).await.unwrap();
    let deleted = put_deleted(metadata, ready("acme"), at(0)).await;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy");
    metadata.snapshot_to(&path).await.unwrap();
    let newer = put_deleted(metadata, ready("acme"), at(0)).await;

    let copy = SnapshotDatabase::open_foreign(&path).unwrap();
    let mut named = Vec::new();
    let damaged = copy.each_named(&mut |bytes| {
        named.push(bytes.file_id);
        Ok(())
    });
    assert_eq!((damaged.unwrap(), copy.count().unwrap()), (0, 2));
    assert_eq!(sorted(named), sorted(vec![kept.file_id, deleted.file_id]));
    assert_eq!(copy.era().unwrap(), metadata.era());
    assert_eq!(copy.file(kept.file_id).unwrap().as_ref(), Some(&kept));
    assert_eq!(copy.file(purged.file_id).unwrap(), None);

    // Its rows are those that the engine knows.
    metadata.narrow_hold("one", copy.last_row().unwrap()).await.unwrap();
    let due = claimed(metadata, 20).await;
    assert_eq!(sorted(due), sorted(vec![purged.file_id, newer.file_id]));
}
