//! Writes objects to providers before a record refers to them.
//!
//! The store records a write intent before it sends the first byte, and writes each object under its own key.
//! The write intent ends with the commit that refers to the object. If a failure, a crash or a cancellation
//! comes first, the object becomes a dropped blob. Every object is therefore either in use or due for
//! removal.
//!
//! # Cancellation
//! The write belongs to the request that waits for it. If the request is cancelled, the write ends, and its
//! objects are withdrawn ([`Objects`]). Only a queued commit continues on its own.

use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, FileRecord};
use crate::domain::file::serving;
use crate::domain::id::{BlobId, FileId, Sha256};
use crate::domain::provider::ProviderCode;
use crate::metadata::WriteIntent;
use crate::service::Inner;
use crate::storage::{BlobInfo, ByteStream, Priority, StagedBlob};
use crate::tasks;
use crate::tasks::step::{Step, reached};

/// The maximum number of a batch's concurrent object writes.
const AT_ONCE: usize = 4;

/// The slowest transfer for which a client waits. The time limit also has a fixed part.
const SLOWEST_BYTES_PER_SEC: u64 = 128 << 10;

/// The maximum duration of any transfer. A write intent counts as abandoned after a day.
const LONGEST_TRANSFER: Duration = Duration::from_hours(23);

/// The pause, in seconds, before a client retries a transfer that a provider did not finish.
const RETRY_AFTER_SECS: u64 = 10;

/// The failure of a commit, as far as it affects the objects written for the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Refusal {
    /// The database confirmed that it committed nothing.
    Certain,
    /// The records may be committed. In that case, the write intents are gone.
    Unknown,
}

impl Refusal {
    /// Interprets the database's answer to a failed commit.
    pub(in crate::service) fn of<T>(answer: &Result<T>) -> Self {
        if answer.is_ok() { Self::Certain } else { Self::Unknown }
    }
}

/// Objects at a provider that no record refers to yet. Dropping this value withdraws the objects, for example
/// when a request is cancelled. The objects are then removed after the grace period.
pub(in crate::service) struct Objects {
    inner: Arc<Inner>,
    provider: ProviderCode,
    keys: Vec<BlobKey>,
}

impl Objects {
    /// Keeps the objects, because records now refer to them.
    pub(in crate::service) fn refer(mut self) {
        self.keys.clear();
    }

    /// Withdraws the objects after a failed commit.
    pub(in crate::service) async fn withdraw(mut self, refusal: Refusal) {
        let keys = self.keys.clone();
        match refusal {
            _ if keys.is_empty() => {}
            Refusal::Certain => self.inner.withdraw(&self.provider, keys).await,
            Refusal::Unknown => self.inner.withdraw_later(&self.provider, keys).await,
        }
        self.keys.clear();
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let keys = mem::take(&mut self.keys);
        if keys.is_empty() {
            return;
        }

        // Without a runtime the notes stay, and the next start finds them.
        if Handle::try_current().is_ok() {
            let (inner, provider) = (Arc::clone(&self.inner), self.provider.clone());
            tasks::spawn(async move { inner.withdraw_later(&provider, keys).await });
        }
    }
}

impl Inner {
    /// Returns an empty set of objects, for records with LOCAL bytes.
    pub(in crate::service) fn no_objects(self: &Arc<Self>) -> Objects {
        Objects { inner: Arc::clone(self), provider: ProviderCode::local(), keys: Vec::new() }
    }

    /// Writes the bytes under `staged` keys to the provider that `records` name, each under its record's key.
    /// Writes all or none. `ProviderUnavailable` if the transfer takes too long.
    pub(in crate::service) async fn write_through(
        self: &Arc<Self>,
        records: &[FileRecord],
        staged: &[BlobKey],
    ) -> Result<Objects> {
        let Some(first) = records.first() else { return Ok(self.no_objects()) };
        let provider = first.blob.provider.clone();
        let limit = self.transfer_limit(records.iter().map(|record| record.blob.size_bytes).sum());

        let objects = Objects {
            inner: Arc::clone(self),
            provider: provider.clone(),
            keys: records.iter().map(|record| record.blob.key.clone()).collect(),
        };
        self.begin_writes(records).await?;

        let written = timeout(limit, self.write_each(records, staged)).await;
        match written.unwrap_or_else(|_| Err(too_slow(&provider))) {
            Ok(()) => Ok(objects),
            Err(error) => {
                objects.withdraw(Refusal::Unknown).await;
                Err(error)
            }
        }
    }

    /// Returns the maximum time for which a client waits while `bytes` are transferred.
    pub(super) fn transfer_limit(&self, bytes: u64) -> Duration {
        let moving = Duration::from_secs(bytes / SLOWEST_BYTES_PER_SEC);
        self.config().limits.write_through.saturating_add(moving).min(LONGEST_TRANSFER)
    }

    async fn begin_writes(&self, records: &[FileRecord]) -> Result<()> {
        let now = self.now();
        let intent = |record: &FileRecord| WriteIntent {
            file_id: record.file_id,
            provider: record.blob.provider.clone(),
            key: record.blob.key.clone(),
            begun_at: now,
            owner: None,
        };
        self.metadata.begin_writes(records.iter().map(intent).collect()).await?;
        reached(Step::WriteNoted);
        Ok(())
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

    /// Writes `source`, the blob of `record`, to `provider` under `key`, and verifies it. The write intent
    /// must exist.
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
        reached(Step::ObjectPut);
        // Our own bytes are not what they were: nothing a client has said.
        written.map_err(|error| match error.kind() {
            ErrorKind::DigestMismatch => Error::internal("reading a blob", error),
            _ => error,
        })
    }

    /// Writes `source`, bytes of an unfinished upload, to `provider` under `key`, and verifies them. A part
    /// belongs to no file, so its intent gets an id that no file has.
    pub(in crate::service) async fn write_part(
        self: &Arc<Self>,
        provider: &ProviderCode,
        key: &BlobKey,
        content: (u64, Sha256),
        source: ByteStream,
    ) -> Result<Objects> {
        let (size_bytes, sha256) = content;
        let intent = WriteIntent {
            file_id: FileId::generate(self.now()),
            provider: provider.clone(),
            key: key.clone(),
            begun_at: self.now(),
            owner: None,
        };
        let objects = Objects {
            inner: Arc::clone(self),
            provider: provider.clone(),
            keys: vec![key.clone()],
        };
        self.metadata.begin_writes(vec![intent]).await?;
        reached(Step::WriteNoted);

        let object = BlobInfo {
            size_bytes,
            sha256,
            content_type: "application/octet-stream".to_owned(),
            content_disposition: None,
        };
        let holder = self.stores.holder(provider)?;
        let limit = self.transfer_limit(size_bytes);
        let written = timeout(limit, holder.put(key, &object, source, Priority::Request)).await;
        reached(Step::ObjectPut);
        match written.unwrap_or_else(|_| Err(too_slow(provider))) {
            Ok(()) => Ok(objects),
            Err(error) => {
                objects.withdraw(Refusal::Unknown).await;
                Err(error)
            }
        }
    }

    /// Returns the bytes of a LOCAL blob, under its staged or its final name.
    async fn local_bytes(&self, key: &BlobKey, size_bytes: u64) -> Result<ByteStream> {
        let blob = self.stores.local().open_blob(key, size_bytes).await?;
        Ok(blob.ok_or_else(not_on_disk)?.into_stream(0..size_bytes).boxed())
    }

    /// Returns the bytes of a blob from its data directory or provider.
    pub(crate) async fn blob_bytes(&self, blob: &Blob) -> Result<ByteStream> {
        let all = 0..blob.size_bytes;
        let holder = self.stores.holder(&blob.provider)?;

        match holder.read_to_copy(&blob.key, blob.size_bytes).await? {
            Some(read) => Ok(read.into_stream(all)),
            None if self.stores.disk(&blob.provider).is_some() => Err(not_on_disk()),
            None => Err(Error::not_found("blob")),
        }
    }

    /// Receives `bytes`, the blob of `record`, into a file without a name. `ProviderUnavailable` if the
    /// transfer takes longer than a client waits.
    pub(in crate::service) async fn fetch(
        &self,
        record: &FileRecord,
        bytes: ByteStream,
    ) -> Result<File> {
        let blob = &record.blob;
        let staged = timeout(self.transfer_limit(blob.size_bytes), self.stage_copy(blob, bytes));
        let staged = staged.await.unwrap_or_else(|_| Err(too_slow(&blob.provider)))?;

        // Dropping the staged blob takes the name away; the file lives as long as it is open.
        let opened = tasks::blocking(move || staged.open()).await;
        opened.unwrap_or_else(|lost| Err(Error::internal("opening a staged blob", lost)))
    }

    /// Stages `bytes`, a provider's copy of a blob, and verifies them.
    pub(super) async fn stage_copy(&self, blob: &Blob, bytes: ByteStream) -> Result<StagedBlob> {
        let id = BlobId::generate(self.now());
        let staged = self.stores.local().stage_all(id, blob.size_bytes, blob.sha256, bytes).await;

        staged.map_err(|error| match error.kind() {
            ErrorKind::DigestMismatch => damaged(&blob.provider),
            _ => error,
        })
    }

    /// Withdraws objects after a failed write with an unknown outcome. The objects are removed after the
    /// grace period, when no late write can arrive.
    pub(crate) async fn withdraw_later(&self, provider: &ProviderCode, keys: Vec<BlobKey>) {
        self.hand_over(&keys, self.late_write_grace(Some(provider))).await;
    }

    async fn hand_over(&self, keys: &[BlobKey], grace: Duration) {
        let not_before = self.now().plus(grace);
        if let Err(error) = self.metadata.withdraw_writes(keys, not_before).await {
            // The next start, or upkeep, finds the notes.
            tracing::warn!(error = %error.chain(), "objects of failed writes stay noted for now");
        }
    }

    /// Returns the grace period of a withdrawn object. The grace period covers the readers' grace period and
    /// the time in which a write to `provider` can still arrive. Without a provider, it covers the slowest
    /// provider.
    pub(crate) fn late_write_grace(&self, provider: Option<&ProviderCode>) -> Duration {
        self.config().blob_grace.max(self.stores.providers().late_write_limit(provider))
    }

    /// Withdraws complete objects that no record will refer to. The objects are removed at once if the
    /// provider answers, and again after the grace period, because an earlier attempt of the same write can
    /// still arrive.
    pub(crate) async fn withdraw(&self, provider: &ProviderCode, keys: Vec<BlobKey>) {
        if let Ok(holder) = self.stores.holder(provider) {
            for error in holder.remove(keys.clone()).await.into_iter().filter_map(Result::err) {
                tracing::debug!(%provider, error = %error.chain(), "an unused object remains for now");
            }
            reached(Step::ObjectRemoved);
        }
        self.hand_over(&keys, self.config().blob_grace).await;
    }
}

/// Returns the error for a provider that did not finish in time.
pub(super) fn too_slow(provider: &ProviderCode) -> Error {
    let message = format!("the provider does not finish in time: {provider}");
    Error::new(ErrorKind::ProviderUnavailable, message).with_retry_after_secs(RETRY_AFTER_SECS)
}

/// Returns the error for a missing LOCAL blob that is still in use.
fn not_on_disk() -> Error {
    Error::internal("opening a blob", "it is not there")
}

/// Returns the error for a provider that returns other bytes than it received.
fn damaged(provider: &ProviderCode) -> Error {
    Error::new(ErrorKind::Internal, format!("the bytes at the provider are damaged: {provider}"))
}
