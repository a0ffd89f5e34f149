//! The parts of resumable uploads.

use crate::domain::file::path::BlobKey;
use crate::domain::file::resumable::{UploadBounds, UploadStage};
use crate::domain::id::{BlobId, FileId, UploadId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::erasure::Era;
use crate::metadata::contract::{at, insert, organization, ready, sized};
use crate::metadata::{
    Dropped as _, Erasures as _, Files as _, FinishUpload, InsertFiles, Inserted, Intents as _,
    Metadata as _, Referrer, Resumables as _, UploadChange, UploadChanged, UploadLimits,
    UploadPart, UploadRow, WriteIntent,
};

use super::fresh;
use crate::metadata::postgres::PostgresMetadata;

const PLENTY: UploadBounds = UploadBounds { uploads: 100, bytes: 1 << 40 };

fn house() -> ProviderCode {
    "house".parse().unwrap()
}

/// Stores an upload of 100 bytes, of which none has arrived.
async fn begun(metadata: &PostgresMetadata) -> UploadRow {
    let row = UploadRow {
        upload_id: UploadId::generate(at(0)),
        organization: organization("acme"),
        server: "one".into(),
        blob_id: BlobId::generate(at(0)),
        stage: UploadStage::Open,
        era: Era::default(),
        epoch: 1,
        offset: 0,
        length: Some(100),
        held_bytes: 100,
        digest: vec![1],
        head: Vec::new(),
        terms: "{}".into(),
        idempotency: None,
        file_id: None,
        failure: None,
        created_at: at(0),
        updated_at: at(0),
        expires_at: at(1000),
    };
    let limits = UploadLimits { all: PLENTY, organization: PLENTY };
    metadata.create_upload(row.clone(), limits).await.unwrap();
    row
}

/// Makes the part of the bytes up to `end`, and its write intent.
async fn noted(metadata: &PostgresMetadata, row: &UploadRow, end: u64) -> UploadPart {
    let sub_system = "uploads".parse().unwrap();
    let key = BlobKey::new(&row.organization, &sub_system, at(0), BlobId::generate(at(0)));
    let intent = WriteIntent {
        file_id: FileId::generate(at(0)),
        provider: house(),
        key: key.clone(),
        begun_at: at(0),
        owner: None,
    };
    metadata.begin_writes(vec![intent]).await.unwrap();
    let size_bytes = end - row.offset;
    UploadPart { provider: house(), key, offset: row.offset, size_bytes, late_until: at(0) }
}

fn kept(row: &UploadRow, part: &UploadPart) -> UploadChange {
    let change = UploadChange::of(row, |next| next.offset = part.end());
    UploadChange { part: Some(part.clone()), ..change }
}

/// Stores an upload with two parts.
async fn with_parts(metadata: &PostgresMetadata) -> (UploadRow, Vec<UploadPart>) {
    let (mut row, mut parts) = (begun(metadata).await, Vec::new());
    for end in [30, 70] {
        let part = noted(metadata, &row, end).await;
        let change = kept(&row, &part);
        row = change.next.clone();
        assert_eq!(metadata.change_upload(change).await.unwrap(), UploadChanged::Done);
        parts.push(part);
    }
    (row, parts)
}

async fn referrers(metadata: &PostgresMetadata, parts: &[UploadPart]) -> Vec<Referrer> {
    let keys: Vec<_> = parts.iter().map(|part| part.key.clone()).collect();
    metadata.inspection().referrers(&house(), &keys).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_part_ends_its_intent_and_reads_back_in_the_order_of_offsets() {
    let (metadata, schema) = fresh();
    let (row, parts) = with_parts(&metadata).await;
    let id = row.upload_id;
    assert_eq!(metadata.upload(id).await.unwrap().unwrap().offset, 70);
    assert_eq!(metadata.upload_parts(id, 0, 9).await.unwrap(), parts);
    assert_eq!(metadata.upload_parts(id, 0, 1).await.unwrap(), parts[..1]);
    assert_eq!(metadata.upload_parts(id, 29, 9).await.unwrap(), parts);
    assert_eq!(metadata.upload_parts(id, 30, 9).await.unwrap(), parts[1..]);
    assert_eq!(metadata.upload_parts(id, 70, 9).await.unwrap(), []);
    let backwards: Vec<_> = parts.iter().rev().cloned().collect();
    assert_eq!(metadata.last_parts(id, 9).await.unwrap(), backwards);
    assert_eq!(metadata.last_parts(id, 1).await.unwrap(), backwards[..1]);
    assert_eq!(metadata.last_parts(UploadId::generate(at(0)), 9).await.unwrap(), []);
    assert_eq!(schema.count("write_intents"), 0);
    assert_eq!(referrers(&metadata, &parts).await, [Referrer::Note, Referrer::Note]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_part_takes_the_place_of_those_from_its_offset_on() {
    let (metadata, _schema) = fresh();
    let (row, mut parts) = with_parts(&metadata).await;
    let from_second = UploadRow { offset: 30, ..row.clone() };
    let merged = noted(&metadata, &from_second, 90).await;
    let change = kept(&row, &merged);
    assert_eq!(metadata.change_upload(change).await.unwrap(), UploadChanged::Done);

    let second = parts.pop().unwrap();
    parts.push(merged);
    assert_eq!(metadata.upload_parts(row.upload_id, 0, 9).await.unwrap(), parts);
    assert_eq!(referrers(&metadata, &parts).await, [Referrer::Note, Referrer::Note]);
    assert_eq!(referrers(&metadata, &[second]).await, [Referrer::Dropped]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_part_of_another_epoch_or_without_its_intent_changes_nothing() {
    let (metadata, schema) = fresh();
    let row = begun(&metadata).await;
    let part = noted(&metadata, &row, 30).await;
    metadata.withdraw_writes(std::slice::from_ref(&part.key), at(5)).await.unwrap();
    let change = kept(&row, &part);
    assert_eq!(metadata.change_upload(change).await.unwrap(), UploadChanged::PartWithdrawn);
    assert_eq!(metadata.upload(row.upload_id).await.unwrap().as_ref(), Some(&row));

    let part = noted(&metadata, &row, 30).await;
    let taken = UploadChange::of(&row, |next| (next.epoch, next.server) = (2, "two".into()));
    assert_eq!(metadata.change_upload(taken).await.unwrap(), UploadChanged::Done);
    let late = kept(&row, &part);
    assert_eq!(metadata.change_upload(late).await.unwrap(), UploadChanged::Lost);
    let now = metadata.upload(row.upload_id).await.unwrap().unwrap();
    assert_eq!((now.offset, now.server.as_str()), (0, "two"));
    assert_eq!((schema.count("upload_parts"), schema.count("write_intents")), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_parts_go_with_their_upload_however_it_ends() {
    let (metadata, schema) = fresh();
    let (finished, mut parts) = with_parts(&metadata).await;
    let completing = UploadChange::of(&finished, |next| next.stage = UploadStage::Completing);
    assert_eq!(metadata.change_upload(completing).await.unwrap(), UploadChanged::Done);
    assert_eq!(schema.count("upload_parts"), 2, "its end may still fail");
    let end = FinishUpload {
        upload_id: finished.upload_id,
        epoch: 1,
        length: 100,
        now: at(7),
        kept_until: at(2000),
    };
    let files = InsertFiles { upload: Some(end), ..insert([sized(ready("acme"), 100)]) };
    assert_eq!(metadata.insert_files(files).await.unwrap(), Inserted::Done);

    let (cancelled, more) = with_parts(&metadata).await;
    parts.extend(more);
    assert!(metadata.forget_upload(cancelled.upload_id, 1).await.unwrap());
    let (expired, more) = with_parts(&metadata).await;
    parts.extend(more);
    let ended = UploadChange::of(&expired, |next| next.stage = UploadStage::Expired);
    assert_eq!(metadata.change_upload(ended).await.unwrap(), UploadChanged::Done);
    let (_erased, more) = with_parts(&metadata).await;
    parts.extend(more);
    metadata.end_era(&organization("acme"), at(1)).await.unwrap();

    assert_eq!((schema.count("upload_parts"), schema.count("blob_gc")), (0, 8));
    assert!(referrers(&metadata, &parts).await.iter().all(|one| *one == Referrer::Dropped));
    let due = metadata.due_blobs(&house(), at(1_000_000_000_000), 9).await.unwrap();
    let mut due: Vec<_> = due.into_iter().map(|due| due.blob.key.to_string()).collect();
    let mut all: Vec<_> = parts.iter().map(|part| part.key.to_string()).collect();
    due.sort();
    all.sort();
    assert_eq!(due, all);
}
