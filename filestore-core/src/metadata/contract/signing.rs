//! Secrets that sign URLs, and permits of signed uploads.

use super::*;
use crate::domain::access::signature::SigningSecret;
use crate::domain::access::signed_url::UploadPermit;
use crate::metadata::StoredSecret;

fn secret(kid: &str) -> SigningSecret {
    SigningSecret::new(kid, [kid.as_bytes()[0]; 40]).unwrap()
}

fn permit(nonce: &str, expires_at: Timestamp) -> UploadPermit {
    UploadPermit::new(nonce, expires_at).unwrap()
}

fn permitted(permit: &UploadPermit, records: &[FileRecord]) -> InsertFiles {
    InsertFiles { permit: Some(permit.clone()), ..insert(records) }
}

pub(crate) async fn a_new_secret_signs_and_the_one_before_verifies_for_its_time(
    metadata: &dyn Metadata,
) {
    assert_eq!(metadata.signing_secrets().await.unwrap(), []);
    metadata.rotate_signing_secret(secret("a"), at(1), at(9)).await.unwrap();
    metadata.rotate_signing_secret(secret("b"), at(2), at(20)).await.unwrap();
    metadata.rotate_signing_secret(secret("c"), at(3), at(30)).await.unwrap();

    let stored = |kid, created_at, valid_until: Option<i64>| StoredSecret {
        secret: secret(kid),
        created_at: at(created_at),
        valid_until: valid_until.map(at),
    };
    let all = [stored("a", 1, Some(20)), stored("b", 2, Some(30)), stored("c", 3, None)];
    assert_eq!(metadata.signing_secrets().await.unwrap(), all);

    assert_eq!(metadata.forget_signing_secrets(at(19)).await.unwrap(), 0);
    assert_eq!(metadata.forget_signing_secrets(at(20)).await.unwrap(), 1);
    assert_eq!(metadata.signing_secrets().await.unwrap(), all[1..]);
}

pub(crate) async fn a_revoked_secret_is_gone_at_once(metadata: &dyn Metadata) {
    metadata.rotate_signing_secret(secret("a"), at(1), at(9)).await.unwrap();
    assert!(metadata.revoke_signing_secret("a").await.unwrap());
    assert!(!metadata.revoke_signing_secret("a").await.unwrap());
    assert_eq!(metadata.signing_secrets().await.unwrap(), []);
}

pub(crate) async fn a_permit_is_spent_with_the_file_that_it_was_for(metadata: &dyn Metadata) {
    let (permit, other_permit) = (permit("n", at(100)), permit("N", at(100)));
    let refused = InsertFiles { quota_bytes: Some(0), ..permitted(&permit, &[ready("acme")]) };
    assert_eq!(metadata.insert_files(refused).await.unwrap(), Inserted::OverQuota);
    assert!(!metadata.is_permit_used("n").await.unwrap(), "nothing was stored for it");

    let first = permitted(&permit, &[ready("acme")]);
    assert_eq!(metadata.insert_files(first).await.unwrap(), Inserted::Done);
    assert!(metadata.is_permit_used("n").await.unwrap());

    let second = [ready("acme")];
    let outcome = metadata.insert_files(permitted(&permit, &second)).await.unwrap();
    assert_eq!(outcome, Inserted::PermitSpent);
    assert_eq!(get(metadata, second[0].file_id).await, None);
    let other = permitted(&other_permit, &second);
    assert_eq!(metadata.insert_files(other).await.unwrap(), Inserted::Done);
}

pub(crate) async fn one_permit_serves_only_one_of_two_uploads(metadata: &dyn Metadata) {
    for round in 0..20 {
        let permit = permit(&format!("n{round}"), at(100));
        let files = [[ready("acme")], [ready("acme")]];
        let [one, other] =
            files.clone().map(|files| metadata.insert_files(permitted(&permit, &files)));
        let (one, other) = tokio::join!(one, other);
        let mut outcomes = [one.unwrap(), other.unwrap()];
        outcomes.sort_by_key(|outcome| *outcome != Inserted::Done);
        assert_eq!(outcomes, [Inserted::Done, Inserted::PermitSpent]);
    }
}

pub(crate) async fn a_permit_that_came_too_late_is_refused_and_forgotten(metadata: &dyn Metadata) {
    let permit = permit("n", at(100));
    let end = permit.kept_until();
    let just = FileRecord { created_at: end.minus(Duration::from_millis(1)), ..ready("acme") };
    assert_eq!(metadata.insert_files(permitted(&permit, &[just])).await.unwrap(), Inserted::Done);

    assert_eq!(metadata.forget_permits(end.minus(Duration::from_millis(1)), 9).await.unwrap(), 0);
    assert_eq!(metadata.forget_permits(end, 9).await.unwrap(), 1);
    assert!(!metadata.is_permit_used("n").await.unwrap());

    let late = FileRecord { created_at: end, ..ready("acme") };
    let outcome = metadata.insert_files(permitted(&permit, &[late])).await.unwrap();
    assert_eq!(outcome, Inserted::PermitSpent, "what was forgotten is not taken again");
}
