//! Terms: repeated creations, replacements, parts, checksums.

use super::*;

struct Sum(Vec<u8>, &'static [u8]);

impl BodyCheck for Sum {
    fn update(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn holds(&self) -> bool {
        self.0 == self.1
    }
}

#[tokio::test]
async fn bytes_with_a_wrong_checksum_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let checked =
        |offset, sum| Append { check: Some(Box::new(Sum(Vec::new(), sum))), ..Append::at(offset) };
    let outcome = append(&store, &upload, checked(0, b"hello"), b"jello").await;
    assert_eq!(kind(outcome), ErrorKind::ChecksumMismatch);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 0);
    append(&store, &upload, checked(0, b"hello"), b"hello").await.unwrap();
    let outcome = append(&store, &upload, checked(5, b" all!"), b" ALL!").await;
    assert_eq!(kind(outcome), ErrorKind::ChecksumMismatch);
    let upload = append(&store, &upload, checked(5, b" all!"), b" all!").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello all!");
}

#[tokio::test]
async fn a_policy_holds_from_the_creation_to_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let pictures = FilePolicy::new().types(["image/png"]).extensions(["png"]).max_bytes(16);
    let file = || new().with_name("a.png").with_policy(pictures.clone());
    let create = async |new| store.resumable().create(new).await;

    let page = NewResumable::new(new().with_name("a.html").with_policy(pictures.clone()));
    assert_eq!(kind(create(page).await), ErrorKind::InvalidField);
    assert_eq!(kind(create(NewResumable::new(file()).with_length(17)).await), ErrorKind::TooLarge);

    let unknown = create(NewResumable::new(file())).await.unwrap().upload;
    let named = append(&store, &unknown, Append::at(0).with_length(17), b"").await;
    assert_eq!(kind(named), ErrorKind::TooLarge);
    assert_eq!(kind(append(&store, &unknown, Append::at(0), &[0; 17]).await), ErrorKind::TooLarge);

    let text = create(NewResumable::new(file()).with_length(10)).await.unwrap().upload;
    let refused = append(&store, &text, Append::at(0), b"<!DOCTYPE>").await.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("mime_type"), "{refused}");
    assert_eq!(kind(status(&store, &text).await), ErrorKind::UploadGone);

    let png = create(NewResumable::new(file()).with_length(8)).await.unwrap().upload;
    let png = append(&store, &png, Append::at(0), b"\x89PNG\r\n\x1a\n").await.unwrap();
    let scripts =
        Replacement::new().with_given(GivenName::named("a.exe")).with_policy(pictures.clone());
    let scripts = NewResumable::replace(png.file_id.unwrap(), scripts, Scope::All);
    assert_eq!(kind(create(scripts.with_length(8)).await), ErrorKind::InvalidField);
    let replacement = Replacement::new().with_policy(pictures.clone());
    let replacement = NewResumable::replace(png.file_id.unwrap(), replacement, Scope::All);
    let other = create(replacement.with_length(10)).await.unwrap().upload;
    let refused = append(&store, &other, Append::at(0), b"<!DOCTYPE>").await;
    assert_eq!(kind(refused), ErrorKind::InvalidField);
}

#[tokio::test]
async fn a_repeated_creation_finds_its_upload_and_one_with_other_terms_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let keyed = |length| {
        let key = IdempotencyKey::new("caller", "k").unwrap();
        NewResumable::new(new()).with_length(length).with_idempotency(key)
    };
    let first = store.resumable().create(keyed(5)).await.unwrap();
    append(&store, &first.upload, Append::at(0), b"he").await.unwrap();
    let again = store.resumable().create(keyed(5)).await.unwrap();
    assert!(again.is_replay && !first.is_replay);
    assert_eq!((again.upload.address, again.upload.offset), (first.upload.address.clone(), 2));
    assert_eq!(kind(store.resumable().create(keyed(6)).await), ErrorKind::IdempotencyMismatch);

    let done = append(&store, &first.upload, Append::at(2), b"llo").await.unwrap();
    let again = store.resumable().create(keyed(5)).await.unwrap();
    assert_eq!((again.is_replay, again.upload.file_id), (true, done.file_id));
}

#[tokio::test]
async fn a_foreign_upload_and_a_wrong_token_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let [upload, other] = [of_length(&store, 5).await, of_length(&store, 5).await];
    let foreign = Scope::Organizations(vec!["other".parse().unwrap()]);
    let outcome = store.resumable().status(&upload.address, &foreign).await;
    assert_eq!(kind(outcome), ErrorKind::NotFound);
    let outcome = append(&store, &upload, Append::at(0).within(foreign), b"x").await;
    assert_eq!(kind(outcome), ErrorKind::NotFound);

    let token = other.address.to_segment().split_once('.').unwrap().1.to_owned();
    let mixed = format!("{}.{token}", upload.address.upload_id).parse().unwrap();
    let outcome = store.resumable().status(&mixed, &Scope::All).await;
    assert_eq!(kind(outcome), ErrorKind::NotFound);
    assert!(!format!("{upload:?}").contains(&token), "the token is a secret");
}

#[tokio::test]
async fn an_upload_replaces_the_bytes_of_a_file_on_its_conditions() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let file = store.upload(new(), &b"old"[..]).await.unwrap();
    let replace = |seen: Sha256| {
        let conditions = Preconditions::from(IfMatch::OneOf(vec![seen]));
        let target = ResumableTarget::Replace {
            file_id: file.file_id,
            new: Replacement::new(),
            conditions,
            scope: Scope::All,
        };
        NewResumable::of(target).with_length(3)
    };
    let outcome = store.resumable().create(replace(Sha256([1; 32]))).await;
    assert_eq!(kind(outcome), ErrorKind::PreconditionFailed);

    let [one, two] = [
        created(&store, replace(file.blob.sha256)).await,
        created(&store, replace(file.blob.sha256)).await,
    ];
    let done = append(&store, &one, Append::at(0), b"new").await.unwrap();
    assert_eq!(done.file_id, Some(file.file_id));
    assert_eq!(read(&store, done.file_id).await, "new");
    let record = store.scoped(&Scope::All).record(file.file_id).await.unwrap();
    assert_eq!((record.version, &*record.original_name), (2, "big.bin"));

    // The condition is asked again in the commit.
    let outcome = append(&store, &two, Append::at(0), b"two").await;
    assert_eq!(kind(outcome), ErrorKind::PreconditionFailed);
    assert_eq!(kind(status(&store, &two).await), ErrorKind::UploadGone);
    assert_eq!(read(&store, done.file_id).await, "new");
}

#[tokio::test]
async fn whole_parts_become_one_file_and_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let bytes = content(700_000);
    let partial = || {
        let target = ResumableTarget::Partial { organization_id: "acme".parse().unwrap() };
        NewResumable { concat: Some("partial".into()), ..NewResumable::of(target) }
    };
    let mut parts = Vec::new();
    for piece in [&bytes[..300_000], &bytes[300_000..300_001], &bytes[300_001..]] {
        let part = created(&store, partial().with_length(piece.len() as u64)).await;
        let part = append(&store, &part, Append::at(0), piece).await.unwrap();
        assert_eq!((part.offset, part.is_finished()), (piece.len() as u64, false));
        parts.push(part.address);
    }

    let whole = || NewResumable { concat: Some("final;a b c".into()), ..NewResumable::new(new()) };
    let join = async |parts: &[_]| {
        let all = Scope::All;
        store.resumable().concatenate(whole(), parts, "caller", &all, None).await
    };
    let unfinished = created(&store, partial().with_length(5)).await.address;
    let file = of_length(&store, 5).await.address;
    for bad in [&[][..], &[unfinished], &[file], &[parts[0].clone(), parts[0].clone()]] {
        assert_eq!(kind(join(bad).await), ErrorKind::InvalidField);
    }

    let done = join(&parts).await.unwrap();
    assert_eq!(read(&store, done.upload.file_id).await, bytes);
    assert_eq!(done.upload.concat.as_deref(), Some("final;a b c"));
    let again = join(&parts).await.unwrap();
    assert_eq!((again.is_replay, again.upload.file_id), (true, done.upload.file_id));
    for part in &parts {
        assert_eq!(kind(store.resumable().status(part, &Scope::All).await), ErrorKind::NotFound);
    }
    assert_eq!(
        kind(append(&store, &done.upload, Append::at(700_000), b"x").await),
        ErrorKind::UploadFinal
    );
}

#[tokio::test]
async fn a_final_upload_in_pieces_goes_on_after_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let target = ResumableTarget::Partial { organization_id: "acme".parse().unwrap() };
    let part = created(&store, NewResumable::of(target).with_length(5)).await;
    let part = append(&store, &part, Append::at(0), b"hello").await.unwrap().address;
    let join = async |recheck: Option<_>| {
        let new = NewResumable { concat: Some("final;a".into()), ..NewResumable::new(new()) };
        store
            .resumable()
            .concatenate(new, std::slice::from_ref(&part), "", &Scope::All, recheck)
            .await
    };
    let busy = refused(ErrorKind::Busy).recheck;
    assert_eq!(kind(join(busy).await), ErrorKind::Busy);
    let done = join(None).await.unwrap();
    assert_eq!(read(&store, done.upload.file_id).await, "hello");
}
