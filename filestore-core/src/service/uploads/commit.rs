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

use super::arrived::Arrived;
use super::claims::ClaimGuards;
use super::idempotency::IdempotencyGuard;
use super::new_files::{OneOrMore, ReplyShape, StagedFiles};
use super::placement::{MayLeave, Placement};
use super::staged::{Held, Staged};
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
use crate::service::settled::until_settled;
use crate::service::{FileStore, Inner};
use crate::storage::StagedBlob;
use crate::tasks;

/// Times an insert is placed before it ends in `Conflict`; one whose binding changed under it is
/// placed anew.
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

    /// Finds the reply of an earlier request with the same key and content, if there was one.
    async fn replay(&self, inner: &Inner) -> Result<Option<StoredReply>> {
        match self.key() {
            Some((guard, fingerprint)) => guard.replay(inner, fingerprint).await,
            None => Ok(None),
        }
    }
}

type Committed = Uploaded<OneOrMore<FileRecord>>;

/// Records whose bytes are where they belong, ready to be inserted.
struct Prepared {
    records: OneOrMore<FileRecord>,
    objects: Objects,
    insert: InsertFiles,
    claimed: Arc<Claimed>,
}

impl FileStore {
    /// Commits the files, or finds the reply to an earlier request with the same key. A caller that is
    /// cancelled before the insert is queued leaves nothing behind.
    pub(super) async fn commit(
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

        let (files, staged) = files.arrive().await;
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
        until_settled("the organization's binding", PLACEMENTS, || async {
            let place = self.inner.place(&files.organization_id, may_leave).await?;
            let prepared = self.prepare(&place, files, era, claimed).await?;
            self.insert(prepared, staged).await
        })
        .await
    }

    /// Makes the records, and writes their bytes to the provider if they belong there.
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

    /// Inserts the records; `None` if the binding changed meanwhile.
    async fn insert(&self, prepared: Prepared, staged: &Staged) -> Result<Option<Committed>> {
        let (store, held) = (self.clone(), staged.hold());
        // From here on nothing is cancelled. The claims live until the outcome is known.
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
                self.settle_new(&records, held).await;
                (Ok(Some(Uploaded::New(records))), Vec::new())
            }
            Ok(Inserted::PlacementStale) => (Ok(None), held.release()),
            Ok(Inserted::OverQuota) => {
                let quota = quota_bytes.unwrap_or_default();
                (Err(self.over_quota(&organization, quota).await), held.release())
            }
            Ok(Inserted::UploadLost) => (Err(upload_lost()), held.release()),
            Ok(Inserted::PermitSpent) => (Err(permit_spent()), held.release()),
            Ok(Inserted::Erased) => (Err(ended_by_erasure(permit.as_ref())), held.release()),
            Ok(Inserted::OverFileQuota) => {
                let quota = quota_files.unwrap_or_default();
                (Err(self.over_file_quota(&organization, quota).await), held.release())
            }
            Ok(Inserted::IdempotencyTaken) => (self.replay_taken(&claimed).await, held.release()),
            Err(error) => {
                self.inner.discard_uncommitted(held.own_ids(), &error).await;
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
            self.inner.prepare_variants(record);
        }
    }

    /// Finds the reply of the request that took the key first.
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
    /// Refuses work that began before an erasure of its organization, as early as it is known: before bytes
    /// go to a provider, and before a remembered reply is given again. The insert asks once more.
    async fn expect_era(
        &self,
        organization: &OrganizationId,
        era: Era,
        permit: Option<&UploadPermit>,
    ) -> Result<()> {
        // Nothing was erased since, so there is nothing to ask for.
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

/// Makes the error of an upload that an erasure of its organization has ended.
fn ended_by_erasure(permit: Option<&UploadPermit>) -> Error {
    permit.map_or_else(erased, |_| erased_since_signed())
}
