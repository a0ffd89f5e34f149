//! Changes of a file: make it a thumbnail, make it ready, replace its bytes, edit what is known of them.
//!
//! A change is decided from a record and applied as a compare-and-set. If a background worker was
//! faster (it settled or moved the file) the change is decided again; if another request was, one of
//! the two is told so with `Conflict`.
//!
//! # Cancellation
//! A change that is cancelled before its compare-and-set is queued leaves nothing. From then on it runs
//! in a task of its own (see [`commit`](super::commit)).
//!
//! # A replace
//! The new bytes are staged. One transaction gives the record its new key, size, digest and version,
//! and writes a `blob_gc` row for the old blob; then the staged file gets its name and the variants
//! are removed. A reader that looked the record up before still finds the old blob for the grace
//! period.

use std::slice;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::AsyncRead;

use super::FileStore;
use super::arrived::{Arrived, Naming};
use super::cloud_write::{Objects, Refusal};
use super::placement::{MayLeave, Placement};
use super::quota::over_quota;
use super::request::{Change, Edit, GivenName, Preconditions, Replacement};
use super::settled::until_settled;
use super::staged::{Held, Staged};
use crate::domain::clock::Timestamp;
use crate::domain::custom_metadata::CustomMetadata;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::path::BlobKey;
use crate::domain::receipt::Content;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::{Status, SyncStatus};
use crate::metadata::{BindingSeen, DroppedBlob, Expected, UpdateFile, Updated, Writes};
use crate::storage::StagedBlob;
use crate::tasks;

/// Times a change is decided before it ends in `Conflict`; a decision that lost to a worker is
/// repeated.
const DECISIONS: usize = 8;

/// A change that was made, or found made already.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Changed {
    /// The record after the change.
    pub record: Arc<FileRecord>,
    /// The sync status that a reply shows: NONE after a promotion, else the record's.
    pub shown_sync: SyncStatus,
}

impl FileStore {
    /// Changes a file of `scope`.
    ///
    /// `NotFound` for unknown, foreign and deleted files; `PreconditionFailed` if a condition does not
    /// hold; `InvalidTransition` with from, to and allowed; `Conflict` if another request changed the
    /// file at the same moment. New bytes are kept only if the change is made.
    pub async fn change(
        &self,
        id: FileId,
        scope: &Scope,
        change: Change,
        conditions: impl Into<Preconditions>,
    ) -> Result<Changed> {
        let conditions = conditions.into();
        match &change {
            Change::MakeReady(Some(new)) | Change::Replace(new) => {
                new.given.check(self.name_limit())?;
            }
            Change::Edit(edit) => edit.check(self.name_limit())?,
            Change::MakeThumbnail | Change::MakeReady(None) => {}
        }

        let (decision, staged) = change.take().await;
        let staged = Staged::new(staged.into_iter().collect());
        let changed = self.decide(id, scope, &decision, &staged, &conditions).await;

        self.inner.discard_rest(staged).await;
        changed
    }

    /// Makes a TEMP file a THUMBNAIL; the same again changes nothing. Errors as
    /// [`change`](Self::change).
    pub async fn make_thumbnail(&self, id: FileId, scope: &Scope) -> Result<Changed> {
        self.change(id, scope, Change::MakeThumbnail, None).await
    }

    /// Makes a file READY; the same again changes nothing. Errors as [`change`](Self::change).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let changed = store.make_ready(id, &Scope::All).await?;
    /// assert_eq!(changed.record.expires_at, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn make_ready(&self, id: FileId, scope: &Scope) -> Result<Changed> {
        self.change(id, scope, Change::MakeReady(None), None).await
    }

    /// Replaces the bytes of a file by all of `reader`; its status stays. Errors as
    /// [`change`](Self::change).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let changed = store.replace(id, &Scope::All, &b"new bytes"[..]).await?;
    /// assert_eq!(changed.record.blob.size_bytes, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(
        &self,
        id: FileId,
        scope: &Scope,
        reader: impl AsyncRead + Unpin,
    ) -> Result<Changed> {
        self.check_change(id, scope, &Preconditions::default()).await?;
        let staged = self.uploads().stage_from(reader).await?;
        self.change(id, scope, Change::Replace(Replacement::new(staged)), None).await
    }

    /// Gives a file another name, type or custom metadata. Version, digest and bytes stay; a second call
    /// changes nothing. Of two edits at the same moment each finds what the other one did. Errors as
    /// [`change`](Self::change).
    ///
    /// ```no_run
    /// # use filestore_core::{Edit, FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let edit = Edit::default().with_name("invoice-7.pdf");
    /// let changed = store.edit(id, &Scope::All, edit).await?;
    /// assert_eq!(changed.record.ext, "pdf");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn edit(&self, id: FileId, scope: &Scope, edit: Edit) -> Result<Changed> {
        self.change(id, scope, Change::Edit(edit), None).await
    }

    /// Refuses what [`change`](Self::change) would refuse whatever the new bytes are, for callers that want
    /// to know before they receive them; returns the record as it is now.
    pub async fn check_change(
        &self,
        id: FileId,
        scope: &Scope,
        conditions: &Preconditions,
    ) -> Result<Arc<FileRecord>> {
        let record = self.record(id, scope).await?;
        conditions.check(&record)?;
        Ok(record)
    }

    async fn decide(
        &self,
        id: FileId,
        scope: &Scope,
        decision: &Decision,
        staged: &Staged,
        conditions: &Preconditions,
    ) -> Result<Changed> {
        let first: OnceLock<Arc<FileRecord>> = OnceLock::new();

        until_settled("the file", DECISIONS, || async {
            let old = self.record_fresh(id, scope).await?;
            if first.get().is_some_and(|first| was_requested(first, &old)) {
                let message = "another request changed the file at the same moment";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            conditions.check(&old)?;
            staged.belong_to(&old.organization_id)?;
            let changed = self.change_once(&old, decision, staged).await?;
            if changed.is_none() {
                first.get_or_init(|| old);
            }
            Ok(changed)
        })
        .await
    }

    /// Decides the change from `old` and applies it; `None` if the file changed meanwhile.
    async fn change_once(
        &self,
        old: &Arc<FileRecord>,
        decision: &Decision,
        staged: &Staged,
    ) -> Result<Option<Changed>> {
        let Some((next, seen)) = self.plan(old, decision).await? else {
            return Ok(Some(decision.changed(Arc::clone(old))));
        };

        let objects = match &decision.new {
            Some(new) if !next.blob.provider.is_local() => {
                let staged = next.blob.key.sibling(new.arrived.blob_id);
                self.inner.write_through(slice::from_ref(&next), &[staged]).await?
            }
            _ => self.inner.no_objects(),
        };

        let (store, old, held) = (self.clone(), Arc::clone(old), staged.hold());
        // From here on nothing is cancelled.
        let applying =
            tasks::spawn(async move { store.apply(&old, next, seen, objects, held).await });
        let (applied, released) =
            applying.await.map_err(|error| Error::internal("changing a file", error))?;

        staged.take_back(released);
        Ok(applied?.map(|record| decision.changed(record)))
    }

    /// Makes the record that `old` becomes; `None` if it is that already.
    async fn plan(
        &self,
        old: &FileRecord,
        decision: &Decision,
    ) -> Result<Option<(FileRecord, Option<BindingSeen>)>> {
        let now = self.inner.now().max(old.updated_at);
        let mut next = old.clone();
        next.state = match &decision.event {
            Event::MakeThumbnail => old.state.make_thumbnail()?,
            Event::MakeReady => old.state.make_ready()?,
            Event::Replace | Event::Edit(_) => old.state,
        };

        let mut seen = None;
        if let Some(new) = &decision.new {
            let may_leave = MayLeave::from(next.state.may_leave_local());
            let place = self.inner.place(&old.organization_id, may_leave).await?;
            next.state = next.state.replace_blob(place.location)?;
            self.put_blob(&mut next, new, &place, now);
            seen = Some(place.seen);
        }
        if let Event::Edit(edit) = &decision.event {
            edit.apply(&mut next);
        }

        if next == *old {
            return Ok(None);
        }

        if next.state.status() != Status::Temp {
            next.expires_at = None;
        }
        next.updated_at = now;
        if let Event::Edit(_) = &decision.event {
            let edited_at = later_than(old.edited_at, now);
            (next.updated_at, next.edited_at) = (edited_at, Some(edited_at));
        }
        Ok(Some((next, seen)))
    }

    fn put_blob(&self, next: &mut FileRecord, new: &New, place: &Placement, now: Timestamp) {
        let New { given, metadata, arrived } = new;
        let naming =
            Naming::choose(given, arrived, self.name_limit(), || next.original_name.clone());
        let blob_id = place.blob_id(arrived.blob_id, now);
        let key = BlobKey::new(&next.organization_id, &next.sub_system, next.created_at, blob_id);

        next.original_name = naming.original_name;
        next.mime_type = naming.mime_type;
        next.ext = naming.ext;
        if let Some(metadata) = metadata {
            next.metadata.clone_from(metadata);
        }
        next.blob = arrived.blob(key, place.provider.clone(), now);
        next.version += 1;
    }

    /// Commits `next` in place of `old`; `None` if the file or its binding changed meanwhile. Returns
    /// new bytes if these are certainly not the file's.
    async fn apply(
        &self,
        old: &FileRecord,
        next: FileRecord,
        seen: Option<BindingSeen>,
        objects: Objects,
        held: Held,
    ) -> (Result<Option<Arc<FileRecord>>>, Vec<StagedBlob>) {
        let update = self.update_of(old, &next, seen.clone());
        let quota_bytes = update.quota_bytes;
        let updated = self.inner.metadata.update_file(update).await;
        match &updated {
            Ok(Updated::Done) => objects.refer(),
            refused => objects.withdraw(Refusal::of(refused)).await,
        }

        match updated {
            Ok(Updated::Done) => {
                if let Some(seen) = &seen {
                    self.inner.wake_sync(seen);
                }
                if old.blob.key != next.blob.key {
                    self.settle_replaced(&next, held).await;
                }
                self.prepare_variants(&next);
                (Ok(Some(Arc::new(next))), Vec::new())
            }
            Ok(Updated::Lost | Updated::PlacementStale) => (Ok(None), held.release()),
            Ok(Updated::OverQuota) => {
                (Err(over_quota(quota_bytes.unwrap_or_default())), held.release())
            }
            Err(error) => {
                self.inner.discard_uncommitted(held.ids(), &error).await;
                (Err(error), Vec::new())
            }
        }
    }

    fn update_of(
        &self,
        old: &FileRecord,
        next: &FileRecord,
        binding: Option<BindingSeen>,
    ) -> UpdateFile {
        let (now, config) = (self.inner.now(), self.inner.config());
        let drop_blob = (old.blob.key != next.blob.key).then(|| DroppedBlob {
            file_id: old.file_id,
            provider: old.blob.provider.clone(),
            key: old.blob.key.clone(),
            content: Some(Content::of(&old.blob)),
            not_before: now.plus(config.blob_grace),
        });

        UpdateFile {
            expected: Expected::of(old),
            next: next.clone(),
            now,
            drop_blob,
            quota_bytes: config.quota_bytes,
            binding,
            deleted_by: None,
            writes: Writes::Record,
        }
    }

    /// Does what follows the commit of new bytes: their final name, or their end if a provider has
    /// them; the end of the old variants.
    async fn settle_replaced(&self, next: &FileRecord, held: Held) {
        if next.blob.provider.is_local() {
            self.inner.publish_soon([next.blob.key.clone()]);
        } else {
            self.inner.discard(held.ids()).await;
        }
        self.forget_variants(next.file_id).await;
    }

    /// Removes the variants of a file's old blob. What cannot be removed now goes with the file.
    async fn forget_variants(&self, id: FileId) {
        if let Err(error) = self.inner.variants.remove_file(id).await {
            tracing::warn!(file_id = %id, error = %error.chain(), "cached variants of an old blob stay");
        }
    }
}

/// A change whose bytes have arrived.
struct Decision {
    event: Event,
    new: Option<New>,
}

#[derive(Debug)]
enum Event {
    MakeThumbnail,
    MakeReady,
    Replace,
    Edit(Edit),
}

/// Bytes that have arrived, and what was said of them.
struct New {
    given: GivenName,
    metadata: Option<CustomMetadata>,
    arrived: Arrived,
}

impl Change {
    /// Examines new bytes, and parts what the decision needs from the handle of the staged file.
    async fn take(self) -> (Decision, Option<StagedBlob>) {
        let (event, new) = match self {
            Self::MakeThumbnail => (Event::MakeThumbnail, None),
            Self::MakeReady(new) => (Event::MakeReady, new),
            Self::Replace(new) => (Event::Replace, Some(new)),
            Self::Edit(edit) => (Event::Edit(edit), None),
        };

        let Some(Replacement { staged, given, metadata }) = new else {
            return (Decision { event, new: None }, None);
        };

        let arrived = Arrived::of(&staged).await;
        (Decision { event, new: Some(New { given, metadata, arrived }) }, Some(staged))
    }
}

impl Decision {
    fn changed(&self, record: Arc<FileRecord>) -> Changed {
        let shown_sync = match self.event {
            Event::MakeReady => SyncStatus::None,
            Event::MakeThumbnail | Event::Replace | Event::Edit(_) => record.state.sync(),
        };
        Changed { record, shown_sync }
    }
}

/// Returns `now`, or the first instant after `before` if that is later: no two edits have the same.
fn later_than(before: Option<Timestamp>, now: Timestamp) -> Timestamp {
    before.map_or(now, |before| now.max(before.plus(Duration::from_millis(1))))
}

/// Returns true if the difference between two records was made by a request rather than by a worker,
/// which changes neither version nor status.
fn was_requested(before: &FileRecord, now: &FileRecord) -> bool {
    (before.version, before.state.status()) != (now.version, now.state.status())
}
