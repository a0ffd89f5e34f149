//! Changes of a file: make it a thumbnail, make it ready, replace its bytes, or edit its name, type and
//! metadata.
//!
//! The store computes a change from a record and applies it as a compare-and-set. If a background worker
//! settled or moved the file first, the store computes the change again. If another request changed the file
//! first, one of the two requests gets `Conflict`.
//!
//! # Cancellation
//! If a change is cancelled before its compare-and-set is queued, it leaves no trace. After that, the change
//! runs in its own task (see [`commit`](crate::service::uploads::commit)).
//!
//! # Replacing bytes
//! The new bytes are staged. One transaction gives the record its new key, size, digest and version, and
//! writes a `blob_gc` row for the old blob. Then the staged file gets its final name, and the variants are
//! removed. A reader with the old record can still read the old blob during the grace period.

use std::slice;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::io::AsyncRead;

use super::Files;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::id::FileId;
use crate::domain::report::receipt::Content;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{
    BindingSeen, DroppedBlob, Expected, FinishUpload, UpdateFile, Updated, Writes,
};
use crate::service::providers::cloud_write::{Objects, Refusal};
use crate::service::request::{Change, Edit, GivenName, Preconditions, Replacement};
use crate::service::retry::retry_if_changed;
use crate::service::uploads::arrived::{Arrived, Naming};
use crate::service::uploads::claims::ReplacementClaims;
use crate::service::uploads::commit::upload_lost;
use crate::service::uploads::placement::{MayLeave, Placement};
use crate::service::uploads::staged::{Lent, Staged};
use crate::service::{FileStore, Inner};
use crate::storage::StagedBlob;
use crate::tasks;

/// The maximum number of attempts before `Conflict`. An attempt that lost to a worker is repeated.
const DECISIONS: usize = 8;

/// The change result. The file can have had the requested state before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Changed {
    /// The record after the change.
    pub record: Arc<FileRecord>,
    /// The sync status for replies: NONE after a promotion, otherwise the record's status.
    pub shown_sync: SyncStatus,
}

impl Files<'_> {
    /// Changes a file's status, or its name, type and custom metadata. The methods below are shortcuts for
    /// one change each. To replace the bytes, call [`replace`](Self::replace).
    ///
    /// Returns `NotFound` for an unknown id, a file outside the scope and a deleted file. Returns
    /// `PreconditionFailed` if a condition does not hold. Returns `InvalidTransition`, with the statuses
    /// from, to and allowed, if the file cannot get this status. Returns `Conflict` if another request
    /// changed the file at the same time.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, IfMatch, Scope};
    /// use filestore_core::Change;
    ///
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let files = store.scoped(&Scope::All);
    /// let seen = IfMatch::OneOf(vec![files.record(id).await?.blob.sha256]);
    /// files.change(id, Change::MakeReady, seen).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change(
        self,
        id: FileId,
        change: Change,
        conditions: impl Into<Preconditions>,
    ) -> Result<Changed> {
        let event = match change {
            Change::MakeThumbnail => Event::MakeThumbnail,
            Change::MakeReady => Event::MakeReady,
            Change::Edit(edit) => {
                edit.check(self.store.name_limit())?;
                Event::Edit(edit)
            }
        };
        let (decision, no_bytes) =
            (Decision { event, new: None, upload: None }, Staged::new(Vec::new()));
        self.decide(id, &decision, &no_bytes, &conditions.into()).await
    }

    /// Replaces a file's bytes with `staged`, and finishes the resumable upload that sent them. Errors are the
    /// same as for [`change`](Self::change). The new bytes are kept only if the change succeeds.
    pub(in crate::service) async fn replace_bytes(
        self,
        id: FileId,
        new: Replacement,
        (staged, upload): (StagedBlob, Option<FinishUpload>),
        conditions: &Preconditions,
    ) -> Result<Changed> {
        let event = if new.make_ready { Event::MakeReady } else { Event::Replace };
        let arrived = Arrived::of(&staged).await?;
        let new = New { given: new.given, metadata: new.metadata, arrived };
        let decision = Decision { event, new: Some(new), upload };
        let staged = Staged::new(vec![staged]);
        let changed = self.decide(id, &decision, &staged, conditions).await;

        self.store.inner.discard_rest(staged).await;
        changed
    }

    /// Makes a TEMP file a THUMBNAIL. A second call has no effect. Errors as for [`change`](Self::change).
    pub async fn make_thumbnail(self, id: FileId) -> Result<Changed> {
        self.change(id, Change::MakeThumbnail, None).await
    }

    /// Makes a file READY. A second call has no effect. Errors as for [`change`](Self::change).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let changed = store.scoped(&Scope::All).make_ready(id).await?;
    /// assert_eq!(changed.record.expires_at, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn make_ready(self, id: FileId) -> Result<Changed> {
        self.change(id, Change::MakeReady, None).await
    }

    /// Replaces the content of a file with all bytes of `reader`. The file keeps its status. Errors as for
    /// [`change`](Self::change).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let changed = store.scoped(&Scope::All).replace(id, &b"new bytes"[..]).await?;
    /// assert_eq!(changed.record.blob.size_bytes, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(self, id: FileId, reader: impl AsyncRead + Unpin) -> Result<Changed> {
        let claims = ReplacementClaims::new(id);
        let mut session = self.store.uploads().begin_replacement(claims, self.scope).await?;
        session.write_all(reader).await?;
        session.commit_replacement(Replacement::new(), self.scope).await
    }

    /// Replaces the content of a file with all chunks of `stream`, without copying them. Otherwise like
    /// [`replace`](Self::replace).
    pub async fn replace_stream<E>(
        self,
        id: FileId,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Changed>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let claims = ReplacementClaims::new(id);
        let mut session = self.store.uploads().begin_replacement(claims, self.scope).await?;
        session.write_stream(stream).await?;
        session.commit_replacement(Replacement::new(), self.scope).await
    }

    /// Changes a file's name, type or single members of the custom metadata. Version, digest and content stay
    /// the same. A second call has no effect. If two edits run at the same time, both take effect.
    ///
    /// Errors as for [`change`](Self::change). Also returns `TooLarge` or `InvalidField` if the custom
    /// metadata would exceed its limits.
    ///
    /// ```no_run
    /// # use filestore_core::{Edit, FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let edit = Edit::default()
    ///     .with_name("invoice-7.pdf")
    ///     .with_metadata(r#"{"paid": true, "draft": null}"#.parse()?);
    /// let changed = store.scoped(&Scope::All).edit(id, edit).await?;
    /// assert_eq!(changed.record.ext, "pdf");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn edit(self, id: FileId, edit: Edit) -> Result<Changed> {
        self.change(id, Change::Edit(edit), None).await
    }

    /// Checks a replacement before the new bytes arrive. Fails if the file refuses any new bytes. Returns the
    /// current record.
    pub(in crate::service) async fn check_change(
        self,
        id: FileId,
        conditions: &Preconditions,
    ) -> Result<Arc<FileRecord>> {
        let record = self.record(id).await?;
        conditions.check(&record)?;
        Ok(record)
    }

    async fn decide(
        self,
        id: FileId,
        decision: &Decision,
        staged: &Staged,
        conditions: &Preconditions,
    ) -> Result<Changed> {
        let first: OnceLock<Arc<FileRecord>> = OnceLock::new();

        retry_if_changed("the file", DECISIONS, || async {
            let old = self.record_fresh(id).await?;
            if first.get().is_some_and(|first| was_requested(first, &old)) {
                let message = "another request changed the file at the same moment";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            conditions.check(&old)?;
            staged.belong_to(&old.organization_id)?;
            let changed = change_once(self.store, &old, decision, staged).await?;
            if changed.is_none() {
                first.get_or_init(|| old);
            }
            Ok(changed)
        })
        .await
    }
}

/// A change with bytes that have arrived.
struct Decision {
    event: Event,
    new: Option<New>,
    /// The resumable upload that the change finishes.
    upload: Option<FinishUpload>,
}

#[derive(Debug)]
enum Event {
    MakeThumbnail,
    MakeReady,
    Replace,
    Edit(Edit),
}

/// Bytes that have arrived, with their name, type and metadata.
struct New {
    given: GivenName,
    metadata: Option<CustomMetadata>,
    arrived: Arrived,
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

/// Computes the change from `old` and applies it. `None` if the file changed in the meantime.
async fn change_once(
    store: &FileStore,
    old: &Arc<FileRecord>,
    decision: &Decision,
    staged: &Staged,
) -> Result<Option<Changed>> {
    let Some((next, seen)) = plan(store, old, decision).await? else {
        return Ok(Some(decision.changed(Arc::clone(old))));
    };

    let objects = match &decision.new {
        Some(new) if !next.blob.provider.is_local() => {
            let staged = next.blob.key.sibling(new.arrived.blob_id);
            store.inner.write_through(slice::from_ref(&next), &[staged]).await?
        }
        _ => store.inner.no_objects(),
    };

    let (store, old, lent) = (store.clone(), Arc::clone(old), staged.lend());
    let update = UpdateFile {
        upload: decision.upload,
        ..update_of(&store.inner, &old, &next, seen.clone())
    };
    // From here on nothing is cancelled.
    let applying = tasks::spawn_in_span(async move {
        apply(&store, &old, (next, update), seen, objects, lent).await
    });
    let (applied, released) =
        applying.await.map_err(|error| Error::internal("changing a file", error))?;

    staged.take_back(released);
    Ok(applied?.map(|record| decision.changed(record)))
}

/// Computes the new record from `old`. `None` if `old` already has the requested state.
async fn plan(
    store: &FileStore,
    old: &FileRecord,
    decision: &Decision,
) -> Result<Option<(FileRecord, Option<BindingSeen>)>> {
    let now = store.inner.now().max(old.updated_at);
    let mut next = old.clone();
    next.state = match &decision.event {
        Event::MakeThumbnail => old.state.make_thumbnail()?,
        Event::MakeReady => old.state.make_ready()?,
        Event::Replace | Event::Edit(_) => old.state,
    };

    let mut seen = None;
    if let Some(new) = &decision.new {
        let may_leave = MayLeave::from(next.state.may_leave_local());
        let place = store.inner.place(&old.organization_id, may_leave).await?;
        next.state = next.state.replace_blob(place.location)?;
        put_blob(store, &mut next, new, &place, now);
        seen = Some(place.seen);
    }
    if let Event::Edit(edit) = &decision.event {
        edit.apply(&mut next)?;
    }

    if next == *old {
        return Ok(None);
    }

    if next.state.status() != Status::Temp {
        next.expires_at = None;
    }
    // As the database does.
    if next.state.sync() != old.state.sync() || next.blob.key != old.blob.key {
        (next.sync_attempts, next.sync_error) = (0, None);
    }
    next.updated_at = now;
    if let Event::Edit(_) = &decision.event {
        let edited_at = later_than(old.edited_at, now);
        (next.updated_at, next.edited_at) = (edited_at, Some(edited_at));
    }
    Ok(Some((next, seen)))
}

fn put_blob(
    store: &FileStore,
    next: &mut FileRecord,
    new: &New,
    place: &Placement,
    now: Timestamp,
) {
    let New { given, metadata, arrived } = new;
    let naming = Naming::choose(given, arrived, store.name_limit(), || next.original_name.clone());
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

/// Commits `next` in place of `old`. `None` if the file or its binding changed in the meantime. Returns the
/// new bytes if they certainly do not belong to the file.
async fn apply(
    store: &FileStore,
    old: &FileRecord,
    (next, update): (FileRecord, UpdateFile),
    seen: Option<BindingSeen>,
    objects: Objects,
    lent: Lent,
) -> (Result<Option<Arc<FileRecord>>>, Vec<StagedBlob>) {
    let quota_bytes = update.quota_bytes;
    let updated = store.inner.metadata.update_file(update).await;
    match &updated {
        Ok(Updated::Done) => objects.refer(),
        refused => objects.withdraw(Refusal::of(refused)).await,
    }

    match updated {
        Ok(Updated::Done) => {
            if let Some(seen) = &seen {
                store.inner.wake_sync(seen);
            }
            if old.blob.key != next.blob.key {
                settle_replaced(&store.inner, &next, lent).await;
            }
            store.inner.prepare_variants(&next);
            (Ok(Some(Arc::new(next))), Vec::new())
        }
        Ok(Updated::Lost | Updated::PlacementStale) => (Ok(None), lent.release()),
        Ok(Updated::UploadLost) => (Err(upload_lost()), lent.release()),
        Ok(Updated::OverQuota) => {
            let quota = quota_bytes.unwrap_or_default();
            (Err(store.over_quota(&old.organization_id, quota).await), lent.release())
        }
        Err(error) => {
            store.inner.discard_uncommitted(lent.own_ids(), &error).await;
            (Err(error), Vec::new())
        }
    }
}

fn update_of(
    inner: &Inner,
    old: &FileRecord,
    next: &FileRecord,
    binding: Option<BindingSeen>,
) -> UpdateFile {
    let (now, config) = (inner.now(), inner.config());
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
        upload: None,
    }
}

/// Completes the commit of new bytes. Moves the staged file to its final name, or removes it if a provider
/// has the bytes. Removes the old variants.
async fn settle_replaced(inner: &Arc<Inner>, next: &FileRecord, lent: Lent) {
    if next.blob.provider.is_local() {
        inner.publish_soon([next.blob.key.clone()]);
    } else {
        inner.discard(lent.ids()).await;
    }
    forget_variants(inner, next.file_id).await;
}

/// Removes the variants of a file's old blob. Variants that cannot be removed now are removed with the file.
async fn forget_variants(inner: &Inner, id: FileId) {
    if let Err(error) = inner.pictures.engine.remove_file(id).await {
        tracing::warn!(file_id = %id, error = %error.chain(), "cached variants of an old blob stay");
    }
}

/// Returns `now`, or an instant right after `before` if that is later. Two edits never have the same instant.
fn later_than(before: Option<Timestamp>, now: Timestamp) -> Timestamp {
    before.map_or(now, |before| now.max(before.plus(Duration::from_millis(1))))
}

/// Returns true if a request caused the difference between two records. Workers change neither version nor
/// status.
fn was_requested(before: &FileRecord, now: &FileRecord) -> bool {
    (before.version, before.state.status()) != (now.version, now.state.status())
}
