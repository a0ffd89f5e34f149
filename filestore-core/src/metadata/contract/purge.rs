//! Expiry, claims, leases, dropped blobs.

use super::sync::bind;
use super::*;
use crate::domain::backlog::Waiting;
use crate::domain::receipt::Content;
use crate::metadata::{AfterFailure, DroppedBlob, PurgeBacklog, PurgeClaim};

fn ids(claims: &[PurgeClaim]) -> Vec<FileId> {
    claims.iter().map(|claim| claim.record.file_id).collect()
}

fn gone(claims: &[PurgeClaim]) -> Vec<Purged> {
    ids(claims).into_iter().map(Purged::of).collect()
}

/// Claims at `now` for ten milliseconds, without grace.
async fn claim(metadata: &dyn Metadata, owner: &str, now: i64, limit: usize) -> Vec<PurgeClaim> {
    metadata
        .claim_purges(lease(owner, at(now), at(now + 10)), &ProviderCode::local(), at(now), limit)
        .await
        .unwrap()
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

/// Replaces the blob of `record`, dropping the old one until `not_before`.
async fn replace(
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
        expired.push(metadata.expire_temp(at(30), 2).await.unwrap());
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
        .claim_purges(lease("run", at(1000), at(2000)), &ProviderCode::local(), at(30), 2)
        .await
        .unwrap();

    assert_eq!(ids(&claims), [marked[1].file_id, marked[2].file_id]);
    assert_eq!(claims[0].record, marked[1]);
    assert_eq!((claims[0].attempts, claims[0].dropped.as_slice()), (0, &[][..]));

    let claims = metadata
        .claim_purges(lease("run", at(1000), at(2000)), &ProviderCode::local(), at(30), 2)
        .await
        .unwrap();
    assert_eq!(ids(&claims), [marked[0].file_id], "the last one is within its grace");
}

pub(crate) async fn a_claimed_file_is_not_claimed_twice_nor_restored(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    assert_eq!(claim(metadata, "one", 0, 10).await.len(), 1);
    assert_eq!(claim(metadata, "two", 9, 10).await, []);

    let back = FileRecord { state: dead.state.restore(), ..dead.clone() };
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

pub(crate) async fn clearing_leases_frees_them_but_keeps_the_waits(metadata: &dyn Metadata) {
    let waits = put_deleted(metadata, ready("acme"), at(0)).await;
    let leased = put_deleted(metadata, ready("acme"), at(1)).await;
    assert_eq!(claim(metadata, "run", 1, 10).await.len(), 2);
    metadata.postpone_purge("run", waits.file_id, at(500)).await.unwrap();
    metadata.clear_leases().await.unwrap();
    assert_eq!(
        metadata.finish_purges("run", &[Purged::of(leased.file_id)], at(0)).await.unwrap(),
        0
    );
    assert_eq!(ids(&claim(metadata, "next", 2, 10).await), [leased.file_id]);
    assert_eq!(ids(&claim(metadata, "next", 500, 10).await), [leased.file_id, waits.file_id]);
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

pub(crate) async fn a_run_that_is_late_ends_no_blob_that_was_dropped_since(
    metadata: &dyn Metadata,
) {
    let local = ProviderCode::local();
    let record = put(metadata, ready("acme")).await;
    let record = replace(metadata, &record, at(1)).await;
    // Two runs look at the same time, and one is done before the other.
    let seen = metadata.due_blobs(&local, at(1), 9).await.unwrap();
    assert_eq!(seen.len(), 1);
    metadata.finish_blobs(&seen, at(1)).await.unwrap();
    replace(metadata, &record, at(2)).await;

    metadata.postpone_blob(&seen[0], at(9999)).await.unwrap();
    metadata.finish_blobs(&seen, at(2)).await.unwrap();
    let left = metadata.due_blobs(&local, at(2), 9).await.unwrap();
    assert_eq!(left.iter().map(|due| &due.blob.key).collect::<Vec<_>>(), [&record.blob.key]);
}

pub(crate) async fn the_backlog_counts_what_a_run_would_find(metadata: &dyn Metadata) {
    assert_eq!(metadata.purge_backlog(at(0), at(0)).await.unwrap(), PurgeBacklog::default());

    put(metadata, FileRecord { expires_at: Some(at(50)), ..temp("acme") }).await;
    put(metadata, FileRecord { expires_at: Some(at(51)), ..temp("acme") }).await;
    put_deleted(metadata, sized(ready("acme"), 7), at(10)).await;
    put_deleted(metadata, sized(ready("acme"), 8), at(20)).await;
    put_deleted(metadata, sized(ready("acme"), 9), at(21)).await;
    let record = put(metadata, ready("acme")).await;
    let record = replace(metadata, &record, at(50)).await;
    replace(metadata, &record, at(51)).await;

    let expected = PurgeBacklog { expired: 1, due: 2, due_bytes: 15, waiting: 1, due_blobs: 1 };
    assert_eq!(metadata.purge_backlog(at(20), at(50)).await.unwrap(), expected);

    assert_eq!(claim(metadata, "run", 10, 1).await.len(), 1);
    assert_eq!(metadata.purge_backlog(at(20), at(50)).await.unwrap(), expected, "claimed ones too");
}

pub(crate) async fn what_waits_is_counted_by_the_provider_that_has_it_to_do(
    metadata: &dyn Metadata,
) {
    assert_eq!(metadata.backlog(at(0), at(0)).await.unwrap(), []);

    bind(metadata, 7, "s3").await;
    put(metadata, uploaded("7", at(3))).await;
    put(metadata, uploaded("7", at(4))).await;
    put(metadata, in_cloud(uploaded("7", at(2)), "old")).await;
    put(metadata, ready("acme")).await;
    put_deleted(metadata, ready("acme"), at(10)).await;
    put_deleted(metadata, in_cloud(ready("7"), "old"), at(11)).await;
    put_deleted(metadata, in_cloud(ready("7"), "old"), at(12)).await;
    put_deleted(metadata, in_cloud(ready("7"), "old"), at(21)).await;
    let record = put(metadata, ready("acme")).await;
    let record = replace(metadata, &record, at(50)).await;
    replace(metadata, &record, at(51)).await;

    let leased = lease("run", at(12), at(99));
    let claims = metadata.claim_purges(leased, &provider("old"), at(12), 9).await.unwrap();
    assert_eq!(claims.len(), 2);
    metadata.postpone_purge("run", claims[1].record.file_id, at(9999)).await.unwrap();
    let due = metadata.due_blobs(&ProviderCode::local(), at(50), 9).await.unwrap();
    metadata.postpone_blob(&due[0], at(9999)).await.unwrap();

    let leased = lease("run", at(12), at(99));
    let copying = metadata.claim_syncs(leased, &[provider("s3")], &[], None, 1).await.unwrap();
    assert_eq!(copying.len(), 1, "and waits until it is copied");

    let found = metadata.backlog(at(20), at(50)).await.unwrap();
    let counts = |waiting: Waiting| (waiting.count, waiting.oldest);
    let found: Vec<_> = found
        .iter()
        .map(|at| (at.provider.as_str(), counts(at.sync), counts(at.purge), counts(at.dropped)))
        .collect();

    let none = (0, None);
    assert_eq!(
        found,
        [
            ("LOCAL", none, (1, Some(at(10))), (1, Some(at(50)))),
            ("old", none, (2, Some(at(11))), none),
            ("s3", (3, Some(at(2))), none, none),
        ],
        "work that failed still waits"
    );
}

pub(crate) async fn dropped_blobs_come_due_and_are_finished_or_postponed(metadata: &dyn Metadata) {
    let first = put(metadata, ready("acme")).await;
    let second = replace(metadata, &first, at(20)).await;
    let third = replace(metadata, &second, at(10)).await;
    assert_eq!(metadata.due_blobs(&ProviderCode::local(), at(9), 10).await.unwrap(), []);
    assert!(
        metadata.keeps_dropped(&ProviderCode::local()).await.unwrap(),
        "also before they are due"
    );
    assert!(!metadata.keeps_dropped(&provider("s3")).await.unwrap());
    assert_eq!(metadata.due_blobs(&ProviderCode::local(), at(20), 1).await.unwrap().len(), 1);

    let due = metadata.due_blobs(&ProviderCode::local(), at(20), 10).await.unwrap();
    let blobs: Vec<_> = due.iter().map(|due| due.blob.clone()).collect();
    assert_eq!(blobs, [dropped(&second, at(10)), dropped(&first, at(20))], "oldest first");

    metadata.postpone_blob(&due[0], at(20).plus(MINUTE)).await.unwrap();
    metadata.finish_blobs(&[due[1].clone(), due[1].clone()], at(20)).await.unwrap();
    assert_eq!(metadata.due_blobs(&ProviderCode::local(), at(20), 10).await.unwrap(), []);

    let again = metadata.due_blobs(&ProviderCode::local(), at(20).plus(MINUTE), 10).await.unwrap();
    assert_eq!((again[0].id, again[0].attempts, again.len()), (due[0].id, 1, 1));

    // One that is absent before its grace period is over stays on record, but not at its holder.
    metadata.finish_blobs(&again, at(21).plus(MINUTE)).await.unwrap();
    replace(metadata, &third, at(90).plus(MINUTE)).await;
    assert!(metadata.keeps_dropped(&ProviderCode::local()).await.unwrap());
    let last = metadata.due_blobs(&ProviderCode::local(), at(90).plus(MINUTE), 10).await.unwrap();
    metadata.finish_blobs(&last, at(30)).await.unwrap();
    assert!(!metadata.keeps_dropped(&ProviderCode::local()).await.unwrap());
    assert_eq!(
        metadata.due_blobs(&ProviderCode::local(), at(90).plus(MINUTE), 10).await.unwrap().len(),
        1
    );
}

pub(crate) async fn each_holder_has_claims_and_dropped_blobs_of_its_own(metadata: &dyn Metadata) {
    let here = put_deleted(metadata, ready("acme"), at(2)).await;
    let there = put_deleted(metadata, in_cloud(ready("7"), "s3"), at(1)).await;
    let record = put(metadata, in_cloud(ready("7"), "s3")).await;
    let next = FileRecord { blob: replaced(&ready("7"), 5, at(1)).blob, ..record.clone() };
    let next = FileRecord { state: ready("7").state, version: 2, ..next };
    let update = UpdateFile { drop_blob: Some(dropped(&record, at(1))), ..change(&record, next) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);

    let claim = async |code: &str| {
        let lease = lease("run", at(5), at(9));
        ids(&metadata.claim_purges(lease, &provider(code), at(5), 9).await.unwrap())
    };
    assert_eq!(claim("other").await, []);
    assert_eq!(claim("LOCAL").await, [here.file_id]);
    assert_eq!(claim("s3").await, [there.file_id]);

    assert_eq!(metadata.due_blobs(&provider("LOCAL"), at(5), 9).await.unwrap(), []);
    let due = metadata.due_blobs(&provider("s3"), at(5), 9).await.unwrap();
    assert_eq!(due.iter().map(|due| &due.blob.key).collect::<Vec<_>>(), [&record.blob.key]);
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

pub(crate) async fn purge_leases_can_be_renewed_and_released(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    claim(metadata, "one", 0, 9).await;
    metadata.renew_purges("one", at(500)).await.unwrap();
    metadata.renew_purges("stranger", at(1)).await.unwrap();
    assert_eq!(claim(metadata, "two", 499, 9).await, []);

    metadata.release_purges("stranger").await.unwrap();
    assert_eq!(claim(metadata, "two", 499, 9).await, []);
    metadata.release_purges("one").await.unwrap();
    assert_eq!(
        metadata.finish_purges("one", &[Purged::of(dead.file_id)], at(0)).await.unwrap(),
        0,
        "released"
    );
    let again = claim(metadata, "two", 1, 9).await;
    assert_eq!((ids(&again), again[0].attempts), (vec![dead.file_id], 0));
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

pub(crate) async fn waits_end_when_the_provider_answers_again(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let copied = put(metadata, ready("7")).await;
    let s3 = provider("s3");
    let to_s3 = std::slice::from_ref(&s3);
    let leased = lease("run", at(0), at(9));
    let claims = metadata.claim_syncs(leased, to_s3, &[], None, 9).await.unwrap();
    assert_eq!(claims.len(), 1);
    let again = AfterFailure::Postpone(at(5000));
    metadata.fail_sync("run", copied.file_id, again).await.unwrap();

    let dead = put_deleted(metadata, in_cloud(ready("7"), "s3"), at(0)).await;
    let here = put_deleted(metadata, ready("7"), at(0)).await;
    for (holder, file) in [("s3", &dead), ("LOCAL", &here)] {
        let lease = lease("run", at(0), at(9));
        metadata.claim_purges(lease, &provider(holder), at(0), 9).await.unwrap();
        metadata.postpone_purge("run", file.file_id, at(5000)).await.unwrap();
    }

    let lost = in_cloud(ready("7"), "s3");
    note(metadata, &lost).await;
    metadata.withdraw_writes(std::slice::from_ref(&lost.blob.key), at(1)).await.unwrap();
    let due = metadata.due_blobs(&provider("s3"), at(1), 9).await.unwrap();
    metadata.postpone_blob(&due[0], at(5000)).await.unwrap();
    let young = in_cloud(ready("7"), "s3");
    note(metadata, &young).await;
    metadata.withdraw_writes(std::slice::from_ref(&young.blob.key), at(900)).await.unwrap();

    assert_eq!(metadata.end_waits(&provider("other"), at(10), 9).await.unwrap(), 0);
    assert_eq!(metadata.end_waits(&provider("s3"), at(10), 9).await.unwrap(), 3);
    assert_eq!(metadata.end_waits(&provider("s3"), at(10), 9).await.unwrap(), 0);

    let leased = lease("run", at(10), at(99));
    let claims = metadata.claim_purges(leased, &s3, at(10), 9).await.unwrap();
    assert_eq!(ids(&claims), [dead.file_id]);
    assert_eq!(claim(metadata, "run", 10, 9).await, [], "another holder's");
    let due = metadata.due_blobs(&provider("s3"), at(10), 9).await.unwrap();
    assert_eq!(due.len(), 1, "not those within their grace period");
    let claims = metadata.claim_syncs(leased, to_s3, &[], None, 9).await.unwrap();
    assert_eq!(claims[0].attempts, 1);
}
