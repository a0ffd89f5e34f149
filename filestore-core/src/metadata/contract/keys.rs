//! API keys.

use super::*;
use crate::domain::access::key::{ApiKey, KeyDigest, KeyScope};
use crate::domain::id::KeyId;
use crate::metadata::{KeyChange, KeyOutcome, StoredKey};

/// The maximum number of keys in most of these tests.
const MOST: usize = 9;

fn key(number: i64, organizations: Scope) -> StoredKey {
    StoredKey {
        key: ApiKey {
            id: KeyId::generate(at(number)),
            name: "Größe & Söhne".into(),
            organizations: Arc::new(organizations),
            scopes: [KeyScope::Read, KeyScope::Delete].into_iter().collect(),
            created_at: at(number),
            expires_at: Some(at(number + 100)),
            rotated_at: None,
            old_valid_until: None,
            revoked_at: None,
            last_used_at: None,
        },
        digest: KeyDigest::of(&number.to_be_bytes()),
        former: None,
    }
}

async fn inserted(metadata: &dyn Metadata, number: i64) -> StoredKey {
    let new = key(number, Scope::All);
    let outcome = metadata.insert_key(new.clone(), MOST).await.unwrap();
    assert_eq!(outcome, KeyOutcome::Done(Box::new(new.clone()), Vec::new()));
    new
}

async fn changed(metadata: &dyn Metadata, id: KeyId, change: KeyChange) -> StoredKey {
    match metadata.change_key(id, change).await.unwrap() {
        KeyOutcome::Done(key, _) => *key,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_key_reads_back_whole(metadata: &dyn Metadata) {
    assert!(!metadata.has_keys().await.unwrap());
    let several = Scope::Organizations(vec!["7".parse().unwrap(), "acme".parse().unwrap()]);
    let made = [key(1, Scope::All), key(2, several)];
    for key in &made {
        metadata.insert_key(key.clone(), MOST).await.unwrap();
    }

    assert!(metadata.has_keys().await.unwrap());
    assert_eq!(metadata.keys().await.unwrap(), made, "oldest first");
}

pub(crate) async fn a_revoked_key_stays_revoked(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await.key.id;
    for now in [5, 6] {
        let revoked = changed(metadata, id, KeyChange::Revoke { at: at(now) }).await;
        assert_eq!(revoked.key.revoked_at, Some(at(5)), "the first time stands");
        assert_eq!(metadata.keys().await.unwrap(), [revoked]);
    }

    let rotate = KeyChange::Rotate { digest: KeyDigest::of(b"n"), at: at(7), former_until: at(7) };
    assert_eq!(metadata.change_key(id, rotate).await.unwrap(), KeyOutcome::Revoked);
    assert!(metadata.has_keys().await.unwrap());
}

pub(crate) async fn a_rotated_key_remembers_the_digest_before(metadata: &dyn Metadata) {
    let mut before = inserted(metadata, 1).await;
    for (text, now) in [(b"first", 5), (b"again", 6)] {
        let digest = KeyDigest::of(text);
        let rotate = KeyChange::Rotate { digest, at: at(now), former_until: at(now + 10) };
        let rotated = changed(metadata, before.key.id, rotate).await;

        assert_eq!(rotated.digest, digest);
        assert_eq!(rotated.former, Some((before.digest, at(now + 10))));
        assert_eq!(rotated.key.rotated_at, Some(at(now)));
        assert_eq!(metadata.keys().await.unwrap(), std::slice::from_ref(&rotated));
        before = rotated;
    }
}

pub(crate) async fn what_is_unknown_is_not_changed(metadata: &dyn Metadata) {
    let known = inserted(metadata, 1).await;
    let change = KeyChange::Revoke { at: at(2) };
    let outcome = metadata.change_key(KeyId::generate(at(1)), change).await.unwrap();
    assert_eq!(outcome, KeyOutcome::Unknown);
    assert_eq!(metadata.keys().await.unwrap(), [known]);
}

pub(crate) async fn a_dead_key_makes_room_for_a_new_one(metadata: &dyn Metadata) {
    let (good, dead) = (inserted(metadata, 1).await, inserted(metadata, 2).await);
    let full = metadata.insert_key(key(3, Scope::All), 2).await.unwrap();
    assert_eq!(full, KeyOutcome::Full);

    changed(metadata, dead.key.id, KeyChange::Revoke { at: at(3) }).await;
    let new = key(4, Scope::All);
    let outcome = metadata.insert_key(new.clone(), 2).await.unwrap();
    assert_eq!(outcome, KeyOutcome::Done(Box::new(new.clone()), vec![dead.key.id]));
    assert_eq!(metadata.keys().await.unwrap(), [good.clone(), new.clone()]);

    let after_its_end = key(102, Scope::All);
    let outcome = metadata.insert_key(after_its_end.clone(), 2).await.unwrap();
    assert_eq!(outcome, KeyOutcome::Done(Box::new(after_its_end), vec![good.key.id]));
}

pub(crate) async fn the_last_use_only_moves_forward(metadata: &dyn Metadata) {
    let id = inserted(metadata, 1).await.key.id;
    for (used, noted) in [(5, 5), (4, 5), (6, 6)] {
        metadata.note_key_uses(vec![(id, at(used))]).await.unwrap();
        assert_eq!(metadata.keys().await.unwrap()[0].key.last_used_at, Some(at(noted)));
    }
    metadata.note_key_uses(vec![(KeyId::generate(at(1)), at(9))]).await.unwrap();
}
