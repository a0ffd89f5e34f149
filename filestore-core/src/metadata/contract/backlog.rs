//! Counts of waiting work.

use super::purges::{claim, claim_of, replace};
use super::syncs::bind;
use super::*;
use crate::domain::provider::backlog::Waiting;
use crate::metadata::PurgeBacklog;

pub(crate) async fn the_backlog_of_one_organization_counts_no_other(metadata: &dyn Metadata) {
    put(metadata, FileRecord { expires_at: Some(at(5)), ..temp("7") }).await;
    put(metadata, FileRecord { expires_at: Some(at(5)), ..temp("8") }).await;
    put_deleted(metadata, sized(ready("7"), 3), at(10)).await;
    put_deleted(metadata, sized(in_cloud(ready("7"), "s3"), 4), at(10)).await;
    put_deleted(metadata, sized(ready("7"), 5), at(21)).await;
    put_deleted(metadata, sized(ready("8"), 100), at(10)).await;
    let replaced_one = put(metadata, ready("7")).await;
    replace(metadata, &replaced_one, at(0)).await;

    let seven = organization("7");
    let due = DueFiles { marked_before: at(20), organization: Some(&seven) };
    let expected = PurgeBacklog {
        expired: 1,
        due: 2,
        due_bytes: 7,
        due_at: [(ProviderCode::local(), 1), (provider("s3"), 1)].into(),
        waiting: 1,
        waiting_bytes: 5,
        first_mark: Some(at(21)),
        due_blobs: 0,
    };
    assert_eq!(metadata.purge_backlog(due, at(50)).await.unwrap(), expected);
    assert_eq!(claim_of(metadata, "7", 10, 9).await.len(), 1);
    assert_eq!(metadata.purge_backlog(due, at(50)).await.unwrap(), expected, "claimed ones too");
}

pub(crate) async fn the_backlog_counts_what_a_run_would_find(metadata: &dyn Metadata) {
    assert_eq!(
        metadata.purge_backlog(DueFiles::marked_before(at(0)), at(0)).await.unwrap(),
        PurgeBacklog::default()
    );

    put(metadata, FileRecord { expires_at: Some(at(50)), ..temp("acme") }).await;
    put(metadata, FileRecord { expires_at: Some(at(51)), ..temp("acme") }).await;
    put_deleted(metadata, sized(ready("acme"), 7), at(10)).await;
    put_deleted(metadata, sized(ready("acme"), 8), at(20)).await;
    put_deleted(metadata, sized(ready("acme"), 9), at(21)).await;
    let record = put(metadata, ready("acme")).await;
    let record = replace(metadata, &record, at(50)).await;
    replace(metadata, &record, at(51)).await;

    let expected = PurgeBacklog {
        expired: 1,
        due: 2,
        due_bytes: 15,
        due_at: [(ProviderCode::local(), 2)].into(),
        waiting: 1,
        waiting_bytes: 9,
        first_mark: Some(at(21)),
        due_blobs: 1,
    };
    assert_eq!(
        metadata.purge_backlog(DueFiles::marked_before(at(20)), at(50)).await.unwrap(),
        expected
    );

    assert_eq!(claim(metadata, "run", 10, 1).await.len(), 1);
    assert_eq!(
        metadata.purge_backlog(DueFiles::marked_before(at(20)), at(50)).await.unwrap(),
        expected,
        "claimed ones too"
    );
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
    let claims = metadata
        .claim_purges(leased, &provider("old"), DueFiles::marked_before(at(12)), 9)
        .await
        .unwrap();
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
            ("LOCAL", none, (1, Some(at(40))), (1, Some(at(50)))),
            ("old", none, (2, Some(at(41))), none),
            ("s3", (3, Some(at(2))), none, none),
        ],
        "work that failed still waits; the grace period is 30 milliseconds"
    );
}
