//! Claims of the sync worker, and queueing.

use super::syncs::bind;
use super::*;
use crate::domain::file::status::SyncStatus;
use crate::metadata::{AfterFailure, DroppedBlob, SyncClaim};

pub(super) async fn claim(
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

pub(super) async fn sync_of(metadata: &dyn Metadata, record: &FileRecord) -> SyncStatus {
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

    metadata
        .fail_sync("two", record.file_id, AfterFailure::GiveUp(at(0)), "out of reach")
        .await
        .unwrap();
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
    metadata
        .fail_sync("run", record.file_id, AfterFailure::Postpone(at(500)), "out of reach")
        .await
        .unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Pending);
    assert_eq!(claim(metadata, "run", at(499), 9).await, []);
    assert_eq!(claim(metadata, "run", at(500), 9).await[0].attempts, 1);

    metadata
        .fail_sync("run", record.file_id, AfterFailure::GiveUp(at(0)), "out of reach")
        .await
        .unwrap();
    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Failed);
    assert_eq!(claim(metadata, "run", at(9999), 9).await, []);
}

pub(crate) async fn an_excused_failure_counts_no_attempt(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    claim(metadata, "run", at(0), 9).await;

    let excuse = AfterFailure::Excuse(at(500));
    metadata.fail_sync("run", record.file_id, excuse, "out of reach").await.unwrap();

    assert_eq!(sync_of(metadata, &record).await, SyncStatus::Pending);
    assert_eq!(claim(metadata, "run", at(499), 9).await, []);
    assert_eq!(claim(metadata, "run", at(500), 9).await[0].attempts, 0);
}

pub(crate) async fn a_replace_begins_all_attempts_anew(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    let claimed = claim(metadata, "run", at(0), 9).await.remove(0).record;
    metadata
        .fail_sync("run", record.file_id, AfterFailure::Postpone(at(9999)), "out of reach")
        .await
        .unwrap();
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
        metadata
            .fail_sync("run", claim.record.file_id, AfterFailure::GiveUp(at(0)), "out of reach")
            .await
            .unwrap();
    }
    assert_eq!(metadata.retry_sync(Some(&organization("9")), 9).await.unwrap(), 0);
    assert_eq!(metadata.retry_sync(Some(&organization("8")), 9).await.unwrap(), 1);

    let again = claim(metadata, "run", at(0), 9).await;
    assert_eq!((again.len(), again[0].attempts), (1, 0));
    assert_eq!(metadata.retry_sync(None, 9).await.unwrap(), 1);
    assert_eq!(metadata.retry_sync(None, 9).await.unwrap(), 0);
}

pub(crate) async fn a_record_says_why_its_copy_failed_until_it_is_tried_anew(
    metadata: &dyn Metadata,
) {
    bind(metadata, 7, "s3").await;
    let record = put(metadata, ready("7")).await;
    let told = async || {
        let record = get(metadata, record.file_id).await.unwrap();
        (record.sync_attempts, record.sync_error.clone())
    };
    let fail = async |next, reason| {
        metadata.fail_sync("run", record.file_id, next, reason).await.unwrap();
    };
    assert_eq!(told().await, (0, None));

    claim(metadata, "run", at(0), 9).await;
    fail(AfterFailure::Postpone(at(5)), "out of reach").await;
    assert_eq!(told().await, (1, Some("out of reach".to_owned())));
    claim(metadata, "run", at(5), 9).await;
    assert_eq!(told().await, (1, Some("out of reach".to_owned())), "while it is tried again");
    fail(AfterFailure::GiveUp(at(0)), "access denied").await;
    assert_eq!(told().await, (2, Some("access denied".to_owned())));

    assert_eq!(metadata.retry_sync(None, 9).await.unwrap(), 1);
    assert_eq!(told().await, (0, None));
    claim(metadata, "run", at(9), 9).await;
    fail(AfterFailure::GiveUp(at(0)), "access denied").await;
    let (queued, _) =
        metadata.enqueue_sync(&organization("7"), &provider("s3"), None, 9).await.unwrap();
    assert_eq!((queued, told().await), (1, (0, None)));

    let claimed = claim(metadata, "run", at(10), 9).await.remove(0).record;
    fail(AfterFailure::Postpone(at(99)), "out of reach").await;
    let waiting = FileRecord { state: claimed.state.postpone().unwrap(), ..claimed };
    let next = replaced(&waiting, 5, at(11));
    assert_eq!(metadata.update_file(change(&waiting, next)).await.unwrap(), Updated::Done);
    assert_eq!(told().await, (0, None), "other bytes have not failed");
}
