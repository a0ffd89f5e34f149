//! The terms of claims, and of waits after failures.

use super::purges::{claim, ids};
use super::sync_claims::{self, sync_of};
use super::syncs::bind;
use super::*;
use crate::domain::file::status::SyncStatus;
use crate::metadata::{AfterFailure, Claims};

/// Ends all leases like a start of the store, without shortening waits.
pub(super) async fn end_leases(metadata: &dyn Metadata) {
    let ever = Timestamp::from_millis(i64::MAX);
    metadata.end_leases(ever, ever).await.unwrap();
}

pub(crate) async fn clearing_leases_frees_them_but_keeps_the_waits(metadata: &dyn Metadata) {
    let waits = put_deleted(metadata, ready("acme"), at(0)).await;
    let leased = put_deleted(metadata, ready("acme"), at(1)).await;
    assert_eq!(claim(metadata, "run", 1, 10).await.len(), 2);
    metadata.postpone_purge("run", waits.file_id, at(500)).await.unwrap();
    end_leases(metadata).await;
    assert_eq!(
        metadata.finish_purges("run", &[Purged::of(leased.file_id)], at(0)).await.unwrap(),
        0
    );
    assert_eq!(ids(&claim(metadata, "next", 2, 10).await), [leased.file_id]);
    assert_eq!(ids(&claim(metadata, "next", 500, 10).await), [leased.file_id, waits.file_id]);
}

pub(crate) async fn purge_leases_can_be_renewed_and_released(metadata: &dyn Metadata) {
    let dead = put_deleted(metadata, ready("acme"), at(0)).await;
    claim(metadata, "one", 0, 9).await;
    let mine = lease("one", at(0), at(500));
    metadata.renew_claims(Claims::Purges, mine).await.unwrap();
    let strange = lease("stranger", at(0), at(1));
    metadata.renew_claims(Claims::Purges, strange).await.unwrap();
    assert_eq!(claim(metadata, "two", 499, 9).await, []);

    metadata.release_claims(Claims::Purges, "stranger").await.unwrap();
    assert_eq!(claim(metadata, "two", 499, 9).await, []);
    metadata.release_claims(Claims::Purges, "one").await.unwrap();
    assert_eq!(
        metadata.finish_purges("one", &[Purged::of(dead.file_id)], at(0)).await.unwrap(),
        0,
        "released"
    );
    let again = claim(metadata, "two", 1, 9).await;
    assert_eq!((ids(&again), again[0].attempts), (vec![dead.file_id], 0));
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
    metadata.fail_sync("run", copied.file_id, again, "out of reach").await.unwrap();

    let dead = put_deleted(metadata, in_cloud(ready("7"), "s3"), at(0)).await;
    let here = put_deleted(metadata, ready("7"), at(0)).await;
    for (holder, file) in [("s3", &dead), ("LOCAL", &here)] {
        let lease = lease("run", at(0), at(9));
        metadata
            .claim_purges(lease, &provider(holder), DueFiles::marked_before(at(0)), 9)
            .await
            .unwrap();
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
    let claims =
        metadata.claim_purges(leased, &s3, DueFiles::marked_before(at(10)), 9).await.unwrap();
    assert_eq!(ids(&claims), [dead.file_id]);
    assert_eq!(claim(metadata, "run", 10, 9).await, [], "another holder's");
    let due = metadata.due_blobs(&provider("s3"), at(10), 9).await.unwrap();
    assert_eq!(due.len(), 1, "not those within their grace period");
    let claims = metadata.claim_syncs(leased, to_s3, &[], None, 9).await.unwrap();
    assert_eq!(claims[0].attempts, 1);
}

pub(crate) async fn the_waits_of_all_organizations_are_cut_short(metadata: &dyn Metadata) {
    let mut waiting = Vec::new();
    for organization in [7, 8, 9] {
        bind(metadata, organization, "s3").await;
        for until in [100, 9000] {
            let record = put(metadata, ready(&organization.to_string())).await;
            let claims = sync_claims::claim(metadata, "run", at(0), 9).await;
            assert_eq!(claims.len(), 1);
            let postpone = AfterFailure::Postpone(at(until));
            metadata.fail_sync("run", record.file_id, postpone, "out of reach").await.unwrap();
            waiting.push(record.file_id);
        }
        // One that never waited is behind those that do.
        put(metadata, ready(&organization.to_string())).await;
        assert_eq!(sync_claims::claim(metadata, "run", at(0), 9).await.len(), 1);
    }

    metadata.end_leases(at(500), at(500)).await.unwrap();
    assert_eq!(
        sync_claims::claim(metadata, "early", at(0), 9).await.len(),
        3,
        "their leases ended"
    );

    let mut claimed = Vec::new();
    for (now, count) in [(99, 0), (499, 3), (500, 3)] {
        let claims = sync_claims::claim(metadata, "late", at(now), 9).await;
        assert_eq!(claims.len(), count, "at {now}");
        claimed.extend(claims.iter().map(|claim| claim.record.file_id));
    }
    assert_eq!(sorted(claimed), sorted(waiting));
}

pub(crate) async fn a_lease_can_be_renewed_and_ends(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    sync_claims::claim(metadata, "one", at(0), 9).await;
    let end = at(0).plus(MINUTE);
    let later = end.plus(MINUTE);
    metadata.renew_claims(Claims::Syncs, lease("one", end, later)).await.unwrap();
    metadata.renew_claims(Claims::Syncs, lease("stranger", end, at(1))).await.unwrap();

    assert_eq!(sync_claims::claim(metadata, "two", end, 9).await, []);
    assert_eq!(metadata.withdraw_old_writes(end, end, 9).await.unwrap(), 0, "its note is young");
    assert_eq!(sync_claims::claim(metadata, "two", later, 9).await.len(), 1);

    metadata
        .fail_sync("one", record.file_id, AfterFailure::GiveUp(at(0)), "out of reach")
        .await
        .unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Syncing, "it is the other's now");
}

pub(crate) async fn released_claims_count_no_attempt(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    sync_claims::claim(metadata, "one", at(0), 9).await;
    metadata.release_claims(Claims::Syncs, "two").await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Syncing);
    metadata.release_claims(Claims::Syncs, "one").await.unwrap();
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(sync_claims::claim(metadata, "two", at(0), 9).await[0].attempts, 0);
}

pub(crate) async fn clearing_leases_makes_files_wait_again(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    sync_claims::claim(metadata, "one", at(0), 9).await;
    end_leases(metadata).await;
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(sync_claims::claim(metadata, "two", at(0), 9).await.len(), 1);
}

pub(crate) async fn waits_are_cut_short_where_they_are_longer(metadata: &dyn Metadata) {
    let (soon, far) = (100, i64::from(i32::MAX));
    let local = ProviderCode::local();
    let mut dead = Vec::new();
    for retry_at in [soon, far] {
        let file = put_deleted(metadata, ready("acme"), at(0)).await;
        let claims = metadata
            .claim_purges(lease("run", at(1), at(2)), &local, DueFiles::marked_before(at(1)), 9)
            .await
            .unwrap();
        assert_eq!(claims.len(), 1);
        metadata.postpone_purge("run", file.file_id, at(retry_at)).await.unwrap();
        dead.push(file.file_id);
    }
    for not_before in [soon, far] {
        let written = in_cloud(ready("7"), "s3");
        note(metadata, &written).await;
        metadata.withdraw_writes(&[written.blob.key], at(not_before)).await.unwrap();
    }

    metadata.end_leases(at(500), at(700)).await.unwrap();
    assert_eq!(metadata.due_blobs(&provider("s3"), at(699), 9).await.unwrap().len(), 1);
    assert_eq!(metadata.due_blobs(&provider("s3"), at(700), 9).await.unwrap().len(), 2);
    for (now, due) in [(499, &dead[..1]), (500, &dead[1..])] {
        let claims = metadata
            .claim_purges(
                lease("run", at(now), at(far)),
                &local,
                DueFiles::marked_before(at(now)),
                9,
            )
            .await;
        let claimed: Vec<_> = claims.unwrap().iter().map(|claim| claim.record.file_id).collect();
        assert_eq!(claimed, due);
    }
}
