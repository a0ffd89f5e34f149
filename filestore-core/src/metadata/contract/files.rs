//! Look-up, insert, usage.

use super::*;
use crate::domain::file::record::{Dimensions, Thumbhash};
use crate::domain::file::usage::{Stored, Usage};
use crate::domain::provider::binding::{BindingChange, NewBinding};
use crate::metadata::BindingOutcome;

pub(crate) async fn an_inserted_file_reads_back_whole(metadata: &dyn Metadata) {
    let plain = ready("acme");
    let full = FileRecord {
        blob: Blob {
            size_bytes: 1 << 40,
            sha256: Sha256(std::array::from_fn(|i| u8::try_from(i).unwrap())),
            sniffed_type: Some("image/png".into()),
            dimensions: Some(Dimensions { width: 4_000_000_000, height: 1 }),
            thumbhash: Thumbhash::new(&[7; 25]),
            stored_at: at(5),
            ..ready("7").blob
        },
        version: 3,
        updated_at: at(9),
        ext: String::new(),
        ..ready("7")
    };

    for record in [plain, temp("acme"), full, in_cloud(ready("7"), "s3")] {
        put(metadata, record.clone()).await;
        for _ in ["from the database", "from memory, if it has one"] {
            assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
        }
    }
}

pub(crate) async fn an_unknown_file_is_none(metadata: &dyn Metadata) {
    assert_eq!(get(metadata, FileId::generate(at(0))).await, None);
}

pub(crate) async fn a_foreign_file_looks_like_an_unknown_one(metadata: &dyn Metadata) {
    let record = put(metadata, ready("acme")).await;
    let foreign = Scope::Organizations(vec![organization("other"), organization("Acme")]);
    let own = Scope::Organizations(vec![organization("other"), organization("acme")]);
    assert_eq!(metadata.file(record.file_id, &foreign).await.unwrap(), None);
    assert_eq!(metadata.file(record.file_id, &own).await.unwrap().as_deref(), Some(&record));
    assert_eq!(
        metadata.file(record.file_id, &foreign).await.unwrap(),
        None,
        "also once it is in memory"
    );
    assert_eq!(metadata.cached_file(record.file_id, &foreign), None);

    let nobody = Scope::Organizations(Vec::new());
    assert_eq!(metadata.file(record.file_id, &nobody).await.unwrap(), None);
}

pub(crate) async fn several_files_are_read_together(metadata: &dyn Metadata) {
    let one = put(metadata, ready("acme")).await;
    let deleted = put_deleted(metadata, ready("acme"), at(1)).await;
    let foreign = put(metadata, ready("other")).await;
    let unknown = FileId::generate(at(0));
    let ids = [foreign.file_id, deleted.file_id, unknown, one.file_id];

    let of = |ids: &[&str]| Scope::Organizations(ids.iter().map(|id| organization(id)).collect());
    for (scope, expected) in [
        (Scope::All, vec![&one, &deleted, &foreign]),
        (of(&["acme", "nobody"]), vec![&one, &deleted]),
        (of(&[]), vec![]),
    ] {
        let mut found = metadata.files(&ids, &scope).await.unwrap();
        found.sort_by_key(|record| record.file_id);
        let mut expected: Vec<_> = expected.into_iter().cloned().map(Arc::new).collect();
        expected.sort_by_key(|record| record.file_id);
        assert_eq!(found, expected, "{scope:?}");
    }
    assert!(metadata.files(&[], &Scope::All).await.unwrap().is_empty());
}

pub(crate) async fn a_batch_with_a_bad_row_leaves_nothing(metadata: &dyn Metadata) {
    let present = put(metadata, ready("acme")).await;
    let (first, second) = (ready("acme"), FileRecord { file_id: present.file_id, ..ready("acme") });
    assert!(metadata.insert_files(insert([first.clone(), second])).await.is_err(), "an id twice");

    let shared_blob = FileRecord { blob: present.blob.clone(), ..ready("acme") };
    assert!(
        metadata.insert_files(insert([first.clone(), shared_blob])).await.is_err(),
        "a blob twice"
    );

    assert_eq!(get(metadata, first.file_id).await, None);
    assert_eq!(get(metadata, present.file_id).await.as_deref(), Some(&present));
    assert_eq!(metadata.usage(&organization("acme")).await.unwrap().total().bytes, 10);
}

pub(crate) async fn a_batch_over_the_quota_leaves_nothing(metadata: &dyn Metadata) {
    put(metadata, ready("acme")).await;
    let batch = [ready("acme"), ready("acme"), ready("acme")];
    let over = InsertFiles { quota_bytes: Some(39), ..insert(batch.clone()) };
    assert_eq!(metadata.insert_files(over).await.unwrap(), Inserted::OverQuota);
    for record in &batch {
        assert_eq!(get(metadata, record.file_id).await, None);
    }
    assert_eq!(metadata.usage(&organization("acme")).await.unwrap().total().bytes, 10);
}

pub(crate) async fn the_quota_lets_the_last_byte_in(metadata: &dyn Metadata) {
    put_deleted(metadata, ready("acme"), at(1)).await;
    put(metadata, temp("acme")).await;
    put(metadata, sized(ready("other"), 1000)).await;

    let limited = |record| InsertFiles { quota_bytes: Some(30), ..insert([record]) };
    let fits = metadata.insert_files(limited(ready("acme"))).await.unwrap();
    assert_eq!(fits, Inserted::Done, "30 of 30, deleted and TEMP ones included, others' not");

    let over = metadata.insert_files(limited(sized(ready("acme"), 1))).await.unwrap();
    assert_eq!(over, Inserted::OverQuota);

    let empty = metadata.insert_files(limited(sized(ready("acme"), 0))).await.unwrap();
    assert_eq!(empty, Inserted::Done);

    let huge = metadata.insert_files(limited(sized(ready("acme"), u64::MAX))).await.unwrap();
    assert_eq!(huge, Inserted::OverQuota, "no overflow");
}

pub(crate) async fn an_insert_placed_by_another_binding_is_refused(metadata: &dyn Metadata) {
    let placed = |active: Option<(&str, bool)>| InsertFiles {
        binding: BindingSeen {
            organization: Some(number(7)),
            active: active.map(|(code, sync_enabled)| (provider(code), sync_enabled)),
        },
        ..insert([ready("7")])
    };

    let outcome = async |active| metadata.insert_files(placed(active)).await.unwrap();
    assert_eq!(outcome(None).await, Inserted::Done);
    assert_eq!(outcome(Some(("s3", true))).await, Inserted::PlacementStale);

    let binding = NewBinding {
        organization: number(7),
        organization_name: "Seven".into(),
        provider: provider("s3"),
        sync_enabled: true,
    };

    assert!(matches!(
        metadata.create_binding(binding, at(0)).await.unwrap(),
        BindingOutcome::Done(_)
    ));
    assert_eq!(outcome(Some(("s3", true))).await, Inserted::Done);

    for changed in [None, Some(("s3", false)), Some(("LOCAL", true))] {
        assert_eq!(outcome(changed).await, Inserted::PlacementStale, "{changed:?}");
    }

    let terminate = BindingChange { is_active: Some(false), ..BindingChange::default() };
    metadata.change_binding(number(7), terminate, &[], at(1)).await.unwrap();
    assert_eq!(outcome(Some(("s3", true))).await, Inserted::PlacementStale);
    assert_eq!(outcome(None).await, Inserted::Done);
}

pub(crate) async fn an_organization_without_a_number_has_no_binding_to_check(
    metadata: &dyn Metadata,
) {
    let placed = InsertFiles {
        binding: BindingSeen { organization: None, active: None },
        ..insert([ready("acme")])
    };
    assert_eq!(metadata.insert_files(placed).await.unwrap(), Inserted::Done);
}

pub(crate) async fn live_local_keys_are_those_that_records_refer_to(metadata: &dyn Metadata) {
    let local = put(metadata, ready("acme")).await;
    let marked = put_deleted(metadata, ready("acme"), at(1)).await;
    let cloud = put(metadata, in_cloud(ready("acme"), "s3")).await;
    let old = put(metadata, ready("acme")).await;
    let new = replaced(&old, 5, at(2));

    assert_eq!(metadata.update_file(change(&old, new.clone())).await.unwrap(), Updated::Done);

    let unknown = BlobId::generate(at(0));
    let blobs = [&local, &marked, &cloud, &old, &new].map(|record| record.blob.key.blob_id());
    let ids: Vec<_> = blobs.into_iter().chain([unknown]).collect();
    let keys = metadata.live_local_keys(&ids).await.unwrap();
    let texts = sorted(keys.iter().map(BlobKey::as_str).collect());
    let live = sorted([&local, &marked, &new].map(|record| record.blob.key.as_str()).to_vec());

    assert_eq!(texts, live);
}

pub(crate) async fn files_of_the_disk_are_listed_since_a_time(metadata: &dyn Metadata) {
    let mut expected = Vec::new();
    for stored_at in [5, 1, 9, 7] {
        let mut record = ready("acme");
        record.blob.stored_at = at(stored_at);
        let record = put(metadata, record).await;
        if stored_at >= 5 {
            expected.push(record.file_id);
        }
    }
    let mut there = in_cloud(ready("acme"), "s3");
    there.blob.stored_at = at(9);
    put(metadata, there).await;
    expected.sort();

    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = metadata.local_files_since(at(5), after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.file_id);
        found.extend(page.iter().map(|record| record.file_id));
    }
    assert_eq!(found, expected);
}

pub(crate) async fn the_quota_of_files_lets_the_last_file_in(metadata: &dyn Metadata) {
    put(metadata, ready("acme")).await;
    put(metadata, ready("other")).await;
    let limited = |count: usize| InsertFiles {
        quota_files: Some(3),
        ..insert((0..count).map(|_| ready("acme")).collect::<Vec<_>>())
    };

    for (count, expected) in [
        (3, Inserted::OverFileQuota),
        (2, Inserted::Done),
        (1, Inserted::OverFileQuota),
        (0, Inserted::Done),
    ] {
        assert_eq!(metadata.insert_files(limited(count)).await.unwrap(), expected, "{count}");
    }
    assert_eq!(metadata.usage(&organization("acme")).await.unwrap().total().files, 3);
}

pub(crate) async fn usage_follows_inserts_replaces_and_purges(metadata: &dyn Metadata) {
    let acme = organization("acme");
    let stored = async || metadata.usage(&acme).await.unwrap().total().bytes;
    assert_eq!(stored().await, 0);

    let one = put(metadata, sized(ready("acme"), 100)).await;
    put(metadata, sized(temp("acme"), 10)).await;
    put(metadata, sized(ready("other"), 5000)).await;
    assert_eq!(stored().await, 110);

    let larger = replaced(&one, 150, at(1));
    metadata.update_file(change(&one, larger.clone())).await.unwrap();
    assert_eq!(stored().await, 160);

    let smaller = replaced(&larger, 30, at(2));
    metadata.update_file(change(&larger, smaller.clone())).await.unwrap();
    assert_eq!(stored().await, 40);

    let moved = FileRecord { version: 4, ..in_cloud(smaller.clone(), "s3") };
    metadata.update_file(change(&smaller, moved.clone())).await.unwrap();
    assert_eq!(stored().await, 40, "wherever the bytes are");
    let usage = metadata.usage(&acme).await.unwrap();
    let (ten, thirty) = (Stored { files: 1, bytes: 10 }, Stored { files: 1, bytes: 30 });
    assert_eq!((usage.local, usage.cloud), (ten, thirty));
    assert_eq!(metadata.usage(&organization("nobody")).await.unwrap(), Usage::default());

    let all = metadata.total().await.unwrap();
    assert_eq!((all.local, all.cloud), (Stored { files: 2, bytes: 5010 }, thirty));

    metadata.update_file(change(&moved, deleted(&moved, at(3)))).await.unwrap();
    assert_eq!(stored().await, 40, "deleted bytes count until they are gone");

    let claims = metadata
        .claim_purges(
            lease("run", at(3), at(9)),
            &provider("s3"),
            DueFiles::marked_before(at(3)),
            10,
        )
        .await
        .unwrap();
    assert_eq!((claims.len(), stored().await), (1, 40));
    assert_eq!(
        metadata.finish_purges("run", &[Purged::of(moved.file_id)], at(0)).await.unwrap(),
        1
    );
    assert_eq!(stored().await, 10);
}
