//! Writing to providers: objects that no record refers to yet.
//!
//! An object is noted before its first byte leaves, and written under a key of its own. The note ends
//! with the commit that refers to the object; until then a failure, a crash or a change of mind
//! hands it to the dropped blobs. So whatever happens, an object is either referred to or on its way
//! out.

use std::fs::File;

use futures_util::stream::{FuturesUnordered, StreamExt, TryStreamExt};

use super::Inner;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::{Blob, FileRecord};
use crate::domain::serving;
use crate::metadata::WriteIntent;
use crate::storage::{BlobInfo, ByteStream, Priority, StagedBlob};

/// Objects of one batch that are written at the same time.
const AT_ONCE: usize = 4;

/// The failure of a commit, as far as objects written for it are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing was committed: the database said so.
    Certain,
    /// The records may have been committed. If they were, the notes of their writes are gone.
    Unknown,
}

impl Refusal {
    /// Reads the answer of the database to a commit that was not done.
    pub(super) fn of<T>(answer: &Result<T>) -> Self {
        if answer.is_ok() { Self::Certain } else { Self::Unknown }
    }
}

impl Inner {
    /// Writes the bytes under `staged` keys to the provider that `records` name, each under its
    /// record's key: all or none.
    pub(super) async fn write_through(
        &self,
        records: &[FileRecord],
        staged: &[BlobKey],
    ) -> Result<()> {
        let now = self.now();
        let intent = |record: &FileRecord| WriteIntent {
            file_id: record.file_id,
            provider: record.blob.provider.clone(),
            key: record.blob.key.clone(),
            begun_at: now,
            owner: None,
        };

        self.metadata.begin_writes(records.iter().map(intent).collect()).await?;

        let written = self.write_each(records, staged).await;
        if written.is_err() {
            self.withdraw_later(records.iter().map(|record| record.blob.key.clone()).collect())
                .await;
        }
        written
    }

    async fn write_each(&self, records: &[FileRecord], staged: &[BlobKey]) -> Result<()> {
        let mut writes = FuturesUnordered::new();
        for (record, staged) in records.iter().zip(staged) {
            if writes.len() >= AT_ONCE {
                writes.try_next().await?;
            }
            writes.push(self.write_staged(record, staged));
        }
        writes.try_collect().await
    }

    async fn write_staged(&self, record: &FileRecord, staged: &BlobKey) -> Result<()> {
        let source = self.local_bytes(staged, record.blob.size_bytes).await?;
        self.put_object(record, &record.blob.provider, &record.blob.key, source, Priority::Request)
            .await
    }

    /// Withdraws the objects written for `records` after a commit that failed.
    pub(super) async fn withdraw_refused(
        &self,
        provider: &ProviderCode,
        records: &[FileRecord],
        refusal: Refusal,
    ) {
        if self.stores.disk(provider).is_some() {
            return;
        }

        let keys = records.iter().map(|record| record.blob.key.clone()).collect();
        match refusal {
            Refusal::Certain => self.withdraw(provider, keys).await,
            Refusal::Unknown => self.withdraw_later(keys).await,
        }
    }

    /// Writes `source`, the blob of `record`, to `provider` under `key`, which is noted, and verifies it.
    pub(crate) async fn put_object(
        &self,
        record: &FileRecord,
        provider: &ProviderCode,
        key: &BlobKey,
        source: ByteStream,
        priority: Priority,
    ) -> Result<()> {
        let holder = self.stores.holder(provider)?;
        let blob = &record.blob;

        let how = serving::decide(&record.mime_type, blob.sniffed_type.as_deref(), None);
        let object = BlobInfo {
            size_bytes: blob.size_bytes,
            sha256: blob.sha256,
            content_disposition: Some(how.disposition.to_value(&record.original_name)),
            content_type: how.content_type.into_owned(),
        };

        let written = holder.put(key, &object, source, priority).await;
        // Our own bytes are not what they were: nothing a client has said.
        written.map_err(|error| match error.kind() {
            ErrorKind::DigestMismatch => Error::internal("reading a blob", error),
            _ => error,
        })
    }

    /// The bytes of a LOCAL blob under its staged or its final name.
    async fn local_bytes(&self, key: &BlobKey, size_bytes: u64) -> Result<ByteStream> {
        let blob = self.stores.local().open_blob(key, size_bytes).await?;
        Ok(blob.ok_or_else(not_on_disk)?.into_stream(0..size_bytes).boxed())
    }

    /// The bytes of a blob, wherever it is.
    pub(crate) async fn blob_bytes(&self, blob: &Blob) -> Result<ByteStream> {
        let all = 0..blob.size_bytes;
        let holder = self.stores.holder(&blob.provider)?;

        match holder.read_to_copy(&blob.key, blob.size_bytes).await? {
            Some(read) => Ok(read.into_stream(all)),
            None if self.stores.disk(&blob.provider).is_some() => Err(not_on_disk()),
            None => Err(Error::not_found("blob")),
        }
    }

    /// Receives `bytes`, the blob of `record`, into a file without a name.
    pub(super) async fn fetch(&self, record: &FileRecord, bytes: ByteStream) -> Result<File> {
        // Dropping the staged blob takes the name away; the file lives as long as it is open.
        self.stage_copy(&record.blob, bytes).await?.open()
    }

    /// Stages `bytes`, the copy of a blob that a provider holds, and verifies them.
    pub(super) async fn stage_copy(&self, blob: &Blob, bytes: ByteStream) -> Result<StagedBlob> {
        let id = BlobId::generate(self.now());
        let staged = self.stores.local().stage_all(id, blob.size_bytes, blob.sha256, bytes).await;

        staged.map_err(|error| match error.kind() {
            ErrorKind::DigestMismatch => damaged(&blob.provider),
            _ => error,
        })
    }

    /// Withdraws objects whose write failed, so that their state is unknown: they are removed after
    /// the grace period, when no late write can arrive any more.
    pub(crate) async fn withdraw_later(&self, keys: Vec<BlobKey>) {
        let not_before = self.now().plus(self.config.blob_grace);
        if let Err(error) = self.metadata.withdraw_writes(&keys, not_before).await {
            // The next start, or upkeep, finds the notes.
            tracing::warn!(error = %error.chain(), "objects of failed writes stay noted for now");
        }
    }

    /// Withdraws whole objects that no record will refer to: they are removed at once, if the
    /// provider answers, and once more after the grace period, since an earlier attempt of the same
    /// write may still arrive.
    pub(crate) async fn withdraw(&self, provider: &ProviderCode, keys: Vec<BlobKey>) {
        if let Ok(holder) = self.stores.holder(provider) {
            for error in holder.remove(keys.clone()).await.into_iter().filter_map(Result::err) {
                tracing::debug!(%provider, error = %error.chain(), "an object that nobody needs stays for now");
            }
        }
        self.withdraw_later(keys).await;
    }
}

/// The error of a LOCAL blob that is missing although something refers to it.
fn not_on_disk() -> Error {
    Error::internal("opening a blob", "it is not there")
}

/// The error of a provider that gives other bytes than it was given.
fn damaged(provider: &ProviderCode) -> Error {
    Error::new(ErrorKind::Internal, format!("the bytes at the provider are damaged: {provider}"))
}
