//! Objects at providers before a record refers to them.

use super::*;

pub(crate) async fn a_blob_at_a_provider_needs_its_intent(metadata: &dyn Metadata) {
    let record = in_cloud(ready("7"), "s3");
    assert_eq!(
        metadata.insert_files(insert([record.clone()])).await.unwrap(),
        Inserted::PlacementStale
    );

    let other = FileRecord {
        blob: Blob { provider: provider("other"), ..record.blob.clone() },
        ..record.clone()
    };

    note(metadata, &other).await;
    assert_eq!(
        metadata.insert_files(insert([record.clone()])).await.unwrap(),
        Inserted::PlacementStale
    );
    assert_eq!(get(metadata, record.file_id).await, None);

    let noted = in_cloud(ready("7"), "s3");
    note(metadata, &noted).await;
    let batch = insert([noted.clone(), in_cloud(ready("7"), "s3")]);
    assert_eq!(metadata.insert_files(batch).await.unwrap(), Inserted::PlacementStale);
    assert_eq!(get(metadata, noted.file_id).await, None, "all or nothing");

    let old = put(metadata, ready("7")).await;
    assert_eq!(
        metadata.update_file(change(&old, moved(&old, "s3"))).await.unwrap(),
        Updated::PlacementStale
    );
    assert_eq!(get(metadata, old.file_id).await.as_deref(), Some(&old));
}

pub(crate) async fn an_intent_ends_with_its_record(metadata: &dyn Metadata) {
    let record = put(metadata, in_cloud(ready("7"), "s3")).await;
    let old = put(metadata, ready("7")).await;
    let next = moved(&old, "s3");
    note(metadata, &next).await;
    assert_eq!(metadata.update_file(change(&old, next.clone())).await.unwrap(), Updated::Done);
    // Deleting changes the record and not its blob: no intent is asked for.
    assert_eq!(
        metadata.update_file(change(&next, deleted(&next, at(1)))).await.unwrap(),
        Updated::Done
    );
    assert_eq!(metadata.withdraw_old_writes(at(1_000_000), at(0), 9).await.unwrap(), 0);

    metadata.withdraw_writes(&[record.blob.key], at(0)).await.unwrap();
    assert_eq!(
        metadata.due_blobs(&provider("s3"), at(1), 9).await.unwrap(),
        [],
        "what has a record is not dropped"
    );
}

pub(crate) async fn a_withdrawn_write_becomes_a_dropped_blob(metadata: &dyn Metadata) {
    let one = in_cloud(ready("7"), "s3");
    note(metadata, &one).await;
    metadata.withdraw_writes(std::slice::from_ref(&one.blob.key), at(50)).await.unwrap();
    assert_eq!(metadata.due_blobs(&provider("s3"), at(49), 9).await.unwrap(), []);

    let due = metadata.due_blobs(&provider("s3"), at(50), 9).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!((&due[0].blob.key, &due[0].blob.provider), (&one.blob.key, &provider("s3")));

    let inserted = metadata.insert_files(insert([one])).await.unwrap();
    assert_eq!(inserted, Inserted::PlacementStale, "nothing refers to it any more");
}

pub(crate) async fn old_writes_are_withdrawn_up_to_the_limit(metadata: &dyn Metadata) {
    for millis in [1, 2, 3, 90] {
        note(metadata, &in_cloud(uploaded("7", at(millis)), "s3")).await;
    }
    assert_eq!(metadata.withdraw_old_writes(at(90), at(100), 2).await.unwrap(), 2);
    assert_eq!(metadata.withdraw_old_writes(at(90), at(100), 2).await.unwrap(), 1);
    assert_eq!(metadata.withdraw_old_writes(at(90), at(100), 2).await.unwrap(), 0);
    assert_eq!(metadata.due_blobs(&provider("s3"), at(100), 9).await.unwrap().len(), 3);
}

pub(crate) async fn a_renewed_write_is_young_again(metadata: &dyn Metadata) {
    for owner in ["run", "other"] {
        let file = in_cloud(uploaded("7", at(1)), "s3");
        let intent = WriteIntent {
            file_id: file.file_id,
            provider: provider("s3"),
            key: file.blob.key,
            begun_at: at(1),
            owner: Some(owner.into()),
        };
        metadata.begin_writes(vec![intent]).await.unwrap();
    }
    note(metadata, &in_cloud(uploaded("7", at(1)), "s3")).await;

    metadata.renew_writes("run", at(50)).await.unwrap();

    assert_eq!(metadata.withdraw_old_writes(at(50), at(99), 9).await.unwrap(), 2);
    assert_eq!(metadata.withdraw_old_writes(at(51), at(99), 9).await.unwrap(), 1);
}
