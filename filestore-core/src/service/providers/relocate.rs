//! Moves a blob to another provider while the file stays available: copy, verify, flip.
//!
//! The copy has its own key. One transaction makes the copy the record's blob, and drops the old blob. The
//! old bytes stay during the grace period, for readers with the old record. If the file is replaced or
//! deleted in the meantime, it keeps its state, and the copy is removed.
//!
//! The compare-and-set also compares the old blob, because a move between two clouds changes neither version
//! nor state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, FileRecord};
use crate::domain::id::BlobId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::receipt::Content;
use crate::metadata::{DroppedBlob, Expected, UpdateFile, Updated, WriteIntent, Writes};
use crate::service::Inner;
use crate::storage::{ByteStream, Priority};
use crate::tasks;
use crate::tasks::step::{Step, reached};

/// The outcome of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The record refers to the copy.
    Done,
    /// The file has changed in the meantime, and the move changed nothing.
    Lost,
}

/// The effect of a move on a file's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The file gets the state of its new location, if its lifecycle allows this.
    Relocated,
    /// The file keeps its state and its location. Only the provider with its bytes changes.
    #[cfg(feature = "postgres")]
    Rehoused,
}

/// Counts the bytes of a copy while they are read, and can slow the copy down.
#[derive(Clone)]
pub(crate) struct CopyMeter {
    count: Arc<dyn Fn(u64) + Send + Sync>,
    limit: Option<Arc<RateLimit>>,
}

impl CopyMeter {
    /// Returns a meter that counts bytes without a rate limit.
    pub(crate) fn new(count: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { count: Arc::new(count), limit: None }
    }

    /// Limits the rate of this copy and of all other copies with the same `limit` together.
    pub(crate) fn limited(self, limit: Option<Arc<RateLimit>>) -> Self {
        Self { limit, ..self }
    }

    async fn pass(&self, bytes: u64) {
        if let Some(limit) = &self.limit {
            limit.wait_for(bytes).await;
        }
        (self.count)(bytes);
    }
}

/// A rate limit that several copies share.
pub(crate) struct RateLimit {
    /// The unique number of the run.
    run: u64,
    bytes_per_second: u64,
    /// The time at which the bytes sent so far are within the rate.
    free_at: Mutex<Instant>,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);

        Self {
            run: RUNS.fetch_add(1, Ordering::Relaxed),
            bytes_per_second: bytes_per_second.max(1),
            free_at: Mutex::new(Instant::now()),
        }
    }

    /// Waits until `bytes` more bytes are within the rate.
    pub(crate) async fn wait_for(&self, bytes: u64) {
        let turn = {
            let mut free_at = self.free_at.lock();
            let turn = (*free_at).max(Instant::now());
            #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact to the byte")]
            let secs = bytes as f64 / self.bytes_per_second as f64;
            *free_at = turn + Duration::from_secs_f64(secs);
            turn
        };
        sleep_until(turn).await;
    }
}

impl Inner {
    /// Moves the blob of `record` to the provider `target`. Meanwhile, `owner` renews the write intent.
    pub(crate) async fn move_blob(
        self: &Arc<Self>,
        record: &FileRecord,
        target: &ProviderCode,
        owner: &str,
        meter: CopyMeter,
    ) -> Result<Moved> {
        if self.stores.disk(target).is_some() {
            return self.move_home(record, meter).await;
        }

        let key = self.note_copy(record, target, owner).await?;
        self.move_out(record, target, key, meter).await
    }

    /// Moves the blob of `record` to the provider `target` under `key`. The write intent must exist.
    pub(crate) async fn move_out(
        self: &Arc<Self>,
        record: &FileRecord,
        target: &ProviderCode,
        key: BlobKey,
        meter: CopyMeter,
    ) -> Result<Moved> {
        self.copy_out(record, Effect::Relocated, target, key, meter).await
    }

    /// Moves the blob of `record` from the data directory to `backend`, the backend of LOCAL. The file can
    /// have any state, and keeps it. Meanwhile, `owner` renews the write intent.
    #[cfg(feature = "postgres")]
    pub(crate) async fn rehouse_blob(
        self: &Arc<Self>,
        record: &FileRecord,
        backend: &ProviderCode,
        owner: &str,
        meter: CopyMeter,
    ) -> Result<Moved> {
        let key = self.note_copy(record, backend, owner).await?;
        self.copy_out(record, Effect::Rehoused, backend, key, meter).await
    }

    /// Records a write intent for a copy of the record's blob at `target`. Returns the key of the copy.
    async fn note_copy(
        &self,
        record: &FileRecord,
        target: &ProviderCode,
        owner: &str,
    ) -> Result<BlobKey> {
        let now = self.now();
        let FileRecord { file_id, organization_id, sub_system, created_at, .. } = record;
        let key = BlobKey::new(organization_id, sub_system, *created_at, BlobId::generate(now));
        let intent = WriteIntent {
            file_id: *file_id,
            provider: target.clone(),
            key: key.clone(),
            begun_at: now,
            owner: Some(owner.to_owned()),
        };

        self.metadata.begin_writes(vec![intent]).await?;
        reached(Step::WriteNoted);
        Ok(key)
    }

    async fn copy_out(
        self: &Arc<Self>,
        record: &FileRecord,
        effect: Effect,
        target: &ProviderCode,
        key: BlobKey,
        meter: CopyMeter,
    ) -> Result<Moved> {
        let copied = match self.blob_bytes(&record.blob).await {
            Ok(source) => {
                let priority = self.priority(record, &meter);
                self.put_object(record, target, &key, metered(source, meter), priority).await
            }
            Err(error) => Err(error),
        };

        if let Err(error) = copied {
            self.withdraw_later(target, vec![key]).await;
            return Err(error);
        }

        let flipped = self.flip(record, effect, target, key.clone()).await;
        match flipped {
            Ok(Moved::Done) => {}
            Ok(Moved::Lost) => self.withdraw(target, vec![key]).await,
            // If it was committed after all the note is gone, and this does nothing.
            Err(_) => self.withdraw_later(target, vec![key]).await,
        }
        flipped
    }

    /// Returns the share of the target's memory that a copy uses. A copy that its source or its rate slows
    /// down must not delay other copies.
    fn priority(&self, record: &FileRecord, meter: &CopyMeter) -> Priority {
        let source = &record.blob.provider;
        match &meter.limit {
            Some(limit) => Priority::Paced(limit.run),
            None if self.stores.disk(source).is_none() => Priority::CopyFrom(source.clone()),
            None => Priority::Background,
        }
    }

    async fn move_home(self: &Arc<Self>, record: &FileRecord, meter: CopyMeter) -> Result<Moved> {
        let blob = &record.blob;
        let source = metered(self.blob_bytes(blob).await?, meter);
        let staged = self.stage_copy(blob, source).await?;
        reached(Step::CopyStaged);

        let FileRecord { organization_id, sub_system, created_at, .. } = record;
        let key = BlobKey::new(organization_id, sub_system, *created_at, staged.blob_id);
        let kept = staged.keep();

        // From here on nothing is cancelled, so that no record loses its bytes.
        let (inner, record) = (Arc::clone(self), record.clone());
        let flipping = tasks::spawn_in_span(async move {
            let flipped =
                inner.flip(&record, Effect::Relocated, &ProviderCode::local(), key.clone()).await;
            match &flipped {
                Ok(Moved::Done) => inner.publish_soon([key]),
                Ok(Moved::Lost) => inner.discard(vec![kept]).await,
                Err(error) => inner.discard_uncommitted(vec![kept], error).await,
            }
            flipped
        });
        flipping.await.map_err(|lost| Error::internal("moving a blob", lost))?
    }

    /// Makes the verified copy under `key` at `target` the blob of `record`, if the record is unchanged.
    async fn flip(
        &self,
        record: &FileRecord,
        effect: Effect,
        target: &ProviderCode,
        key: BlobKey,
    ) -> Result<Moved> {
        let now = self.now();
        let state = match effect {
            Effect::Relocated => record.state.move_to(self.stores.location(target)),
            #[cfg(feature = "postgres")]
            Effect::Rehoused => Ok(record.state),
        };
        let Ok(state) = state else { return Ok(Moved::Lost) };

        let next = FileRecord {
            state,
            blob: Blob { provider: target.clone(), key, ..record.blob.clone() },
            updated_at: now.max(record.updated_at),
            ..record.clone()
        };

        let dropped = DroppedBlob {
            file_id: record.file_id,
            provider: record.blob.provider.clone(),
            key: record.blob.key.clone(),
            content: Some(Content::of(&record.blob)),
            not_before: now.plus(self.config().blob_grace),
        };

        let update = UpdateFile {
            expected: Expected::of(record),
            next,
            now,
            drop_blob: Some(dropped),
            quota_bytes: None,
            binding: None,
            deleted_by: None,
            writes: Writes::Bytes,
            upload: None,
        };

        match self.metadata.update_file(update).await? {
            Updated::Done => {
                reached(Step::CopyReferred);
                Ok(Moved::Done)
            }
            Updated::Lost | Updated::PlacementStale | Updated::OverQuota | Updated::UploadLost => {
                Ok(Moved::Lost)
            }
        }
    }
}

fn metered(source: ByteStream, meter: CopyMeter) -> ByteStream {
    source
        .then(move |chunk| {
            let meter = meter.clone();
            async move {
                if let Ok(bytes) = &chunk {
                    meter.pass(bytes.len() as u64).await;
                }
                chunk
            }
        })
        .boxed()
}
