//! Purge receipts.

use super::*;
use crate::domain::report::receipt::{Content, DeletedBy, PurgedFile, RemovedBlob};
use crate::metadata::{Claims, DroppedBlob, Purged};

fn removed(record: &FileRecord, now: Timestamp) -> RemovedBlob {
    RemovedBlob {
        holder: record.blob.provider.clone(),
        key: record.blob.key.clone(),
        content: Some(Content::of(&record.blob)),
        absent_at: now,
        checked_at: now,
    }
}

fn dropped(record: &FileRecord, not_before: Timestamp) -> DroppedBlob {
    DroppedBlob {
        file_id: record.file_id,
        provider: record.blob.provider.clone(),
        key: record.blob.key.clone(),
        content: Some(Content::of(&record.blob)),
        not_before,
    }
}

/// Claims the files due at `now` and deletes their records. `removed` are the blobs confirmed absent.
async fn purge(metadata: &dyn Metadata, file: FileId, removed: Vec<RemovedBlob>, now: i64) {
    let terms = lease("run", at(now), at(now + 10));
    for holder in [ProviderCode::local(), provider("s3")] {
        metadata.claim_purges(terms, &holder, DueFiles::marked_before(at(now)), 10).await.unwrap();
    }
    let purged = Purged { file_id: file, removed };
    assert_eq!(metadata.finish_purges("run", &[purged], at(now)).await.unwrap(), 1);
    metadata.release_claims(Claims::Purges, "run").await.unwrap();
}

async fn receipt(metadata: &dyn Metadata, file: FileId) -> Option<PurgedFile> {
    metadata.receipt(file, &Scope::All).await.unwrap()
}

pub(crate) async fn a_receipt_says_who_deleted_and_what_was_absent(metadata: &dyn Metadata) {
    let by = DeletedBy::Key { id: KeyId::generate(at(0)), name: "night job".into() };
    let record = put(metadata, ready("acme")).await;
    let next = deleted(&record, at(5));
    let update = UpdateFile { deleted_by: Some(by.clone()), ..change(&record, next.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    assert_eq!(receipt(metadata, record.file_id).await, None, "the record is still there");

    // Due at once: the deletion stays what it was.
    metadata.end_era(&record.organization_id, at(6)).await.unwrap();
    purge(metadata, record.file_id, vec![removed(&record, at(7))], 8).await;

    let expected = PurgedFile {
        file_id: record.file_id,
        organization_id: record.organization_id.clone(),
        created_at: at(0),
        deleted_at: at(5),
        deleted_by: by,
        purged_at: at(8),
        removed: vec![removed(&record, at(7))],
        unlisted: 0,
        awaited: Vec::new(),
    };
    assert_eq!(receipt(metadata, record.file_id).await, Some(expected));
}

pub(crate) async fn the_first_deletion_counts_and_a_restore_takes_it_back(metadata: &dyn Metadata) {
    let record = put(metadata, ready("acme")).await;
    let marked = |old: &FileRecord, now: i64, by: DeletedBy| {
        let next = deleted(old, at(now));
        (next.clone(), UpdateFile { deleted_by: Some(by), ..change(old, next) })
    };
    let (first, update) = marked(&record, 1, DeletedBy::OpenMode);
    metadata.update_file(update).await.unwrap();
    let restored = FileRecord { updated_at: at(2), ..restored(&first) };
    metadata.update_file(change(&first, restored.clone())).await.unwrap();
    let (_, update) = marked(&restored, 3, DeletedBy::AdminSocket);
    metadata.update_file(update).await.unwrap();

    purge(metadata, record.file_id, Vec::new(), 4).await;
    let found = receipt(metadata, record.file_id).await.unwrap();
    assert_eq!((found.deleted_at, found.deleted_by), (at(3), DeletedBy::AdminSocket));
}

pub(crate) async fn an_expired_file_was_deleted_by_its_expiry(metadata: &dyn Metadata) {
    let record = put(metadata, temp("acme")).await;
    let old = put_deleted(metadata, ready("acme"), at(1)).await;
    assert_eq!(metadata.expire_temp(None, at(1000), 10).await.unwrap(), 1);
    purge(metadata, record.file_id, Vec::new(), 1001).await;
    purge(metadata, old.file_id, Vec::new(), 1002).await;

    let found = receipt(metadata, record.file_id).await.unwrap();
    assert_eq!((found.deleted_at, found.deleted_by), (at(1000), DeletedBy::Expiry));
    assert_eq!(receipt(metadata, old.file_id).await.unwrap().deleted_by, DeletedBy::Unknown);
}

pub(crate) async fn blobs_that_a_file_dropped_are_on_its_receipt(metadata: &dyn Metadata) {
    let first = put(metadata, in_cloud(ready("acme"), "s3")).await;
    let second = FileRecord {
        blob: Blob { sha256: Sha256([9; 32]), ..replaced(&first, 5, at(1)).blob },
        ..replaced(&first, 5, at(1))
    };
    note(metadata, &second).await;
    let drop_blob = Some(dropped(&first, at(100)));
    let update = UpdateFile { drop_blob, ..change(&first, second.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);

    // A copy that broke off: nobody knows how far it came.
    let copy = FileRecord { blob: moved(&second, "azure").blob, ..second.clone() };
    note(metadata, &copy).await;

    let dead = deleted(&second, at(2));
    metadata.update_file(change(&second, dead.clone())).await.unwrap();
    purge(metadata, dead.file_id, vec![removed(&second, at(3)), removed(&first, at(3))], 4).await;

    let found = receipt(metadata, dead.file_id).await.unwrap();
    let due: Vec<_> = found.awaited.iter().map(|one| (one.key.clone(), one.due_at)).collect();
    let expected = [(first.blob.key.clone(), Some(at(100))), (copy.blob.key.clone(), None)];
    assert_eq!(due, expected, "one is looked for again, the other may be under way");

    metadata.withdraw_writes(std::slice::from_ref(&copy.blob.key), at(50)).await.unwrap();
    for (holder, now) in [("azure", 50), ("s3", 100)] {
        let blobs = metadata.due_blobs(&provider(holder), at(now), 10).await.unwrap();
        metadata.finish_blobs(&blobs, at(now)).await.unwrap();
    }
    let found = receipt(metadata, dead.file_id).await.unwrap();
    assert_eq!(found.awaited, []);
    let broken_off = RemovedBlob { content: None, ..removed(&copy, at(50)) };
    let again = RemovedBlob { checked_at: at(100), ..removed(&first, at(3)) };
    let mut all = vec![again, removed(&second, at(3))];
    all.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
    all.insert(0, broken_off);
    assert_eq!(found.removed, all);
}

pub(crate) async fn a_blob_that_was_found_twice_is_on_the_receipt_once(metadata: &dyn Metadata) {
    let record = put_deleted(metadata, ready("acme"), at(0)).await;
    let seen = RemovedBlob { checked_at: at(5), ..removed(&record, at(2)) };
    let unknown = RemovedBlob { content: None, ..removed(&record, at(3)) };
    purge(metadata, record.file_id, vec![unknown, seen.clone()], 6).await;
    assert_eq!(receipt(metadata, record.file_id).await.unwrap().removed, [seen]);
}

pub(crate) async fn a_foreign_receipt_looks_like_an_unknown_one(metadata: &dyn Metadata) {
    let record = put_deleted(metadata, ready("acme"), at(0)).await;
    purge(metadata, record.file_id, Vec::new(), 1).await;
    let sees = async |names: &[&str]| {
        let names = names.iter().map(|name| name.parse().unwrap()).collect();
        metadata.receipt(record.file_id, &Scope::Organizations(names)).await.unwrap().is_some()
    };
    assert!(sees(&["other", "acme"]).await);
    assert!(!sees(&["other"]).await && !sees(&[]).await);
    assert_eq!(receipt(metadata, FileId::generate(at(0))).await, None);
}

pub(crate) async fn old_receipts_are_forgotten_up_to_the_limit(metadata: &dyn Metadata) {
    let mut files = Vec::new();
    for now in [10, 20, 30] {
        let record = put_deleted(metadata, ready("acme"), at(0)).await;
        purge(metadata, record.file_id, vec![removed(&record, at(1))], now).await;
        files.push(record.file_id);
    }
    // Of a file that lives on.
    let live = put(metadata, ready("acme")).await;
    let drop_blob = Some(dropped(&live, at(5)));
    let update = UpdateFile { drop_blob, ..change(&live, replaced(&live, 5, at(1))) };
    metadata.update_file(update).await.unwrap();
    let blobs = metadata.due_blobs(&ProviderCode::local(), at(5), 10).await.unwrap();
    metadata.finish_blobs(&blobs, at(5)).await.unwrap();

    assert_eq!(metadata.forget_receipts(at(4), 10).await.unwrap(), 0);
    assert_eq!(metadata.forget_receipts(at(9), 10).await.unwrap(), 1, "looked at, and spared");
    assert_eq!(metadata.forget_receipts(at(9), 10).await.unwrap(), 0, "for a day");
    assert_eq!(metadata.forget_receipts(at(20), 1).await.unwrap(), 1);
    assert_eq!(receipt(metadata, files[0]).await, None);
    assert_eq!(receipt(metadata, files[1]).await.unwrap().removed.len(), 1);
    assert_eq!(metadata.forget_receipts(at(20), 10).await.unwrap(), 1);
    assert_eq!(receipt(metadata, files[1]).await, None);
    assert!(receipt(metadata, files[2]).await.is_some());

    let record = get(metadata, live.file_id).await.unwrap();
    metadata.update_file(change(&record, deleted(&record, at(30)))).await.unwrap();
    purge(metadata, live.file_id, Vec::new(), 40).await;
    let whole = receipt(metadata, live.file_id).await.unwrap();
    assert_eq!(whole.removed.len(), 1, "its receipt names what it dropped long ago");
}
