//! Expiry, and claims of deleted files.

use super::*;
use crate::domain::report::receipt::Content;
use crate::metadata::{DroppedBlob, PurgeClaim};

pub(super) fn ids(claims: &[PurgeClaim]) -> Vec<FileId> {
    claims.iter().map(|claim| claim.record.file_id).collect()
}

fn gone(claims: &[PurgeClaim]) -> Vec<Purged> {
    ids(claims).into_iter().map(Purged::of).collect()
}

/// Claims files at `now` for ten milliseconds, without a grace period.
pub(super) async fn claim(
    metadata: &dyn Metadata,
    owner: &str,
    now: i64,
    limit: usize,
) -> Vec<PurgeClaim> {
    metadata
        .claim_purges(
            lease(owner, at(now), at(now + 10)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(now)),
            limit,
        )
        .await
        .unwrap()
}

pub(super) fn dropped(record: &FileRecord, not_before: Timestamp) -> DroppedBlob {
    DroppedBlob {
        file_id: record.file_id,
        provider: record.blob.provider.clone(),
        key: record.blob.key.clone(),
        content: Some(Content::of(&record.blob)),
        not_before,
    }
}

/// Replaces the blob of `record`. The old blob is kept until `not_before`.
pub(super) async fn replace(
    metadata: &dyn Metadata,
    record: &FileRecord,
    not_before: Timestamp,
) -> FileRecord {
    let next = replaced(record, 5, at(1));
    let drop_blob = Some(dropped(record, not_before));
    let update = UpdateFile { drop_blob, ..change(record, next.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    next
}

pub(crate) async fn temp_files_expire_up_to_the_limit(metadata: &dyn Metadata) {
    let mut old = Vec::new();
    for millis in [10, 20, 30] {
        old.push(put(metadata, FileRecord { expires_at: Some(at(millis)), ..temp("acme") }).await);
    }
    let young = put(metadata, temp("acme")).await;
    let kept = put(metadata, ready("acme")).await;
    for record in &old {
        get(metadata, record.file_id).await;
    }
    let mut expired = Vec::new();
    for _ in 0..3 {
        expired.push(metadata.expire_temp(None, at(30), 2).await.unwrap());
    }

    assert_eq!(expired, [2, 1, 0]);

    for record in &old {
        let now = get(metadata, record.file_id).await.unwrap();
        let expected = FileRecord { expires_at: record.expires_at, ..deleted(record, at(30)) };
        assert_eq!(*now, expected);
    }

    for record in [&young, &kept] {
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(record));
    }
    assert_eq!(claim(metadata, "run", 29, 10).await, [], "marked when they were expired");
    assert_eq!(claim(metadata, "run", 30, 10).await.len(), 3);
}

pub(crate) async fn claims_come_oldest_first_and_only_after_the_grace(metadata: &dyn Metadata) {
    let mut marked = Vec::new();
    for millis in [30, 10, 20, 40] {
        marked.push(put_deleted(metadata, ready("acme"), at(millis)).await);
    }
    put(metadata, ready("acme")).await;
    let claims = metadata
        .claim_purges(
            lease("run", at(1000), at(2000)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(30)),
            2,
        )
        .await
        .unwrap();

    assert_eq!(ids(&claims), [marked[1].file_id, marked[2].file_id]);
    assert_eq!(claims[0].record, marked[1]);
    assert_eq!((claims[0].attempts, claims[0].dropped.as_slice()), (0, &[][..]));

    let claims = metadata
        .claim_purges(
            lease("run", at(1000), at(2000)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(30)),
            2,
        )
        .await
        .unwrap();
    assert_eq!(ids(&claims), [marked[0].file_id], "the last one is within its grace");
}

/// Claims files of one organization at `now` for ten milliseconds, without a grace period.
pub(super) async fn claim_of(
    metadata: &dyn Metadata,
    name: &str,
    now: i64,
    limit: usize,
) -> Vec<PurgeClaim> {
    let (lease, owner) = (lease("run", at(now), at(now + 10)), organization(name));
    let due = DueFiles { marked_before: at(now), organization: Some(&owner) };
    metadata.claim_purges(lease, &ProviderCode::local(), due, limit).await.unwrap()
}

pub(crate) async fn a_claimed_file_is_due_whatever_its_mark_says(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(50)).await;
    assert_eq!(ids(&claim(metadata, "at once", 50, 10).await), [dead.file_id]);
    metadata.postpone_purge("at once", dead.file_id, at(60)).await.unwrap();

    // Another run waits for the grace period of others: their marks must be at 10 or before.
    let others = DueFiles::marked_before(at(10));
    let lease = lease("patient", at(60), at(70));
    let claims = metadata.claim_purges(lease, &ProviderCode::local(), others, 10).await.unwrap();
    assert_eq!(ids(&claims), [dead.file_id], "nobody can restore it any more");
    assert_eq!(metadata.purge_backlog(others, at(60)).await.unwrap().due, 1);
}

pub(crate) async fn a_claim_of_one_organization_takes_no_file_of_another(metadata: &dyn Metadata) {
    let first = put_deleted(metadata, ready("7"), at(20)).await;
    let temp = put_deleted(metadata, temp("7"), at(10)).await;
    let foreign = put_deleted(metadata, ready("77"), at(0)).await;
    put_deleted(metadata, in_cloud(ready("7"), "s3"), at(0)).await;
    put_deleted(metadata, ready("7"), at(21)).await;
    put(metadata, ready("7")).await;

    assert_eq!(claim_of(metadata, "8", 20, 10).await, []);
    assert_eq!(claim_of(metadata, "7", 20, 1).await.len(), 1);
    assert_eq!(claim_of(metadata, "7", 20, 10).await.len(), 1, "the rest, and none twice");
    assert_eq!(claim_of(metadata, "7", 20, 10).await, []);
    let again = claim_of(metadata, "7", 30, 2).await;
    assert_eq!(again.len(), 2, "the newest comes due, and a lease has ended");
    assert_eq!(sorted(ids(&claim_of(metadata, "7", 40, 10).await)).len(), 3);

    let claims = claim(metadata, "other", 40, 10).await;
    assert_eq!(ids(&claims), [foreign.file_id], "the leases of the others last");
    let (one, two) = (first.file_id, temp.file_id);
    let gone = [one, two].map(Purged::of);
    assert_eq!(metadata.finish_purges("run", &gone, at(40)).await.unwrap(), 2);
}

pub(crate) async fn a_claim_of_one_organization_leaves_what_a_hold_keeps(metadata: &dyn Metadata) {
    let named = put_deleted(metadata, ready("7"), at(0)).await;
    metadata.take_hold("one", at(0), at(100)).await.unwrap();
    metadata.narrow_hold("one", 1).await.unwrap();
    let newer = put_deleted(metadata, ready("7"), at(0)).await;
    assert_eq!(ids(&claim_of(metadata, "7", 20, 10).await), [newer.file_id]);

    metadata.release_hold("one").await.unwrap();
    assert_eq!(ids(&claim_of(metadata, "7", 25, 10).await), [named.file_id]);
}

pub(crate) async fn temp_files_of_one_organization_expire_alone(metadata: &dyn Metadata) {
    let old = |name| FileRecord { expires_at: Some(at(10)), ..temp(name) };
    let own = put(metadata, old("7")).await;
    let young = put(metadata, FileRecord { expires_at: Some(at(11)), ..temp("7") }).await;
    let foreign = put(metadata, old("8")).await;
    let seven = organization("7");
    assert_eq!(metadata.expire_temp(Some(&seven), at(10), 9).await.unwrap(), 1);
    assert_eq!(metadata.expire_temp(Some(&seven), at(10), 9).await.unwrap(), 0);

    let expired = get(metadata, own.file_id).await.unwrap();
    assert_eq!(expired.deletion, Some(Deletion::at(at(10))));
    for record in [young, foreign] {
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    }
}

pub(crate) async fn an_organization_has_deleted_files_until_they_are_purged(
    metadata: &dyn Metadata,
) {
    let has_deleted = async |name| metadata.has_deleted(&organization(name)).await.unwrap();
    put(metadata, ready("7")).await;
    let dead = put_deleted(metadata, ready("8"), at(0)).await;
    assert_eq!((has_deleted("7").await, has_deleted("8").await), (false, true));

    assert_eq!(claim(metadata, "run", 0, 9).await.len(), 1);
    assert!(has_deleted("8").await, "its bytes still count");
    metadata.finish_purges("run", &[Purged::of(dead.file_id)], at(0)).await.unwrap();
    assert!(!has_deleted("8").await);
}

pub(crate) async fn a_claimed_file_is_not_claimed_twice_nor_restored(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(claim(metadata, "one", 0, 10).await.len(), 1);
    assert_eq!(claim(metadata, "two", 9, 10).await, []);

    let back = restored(&dead);
    for _ in ["while leased", "after the failure"] {
        let restore = change(&dead, back.clone());
        assert_eq!(metadata.update_file(restore).await.unwrap(), Updated::Lost);
        metadata.postpone_purge("one", dead.file_id, at(5)).await.unwrap();
    }

    assert_eq!(get(metadata, dead.file_id).await.as_deref(), Some(&dead));
}

pub(crate) async fn of_two_concurrent_runs_each_file_goes_to_one(metadata: &dyn Metadata) {
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(put_deleted(metadata, ready("acme"), at(0)).await.file_id);
    }
    let run = async |owner: &str| {
        let mut mine = Vec::new();
        loop {
            let claims = claim(metadata, owner, 0, 3).await;
            if claims.is_empty() {
                return mine;
            }
            mine.extend(ids(&claims));
        }
    };

    let (one, two) = tokio::join!(run("one"), run("two"));
    assert_eq!(sorted([one, two].concat()), sorted(all));
}

pub(crate) async fn a_lease_that_ended_can_be_taken_over(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    claim(metadata, "one", 0, 10).await;
    assert_eq!(claim(metadata, "two", 9, 10).await, []);
    assert_eq!(ids(&claim(metadata, "two", 10, 10).await), [dead.file_id]);
    assert_eq!(
        metadata.finish_purges("one", &[Purged::of(dead.file_id)], at(0)).await.unwrap(),
        0,
        "not its own any more"
    );

    metadata.postpone_purge("one", dead.file_id, at(10)).await.unwrap();
    assert_eq!(claim(metadata, "three", 15, 10).await, [], "a stranger's failure changes nothing");
    assert_eq!(metadata.finish_purges("two", &[Purged::of(dead.file_id)], at(0)).await.unwrap(), 1);
}

pub(crate) async fn a_failed_purge_waits_and_stays_claimed(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    for attempts in 0..3 {
        let now = i64::from(attempts) * 100;
        assert_eq!(claim(metadata, "run", now - 1, 10).await, []);
        let claims = claim(metadata, "run", now, 10).await;
        assert_eq!((ids(&claims), claims[0].attempts), (vec![dead.file_id], attempts));
        metadata.postpone_purge("run", dead.file_id, at(now + 100)).await.unwrap();
    }

    assert_eq!(
        metadata.finish_purges("run", &[Purged::of(dead.file_id)], at(0)).await.unwrap(),
        0,
        "given back"
    );
}

pub(crate) async fn only_the_owner_finishes(metadata: &dyn Metadata) {
    let live = put(metadata, ready("acme")).await;
    let unclaimed = put_deleted(metadata, ready("acme"), at(50)).await;
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(ids(&claim(metadata, "run", 0, 10).await), [dead.file_id]);

    let all =
        [live.file_id, unclaimed.file_id, dead.file_id, FileId::generate(at(0))].map(Purged::of);
    assert_eq!(metadata.finish_purges("other", &all, at(0)).await.unwrap(), 0);
    assert_eq!(get(metadata, dead.file_id).await.as_deref(), Some(&dead));
    assert_eq!(metadata.finish_purges("run", &all, at(0)).await.unwrap(), 1);
    assert_eq!(metadata.finish_purges("run", &all, at(0)).await.unwrap(), 0, "a second time");
    assert_eq!(get(metadata, dead.file_id).await, None);
    assert!(
        get(metadata, live.file_id).await.is_some()
            && get(metadata, unclaimed.file_id).await.is_some()
    );
}

pub(crate) async fn a_finished_purge_takes_the_dropped_blobs_along(metadata: &dyn Metadata) {
    let first = put(metadata, ready("acme")).await;
    let second = replace(metadata, &first, at(1000)).await;
    let other = put(metadata, ready("acme")).await;
    replace(metadata, &other, at(1000)).await;
    let dead = deleted(&second, at(2));
    metadata.update_file(change(&second, dead.clone())).await.unwrap();

    let claims = claim(metadata, "run", 2, 10).await;
    assert_eq!(claims[0].dropped, [dropped(&first, at(1000))]);
    assert_eq!(metadata.due_blobs(&ProviderCode::local(), at(1000), 10).await.unwrap().len(), 2);

    metadata.finish_purges("run", &[Purged::of(dead.file_id)], at(0)).await.unwrap();
    let left = metadata.due_blobs(&ProviderCode::local(), at(1000), 10).await.unwrap();
    assert_eq!(left.iter().map(|due| due.blob.file_id).collect::<Vec<_>>(), [other.file_id]);
}

pub(crate) async fn a_finished_purge_leaves_what_was_withdrawn_at_a_provider(
    metadata: &dyn Metadata,
) {
    let record = put_deleted(metadata, ready("acme"), at(1)).await;
    let copy = in_cloud(FileRecord { ..record.clone() }, "s3");
    note(metadata, &copy).await;
    claim(metadata, "run", 2, 10).await;
    // A copy that was under way fails after the purge has looked.
    metadata.withdraw_writes(std::slice::from_ref(&copy.blob.key), at(1000)).await.unwrap();

    assert_eq!(
        metadata.finish_purges("run", &[Purged::of(record.file_id)], at(0)).await.unwrap(),
        1
    );

    let left = metadata.due_blobs(&provider("s3"), at(1000), 10).await.unwrap();
    assert_eq!(left.iter().map(|due| &due.blob.key).collect::<Vec<_>>(), [&copy.blob.key]);
}

pub(crate) async fn what_failed_comes_after_what_came_due_before_its_next_attempt(
    metadata: &dyn Metadata,
) {
    let failed = put_deleted(metadata, ready("acme"), at(0)).await;
    claim(metadata, "run", 0, 9).await;
    metadata.postpone_purge("run", failed.file_id, at(50)).await.unwrap();
    let meanwhile = put_deleted(metadata, ready("acme"), at(40)).await;
    let later = put_deleted(metadata, ready("acme"), at(60)).await;

    assert_eq!(ids(&claim(metadata, "run", 70, 1).await), [meanwhile.file_id]);
    assert_eq!(ids(&claim(metadata, "run", 70, 1).await), [failed.file_id]);
    assert_eq!(ids(&claim(metadata, "run", 70, 1).await), [later.file_id]);
}

pub(crate) async fn a_purge_waits_for_the_dropped_blobs_at_other_providers(
    metadata: &dyn Metadata,
) {
    let record = put(metadata, in_cloud(ready("7"), "s3")).await;
    let local = replaced(&ready("7"), 5, at(1)).blob;
    let next = FileRecord { blob: local, state: ready("7").state, version: 2, ..record.clone() };
    let drop_blob = Some(dropped(&record, at(1000)));
    let update = UpdateFile { drop_blob, ..change(&record, next.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    metadata.update_file(change(&next, deleted(&next, at(2)))).await.unwrap();

    let claims = claim(metadata, "run", 2, 9).await;
    assert_eq!(claims[0].dropped, [dropped(&record, at(1000))]);
    metadata.await_dropped(lease("stranger", at(2), at(3)), &claims[0].record).await.unwrap();
    assert_eq!(metadata.due_blobs(&provider("s3"), at(2), 9).await.unwrap(), []);
    metadata.await_dropped(lease("run", at(2), at(500)), &claims[0].record).await.unwrap();
    assert_eq!(claim(metadata, "run", 499, 9).await, [], "it waits");

    let due = metadata.due_blobs(&provider("s3"), at(2), 9).await.unwrap();
    assert_eq!(due.len(), 1, "and what it waits for is due");
    metadata.finish_blobs(&due[..1], at(3)).await.unwrap();
    let claims = claim(metadata, "run", 4, 9).await;
    assert_eq!((ids(&claims), claims[0].attempts), (vec![record.file_id], 0));
    assert_eq!(claims[0].dropped, [], "absent");

    // As for a claim from before the blob was found absent.
    metadata.await_dropped(lease("run", at(4), at(500)), &claims[0].record).await.unwrap();
    let claims = claim(metadata, "run", 4, 9).await;
    assert_eq!(ids(&claims), [record.file_id], "nothing is left to wait for");

    assert_eq!(metadata.finish_purges("run", &gone(&claims), at(0)).await.unwrap(), 1);
    assert_eq!(metadata.due_blobs(&provider("s3"), at(999), 9).await.unwrap(), []);
    let due = metadata.due_blobs(&provider("s3"), at(1000), 9).await.unwrap();
    assert_eq!(due.len(), 1, "a delayed write may have landed");
    metadata.finish_blobs(&due[..1], at(1000)).await.unwrap();
    assert_eq!(metadata.due_blobs(&provider("s3"), at(9999), 9).await.unwrap(), []);
}
