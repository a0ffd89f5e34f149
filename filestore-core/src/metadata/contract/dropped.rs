//! Replaced blobs.

use super::purges::{dropped, ids, replace};
use super::*;

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
        ids(&metadata
            .claim_purges(lease, &provider(code), DueFiles::marked_before(at(5)), 9)
            .await
            .unwrap())
    };
    assert_eq!(claim("other").await, []);
    assert_eq!(claim("LOCAL").await, [here.file_id]);
    assert_eq!(claim("s3").await, [there.file_id]);

    assert_eq!(metadata.due_blobs(&provider("LOCAL"), at(5), 9).await.unwrap(), []);
    let due = metadata.due_blobs(&provider("s3"), at(5), 9).await.unwrap();
    assert_eq!(due.iter().map(|due| &due.blob.key).collect::<Vec<_>>(), [&record.blob.key]);
}
