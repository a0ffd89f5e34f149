//! The commit of new files: steps U5 and U6, for one file or a whole batch.
//!
//! What was staged is kept *before* the commit is tried, and discarded only when it is certain that
//! nothing was committed: whatever is interrupted here, no record loses its bytes. If the failure
//! does not say, the database is asked; if that fails too the bytes stay in staging, and the next
//! start finds the record or removes them.

use super::FileStore;
use super::idempotency::{Fingerprint, IdempotencyGuard};
use super::placement::Placement;
use super::quota::over_quota;
use super::upload::{BatchItem, Uploaded};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256, SubSystem};
use crate::domain::lifecycle::FileState;
use crate::domain::media;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::{Blob, Dimensions, FileRecord};
use crate::domain::status::Location;
use crate::metadata::{IdempotencyEntry, InsertFiles, Inserted};
use crate::storage::StagedBlob;
use crate::{api, variant};

/// How often an insert is placed anew because the binding changed under it.
const PLACEMENT_TRIES: usize = 5;

/// Staged items on their way to becoming records.
pub(super) struct Job {
    pub(super) organization_id: OrganizationId,
    pub(super) sub_system: SubSystem,
    pub(super) temp: bool,
    pub(super) items: Vec<(BatchItem, StagedBlob)>,
    pub(super) reply: ReplyShape,
}

/// What a reply to be remembered looks like.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReplyShape {
    One,
    Many,
}

impl FileStore {
    pub(super) async fn commit(
        &self,
        job: Job,
        guard: Option<IdempotencyGuard>,
    ) -> Result<Uploaded> {
        let keyed = guard.map(|guard| (guard, job.fingerprint()));
        if let Some((guard, fingerprint)) = &keyed
            && let Some(replayed) = self.replay(guard, fingerprint).await?
        {
            return Ok(replayed);
        }
        let store = self.clone();
        // From here on nothing is cancelled. The guard lives until the outcome is known.
        let committed = tokio::spawn(async move { store.insert(job, keyed.as_ref()).await });
        committed.await.map_err(|error| Error::internal("committing an upload", error))?
    }

    async fn insert(
        &self,
        job: Job,
        keyed: Option<&(IdempotencyGuard, [u8; 32])>,
    ) -> Result<Uploaded> {
        let (files, staged) = job.take().await;
        let kept: Vec<BlobId> = staged.into_iter().map(StagedBlob::keep).collect();
        let outcome = self.insert_kept(&files, keyed).await;
        match &outcome {
            Ok(Uploaded::New(records)) => {
                if records[0].blob.provider.is_local() {
                    self.inner.publish_soon(records.iter().map(|record| record.blob.key.clone()));
                } else {
                    self.inner.discard(kept).await;
                }
                for record in records {
                    self.prepare_variants(record);
                }
            }
            Ok(Uploaded::Replayed(_)) => self.inner.discard(kept).await,
            Err(error) => self.inner.undo(kept, error).await,
        }
        outcome
    }

    async fn insert_kept(
        &self,
        files: &Files,
        keyed: Option<&(IdempotencyGuard, [u8; 32])>,
    ) -> Result<Uploaded> {
        let quota_bytes = self.inner.config.quota_bytes;
        for _ in 0..PLACEMENT_TRIES {
            let place = self.inner.place(&files.organization_id, !files.temp).await?;
            let records = files.records(self, &place);
            let idempotency = match keyed {
                Some((guard, fingerprint)) => {
                    Some(self.idempotency_entry(guard, *fingerprint, files.reply, &records)?)
                }
                None => None,
            };
            if place.location == Location::Cloud {
                self.inner.write_through(&records, &files.staged_keys()).await?;
            }
            let binding = place.seen.clone();
            let insert =
                InsertFiles { records: records.clone(), binding, quota_bytes, idempotency };
            let inserted = self.inner.metadata.insert_files(insert).await;
            if !matches!(inserted, Ok(Inserted::Done)) {
                self.inner.take_back(&place.provider, &records, inserted.is_ok()).await;
            }
            match inserted? {
                Inserted::Done => {
                    self.inner.wake_sync(&place.seen);
                    return Ok(Uploaded::New(records));
                }
                Inserted::BindingChanged => {}
                Inserted::OverQuota => return Err(over_quota(quota_bytes.unwrap_or_default())),
                Inserted::IdempotencyTaken => {
                    let (guard, fingerprint) = keyed.expect("only keyed inserts collide");
                    return self.replay(guard, fingerprint).await?.ok_or_else(|| {
                        Error::new(ErrorKind::Conflict, "the idempotency key expired just now")
                    });
                }
            }
        }
        Err(Error::new(ErrorKind::Conflict, "the organization's binding keeps changing"))
    }

    fn idempotency_entry(
        &self,
        guard: &IdempotencyGuard,
        fingerprint: [u8; 32],
        shape: ReplyShape,
        records: &[FileRecord],
    ) -> Result<IdempotencyEntry> {
        Ok(IdempotencyEntry {
            organization: guard.organization.clone(),
            key: guard.key.clone(),
            fingerprint,
            file_ids: records.iter().map(|record| record.file_id).collect(),
            reply: shape.encode(records)?,
            expires_at: Timestamp::now().plus(self.inner.config.idempotency_ttl),
        })
    }
}

/// Whether after this error it is certain that nothing was committed: every kind but a fault of the
/// service, which may have struck during the commit itself.
pub(super) fn leaves_nothing(error: &Error) -> bool {
    error.kind() != ErrorKind::Internal
}

impl ReplyShape {
    fn encode(self, records: &[FileRecord]) -> Result<Vec<u8>> {
        let shown: Vec<api::FileRecord> = records.iter().map(Into::into).collect();
        match self {
            Self::One => serde_json::to_vec(&shown[0]),
            Self::Many => serde_json::to_vec(&shown),
        }
        .map_err(|error| Error::internal("encoding a reply", error))
    }
}

impl Job {
    fn fingerprint(&self) -> [u8; 32] {
        let mut print = Fingerprint::default();
        print.field(Some(match self.reply {
            ReplyShape::One => "upload",
            ReplyShape::Many => "batch",
        }));
        print.field(Some(self.organization_id.as_str()));
        print.field(Some(self.sub_system.as_str()));
        print.field(self.temp.then_some("temp"));
        for (item, staged) in &self.items {
            print.field(Some(&item.index.to_string()));
            print.field(item.original_name.as_deref());
            print.field(item.mime_type.as_deref());
            print.field(item.hints.file_name.as_deref());
            print.field(Some(&staged.sha256.to_hex()));
        }
        print.finish()
    }

    /// Parts what the records need from what stands for the staged files.
    async fn take(self) -> (Files, Vec<StagedBlob>) {
        let mut items = Vec::with_capacity(self.items.len());
        let mut staged = Vec::with_capacity(self.items.len());
        for (item, blob) in self.items {
            items.push((item, Arrived::of(&blob).await));
            staged.push(blob);
        }
        let files = Files {
            organization_id: self.organization_id,
            sub_system: self.sub_system,
            temp: self.temp,
            items,
            reply: self.reply,
        };
        (files, staged)
    }
}

/// Files whose bytes are staged.
struct Files {
    organization_id: OrganizationId,
    sub_system: SubSystem,
    temp: bool,
    items: Vec<(BatchItem, Arrived)>,
    reply: ReplyShape,
}

impl Files {
    fn key(&self, now: Timestamp, blob_id: BlobId) -> BlobKey {
        BlobKey::new(&self.organization_id, &self.sub_system, now, blob_id)
    }

    /// Keys under which the staged bytes are found.
    fn staged_keys(&self) -> Vec<BlobKey> {
        let now = Timestamp::now();
        self.items.iter().map(|(_, arrived)| self.key(now, arrived.blob_id)).collect()
    }

    fn records(&self, store: &FileStore, place: &Placement) -> Vec<FileRecord> {
        let now = Timestamp::now();
        self.items
            .iter()
            .map(|(item, arrived)| self.record(item, arrived, store, place, now))
            .collect()
    }

    fn record(
        &self,
        item: &BatchItem,
        arrived: &Arrived,
        store: &FileStore,
        place: &Placement,
        now: Timestamp,
    ) -> FileRecord {
        let file_id = FileId::generate(now);
        let limit = store.config().limits.original_name_chars;
        let naming = Naming::choose(item, arrived, limit, || file_id.to_string());
        let key = self.key(now, place.blob_id(arrived.blob_id, now));
        let state = if self.temp {
            FileState::uploaded_temp()
        } else {
            FileState::uploaded(place.location)
        };
        FileRecord {
            file_id,
            organization_id: self.organization_id.clone(),
            sub_system: self.sub_system.clone(),
            original_name: naming.original_name,
            mime_type: naming.mime_type,
            ext: naming.ext,
            blob: arrived.blob(key, place.provider.clone(), now),
            state,
            version: 1,
            created_at: now,
            updated_at: now,
            expires_at: self.temp.then(|| now.plus(store.config().temp_ttl)),
        }
    }
}

/// What is known of bytes that arrived.
pub(super) struct Arrived {
    pub(super) blob_id: BlobId,
    size_bytes: u64,
    sha256: Sha256,
    sniffed: Option<&'static str>,
    dimensions: Option<Dimensions>,
}

impl Arrived {
    /// Sniffs the type, and looks for the dimensions of what may be an image.
    pub(super) async fn of(staged: &StagedBlob) -> Self {
        let sniffed = media::sniff(&staged.head);
        let is_image = sniffed.is_some_and(|mime| mime.starts_with("image/"));
        Self {
            blob_id: staged.blob_id,
            size_bytes: staged.size_bytes,
            sha256: staged.sha256,
            sniffed,
            dimensions: if is_image { dimensions(staged).await } else { None },
        }
    }

    pub(super) fn blob(&self, key: BlobKey, provider: ProviderCode, now: Timestamp) -> Blob {
        Blob {
            provider,
            key,
            size_bytes: self.size_bytes,
            sha256: self.sha256,
            sniffed_type: self.sniffed.map(str::to_owned),
            dimensions: self.dimensions,
            stored_at: now,
        }
    }
}

async fn dimensions(staged: &StagedBlob) -> Option<Dimensions> {
    let file = staged.open().ok()?;
    tokio::task::spawn_blocking(move || variant::probe(&file)).await.ok().flatten()
}

/// Name, type and extension of a new blob.
pub(super) struct Naming {
    pub(super) original_name: String,
    pub(super) mime_type: String,
    pub(super) ext: String,
}

impl Naming {
    pub(super) fn choose(
        item: &BatchItem,
        arrived: &Arrived,
        name_limit: usize,
        otherwise: impl FnOnce() -> String,
    ) -> Self {
        let part_name = || media::name_from_part(item.hints.file_name.as_deref()?, name_limit);
        let original_name = item.original_name.clone().or_else(part_name).unwrap_or_else(otherwise);
        let part_type = item.hints.content_type.as_deref();
        Self {
            mime_type: media::choose_type(
                item.mime_type.as_deref(),
                arrived.sniffed,
                part_type,
                &original_name,
            ),
            ext: media::extension(&original_name, arrived.sniffed),
            original_name,
        }
    }
}
