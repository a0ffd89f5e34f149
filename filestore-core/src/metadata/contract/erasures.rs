//! Erasures of organizations.

use super::syncs::bind;
use super::*;
use crate::domain::report::receipt::DeletedBy;
use crate::metadata::IdempotencyEntry;

pub(crate) async fn an_erased_organization_leaves_nothing(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let record = ready("7");
    let reply = IdempotencyEntry {
        organization: organization("7"),
        key: "k".into(),
        fingerprint: [3; 32],
        file_ids: vec![record.file_id],
        reply: b"{}".to_vec(),
        expires_at: at(1000),
    };
    let remembered = InsertFiles { idempotency: Some(reply), ..insert([record.clone()]) };
    metadata.insert_files(remembered).await.unwrap();
    let noted = in_cloud(ready("7"), "s3");
    note(metadata, &noted).await;
    put(metadata, ready("70")).await;
    metadata.update_file(change(&record, deleted(&record, at(100)))).await.unwrap();

    let left = metadata.left_of(&organization("7")).await.unwrap();
    let counts = (left.files, left.dropped, left.notes, left.bindings, left.replies);
    assert_eq!(counts, (1, 0, 1, 1, 1));

    metadata.withdraw_writes(&[noted.blob.key], at(900)).await.unwrap();
    assert_eq!(metadata.end_era(&organization("7"), at(1)).await.unwrap(), 1, "one reply");
    let due = metadata.due_blobs(&provider("s3"), at(1), 9).await.unwrap();
    let claims = metadata
        .claim_purges(
            lease("run", at(1), at(9)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(1)),
            9,
        )
        .await;
    assert_eq!((due.len(), claims.unwrap().len()), (1, 1), "within their grace periods");
    metadata.finish_blobs(&due, at(900)).await.unwrap();
    metadata.finish_purges("run", &[Purged::of(record.file_id)], at(900)).await.unwrap();

    let removed = metadata.forget_organization(&organization("7")).await.unwrap();
    assert_eq!((removed.bindings, removed.replies), (1, 0));
    let left = metadata.left_of(&organization("7")).await.unwrap();
    let counts = (left.files, left.dropped, left.notes, left.bindings, left.replies);
    assert_eq!(counts, (0, 0, 0, 0, 0));
    assert_eq!(metadata.inspection().organizations("", 9).await.unwrap(), ["70"]);
}

pub(crate) async fn an_insert_that_began_before_an_erasure_is_refused(metadata: &dyn Metadata) {
    let [erased, other] = ["7", "8"].map(organization);
    let before = metadata.era();
    let reply = IdempotencyEntry {
        organization: erased.clone(),
        key: "k".into(),
        fingerprint: [3; 32],
        file_ids: Vec::new(),
        reply: b"{}".to_vec(),
        expires_at: at(1000),
    };
    let of = |organization: &str, era| InsertFiles { era, ..insert([ready(organization)]) };

    // The clock may stand still: eras are numbers, and not times.
    for now in [at(1), at(1), at(0)] {
        let began = metadata.era();
        assert_eq!(metadata.insert_files(of("7", began)).await.unwrap(), Inserted::Done);
        metadata.end_era(&erased, now).await.unwrap();

        let late = InsertFiles { idempotency: Some(reply.clone()), ..of("7", began) };
        assert_eq!(metadata.insert_files(late).await.unwrap(), Inserted::Erased);
        let batch = InsertFiles { era: began, ..insert([ready("7"), ready("7")]) };
        assert_eq!(metadata.insert_files(batch).await.unwrap(), Inserted::Erased);
        assert_eq!(metadata.idempotency(&erased, "k", at(0)).await.unwrap(), None);

        assert_eq!(metadata.insert_files(of("8", before)).await.unwrap(), Inserted::Done);
        assert!(metadata.is_erased_since(&erased, began).await.unwrap());
        assert!(!metadata.is_erased_since(&other, before).await.unwrap());
        assert!(!metadata.is_erased_since(&erased, metadata.era()).await.unwrap());
    }
    let anew = of("7", metadata.era());
    assert_eq!(metadata.insert_files(anew).await.unwrap(), Inserted::Done, "the id is used again");
}

pub(crate) async fn what_an_erasure_has_deleted_or_hastened_is_not_restored(
    metadata: &dyn Metadata,
) {
    let restored = |record: &FileRecord| FileRecord {
        state: record.state.restore(),
        updated_at: at(9),
        ..record.clone()
    };
    let delete = async |record: &FileRecord, by: DeletedBy| {
        let next = deleted(record, at(5));
        let update = UpdateFile { deleted_by: Some(by), ..change(record, next.clone()) };
        assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
        next
    };

    let earlier = put(metadata, ready("7")).await;
    let earlier = delete(&earlier, DeletedBy::Library).await;
    metadata.end_era(&organization("7"), at(6)).await.unwrap();
    let by_erasure = put(metadata, ready("8")).await;
    let by_erasure = delete(&by_erasure, DeletedBy::Erasure).await;
    for kept in [&earlier, &by_erasure] {
        let update = change(kept, restored(kept));
        assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Lost);
    }

    let mut anew = insert([ready("7")]);
    anew.era = metadata.era();
    metadata.insert_files(anew.clone()).await.unwrap();
    let anew = delete(&anew.records[0], DeletedBy::Library).await;
    let update = change(&anew, restored(&anew));
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
}
