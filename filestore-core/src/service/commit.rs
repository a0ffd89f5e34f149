//! The commit of new files, one or a whole batch.
//!
//! # Cancellation
//! Everything up to the insert is done in the caller's own future: whoever goes away before leaves
//! neither staged bytes nor objects nor records. The insert runs in a task of its own.
//!
//! # Crash safety
//! Staged bytes are kept *before* the insert is attempted, and discarded only when it is certain that
//! nothing was committed: whatever is interrupted here, no record loses its bytes. If the failure
//! does not say, the database is asked; if that fails too the bytes stay in staging, and the next
//! start finds the record or removes them.

use std::sync::Arc;

use super::FileStore;
use super::arrived::{Arrived, Naming};
use super::cloud_write::{Objects, Refusal};
use super::idempotency::{Fingerprint, IdempotencyGuard};
use super::placement::{MayLeave, Placement};
use super::quota::{over_file_quota, over_quota};
use super::request::{GivenName, Uploaded};
use super::settled::until_settled;
use super::signing::permit_spent;
use super::staged::{Held, Staged};
use crate::domain::clock::Timestamp;
use crate::domain::custom_metadata::CustomMetadata;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, FileId, OrganizationId, SubSystem};
use crate::domain::lifecycle::FileState;
use crate::domain::path::BlobKey;
use crate::domain::record::FileRecord;
use crate::domain::reply::StoredReply;
use crate::domain::signed_url::UploadPermit;
use crate::metadata::{IdempotencyEntry, InsertFiles, Inserted};
use crate::storage::StagedBlob;
use crate::tasks;

/// Times an insert is placed before it ends in `Conflict`; one whose binding changed under it is
/// placed anew.
const PLACEMENTS: usize = 5;

/// Files on their way to becoming records; `B` stands for the bytes of each.
pub(super) struct StagedFiles<B = StagedBlob> {
    pub(super) organization_id: OrganizationId,
    pub(super) sub_system: SubSystem,
    pub(super) temp: bool,
    pub(super) files: OneOrMore<NewFile<B>>,
    pub(super) reply: ReplyShape,
    pub(super) permit: Option<UploadPermit>,
}

/// One file on its way to becoming a record.
pub(super) struct NewFile<B = StagedBlob> {
    /// The item's number in its batch.
    pub(super) index: Option<u32>,
    pub(super) given: GivenName,
    pub(super) metadata: CustomMetadata,
    pub(super) bytes: B,
}

/// A list that is never empty.
#[derive(Debug, Clone)]
pub(super) struct OneOrMore<T> {
    pub(super) first: T,
    rest: Vec<T>,
}

/// The shape of a reply to be remembered.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReplyShape {
    /// The one record of an upload.
    Record,
    /// An array of the records of a batch.
    List,
}

/// An idempotency key in use, with the fingerprint of the request that uses it.
struct Keyed {
    guard: IdempotencyGuard,
    fingerprint: [u8; 32],
}

type Committed = Uploaded<OneOrMore<FileRecord>>;

/// Records whose bytes are where they belong, ready to be inserted.
struct Prepared {
    records: OneOrMore<FileRecord>,
    objects: Objects,
    insert: InsertFiles,
    keyed: Option<Arc<Keyed>>,
}

impl FileStore {
    /// Commits the files, or finds the reply to an earlier request with the same key. A caller that is
    /// cancelled before the insert is queued leaves nothing behind.
    pub(super) async fn commit(
        &self,
        files: StagedFiles,
        guard: Option<IdempotencyGuard>,
    ) -> Result<Committed> {
        let keyed = guard.map(|guard| Arc::new(Keyed { guard, fingerprint: files.fingerprint() }));
        if let Some(keyed) = &keyed
            && let Some(reply) = self.replay(&keyed.guard, &keyed.fingerprint).await?
        {
            return Ok(Uploaded::Replayed(reply));
        }

        let (files, staged) = files.arrive().await;
        let staged = Staged::new(staged);
        let outcome = match staged.belong_to(&files.organization_id) {
            Ok(()) => self.insert_placed(&files, &staged, keyed.as_ref()).await,
            Err(busy) => Err(busy),
        };

        self.inner.discard_rest(staged).await;
        outcome
    }

    async fn insert_placed(
        &self,
        files: &StagedFiles<Arrived>,
        staged: &Staged,
        keyed: Option<&Arc<Keyed>>,
    ) -> Result<Committed> {
        let may_leave = if files.temp { MayLeave::No } else { MayLeave::Yes };
        until_settled("the organization's binding", PLACEMENTS, || async {
            let place = self.inner.place(&files.organization_id, may_leave).await?;
            let prepared = self.prepare(&place, files, keyed).await?;
            self.insert(prepared, staged).await
        })
        .await
    }

    /// Makes the records, and writes their bytes to the provider if they belong there.
    async fn prepare(
        &self,
        place: &Placement,
        files: &StagedFiles<Arrived>,
        keyed: Option<&Arc<Keyed>>,
    ) -> Result<Prepared> {
        let records = files.records(self, place);
        let listed = records.clone().into_vec();
        let idempotency = match keyed {
            Some(keyed) => Some(self.idempotency_entry(keyed, files.reply, &records)?),
            None => None,
        };

        let objects = if place.provider.is_local() {
            self.inner.no_objects()
        } else {
            let staged = files.staged_keys(self.inner.now());
            self.inner.write_through(&listed, &staged).await?
        };

        let config = self.inner.config();
        let insert = InsertFiles {
            records: listed,
            binding: place.seen.clone(),
            quota_bytes: config.quota_bytes,
            quota_files: config.quota_files,
            idempotency,
            permit: files.permit.clone(),
        };
        Ok(Prepared { records, objects, insert, keyed: keyed.cloned() })
    }

    /// Inserts the records; `None` if the binding changed meanwhile.
    async fn insert(&self, prepared: Prepared, staged: &Staged) -> Result<Option<Committed>> {
        let (store, held) = (self.clone(), staged.hold());
        // From here on nothing is cancelled. The guard of the key lives until the outcome is known.
        let inserting = tasks::spawn(async move { store.insert_held(prepared, held).await });
        let (outcome, released) =
            inserting.await.map_err(|error| Error::internal("committing an upload", error))?;

        staged.take_back(released);
        outcome
    }

    /// Inserts the records, and returns their bytes if these are certainly not theirs.
    async fn insert_held(
        &self,
        prepared: Prepared,
        held: Held,
    ) -> (Result<Option<Committed>>, Vec<StagedBlob>) {
        let Prepared { records, objects, insert, keyed } = prepared;
        let (binding, quota_bytes) = (insert.binding.clone(), insert.quota_bytes);
        let quota_files = insert.quota_files;
        let inserted = self.inner.metadata.insert_files(insert).await;
        match &inserted {
            Ok(Inserted::Done) => objects.refer(),
            refused => objects.withdraw(Refusal::of(refused)).await,
        }

        match inserted {
            Ok(Inserted::Done) => {
                self.inner.wake_sync(&binding);
                self.settle_new(&records, held).await;
                (Ok(Some(Uploaded::New(records))), Vec::new())
            }
            Ok(Inserted::PlacementStale) => (Ok(None), held.release()),
            Ok(Inserted::OverQuota) => {
                (Err(over_quota(quota_bytes.unwrap_or_default())), held.release())
            }
            Ok(Inserted::PermitSpent) => (Err(permit_spent()), held.release()),
            Ok(Inserted::OverFileQuota) => {
                (Err(over_file_quota(quota_files.unwrap_or_default())), held.release())
            }
            Ok(Inserted::IdempotencyTaken) => (self.replay_taken(keyed).await, held.release()),
            Err(error) => {
                self.inner.discard_uncommitted(held.ids(), &error).await;
                (Err(error), Vec::new())
            }
        }
    }

    /// Does what follows the commit of new files: final names, or the end of the staged bytes whose
    /// objects a provider has; variants in advance.
    async fn settle_new(&self, records: &OneOrMore<FileRecord>, held: Held) {
        if records.first.blob.provider.is_local() {
            let keys = records.iter().map(|record| record.blob.key.clone());
            self.inner.publish_soon(keys);
        } else {
            self.inner.discard(held.ids()).await;
        }

        for record in records.iter() {
            self.prepare_variants(record);
        }
    }

    /// Finds the reply of the request that took the key first.
    async fn replay_taken(&self, keyed: Option<Arc<Keyed>>) -> Result<Option<Committed>> {
        let keyed = keyed.expect("only keyed inserts collide");
        let reply = self.replay(&keyed.guard, &keyed.fingerprint).await?.ok_or_else(|| {
            Error::new(ErrorKind::Conflict, "the idempotency key expired just now")
        })?;
        Ok(Some(Uploaded::Replayed(reply)))
    }

    fn idempotency_entry(
        &self,
        keyed: &Keyed,
        shape: ReplyShape,
        records: &OneOrMore<FileRecord>,
    ) -> Result<IdempotencyEntry> {
        let reply = match shape {
            ReplyShape::Record => StoredReply::of_file(&records.first)?,
            ReplyShape::List => StoredReply::of_batch(&records.clone().into_vec())?,
        };

        Ok(IdempotencyEntry {
            organization: keyed.guard.organization.clone(),
            key: keyed.guard.key.clone(),
            fingerprint: keyed.fingerprint,
            file_ids: reply.file_ids().to_vec(),
            reply: reply.into_json(),
            expires_at: self.inner.now().plus(self.inner.config().idempotency_ttl),
        })
    }
}

/// Returns true if after this error it is certain that nothing was committed: every kind but a fault
/// of the service, which may have struck during the commit itself, and a commit that a database far away
/// did not answer.
pub(super) fn leaves_nothing(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Internal | ErrorKind::OutcomeUnknown)
}

impl StagedFiles {
    fn fingerprint(&self) -> [u8; 32] {
        let mut print = Fingerprint::default();
        print.field(Some(match self.reply {
            ReplyShape::Record => "upload",
            ReplyShape::List => "batch",
        }));
        print.field(Some(self.organization_id.as_str()));
        print.field(Some(self.sub_system.as_str()));
        print.field(self.temp.then_some("temp"));

        for file in self.files.iter() {
            // Stored fingerprints have a single file as item 0.
            print.field(Some(&file.index.unwrap_or(0).to_string()));
            print.field(file.given.name.as_deref());
            print.field(file.given.mime_type.as_deref());
            // What the part says counts only where the fields are silent.
            let hints = &file.given.hints;
            print.field(hints.file_name.as_deref().filter(|_| file.given.name.is_none()));
            print.field(hints.content_type.as_deref().filter(|_| file.given.mime_type.is_none()));
            print.field(Some(&file.bytes.sha256.to_hex()));
            // Fingerprints that were stored before there was metadata have no such field, and what
            // follows them, an index, never begins with a brace.
            if !file.metadata.is_empty() {
                print.field(Some(file.metadata.as_json()));
            }
        }
        print.finish()
    }

    /// Examines the bytes, and parts what the records need from the handles of the staged files.
    async fn arrive(self) -> (StagedFiles<Arrived>, Vec<StagedBlob>) {
        let mut staged = Vec::new();
        let first = self.files.first.arrive(&mut staged).await;
        let mut rest = Vec::with_capacity(self.files.rest.len());
        for file in self.files.rest {
            rest.push(file.arrive(&mut staged).await);
        }

        let files = StagedFiles {
            organization_id: self.organization_id,
            sub_system: self.sub_system,
            temp: self.temp,
            files: OneOrMore { first, rest },
            reply: self.reply,
            permit: self.permit,
        };
        (files, staged)
    }
}

impl NewFile {
    async fn arrive(self, staged: &mut Vec<StagedBlob>) -> NewFile<Arrived> {
        let bytes = Arrived::of(&self.bytes).await;
        staged.push(self.bytes);
        NewFile { index: self.index, given: self.given, metadata: self.metadata, bytes }
    }
}

impl StagedFiles<Arrived> {
    fn key(&self, now: Timestamp, blob_id: BlobId) -> BlobKey {
        BlobKey::new(&self.organization_id, &self.sub_system, now, blob_id)
    }

    /// Returns the keys under which the staged bytes are found.
    fn staged_keys(&self, now: Timestamp) -> Vec<BlobKey> {
        self.files.iter().map(|file| self.key(now, file.bytes.blob_id)).collect()
    }

    fn records(&self, store: &FileStore, place: &Placement) -> OneOrMore<FileRecord> {
        let now = store.inner.now();
        self.files.map(|file| self.record(file, store, place, now))
    }

    fn record(
        &self,
        file: &NewFile<Arrived>,
        store: &FileStore,
        place: &Placement,
        now: Timestamp,
    ) -> FileRecord {
        let file_id = FileId::generate(now);
        let naming =
            Naming::choose(&file.given, &file.bytes, store.name_limit(), || file_id.to_string());
        let key = self.key(now, place.blob_id(file.bytes.blob_id, now));
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
            blob: file.bytes.blob(key, place.provider.clone(), now),
            state,
            version: 1,
            created_at: now,
            updated_at: now,
            expires_at: self.temp.then(|| now.plus(store.config().temp_ttl)),
            metadata: file.metadata.clone(),
            edited_at: None,
        }
    }
}

impl<T> OneOrMore<T> {
    /// Makes a list of one.
    pub(super) fn one(first: T) -> Self {
        Self { first, rest: Vec::new() }
    }

    /// Makes a list of what `all` yields; `None` if that is nothing.
    pub(super) fn from_iter(all: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut all = all.into_iter();
        Some(Self { first: all.next()?, rest: all.collect() })
    }

    /// Makes a plain list.
    pub(super) fn into_vec(self) -> Vec<T> {
        let mut all = self.rest;
        all.insert(0, self.first);
        all
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    fn map<U>(&self, mut make: impl FnMut(&T) -> U) -> OneOrMore<U> {
        OneOrMore { first: make(&self.first), rest: self.rest.iter().map(make).collect() }
    }
}
