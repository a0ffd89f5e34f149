//! Uploads, single and in an atomic batch.
//!
//! Steps U2–U7 of the protocol (ARCHITECTURE.md, "An upload"): the bytes are staged and durable,
//! then one transaction inserts the records (the commit point), then each blob gets its final name.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::FileStore;
use super::commit::{Job, ReplyShape};
use super::idempotency::IdempotencyGuard;
use crate::api;
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, OrganizationId, Sha256, SubSystem};
use crate::domain::media;
use crate::domain::record::FileRecord;
use crate::storage::{StagedBlob, StagingWriter};

/// A file to upload: everything but its bytes.
#[derive(Debug)]
pub struct NewUpload {
    /// Whose file it is.
    pub organization_id: OrganizationId,
    /// For which part of the application.
    pub sub_system: SubSystem,
    /// The name the user gave; see [`media::check_name`].
    pub original_name: Option<String>,
    /// The media type the user gave; see [`media::check_mime_type`].
    pub mime_type: Option<String>,
    /// What the transport says of the file.
    pub hints: PartHints,
    /// TEMP: local only, expires.
    pub temp: bool,
    /// What the bytes must hash to.
    pub sha256: Option<Sha256>,
    /// Makes the upload safe to send twice.
    pub idempotency: Option<IdempotencyGuard>,
}

impl NewUpload {
    /// An ordinary upload without a name.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self {
            organization_id,
            sub_system,
            original_name: None,
            mime_type: None,
            hints: PartHints::default(),
            temp: false,
            sha256: None,
            idempotency: None,
        }
    }

    /// Gives it a name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.original_name = Some(name.into());
        self
    }

    /// Makes it TEMP.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.temp = true;
        self
    }
}

/// What the transport says of a file, for want of the user's word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartHints {
    /// The part's file name, percent-decoded; see [`media::name_from_part`].
    pub file_name: Option<String>,
    /// The part's Content-Type.
    pub content_type: Option<String>,
}

/// A batch to upload: what its items share.
#[derive(Debug)]
pub struct NewBatch {
    /// Whose files they are.
    pub organization_id: OrganizationId,
    /// For which part of the application.
    pub sub_system: SubSystem,
    /// Makes the batch safe to send twice.
    pub idempotency: Option<IdempotencyGuard>,
}

/// One item of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchItem {
    /// Its number `N` in `items[N]`; named in errors. Items are answered in ascending order.
    pub index: u32,
    /// The name the user gave.
    pub original_name: Option<String>,
    /// The media type the user gave.
    pub mime_type: Option<String>,
    /// What the transport says of the file.
    pub hints: PartHints,
}

/// What an upload came to.
#[derive(Debug, Clone)]
pub enum Uploaded {
    /// The records as they were committed, in the order of the items.
    New(Vec<FileRecord>),
    /// The body of the reply to an earlier request with the same idempotency key and content: an
    /// [`api::FileRecord`] in JSON, for a batch an array of them.
    Replayed(Vec<u8>),
}

impl FileStore {
    /// Begins to receive the bytes of a file: at most [`Limits::max_file_size`] of them.
    ///
    /// [`Limits::max_file_size`]: crate::domain::config::Limits::max_file_size
    pub async fn stage(&self) -> Result<StagingWriter> {
        self.stage_up_to(self.inner.config.limits.max_file_size).await
    }

    /// Begins to receive at most `max_bytes` (what is left of a batch, say), never more than the
    /// limit of a file.
    pub async fn stage_up_to(&self, max_bytes: u64) -> Result<StagingWriter> {
        let max = max_bytes.min(self.inner.config.limits.max_file_size);
        self.inner.local.stage(BlobId::generate(Timestamp::now()), max).await
    }

    /// Receives all of `reader` and makes it durable in staging.
    pub async fn stage_from(&self, mut reader: impl AsyncRead + Unpin) -> Result<StagedBlob> {
        let mut writer = self.stage().await?;
        let mut buffer = BytesMut::with_capacity(64 << 10);
        loop {
            buffer.reserve(64 << 10);
            let read = reader.read_buf(&mut buffer).await.map_err(|error| {
                Error::new(ErrorKind::MalformedBody, "the source cannot be read").with_source(error)
            })?;
            if read == 0 {
                return writer.finish().await;
            }
            writer.write(buffer.split().freeze()).await?;
        }
    }

    /// Receives bytes that are in memory.
    pub async fn stage_bytes(&self, bytes: Bytes) -> Result<StagedBlob> {
        let mut writer = self.stage().await?;
        writer.write(bytes).await?;
        writer.finish().await
    }

    /// Uploads all of `reader` as one file. When it returns, bytes and record are durable.
    pub async fn upload(
        &self,
        new: NewUpload,
        reader: impl AsyncRead + Unpin,
    ) -> Result<FileRecord> {
        new.check(self)?;
        let staged = self.stage_from(reader).await?;
        match self.commit_upload(new, staged).await? {
            Uploaded::New(mut records) => Ok(records.pop().expect("one upload has one record")),
            Uploaded::Replayed(reply) => self.recall(&reply).await,
        }
    }

    /// Makes a file of staged bytes. `DigestMismatch` leaves nothing behind.
    pub async fn commit_upload(&self, new: NewUpload, staged: StagedBlob) -> Result<Uploaded> {
        new.check(self)?;
        if new.sha256.is_some_and(|sum| sum != staged.sha256) {
            return Err(Error::new(
                ErrorKind::DigestMismatch,
                "the bytes do not have the given sha256",
            )
            .with_field("sha256"));
        }
        let temp = new.temp;
        let item = BatchItem {
            index: 0,
            original_name: new.original_name,
            mime_type: new.mime_type,
            hints: new.hints,
        };
        let job = Job {
            organization_id: new.organization_id,
            sub_system: new.sub_system,
            temp,
            items: vec![(item, staged)],
            reply: ReplyShape::One,
        };
        self.commit(job, new.idempotency).await
    }

    /// Makes files of staged bytes: all of them or none, at every instant, to every reader.
    pub async fn commit_batch(
        &self,
        batch: NewBatch,
        mut items: Vec<(BatchItem, StagedBlob)>,
    ) -> Result<Uploaded> {
        if items.is_empty() {
            return Err(Error::new(ErrorKind::MissingField, "a batch needs at least one item")
                .with_field("items[0].file"));
        }
        let limits = &self.inner.config.limits;
        if items.len() > limits.max_batch_items {
            return Err(too_many_items(limits.max_batch_items));
        }
        let total: u64 = items.iter().map(|(_, staged)| staged.size_bytes).sum();
        if total > limits.max_batch_size {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a batch is at most {} bytes", limits.max_batch_size),
            )
            .with_limit(limits.max_batch_size));
        }
        for (item, _) in &items {
            check_given(self, item.original_name.as_deref(), item.mime_type.as_deref())
                .map_err(|e| item_field(e, item.index))?;
        }
        items.sort_by_key(|(item, _)| item.index);
        let job = Job {
            organization_id: batch.organization_id,
            sub_system: batch.sub_system,
            temp: false,
            items,
            reply: ReplyShape::Many,
        };
        self.commit(job, batch.idempotency).await
    }

    async fn recall(&self, reply: &[u8]) -> Result<FileRecord> {
        let shown: api::FileRecord = serde_json::from_slice(reply)
            .map_err(|e| Error::internal("reading a stored reply", e))?;
        let record = self.info(shown.file_id.parse()?, &crate::domain::scope::Scope::All).await?;
        Ok((*record).clone())
    }
}

impl NewUpload {
    fn check(&self, store: &FileStore) -> Result<()> {
        check_given(store, self.original_name.as_deref(), self.mime_type.as_deref())
    }
}

pub(super) fn check_given(store: &FileStore, name: Option<&str>, mime: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        media::check_name(name, store.config().limits.original_name_chars)?;
    }
    mime.map_or(Ok(()), |mime| media::check_mime_type("mime_type", mime))
}

fn item_field(error: Error, index: u32) -> Error {
    let field = error.details().field.clone().unwrap_or_default();
    error.with_field(format!("items[{index}].{field}")).with_item(index)
}

pub(super) fn too_many_items(limit: usize) -> Error {
    Error::new(ErrorKind::TooManyItems, format!("a batch has at most {limit} items"))
        .with_limit(limit as u64)
}
