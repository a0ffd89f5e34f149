//! Arguments and results of [`Resumables`](super::Resumables).

use crate::domain::file::path::BlobKey;
use crate::domain::file::resumable::{UploadBounds, UploadFailure, UploadStage};
use crate::domain::id::{BlobId, FileId, OrganizationId, UploadId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;

/// A resumable upload as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRow {
    /// The upload.
    pub upload_id: UploadId,
    /// The organization that the file will belong to.
    pub organization: OrganizationId,
    /// The server whose disk has all bytes up to the offset; empty if the store has one server only.
    pub server: String,
    /// The staged name of the bytes.
    pub blob_id: BlobId,
    /// The stage.
    pub stage: UploadStage,
    /// The era in which the upload began.
    pub era: Era,
    /// A number that grows whenever a request takes the upload away from another one.
    pub epoch: u64,
    /// The number of bytes that are durable, and so may be told.
    pub offset: u64,
    /// The file's length, once it is known.
    pub length: Option<u64>,
    /// The bytes that count for the bounds: the length, or a bound of what has arrived.
    pub held_bytes: u64,
    /// The state of the SHA-256 at the offset.
    pub digest: Vec<u8>,
    /// The first bytes, from which the type is detected.
    pub head: Vec<u8>,
    /// The terms of the upload, in the words of the service.
    pub terms: String,
    /// The idempotency key of its creation, with the caller that chose it.
    pub idempotency: Option<String>,
    /// The file, once the upload is finished.
    pub file_id: Option<FileId>,
    /// The reason, once the upload has failed.
    pub failure: Option<UploadFailure>,
    /// The instant of the creation.
    pub created_at: Timestamp,
    /// The instant of the last change.
    pub updated_at: Timestamp,
    /// The instant at which a live upload expires, and at which an ended one is forgotten.
    pub expires_at: Timestamp,
}

/// A part of an upload: an object with some of its bytes, from which other servers continue the upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPart {
    /// The provider that stores the object.
    pub provider: ProviderCode,
    /// The key of the object.
    pub key: BlobKey,
    /// The offset of its first byte in the upload.
    pub offset: u64,
    /// The number of its bytes.
    pub size_bytes: u64,
    /// The instant until which a late write of the object can arrive.
    pub late_until: Timestamp,
}

impl UploadPart {
    /// Returns the offset behind its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size_bytes)
    }
}

/// Bounds of all live uploads, and of those of one organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
    /// The bounds of all.
    pub all: UploadBounds,
    /// The bounds of one organization.
    pub organization: UploadBounds,
}

/// The outcome of creating an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadCreated {
    /// The upload is stored.
    Done,
    /// An upload with the same idempotency key is there, live or finished.
    KeyTaken(Box<UploadRow>),
    /// There is no room beside the uploads of all organizations.
    Full,
    /// There is no room beside the uploads of the organization.
    OrganizationFull,
    /// The organization was erased after the era of the upload.
    Erased,
}

/// A change of an upload: a compare-and-set on epoch, stage and offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadChange {
    /// The epoch of the row that the change was decided from.
    pub epoch: u64,
    /// The stage of that row.
    pub stage: UploadStage,
    /// The offset of that row.
    pub offset: u64,
    /// The length of that row.
    pub length: Option<u64>,
    /// The row as it shall be. Ids, era, terms and the creation do not change.
    pub next: UploadRow,
    /// The part with the bytes up to the new offset, whose write intent ends with the change. It takes the place of
    /// the parts from its offset on, which become dropped blobs.
    pub part: Option<UploadPart>,
    /// The bounds, if the change holds more bytes.
    pub limits: Option<UploadLimits>,
}

impl UploadChange {
    /// Changes `row` to what `change` makes of it.
    pub fn of(row: &UploadRow, change: impl FnOnce(&mut UploadRow)) -> Self {
        let mut next = row.clone();
        change(&mut next);
        Self {
            epoch: row.epoch,
            stage: row.stage,
            offset: row.offset,
            length: row.length,
            next,
            part: None,
            limits: None,
        }
    }
}

/// The outcome of a change of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadChanged {
    /// The row is changed.
    Done,
    /// The row is another one by now, or gone.
    Lost,
    /// There is no room for the bytes.
    Full,
    /// The write intent of the part was withdrawn; nothing was changed.
    PartWithdrawn,
}

/// The end of an upload, in the transaction that makes its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishUpload {
    /// The upload.
    pub upload_id: UploadId,
    /// The epoch in which it was completed.
    pub epoch: u64,
    /// The file's length.
    pub length: u64,
    /// The present instant.
    pub now: Timestamp,
    /// The instant at which the upload is forgotten.
    pub kept_until: Timestamp,
}
