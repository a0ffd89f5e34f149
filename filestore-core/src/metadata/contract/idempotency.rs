//! Remembered replies.

use super::*;
use crate::metadata::IdempotencyEntry;

fn entry(
    organization_id: &str,
    key: &str,
    records: &[FileRecord],
    expires_at: Timestamp,
) -> IdempotencyEntry {
    IdempotencyEntry {
        organization: organization(organization_id),
        key: key.into(),
        fingerprint: [3; 32],
        file_ids: records.iter().map(|record| record.file_id).collect(),
        reply: b"{\"file_id\":\"\xff\"}".to_vec(),
        expires_at,
    }
}

fn remembered(entry: &IdempotencyEntry, records: &[FileRecord]) -> InsertFiles {
    InsertFiles { idempotency: Some(entry.clone()), ..insert(records) }
}

pub(crate) async fn a_reply_is_remembered_with_its_files(metadata: &dyn Metadata) {
    let files = [ready("acme"), ready("acme")];
    let entry = entry("acme", "k 1/ü", &files, at(100));
    assert_eq!(metadata.insert_files(remembered(&entry, &files)).await.unwrap(), Inserted::Done);

    let acme = organization("acme");
    assert_eq!(metadata.idempotency(&acme, "k 1/ü", at(50)).await.unwrap(), Some(entry));
    assert_eq!(metadata.idempotency(&acme, "K 1/ü", at(50)).await.unwrap(), None);
    assert_eq!(metadata.idempotency(&organization("other"), "k 1/ü", at(50)).await.unwrap(), None);

    let other = [ready("other")];
    let same_key = self::entry("other", "k 1/ü", &other, at(100));
    let outcome = metadata.insert_files(remembered(&same_key, &other)).await.unwrap();
    assert_eq!(outcome, Inserted::Done, "a key belongs to its organization");
}

pub(crate) async fn a_taken_key_inserts_nothing_and_beats_the_quota(metadata: &dyn Metadata) {
    let files = [ready("acme")];
    let first = entry("acme", "k", &files, at(100));
    metadata.insert_files(remembered(&first, &files)).await.unwrap();
    let others = [ready("acme")];
    let second = entry("acme", "k", &others, at(200));
    let over = InsertFiles { quota_bytes: Some(10), ..remembered(&second, &others) };

    assert_eq!(metadata.insert_files(over).await.unwrap(), Inserted::IdempotencyTaken);
    assert_eq!(get(metadata, others[0].file_id).await, None);

    let kept = metadata.idempotency(&organization("acme"), "k", at(50)).await.unwrap();
    assert_eq!(kept, Some(first));
}

pub(crate) async fn an_expired_reply_is_gone_and_gives_its_key_back(metadata: &dyn Metadata) {
    let acme = organization("acme");
    let files = [ready("acme")];
    let first = entry("acme", "k", &files, at(100));
    metadata.insert_files(remembered(&first, &files)).await.unwrap();
    assert!(metadata.idempotency(&acme, "k", at(99)).await.unwrap().is_some());
    assert!(metadata.idempotency(&acme, "k", at(100)).await.unwrap().is_none());

    let later = [FileRecord { created_at: at(100), ..ready("acme") }];
    let second = IdempotencyEntry { fingerprint: [4; 32], ..entry("acme", "k", &later, at(300)) };
    assert_eq!(metadata.insert_files(remembered(&second, &later)).await.unwrap(), Inserted::Done);
    assert_eq!(metadata.idempotency(&acme, "k", at(100)).await.unwrap(), Some(second));
}

pub(crate) async fn expired_replies_are_forgotten_up_to_the_limit(metadata: &dyn Metadata) {
    for (key, expires_at) in [("a", 1), ("b", 2), ("c", 3), ("d", 50)] {
        let files = [ready("acme")];
        let entry = entry("acme", key, &files, at(expires_at));
        metadata.insert_files(remembered(&entry, &files)).await.unwrap();
    }

    let mut forgotten = Vec::new();
    for _ in 0..3 {
        forgotten.push(metadata.forget_idempotency(at(3), 2).await.unwrap());
    }
    assert_eq!(forgotten, [2, 1, 0]);

    let before_all = at(0);
    assert_eq!(metadata.idempotency(&organization("acme"), "a", before_all).await.unwrap(), None);
    assert!(metadata.idempotency(&organization("acme"), "d", before_all).await.unwrap().is_some());
}

pub(crate) async fn of_two_concurrent_inserts_with_one_key_one_is_done(metadata: &dyn Metadata) {
    for round in 0..20 {
        let key = format!("k{round}");
        let files = [[ready("acme")], [ready("acme")]];
        let [one, other] = files.clone().map(|files| {
            let entry = entry("acme", &key, &files, at(100));
            metadata.insert_files(remembered(&entry, &files))
        });
        let (one, other) = tokio::join!(one, other);
        let outcomes = [one.unwrap(), other.unwrap()];
        let winner = outcomes.iter().position(|outcome| *outcome == Inserted::Done).unwrap();
        assert_eq!(outcomes[1 - winner], Inserted::IdempotencyTaken);
        assert_eq!(get(metadata, files[1 - winner][0].file_id).await, None);
        let kept = metadata.idempotency(&organization("acme"), &key, at(0)).await.unwrap().unwrap();
        assert_eq!(kept.file_ids, [files[winner][0].file_id]);
    }
}
