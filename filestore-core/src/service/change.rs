//! Changes of a file: make it a thumbnail, make it ready, replace its bytes.
//!
//! A change is decided from a record and applied as a compare-and-set. If a background worker was
//! faster (it settled or moved the file) the change is decided again; if another request was, one of
//! the two is told so with `Conflict`.

use std::slice;
use std::sync::Arc;

use super::FileStore;
use super::commit::{Arrived, Naming};
use super::placement::Placement;
use super::quota::over_quota;
use super::upload::{BatchItem, PartHints, check_given};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, Sha256};
use crate::domain::path::BlobKey;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::{Location, Status, SyncStatus};
use crate::metadata::{BindingSeen, DroppedBlob, Expected, UpdateFile, Updated};
use crate::storage::StagedBlob;

/// How often a change is decided again after losing to a worker.
const DECISIONS: usize = 8;

/// What is to become of a file.
#[derive(Debug)]
pub enum Change {
    /// TEMP becomes THUMBNAIL.
    MakeThumbnail,
    /// Any status becomes READY, with new bytes if given.
    MakeReady(Option<Replacement>),
    /// New bytes, the same status.
    Replace(Replacement),
}

/// New bytes for a file.
#[derive(Debug)]
pub struct Replacement {
    /// The bytes, durable in staging.
    pub staged: StagedBlob,
    /// The name the user gave; else the part's file name; else the old name.
    pub original_name: Option<String>,
    /// The media type the user gave.
    pub mime_type: Option<String>,
    /// What the transport says of the file.
    pub hints: PartHints,
}

/// Which content a change may be made to (RFC 9110 §13.1.1, over the entity tag's digests).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: whatever it is.
    Any,
    /// Only content with one of these digests. Tags that are no digest match nothing.
    OneOf(Vec<Sha256>),
}

/// A change that was made, or found made already.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The record as it is now.
    pub record: Arc<FileRecord>,
    /// What the reply shows as sync status: NONE after a promotion, else the record's.
    pub shown_sync: SyncStatus,
}

impl FileStore {
    /// Changes a file of `scope`.
    ///
    /// `NotFound` for unknown, foreign and deleted files; `PreconditionFailed` if `if_match` does not
    /// hold; `InvalidTransition` with from, to and allowed; `Conflict` if another request changed the
    /// file at the same moment. New bytes are kept only if the change is made.
    pub async fn change(
        &self,
        id: FileId,
        scope: &Scope,
        change: Change,
        if_match: Option<IfMatch>,
    ) -> Result<Changed> {
        if let Change::MakeReady(Some(new)) | Change::Replace(new) = &change {
            check_given(self, new.original_name.as_deref(), new.mime_type.as_deref())?;
        }
        let (store, scope) = (self.clone(), scope.clone());
        let done =
            tokio::spawn(
                async move { store.change_to_the_end(id, &scope, change, if_match).await },
            );
        done.await.map_err(|e| Error::internal("changing a file", e))?
    }

    /// Whether a change of the file could be made at all: for callers that want to know before they
    /// receive its bytes.
    pub async fn check_change(
        &self,
        id: FileId,
        scope: &Scope,
        if_match: Option<&IfMatch>,
    ) -> Result<()> {
        check_precondition(&*self.record(id, scope).await?, if_match)
    }

    /// Keeps new bytes before the commit is tried, and discards them if it is certain that it was not
    /// made (see [`commit`](super::commit)).
    async fn change_to_the_end(
        &self,
        id: FileId,
        scope: &Scope,
        change: Change,
        if_match: Option<IfMatch>,
    ) -> Result<Changed> {
        let (decision, staged) = change.take().await;
        let kept = staged.map(StagedBlob::keep);
        let outcome = self.decide(id, scope, &decision, if_match.as_ref()).await;
        match (kept, &outcome) {
            (Some(kept), Err(error)) => self.inner.undo(vec![kept], error).await,
            (Some(kept), Ok(changed)) if !changed.record.blob.provider.is_local() => {
                self.inner.discard(vec![kept]).await;
            }
            _ => {}
        }
        outcome
    }

    async fn decide(
        &self,
        id: FileId,
        scope: &Scope,
        decision: &Decision,
        if_match: Option<&IfMatch>,
    ) -> Result<Changed> {
        let mut first: Option<Arc<FileRecord>> = None;
        for _ in 0..DECISIONS {
            let old = self.record_fresh(id, scope).await?;
            if first.as_ref().is_some_and(|first| was_requested(first, &old)) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "another request changed the file at the same moment",
                ));
            }
            check_precondition(&old, if_match)?;
            let Some((next, seen)) = self.plan(&old, decision).await? else {
                return Ok(decision.changed(old));
            };
            if let (Some((_, arrived)), Location::Cloud) = (&decision.new, next.state.location()) {
                let staged = next.blob.key.sibling(arrived.blob_id);
                self.inner.write_through(slice::from_ref(&next), &[staged]).await?;
            }
            match self.apply(&old, next, seen).await? {
                Applied::Done(record) => return Ok(decision.changed(record)),
                Applied::Again => first = Some(first.unwrap_or(old)),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "the file keeps changing"))
    }

    /// What the record becomes; `None` if it is that already.
    async fn plan(
        &self,
        old: &FileRecord,
        decision: &Decision,
    ) -> Result<Option<(FileRecord, Option<BindingSeen>)>> {
        let now = Timestamp::now().max(old.updated_at);
        let mut next = old.clone();
        next.state = match decision.event {
            Event::MakeThumbnail => old.state.make_thumbnail()?,
            Event::MakeReady => old.state.make_ready()?,
            Event::Replace => old.state,
        };
        let mut seen = None;
        if let Some((item, arrived)) = &decision.new {
            let place =
                self.inner.place(&old.organization_id, next.state.may_leave_local()).await?;
            next.state = next.state.replace_blob(place.location)?;
            self.put_blob(&mut next, item, arrived, &place, now);
            seen = Some(place.seen);
        }
        if next == *old {
            return Ok(None);
        }
        if next.state.status() != Status::Temp {
            next.expires_at = None;
        }
        next.updated_at = now;
        Ok(Some((next, seen)))
    }

    fn put_blob(
        &self,
        next: &mut FileRecord,
        item: &BatchItem,
        arrived: &Arrived,
        place: &Placement,
        now: Timestamp,
    ) {
        let limit = self.inner.config.limits.original_name_chars;
        let naming = Naming::choose(item, arrived, limit, || next.original_name.clone());
        let blob_id = place.blob_id(arrived.blob_id, now);
        let key = BlobKey::new(&next.organization_id, &next.sub_system, next.created_at, blob_id);
        next.original_name = naming.original_name;
        next.mime_type = naming.mime_type;
        next.ext = naming.ext;
        next.blob = arrived.blob(key, place.provider.clone(), now);
        next.version += 1;
    }

    async fn apply(
        &self,
        old: &FileRecord,
        next: FileRecord,
        seen: Option<BindingSeen>,
    ) -> Result<Applied> {
        let replaced = old.blob.key != next.blob.key;
        let drop_blob = replaced.then(|| DroppedBlob {
            file_id: old.file_id,
            provider: old.blob.provider.clone(),
            key: old.blob.key.clone(),
            not_before: next.updated_at.plus(self.inner.config.blob_grace),
        });
        let quota_bytes = self.inner.config.quota_bytes;
        let update = UpdateFile {
            expected: Expected::of(old),
            next: next.clone(),
            drop_blob,
            quota_bytes,
            binding: seen.clone(),
        };
        let updated = self.inner.metadata.update_file(update).await;
        if replaced && !matches!(updated, Ok(Updated::Done)) {
            self.inner
                .take_back(&next.blob.provider, slice::from_ref(&next), updated.is_ok())
                .await;
        }
        match updated? {
            Updated::Done => {
                if replaced {
                    if next.blob.provider.is_local() {
                        self.inner.publish_soon([next.blob.key.clone()]);
                    }
                    self.forget_variants(next.file_id).await;
                }
                if let Some(seen) = &seen {
                    self.inner.wake_sync(seen);
                }
                self.prepare_variants(&next);
                Ok(Applied::Done(Arc::new(next)))
            }
            Updated::Lost | Updated::BindingChanged => Ok(Applied::Again),
            Updated::OverQuota => Err(over_quota(quota_bytes.unwrap_or_default())),
        }
    }

    /// Removes the variants of a file's old blob. What cannot be removed now goes with the file.
    async fn forget_variants(&self, id: FileId) {
        if let Err(error) = self.inner.variants.remove_file(id).await {
            tracing::warn!(file_id = %id, error = %error.chain(), "cached variants of an old blob stay");
        }
    }
}

enum Applied {
    Done(Arc<FileRecord>),
    Again,
}

/// A change whose bytes have arrived.
struct Decision {
    event: Event,
    new: Option<(BatchItem, Arrived)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    MakeThumbnail,
    MakeReady,
    Replace,
}

impl Change {
    /// Parts what the decision needs from what stands for the staged file.
    async fn take(self) -> (Decision, Option<StagedBlob>) {
        let (event, new) = match self {
            Self::MakeThumbnail => (Event::MakeThumbnail, None),
            Self::MakeReady(new) => (Event::MakeReady, new),
            Self::Replace(new) => (Event::Replace, Some(new)),
        };
        let Some(Replacement { staged, original_name, mime_type, hints }) = new else {
            return (Decision { event, new: None }, None);
        };
        let item = BatchItem { index: 0, original_name, mime_type, hints };
        let arrived = Arrived::of(&staged).await;
        (Decision { event, new: Some((item, arrived)) }, Some(staged))
    }
}

impl Decision {
    fn changed(&self, record: Arc<FileRecord>) -> Changed {
        let shown_sync = match self.event {
            Event::MakeReady => SyncStatus::None,
            Event::MakeThumbnail | Event::Replace => record.state.sync(),
        };
        Changed { record, shown_sync }
    }
}

/// Whether the difference between two records was made by a request rather than by a worker, which
/// changes neither version nor status.
fn was_requested(before: &FileRecord, now: &FileRecord) -> bool {
    (before.version, before.state.status()) != (now.version, now.state.status())
}

fn check_precondition(record: &FileRecord, if_match: Option<&IfMatch>) -> Result<()> {
    match if_match {
        None | Some(IfMatch::Any) => Ok(()),
        Some(IfMatch::OneOf(sums)) if sums.contains(&record.blob.sha256) => Ok(()),
        Some(IfMatch::OneOf(_)) => Err(Error::new(
            ErrorKind::PreconditionFailed,
            "the file's content is another one by now",
        )
        .with_field("If-Match")),
    }
}
