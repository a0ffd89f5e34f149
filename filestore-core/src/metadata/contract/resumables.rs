//! Resumable uploads.

use super::*;
use crate::domain::file::resumable::{UploadBounds, UploadFailure, UploadStage, UploadTotals};
use crate::domain::id::UploadId;
use crate::metadata::{
    FinishUpload, UploadChange, UploadChanged, UploadCreated, UploadLimits, UploadRow,
};

const PLENTY: UploadBounds = UploadBounds { uploads: 100, bytes: 1 << 40 };
const LIMITS: UploadLimits = UploadLimits { all: PLENTY, organization: PLENTY };

/// An open upload of 100 bytes, of which none has arrived.
fn open(organization_id: &str) -> UploadRow {
    UploadRow {
        upload_id: UploadId::generate(at(0)),
        organization: organization(organization_id),
        server: "one".into(),
        blob_id: BlobId::generate(at(0)),
        stage: UploadStage::Open,
        era: Era::default(),
        epoch: 1,
        offset: 0,
        length: Some(100),
        held_bytes: 100,
        digest: vec![1, 2, 3],
        head: Vec::new(),
        terms: r#"{"name":"grüße"}"#.into(),
        idempotency: None,
        file_id: None,
        failure: None,
        created_at: at(0),
        updated_at: at(0),
        expires_at: at(1000),
    }
}

async fn created(metadata: &dyn Metadata, row: UploadRow) -> UploadRow {
    let outcome = metadata.create_upload(row.clone(), LIMITS).await.unwrap();
    assert_eq!(outcome, UploadCreated::Done);
    row
}

async fn stored(metadata: &dyn Metadata, row: &UploadRow) -> Option<UploadRow> {
    metadata.upload(row.upload_id).await.unwrap()
}

/// Changes the row, and returns it as it is then.
async fn changed(
    metadata: &dyn Metadata,
    row: &UploadRow,
    change: impl FnOnce(&mut UploadRow),
) -> UploadRow {
    let change = UploadChange::of(row, change);
    let next = change.next.clone();
    assert_eq!(metadata.change_upload(change).await.unwrap(), UploadChanged::Done);
    next
}

async fn completing(metadata: &dyn Metadata, row: UploadRow) -> UploadRow {
    let row = created(metadata, row).await;
    changed(metadata, &row, |next| {
        next.stage = UploadStage::Completing;
        next.offset = 99;
    })
    .await
}

fn finish(row: &UploadRow) -> FinishUpload {
    FinishUpload {
        upload_id: row.upload_id,
        epoch: row.epoch,
        length: 100,
        now: at(7),
        kept_until: at(2000),
    }
}

pub(crate) async fn an_upload_reads_back_whole(metadata: &dyn Metadata) {
    let row = created(metadata, open("acme")).await;
    assert_eq!(stored(metadata, &row).await, Some(row.clone()));

    let next = changed(metadata, &row, |next| {
        next.offset = 40;
        next.epoch = 2;
        next.digest = vec![9; 105];
        next.head = b"\x89PNG".to_vec();
        (next.updated_at, next.expires_at) = (at(5), at(1005));
    })
    .await;
    assert_eq!(stored(metadata, &row).await, Some(next.clone()));

    let failure = UploadFailure { code: "digest_mismatch".into(), message: "other bytes".into() };
    let failed = changed(metadata, &next, |next| {
        next.stage = UploadStage::Failed;
        next.failure = Some(failure);
    })
    .await;
    assert_eq!(stored(metadata, &row).await, Some(failed));
    assert_eq!(metadata.upload(UploadId::generate(at(0))).await.unwrap(), None);
}

pub(crate) async fn a_change_from_another_row_is_lost(metadata: &dyn Metadata) {
    let row = created(metadata, open("acme")).await;
    let stale = UploadChange::of(&row, |next| next.offset = 10);
    changed(metadata, &row, |next| next.offset = 20).await;
    assert_eq!(metadata.change_upload(stale).await.unwrap(), UploadChanged::Lost);

    let row = stored(metadata, &row).await.unwrap();
    let of_the_old_epoch = UploadChange::of(&row, |next| next.offset = 30);
    changed(metadata, &row, |next| next.epoch += 1).await;
    assert_eq!(metadata.change_upload(of_the_old_epoch).await.unwrap(), UploadChanged::Lost);
    assert_eq!(stored(metadata, &row).await.unwrap().offset, 20);

    let gone = UploadChange::of(&open("acme"), |next| next.offset = 1);
    assert_eq!(metadata.change_upload(gone).await.unwrap(), UploadChanged::Lost);
}

pub(crate) async fn an_upload_finishes_once_with_its_record(metadata: &dyn Metadata) {
    let row = completing(metadata, open("acme")).await;
    let record = sized(ready("acme"), 100);
    let with_upload = |record: &FileRecord| InsertFiles {
        upload: Some(finish(&row)),
        ..insert([record.clone()])
    };
    assert_eq!(metadata.insert_files(with_upload(&record)).await.unwrap(), Inserted::Done);

    let finished = stored(metadata, &row).await.unwrap();
    assert_eq!(finished.stage, UploadStage::Finished);
    assert_eq!((finished.offset, finished.length), (100, Some(100)));
    assert_eq!((finished.file_id, finished.expires_at), (Some(record.file_id), at(2000)));
    assert_eq!(metadata.ended_uploads("one", 9).await.unwrap(), [], "the record has the bytes");

    let again = sized(ready("acme"), 100);
    assert_eq!(metadata.insert_files(with_upload(&again)).await.unwrap(), Inserted::UploadLost);
    assert_eq!(get(metadata, again.file_id).await, None);
}

pub(crate) async fn an_upload_that_another_request_has_makes_no_file(metadata: &dyn Metadata) {
    let row = completing(metadata, open("acme")).await;
    changed(metadata, &row, |next| {
        next.epoch += 1;
        next.stage = UploadStage::Open;
    })
    .await;
    let record = ready("acme");
    let late = InsertFiles { upload: Some(finish(&row)), ..insert([record.clone()]) };
    assert_eq!(metadata.insert_files(late).await.unwrap(), Inserted::UploadLost);
    assert_eq!(get(metadata, record.file_id).await, None);

    let old = put(metadata, ready("acme")).await;
    let next = replaced(&old, 100, at(9));
    let late = UpdateFile { upload: Some(finish(&row)), ..change(&old, next) };
    assert_eq!(metadata.update_file(late).await.unwrap(), Updated::UploadLost);
    assert_eq!(get(metadata, old.file_id).await.as_deref(), Some(&old));
}

pub(crate) async fn an_upload_replaces_the_bytes_of_a_file(metadata: &dyn Metadata) {
    let row = completing(metadata, open("acme")).await;
    let old = put(metadata, ready("acme")).await;
    let next = replaced(&old, 100, at(9));
    let update = UpdateFile { upload: Some(finish(&row)), ..change(&old, next.clone()) };
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Done);
    assert_eq!(get(metadata, old.file_id).await.as_deref(), Some(&next));
    assert_eq!(stored(metadata, &row).await.unwrap().file_id, Some(old.file_id));
}

pub(crate) async fn a_key_finds_its_upload_until_that_has_failed(metadata: &dyn Metadata) {
    let keyed = |organization: &str| UploadRow {
        idempotency: Some("caller\nkey".into()),
        ..open(organization)
    };
    let first = created(metadata, keyed("acme")).await;
    created(metadata, keyed("other")).await;
    let UploadCreated::KeyTaken(there) =
        metadata.create_upload(keyed("acme"), LIMITS).await.unwrap()
    else {
        panic!("the key is taken")
    };
    assert_eq!(*there, first);
    let acme = organization("acme");
    assert_eq!(metadata.upload_of_key(&acme, "caller\nkey").await.unwrap(), Some(first.clone()));
    assert_eq!(metadata.upload_of_key(&acme, "other\nkey").await.unwrap(), None);

    changed(metadata, &first, |next| {
        next.stage = UploadStage::Expired;
        next.idempotency = None;
    })
    .await;
    created(metadata, keyed("acme")).await;
}

pub(crate) async fn open_uploads_are_bounded_in_all_and_for_an_organization(
    metadata: &dyn Metadata,
) {
    let limits = UploadLimits {
        all: UploadBounds { uploads: 3, bytes: 1000 },
        organization: UploadBounds { uploads: 2, bytes: 250 },
    };
    let create = async |row: UploadRow| metadata.create_upload(row, limits).await.unwrap();

    let large = UploadRow { held_bytes: 251, length: Some(251), ..open("acme") };
    assert_eq!(create(large).await, UploadCreated::OrganizationFull);
    let first = open("acme");
    assert_eq!(create(first.clone()).await, UploadCreated::Done);
    assert_eq!(create(open("acme")).await, UploadCreated::Done);
    assert_eq!(create(open("acme")).await, UploadCreated::OrganizationFull);
    assert_eq!(create(open("other")).await, UploadCreated::Done);
    assert_eq!(create(open("third")).await, UploadCreated::Full);
    let totals = UploadTotals { uploads: 3, bytes: 300 };
    assert_eq!(metadata.upload_totals().await.unwrap(), totals);

    let grow = |to: u64| {
        let change = UploadChange::of(&first, |next| {
            (next.held_bytes, next.length) = (to, Some(to));
        });
        UploadChange { limits: Some(limits), ..change }
    };
    assert_eq!(metadata.change_upload(grow(151)).await.unwrap(), UploadChanged::Full);
    let first = grow(150).next;
    assert_eq!(metadata.change_upload(grow(150)).await.unwrap(), UploadChanged::Done);

    changed(metadata, &first, |next| next.stage = UploadStage::Failed).await;
    assert_eq!(create(open("third")).await, UploadCreated::Done, "an ended one holds nothing");
}

pub(crate) async fn live_uploads_are_those_of_one_server(metadata: &dyn Metadata) {
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(created(metadata, open("acme")).await);
    }
    own.sort_by_key(|row| row.upload_id);
    created(metadata, UploadRow { server: "two".into(), ..open("acme") }).await;
    changed(metadata, &own[1], |next| next.stage = UploadStage::Failed).await;

    let first = metadata.live_uploads("one", None, 1).await.unwrap();
    assert_eq!(first, [own[0].clone()]);
    let rest = metadata.live_uploads("one", Some(first[0].upload_id), 9).await.unwrap();
    assert_eq!(rest, [own[2].clone()]);

    let listed = metadata.uploads_of(Some(&organization("acme")), None, 9).await.unwrap();
    assert_eq!(listed.len(), 4, "ended ones, and those of other servers, are listed as well");
    assert_eq!(metadata.uploads_of(Some(&organization("acm")), None, 9).await.unwrap(), []);
}

pub(crate) async fn uploads_of_all_organizations_are_listed_in_pages(metadata: &dyn Metadata) {
    let mut all = Vec::new();
    for name in ["acme", "other", "acme"] {
        all.push(created(metadata, open(name)).await);
    }
    all.sort_by_key(|row| row.upload_id);

    let first = metadata.uploads_of(None, None, 2).await.unwrap();
    assert_eq!(first, all[..2]);
    let rest = metadata.uploads_of(None, Some(first[1].upload_id), 2).await.unwrap();
    assert_eq!(rest, all[2..]);
}

pub(crate) async fn a_change_of_an_upload_expects_its_length(metadata: &dyn Metadata) {
    let row = created(metadata, UploadRow { length: None, ..open("acme") }).await;
    let late = UploadChange::of(&row, |next| next.length = Some(70));
    let named = changed(metadata, &row, |next| next.length = Some(60)).await;
    assert_eq!(metadata.change_upload(late).await.unwrap(), UploadChanged::Lost);
    let late = UploadChange::of(&UploadRow { length: Some(70), ..named.clone() }, |_| {});
    assert_eq!(metadata.change_upload(late).await.unwrap(), UploadChanged::Lost);
    assert_eq!(stored(metadata, &row).await, Some(named));
}

pub(crate) async fn completing_uploads_are_those_of_one_server(metadata: &dyn Metadata) {
    let mut own = Vec::new();
    for _ in 0..2 {
        own.push(completing(metadata, open("acme")).await);
    }
    own.sort_by_key(|row| row.upload_id);
    created(metadata, open("acme")).await;
    completing(metadata, UploadRow { server: "two".into(), ..open("acme") }).await;

    assert_eq!(metadata.completing_uploads("one", 9).await.unwrap(), own);
    assert_eq!(metadata.completing_uploads("one", 1).await.unwrap(), own[..1]);
    changed(metadata, &own[0], |next| next.stage = UploadStage::Open).await;
    assert_eq!(metadata.completing_uploads("one", 9).await.unwrap(), own[1..]);
}

pub(crate) async fn an_upload_moves_to_another_server(metadata: &dyn Metadata) {
    let row = created(metadata, open("acme")).await;
    let of_the_first = UploadChange::of(&row, |next| next.offset = 10);
    let moved = changed(metadata, &row, |next| {
        (next.epoch, next.server) = (2, "two".into());
    })
    .await;
    assert_eq!(metadata.change_upload(of_the_first).await.unwrap(), UploadChanged::Lost);
    assert_eq!(metadata.live_uploads("one", None, 9).await.unwrap(), []);
    assert_eq!(metadata.live_uploads("two", None, 9).await.unwrap(), [moved]);
    assert_eq!(metadata.upload_parts(row.upload_id, 0, 9).await.unwrap(), []);
    assert_eq!(metadata.last_parts(row.upload_id, 9).await.unwrap(), []);
}

pub(crate) async fn an_ended_upload_is_forgotten_once_its_bytes_are_gone(metadata: &dyn Metadata) {
    let row = created(metadata, open("acme")).await;
    assert_eq!(metadata.due_uploads(at(999), 9).await.unwrap(), []);
    assert_eq!(metadata.due_uploads(at(1000), 9).await.unwrap(), std::slice::from_ref(&row));
    assert_eq!(metadata.ended_uploads("one", 9).await.unwrap(), []);

    let expired = changed(metadata, &row, |next| {
        next.stage = UploadStage::Expired;
        next.expires_at = at(1500);
    })
    .await;
    assert_eq!(metadata.due_uploads(at(1000), 9).await.unwrap(), []);
    let ended = metadata.ended_uploads("one", 9).await.unwrap();
    assert_eq!(ended, [(row.upload_id, row.blob_id)]);
    assert_eq!(metadata.ended_uploads("two", 9).await.unwrap(), []);
    assert_eq!(metadata.forget_ended(at(9000), 9).await.unwrap(), 0, "its bytes are there");

    assert!(metadata.is_of_upload(row.blob_id).await.unwrap());
    assert!(!metadata.is_of_upload(BlobId::generate(at(0))).await.unwrap());
    metadata.note_cleared(&[row.upload_id]).await.unwrap();
    assert!(!metadata.is_of_upload(row.blob_id).await.unwrap());
    assert_eq!(metadata.ended_uploads("one", 9).await.unwrap(), []);
    assert_eq!(metadata.forget_ended(at(1499), 9).await.unwrap(), 0);
    assert_eq!(stored(metadata, &row).await, Some(expired));
    assert_eq!(metadata.forget_ended(at(1500), 9).await.unwrap(), 1);
    assert_eq!(stored(metadata, &row).await, None);
}

pub(crate) async fn a_cancelled_upload_is_gone_unless_it_completes(metadata: &dyn Metadata) {
    let row = created(metadata, open("acme")).await;
    assert!(!metadata.forget_upload(row.upload_id, 2).await.unwrap(), "another epoch");
    assert!(metadata.forget_upload(row.upload_id, 1).await.unwrap());
    assert_eq!(stored(metadata, &row).await, None);

    let row = completing(metadata, open("acme")).await;
    assert!(!metadata.forget_upload(row.upload_id, 1).await.unwrap());
    assert!(stored(metadata, &row).await.is_some());
}

pub(crate) async fn an_erasure_fails_live_uploads_and_refuses_new_ones_of_its_past(
    metadata: &dyn Metadata,
) {
    let before = metadata.era();
    let row = created(metadata, open("acme")).await;
    let other = created(metadata, open("other")).await;
    metadata.end_era(&organization("acme"), at(1)).await.unwrap();

    assert_eq!(stored(metadata, &row).await.unwrap().stage, UploadStage::Failed);
    assert_eq!(stored(metadata, &other).await.unwrap().stage, UploadStage::Open);
    let late = UploadRow { era: before, ..open("acme") };
    let outcome = metadata.create_upload(late, LIMITS).await.unwrap();
    assert_eq!(outcome, UploadCreated::Erased);

    metadata.forget_organization(&organization("acme")).await.unwrap();
    let left = metadata.left_of(&organization("acme")).await.unwrap();
    assert_eq!(left.uploads, 1, "its bytes are on the disk");
    metadata.note_cleared(&[row.upload_id]).await.unwrap();
    metadata.forget_organization(&organization("acme")).await.unwrap();
    assert_eq!(metadata.left_of(&organization("acme")).await.unwrap().uploads, 0);
}

pub(crate) async fn the_secret_of_uploads_is_made_once(metadata: &dyn Metadata) {
    let (one, other) =
        tokio::join!(metadata.upload_secret("fresh"), metadata.upload_secret("other"));
    let secret = one.unwrap();
    assert_eq!(other.unwrap(), secret);
    assert_eq!(metadata.upload_secret("third").await.unwrap(), secret);
}
