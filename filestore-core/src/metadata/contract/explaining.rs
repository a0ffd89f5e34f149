//! The record of one file with the work that waits for it.

use super::*;
use crate::domain::provider::binding::NewBinding;
use crate::domain::report::explain::{FileWork, ReplacedBlobs};
use crate::domain::report::receipt::DeletedBy;
use crate::metadata::{AfterFailure, BindingOutcome, DroppedBlob};

async fn work(metadata: &dyn Metadata, id: FileId, now: i64) -> FileWork {
    metadata.file_work(id, &Scope::All, at(now)).await.unwrap().expect("the file exists")
}

/// Replaces the blob of `record`. The old blob is due at `due`.
async fn replace(metadata: &dyn Metadata, record: &FileRecord, due: i64) -> FileRecord {
    let next = replaced(record, 5, at(1));
    let drop_blob = Some(DroppedBlob {
        file_id: record.file_id,
        provider: record.blob.provider.clone(),
        key: record.blob.key.clone(),
        content: None,
        not_before: at(due),
    });
    let update = UpdateFile { drop_blob, ..change(record, next.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    next
}

pub(crate) async fn a_file_is_read_with_the_work_that_waits_for_it(metadata: &dyn Metadata) {
    let new = NewBinding::new(number(42), "Acme", provider("eu")).with_sync();
    let BindingOutcome::Done(binding) = metadata.create_binding(new, at(0)).await.unwrap() else {
        panic!("the first binding is created")
    };
    let first = put(metadata, ready("42")).await;
    put(metadata, ready("42")).await;
    let second = replace(metadata, &first, 70).await;
    let third = replace(metadata, &second, 60).await;

    let fresh = work(metadata, first.file_id, 2).await;
    assert_eq!((&fresh.record, fresh.binding.as_ref()), (&third, Some(&binding)));
    let first_due_at = at(60);
    let holder = ProviderCode::local();
    let group = ReplacedBlobs { provider: holder, count: 2, first_due_at, attempts: 0 };
    assert_eq!(fresh.replaced, [group]);
    assert!(fresh.writes.is_empty() && fresh.deleted_by.is_none() && !fresh.purge.is_claimed);

    let targets = [provider("eu")];
    let lease = lease("run", at(5), at(15));
    let claims = metadata.claim_syncs(lease, &targets, &[], None, 10).await.unwrap();
    assert_eq!(claims.len(), 2);
    let claimed = work(metadata, first.file_id, 5).await;
    assert_eq!(claimed.record.state, third.state.claim().unwrap());
    assert_eq!(claimed.sync_not_before, at(15));
    assert_eq!(claimed.writes.len(), 1);
    assert_eq!(claimed.writes[0].provider, provider("eu"));

    let next = AfterFailure::Postpone(at(40));
    metadata.fail_sync("run", first.file_id, next, "timed out").await.unwrap();
    let failed = work(metadata, first.file_id, 20).await;
    assert_eq!((failed.record.sync_attempts, failed.sync_not_before), (1, at(40)));
}

pub(crate) async fn a_deleted_file_is_read_with_its_purge(metadata: &dyn Metadata) {
    let file = put(metadata, ready("acme")).await;
    let mut update = change(&file, deleted(&file, at(1)));
    update.deleted_by = Some(DeletedBy::OpenMode);
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    let marked = work(metadata, file.file_id, 2).await;
    assert_eq!(
        (marked.deleted_by.clone(), marked.binding.clone()),
        (Some(DeletedBy::OpenMode), None)
    );
    assert!(!marked.purge.is_claimed && !marked.purge.is_leased);

    let due = DueFiles::marked_before(at(2));
    let (run, holder) = (lease("run", at(2), at(12)), ProviderCode::local());
    assert_eq!(metadata.claim_purges(run, &holder, due, 10).await.unwrap().len(), 1);
    let claimed = work(metadata, file.file_id, 3).await.purge;
    assert!(claimed.is_claimed && claimed.is_leased);
    assert_eq!((claimed.not_before, claimed.attempts), (at(12), 0));

    metadata.postpone_purge("run", file.file_id, at(30)).await.unwrap();
    let failed = work(metadata, file.file_id, 4).await.purge;
    assert!(failed.is_claimed && !failed.is_leased);
    assert_eq!((failed.not_before, failed.attempts), (at(30), 1));

    let run = lease("another", at(30), at(40));
    assert_eq!(metadata.claim_purges(run, &holder, due, 10).await.unwrap().len(), 1);
    let purged = [Purged::of(file.file_id)];
    assert_eq!(metadata.finish_purges("another", &purged, at(31)).await.unwrap(), 1);
    assert_eq!(metadata.file_work(file.file_id, &Scope::All, at(32)).await.unwrap(), None);
}

pub(crate) async fn the_holds_of_a_file_are_those_that_cover_its_row(metadata: &dyn Metadata) {
    let covered = put_deleted(metadata, ready("acme"), at(0)).await;
    metadata.take_hold("long", at(0), at(100)).await.unwrap();
    metadata.take_hold("short", at(0), at(50)).await.unwrap();
    metadata.narrow_hold("long", 1).await.unwrap();
    let newer = put_deleted(metadata, ready("acme"), at(0)).await;

    let held = |work: FileWork| (work.held_until, work.replaced_held_until);
    let both = (Some(at(100)), Some(at(100)));
    assert_eq!(held(work(metadata, covered.file_id, 10).await), both);
    let by_the_short = (Some(at(50)), Some(at(100)));
    assert_eq!(held(work(metadata, newer.file_id, 10).await), by_the_short);
    assert_eq!(held(work(metadata, newer.file_id, 50).await), (None, Some(at(100))));
    assert_eq!(held(work(metadata, covered.file_id, 100).await), (None, None));
}

pub(crate) async fn the_work_on_a_foreign_file_looks_like_that_on_an_unknown_one(
    metadata: &dyn Metadata,
) {
    let file = put(metadata, ready("acme")).await;
    let scope = |text: &str| Scope::Organizations(vec![organization("other"), organization(text)]);
    let of = async |id, scope: &Scope| metadata.file_work(id, scope, at(1)).await.unwrap();
    assert!(of(file.file_id, &scope("acme")).await.is_some());
    assert_eq!(of(file.file_id, &scope("foreign")).await, None);
    assert_eq!(of(FileId::generate(at(0)), &Scope::All).await, None);
}
