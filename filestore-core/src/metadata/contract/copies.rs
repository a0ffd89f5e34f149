//! Claims of the sync worker, queueing, and the holders of files.

use super::sync::bind;
use super::*;
use crate::domain::status::{Status, SyncStatus};
use crate::metadata::{AfterFailure, DroppedBlob, SyncClaim};

async fn claim(
    metadata: &dyn Metadata,
    owner: &str,
    now: Timestamp,
    limit: usize,
) -> Vec<SyncClaim> {
    let until = now.plus(MINUTE);
    metadata
        .claim_syncs(lease(owner, now, until), &[provider("s3")], &[], None, limit)
        .await
        .unwrap()
}

async fn sync_of(metadata: &dyn Metadata, record: &FileRecord) -> SyncStatus {
    get(metadata, record.file_id).await.unwrap().state.sync()
}

pub(crate) async fn a_claim_is_syncing_and_its_copy_is_noted(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;

    let claims = claim(metadata, "one", at(0), 9).await;

    let state = record.state.claim().unwrap();
    let claimed = FileRecord { state, ..record.clone() };
    let key = claims[0].key.clone();
    assert_eq!(
        claims,
        [SyncClaim { record: claimed.clone(), target: provider("s3"), key, attempts: 0 }]
    );
    assert_eq!(claims[0].key.directory(), record.blob.key.directory());
    assert_ne!(claims[0].key, record.blob.key);
    assert_eq!(
        metadata.withdraw_old_writes(at(1), at(1), 9).await.unwrap(),
        1,
        "the copy is noted"
    );
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&claimed));
}

pub(crate) async fn a_claimed_file_is_nobody_elses(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "one", at(0), 9).await;

    assert_eq!(claim(metadata, "two", at(0), 9).await, []);

    metadata.fail_sync("two", record.file_id, AfterFailure::GiveUp).await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Syncing, "not the owner's word");
    assert_eq!(metadata.settle_sync(9).await.unwrap(), []);
}

pub(crate) async fn only_files_bound_to_a_target_are_claimed(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    bind(metadata, 8, "other").await;
    bind(metadata, 9, "LOCAL").await;
    for organization in ["acme", "8", "9", "10"] {
        put(metadata, ready(organization)).await;
    }
    put(metadata, in_cloud(ready("7"), "s3")).await;
    put(metadata, temp("7")).await;
    put_deleted(metadata, ready("7"), at(1)).await;
    let here = put(metadata, ready("7")).await;
    let elsewhere = put(metadata, in_cloud(ready("7"), "other")).await;
    let claimed =
        claim(metadata, "run", at(2), 9).await.into_iter().map(|claim| claim.record.file_id);

    assert_eq!(sorted(claimed.collect()), sorted(vec![here.file_id, elsewhere.file_id]));
}

pub(crate) async fn organizations_take_turns(metadata: &dyn Metadata) {
    for number in [1, 2, 3] {
        bind(metadata, number, "s3").await;
        for _ in 0..6 {
            put(metadata, ready(&number.to_string())).await;
        }
    }

    let mut after = None;
    let mut turns = Vec::new();
    for _ in 0..4 {
        let until = at(0).plus(MINUTE);
        let targets = [provider("s3")];
        let claims = metadata
            .claim_syncs(lease("run", at(0), until), &targets, &[], after.as_ref(), 4)
            .await
            .unwrap();
        after = claims.last().map(|claim| claim.record.organization_id.clone());
        turns.push(
            claims
                .into_iter()
                .map(|claim| claim.record.organization_id.to_string())
                .collect::<String>(),
        );
    }

    // One at a time of each, and none twice before each had a turn.
    assert_eq!(turns, ["1231", "2312", "3123", "1231"]);
    assert_eq!(claim(metadata, "run", at(0), 100).await.len(), 2);
}

pub(crate) async fn a_file_waits_between_its_attempts_and_fails_at_the_end(
    metadata: &dyn Metadata,
) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "run", at(0), 9).await;
    metadata.fail_sync("run", record.file_id, AfterFailure::Postpone(at(500))).await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Pending);
    assert_eq!(claim(metadata, "run", at(499), 9).await, []);
    assert_eq!(claim(metadata, "run", at(500), 9).await[0].attempts, 1);

    metadata.fail_sync("run", record.file_id, AfterFailure::GiveUp).await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Failed);
    assert_eq!(claim(metadata, "run", at(9999), 9).await, []);
}

pub(crate) async fn the_waits_of_all_organizations_are_cut_short(metadata: &dyn Metadata) {
    let mut waiting = Vec::new();
    for organization in [7, 8, 9] {
        bind(metadata, organization, "s3").await;
        for until in [100, 9000] {
            let record = put(metadata, ready(&organization.to_string())).await;
            let claims = claim(metadata, "run", at(0), 9).await;
            assert_eq!(claims.len(), 1);
            let postpone = AfterFailure::Postpone(at(until));
            metadata.fail_sync("run", record.file_id, postpone).await.unwrap();
            waiting.push(record.file_id);
        }
        // One that never waited is behind those that do.
        put(metadata, ready(&organization.to_string())).await;
        assert_eq!(claim(metadata, "run", at(0), 9).await.len(), 1);
    }

    metadata.cap_waits(at(500), at(500)).await.unwrap();

    let mut claimed = Vec::new();
    for (now, count) in [(99, 0), (499, 3), (500, 3)] {
        let claims = claim(metadata, "late", at(now), 9).await;
        assert_eq!(claims.len(), count, "at {now}");
        claimed.extend(claims.iter().map(|claim| claim.record.file_id));
    }
    assert_eq!(sorted(claimed), sorted(waiting));
}

pub(crate) async fn an_excused_failure_counts_no_attempt(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "run", at(0), 9).await;

    let excuse = AfterFailure::Excuse(at(500));
    metadata.fail_sync("run", record.file_id, excuse).await.unwrap();

    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Pending);
    assert_eq!(claim(metadata, "run", at(499), 9).await, []);
    assert_eq!(claim(metadata, "run", at(500), 9).await[0].attempts, 0);
}

pub(crate) async fn a_lease_can_be_renewed_and_ends(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "one", at(0), 9).await;
    let end = at(0).plus(MINUTE);
    let later = end.plus(MINUTE);
    metadata.renew_syncs(lease("one", end, later)).await.unwrap();
    metadata.renew_syncs(lease("stranger", end, at(1))).await.unwrap();

    assert_eq!(claim(metadata, "two", end, 9).await, []);
    assert_eq!(metadata.withdraw_old_writes(end, end, 9).await.unwrap(), 0, "its note is young");
    assert_eq!(claim(metadata, "two", later, 9).await.len(), 1);

    metadata.fail_sync("one", record.file_id, AfterFailure::GiveUp).await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Syncing, "it is the other's now");
}

pub(crate) async fn released_claims_count_no_attempt(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "one", at(0), 9).await;
    metadata.release_syncs("two").await.unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Syncing);
    metadata.release_syncs("one").await.unwrap();
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(claim(metadata, "two", at(0), 9).await[0].attempts, 0);
}

pub(crate) async fn clearing_leases_makes_files_wait_again(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "one", at(0), 9).await;
    metadata.clear_leases().await.unwrap();
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(claim(metadata, "two", at(0), 9).await.len(), 1);
}

pub(crate) async fn a_replace_begins_all_attempts_anew(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    let claimed = claim(metadata, "run", at(0), 9).await.remove(0).record;
    metadata.fail_sync("run", record.file_id, AfterFailure::Postpone(at(9999))).await.unwrap();
    let waiting = FileRecord { state: claimed.state.postpone().unwrap(), ..claimed };
    let next = replaced(&waiting, 5, at(1));

    assert_eq!(metadata.update_file(change(&waiting, next.clone())).await.unwrap(), Updated::Done);

    let claims = claim(metadata, "run", at(1), 9).await;
    assert_eq!((claims[0].attempts, &claims[0].record.blob), (0, &next.blob));
}

pub(crate) async fn a_flip_is_lost_when_the_file_was_replaced_or_deleted(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let one = put(metadata, ready("7")).await;
    let two = put(metadata, ready("7")).await;
    let three = put(metadata, ready("7")).await;
    let mut claims = claim(metadata, "run", at(0), 99).await;
    claims.extend(claim(metadata, "run", at(0), 99).await);
    claims.sort_by_key(|claim| claim.record.created_at);
    let claimed = |file: &FileRecord| {
        claims.iter().find(|claim| claim.record.file_id == file.file_id).unwrap().record.clone()
    };
    let (one, two, three) = (claimed(&one), claimed(&two), claimed(&three));
    let replaced = FileRecord {
        state: one.state.replace_blob(Location::Local).unwrap(),
        ..replaced(&one, 3, at(1))
    };

    assert_eq!(metadata.update_file(change(&one, replaced.clone())).await.unwrap(), Updated::Done);
    assert_eq!(
        metadata.update_file(change(&two, deleted(&two, at(1)))).await.unwrap(),
        Updated::Done
    );

    for (old, outcome) in [(&one, Updated::Lost), (&two, Updated::Lost), (&three, Updated::Done)] {
        let next = moved(old, "s3");
        note(metadata, &next).await;
        let dropped = DroppedBlob {
            file_id: old.file_id,
            provider: old.blob.provider.clone(),
            key: old.blob.key.clone(),
            content: None,
            not_before: at(5),
        };
        let flip = UpdateFile { drop_blob: Some(dropped), ..change(old, next.clone()) };
        assert_eq!(metadata.update_file(flip).await.unwrap(), outcome);
        if outcome == Updated::Done {
            assert_eq!(get(metadata, old.file_id).await.as_deref(), Some(&next));
        }
    }

    assert_eq!(metadata.due_blobs(&ProviderCode::local(), at(5), 9).await.unwrap().len(), 1);
}

pub(crate) async fn queueing_takes_what_is_elsewhere_page_by_page(metadata: &dyn Metadata) {
    let mut rested = Vec::new();
    for _ in 0..5 {
        rested.push(put(metadata, ready("7")).await.file_id);
    }
    assert_eq!(metadata.settle_sync(9).await.unwrap().len(), 5);

    bind(metadata, 7, "s3").await;
    put(metadata, temp("7")).await;
    put(metadata, ready("8")).await;
    put(metadata, in_cloud(ready("7"), "s3")).await;
    assert_eq!(claim(metadata, "run", at(0), 9).await, [], "from before the binding");

    let (mut after, mut queued) = (None, Vec::new());
    loop {
        let (some, next) =
            metadata.enqueue_sync(&organization("7"), &provider("s3"), after, 2).await.unwrap();
        queued.push(some);
        after = next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!(queued, [2, 2, 1]);

    let mut claims = claim(metadata, "run", at(0), 99).await;
    claims.extend(claim(metadata, "run", at(0), 99).await);
    assert_eq!(
        sorted(claims.into_iter().map(|claim| claim.record.file_id).collect()),
        sorted(rested)
    );
}

pub(crate) async fn failed_files_are_queued_again(metadata: &dyn Metadata) {
    for number in [7, 8] {
        bind(metadata, number, "s3").await;
        put(metadata, ready(&number.to_string())).await;
    }

    let claims = claim(metadata, "run", at(0), 99).await;
    for claim in &claims {
        metadata.fail_sync("run", claim.record.file_id, AfterFailure::GiveUp).await.unwrap();
    }
    assert_eq!(metadata.retry_sync(Some(&organization("9")), 9).await.unwrap(), 0);
    assert_eq!(metadata.retry_sync(Some(&organization("8")), 9).await.unwrap(), 1);

    let again = claim(metadata, "run", at(0), 9).await;
    assert_eq!((again.len(), again[0].attempts), (1, 0));
    assert_eq!(metadata.retry_sync(None, 9).await.unwrap(), 1);
    assert_eq!(metadata.retry_sync(None, 9).await.unwrap(), 0);
}

/// Files of organization 7 at several providers, deleted and foreign ones beside them; returns the
/// READY ones that `s3` does not hold.
async fn scattered(metadata: &dyn Metadata) -> Vec<FileId> {
    let here = put(metadata, sized(ready("7"), 3)).await;
    let other = put(metadata, sized(in_cloud(ready("7"), "other"), 4)).await;
    put(metadata, sized(in_cloud(ready("7"), "s3"), 5)).await;
    put(metadata, sized(temp("7"), 6)).await;
    put(metadata, ready("8")).await;
    put_deleted(metadata, ready("7"), at(1)).await;
    sorted(vec![here.file_id, other.file_id])
}

pub(crate) async fn files_elsewhere_come_oldest_first_and_page_by_page(metadata: &dyn Metadata) {
    let expected = scattered(metadata).await;
    let elsewhere = async |target: &str, after, limit| {
        let found = metadata
            .files_elsewhere(&organization("7"), &provider(target), after, limit)
            .await
            .unwrap();
        found.into_iter().map(|record| record.file_id).collect::<Vec<_>>()
    };

    assert_eq!(elsewhere("s3", None, 9).await, expected);
    assert_eq!(elsewhere("s3", None, 1).await, expected[..1]);
    assert_eq!(elsewhere("s3", Some(expected[0]), 9).await, expected[1..]);
    assert_eq!(elsewhere("LOCAL", None, 9).await.len(), 2);
}

pub(crate) async fn holdings_are_counted_by_provider_and_status(metadata: &dyn Metadata) {
    scattered(metadata).await;

    let mut holdings: Vec<_> = metadata
        .holdings(&organization("7"))
        .await
        .unwrap()
        .into_iter()
        .map(|holding| (holding.provider.to_string(), holding.status, holding.files, holding.bytes))
        .collect();
    holdings.sort_by(|a, b| (&a.0, a.2, a.3).cmp(&(&b.0, b.2, b.3)));

    assert_eq!(
        holdings,
        [
            ("LOCAL".to_owned(), Status::Ready, 1, 3),
            ("LOCAL".to_owned(), Status::Temp, 1, 6),
            ("other".to_owned(), Status::Ready, 1, 4),
            ("s3".to_owned(), Status::Ready, 1, 5),
        ]
    );
}
