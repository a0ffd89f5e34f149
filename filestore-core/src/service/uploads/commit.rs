//! The commit of new files: one file or a whole batch.
//!
//! # Cancellation
//! The caller's future runs everything before the insert. If this future is dropped, no staged bytes, objects
//! or records remain. The insert runs in a task of its own.
//!
//! # Crash safety
//! Staged bytes are kept *before* the insert starts, and discarded only if certainly no commit happened. So
//! no record loses its bytes, wherever this module is interrupted. If the failure does not tell, the module
//! asks the database. If this fails too, the bytes stay in staging, and the next start finds the record or
//! removes them.

use std::sync::Arc;

use super::arrived::Arrived;
use super::claims::ClaimGuards;
use super::idempotency::IdempotencyGuard;
use super::new_files::{OneOrMore, ReplyShape, StagedFiles};
use super::placement::{MayLeave, Placement};
use super::staged::{Lent, Staged};
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::file::reply::StoredReply;
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::erasure::{Era, erased, erased_since_signed};
use crate::metadata::{IdempotencyEntry, InsertFiles, Inserted};
use crate::service::access::signing::permit_spent;
use crate::service::providers::cloud_write::{Objects, Refusal};
use crate::service::request::Uploaded;
use crate::service::retry::retry_if_changed;
use crate::service::{FileStore, Inner};
use crate::storage::StagedBlob;
use crate::tasks;

/// The maximum number of placements of an insert before it fails with `Conflict`. If the binding changes
/// during an insert, the insert is placed again.
const PLACEMENTS: usize = 5;

/// The claims of a request, with the fingerprint of its content if it has an idempotency key.
struct Claimed {
    guards: ClaimGuards,
    fingerprint: Option<[u8; 32]>,
}

impl Claimed {
    fn new(guards: ClaimGuards, files: &StagedFiles) -> Self {
        let fingerprint = guards.idempotency.as_ref().map(|_| files.fingerprint());
        Self { guards, fingerprint }
    }

    fn key(&self) -> Option<(&IdempotencyGuard, &[u8; 32])> {
        self.guards.idempotency.as_ref().zip(self.fingerprint.as_ref())
    }

    /// Finds the reply to an earlier request with the same key and content.
    async fn replay(&self, inner: &Inner) -> Result<Option<StoredReply>> {
        match self.key() {
            Some((guard, fingerprint)) => guard.replay(inner, fingerprint).await,
            None => Ok(None),
        }
    }
}

type Committed = Uploaded<OneOrMore<FileRecord>>;

/// Records with stored bytes, ready for the insert.
struct Prepared {
    records: OneOrMore<FileRecord>,
    objects: Objects,
    insert: InsertFiles,
    claimed: Arc<Claimed>,
}

impl FileStore {
    /// Commits the files, or finds the reply to an earlier request with the same key. If the caller is
    /// cancelled before the insert is queued, nothing remains.
    pub(super) async fn insert_or_replay(
        &self,
        files: StagedFiles,
        guards: ClaimGuards,
    ) -> Result<Committed> {
        let era = files.era();
        self.inner.expect_era(&files.organization_id, era, files.permit.as_ref()).await?;
        let claimed = Arc::new(Claimed::new(guards, &files));
        if let Some(reply) = claimed.replay(&self.inner).await? {
            return Ok(Uploaded::Replayed(reply));
        }

        let (files, staged) = files.arrive().await?;
        let staged = Staged::new(staged);
        let outcome = match staged.belong_to(&files.organization_id) {
            Ok(()) => self.insert_placed(&files, &staged, era, &claimed).await,
            Err(busy) => Err(busy),
        };

        self.inner.discard_rest(staged).await;
        outcome
    }

    async fn insert_placed(
        &self,
        files: &StagedFiles<Arrived>,
        staged: &Staged,
        era: Era,
        claimed: &Arc<Claimed>,
    ) -> Result<Committed> {
        let may_leave = if files.temp { MayLeave::No } else { MayLeave::Yes };
        retry_if_changed("the organization's binding", PLACEMENTS, || async {
            let place = self.inner.place(&files.organization_id, may_leave).await?;
            let prepared = self.prepare(&place, files, era, claimed).await?;
            self.insert(prepared, staged).await
        })
        .await
    }

    /// Makes the records, and writes their bytes to the provider if the placement requires this.
    async fn prepare(
        &self,
        place: &Placement,
        files: &StagedFiles<Arrived>,
        era: Era,
        claimed: &Arc<Claimed>,
    ) -> Result<Prepared> {
        let records = files.records(self, place);
        let listed = records.clone().into_vec();
        let idempotency = match claimed.key() {
            Some(key) => {
                let bound = place.seen.active.as_ref().map(|(provider, _)| provider);
                Some(self.idempotency_entry(key, files.reply, &records, bound)?)
            }
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
            era,
            upload: files.upload,
        };
        Ok(Prepared { records, objects, insert, claimed: Arc::clone(claimed) })
    }

    /// Inserts the records. `None` if the binding has changed since.
    async fn insert(&self, prepared: Prepared, staged: &Staged) -> Result<Option<Committed>> {
        let (store, lent) = (self.clone(), staged.lend());
        // From here on, no caller cancels the work. The claims live until the outcome is known.
        let inserting =
            tasks::spawn_in_span(async move { store.insert_lent(prepared, lent).await });
        let (outcome, released) =
            inserting.await.map_err(|error| Error::internal("committing an upload", error))?;

        staged.take_back(released);
        outcome
    }

    /// Inserts the records. Returns the bytes if certainly no record names them.
    async fn insert_lent(
        &self,
        prepared: Prepared,
        lent: Lent,
    ) -> (Result<Option<Committed>>, Vec<StagedBlob>) {
        let Prepared { records, objects, insert, claimed } = prepared;
        let (binding, quota_bytes) = (insert.binding.clone(), insert.quota_bytes);
        let (quota_files, permit) = (insert.quota_files, insert.permit.clone());
        let organization = records.first.organization_id.clone();
        let inserted = self.inner.metadata.insert_files(insert).await;
        match &inserted {
            Ok(Inserted::Done) => objects.refer(),
            refused => objects.withdraw(Refusal::of(refused)).await,
        }

        match inserted {
            Ok(Inserted::Done) => {
                self.inner.wake_sync(&binding);
                self.settle_new(&records, lent).await;
                (Ok(Some(Uploaded::New(records))), Vec::new())
            }
            Ok(Inserted::PlacementStale) => (Ok(None), lent.release()),
            Ok(Inserted::OverQuota) => {
                let quota = quota_bytes.unwrap_or_default();
                (Err(self.over_quota(&organization, quota).await), lent.release())
            }
            Ok(Inserted::UploadLost) => (Err(upload_lost()), lent.release()),
            Ok(Inserted::PermitSpent) => (Err(permit_spent()), lent.release()),
            Ok(Inserted::Erased) => (Err(ended_by_erasure(permit.as_ref())), lent.release()),
            Ok(Inserted::OverFileQuota) => {
                let quota = quota_files.unwrap_or_default();
                (Err(self.over_file_quota(&organization, quota).await), lent.release())
            }
            Ok(Inserted::IdempotencyTaken) => (self.replay_taken(&claimed).await, lent.release()),
            Err(error) => {
                self.inner.discard_uncommitted(lent.own_ids(), &error).await;
                (Err(error), Vec::new())
            }
        }
    }

    /// Does the work after the commit of new files. Blobs get their final names, or staged bytes are
    /// discarded if a provider stores the objects. Then variants are made in advance.
    async fn settle_new(&self, records: &OneOrMore<FileRecord>, lent: Lent) {
        if records.first.blob.provider.is_local() {
            let keys = records.iter().map(|record| record.blob.key.clone());
            self.inner.publish_soon(keys);
        } else {
            self.inner.discard(lent.ids()).await;
        }

        for record in records.iter() {
            self.inner.prepare_variants(record);
        }
    }

    /// Finds the reply to the request that used the key first.
    async fn replay_taken(&self, claimed: &Claimed) -> Result<Option<Committed>> {
        let reply = claimed.replay(&self.inner).await?.ok_or_else(|| {
            Error::new(ErrorKind::Conflict, "the idempotency key expired just now")
        })?;
        Ok(Some(Uploaded::Replayed(reply)))
    }

    fn idempotency_entry(
        &self,
        (guard, fingerprint): (&IdempotencyGuard, &[u8; 32]),
        shape: ReplyShape,
        records: &OneOrMore<FileRecord>,
        bound: Option<&ProviderCode>,
    ) -> Result<IdempotencyEntry> {
        let config = self.inner.config();
        let reply = match shape {
            ReplyShape::Record => StoredReply::of_file(&records.first, &config, bound)?,
            ReplyShape::List => StoredReply::of_batch(&records.clone().into_vec(), &config, bound)?,
        };

        Ok(IdempotencyEntry {
            organization: guard.organization.clone(),
            key: guard.key.clone(),
            fingerprint: *fingerprint,
            file_ids: reply.file_ids().to_vec(),
            reply: reply.into_json(),
            expires_at: self.inner.now().plus(config.idempotency_ttl),
        })
    }
}

impl Inner {
    /// Refuses work that began before an erasure of its organization. The check is early: before bytes go to
    /// a provider, and before a stored reply is sent again. The insert checks again.
    async fn expect_era(
        &self,
        organization: &OrganizationId,
        era: Era,
        permit: Option<&UploadPermit>,
    ) -> Result<()> {
        // No organization was erased since, so no query is necessary.
        if era >= self.metadata.era() {
            return Ok(());
        }
        if self.metadata.is_erased_since(organization, era).await? {
            return Err(ended_by_erasure(permit));
        }
        Ok(())
    }
}

/// Makes the error of a commit whose resumable upload is over, or in other hands.
pub(in crate::service) fn upload_lost() -> Error {
    let message = "the upload is over, or another request has it";
    Error::new(ErrorKind::UploadSuperseded, message)
}

/// Makes the error of an upload that an erasure of its organization ended.
fn ended_by_erasure(permit: Option<&UploadPermit>) -> Error {
    permit.map_or_else(erased, |_| erased_since_signed())
}
