//! The creation of a resumable upload (steps R1 and R2).

use super::ResumableUploads;
use super::permit;
use super::request::{CreatedUpload, NewResumable, ResumableTarget};
use super::terms::{self, Terms};
use super::turns::Wish;
use crate::domain::access::scope::Scope;
use crate::domain::config::ResumableConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::{UploadBounds, UploadStage};
use crate::domain::id::{BlobId, OrganizationId, UploadId};
use crate::domain::report::erasure::erased;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{UploadCreated, UploadLimits, UploadRow};
use crate::service::access::signing::permit_spent;
use crate::service::uploads::quota::QuotaReservation;
use crate::storage::{DigestState, StagedPoint};
use crate::tasks::step::{Step, reached};

/// The step in which an upload of unknown length holds bytes.
const HELD_STEP: u64 = 64 << 20;

/// The seconds after which a client tries again that found too many uploads.
const RETRY_AFTER_SECS: u64 = 60;

impl ResumableUploads<'_> {
    /// Creates an upload. If an earlier creation had the same idempotency key and the same terms, returns the earlier
    /// upload.
    ///
    /// Errors:
    /// - `InvalidField` for an invalid name or type, and an extension that the [policy](crate::FilePolicy) refuses
    /// - `TooLarge` for a length over [`ResumableConfig::max_size`] or over that of the policy
    /// - `QuotaExceeded` and `StorageFull` if there is no room for the length
    /// - `TooManyUploads` if a limit of [`ResumableConfig`] is reached
    /// - `IdempotencyMismatch` if the key was used with other terms
    /// - `SignatureUsed` if the signed URL was used already
    /// - `NotFound` and `PreconditionFailed` for a replacement
    ///
    /// [`ResumableConfig`]: crate::config::ResumableConfig
    /// [`ResumableConfig::max_size`]: crate::config::ResumableConfig::max_size
    pub async fn create(self, new: NewResumable) -> Result<CreatedUpload> {
        let (organization, freed) = self.check_target(&new.target).await?;
        let row = self.row_of(&new, organization)?;
        loop {
            if let Some(created) = self.create_once(&new, &row, freed).await? {
                return Ok(created);
            }
        }
    }

    /// Creates the upload of `row`, or finds an earlier one. `None` if an earlier one was in the way, and is gone.
    async fn create_once(
        self,
        new: &NewResumable,
        row: &UploadRow,
        freed: u64,
    ) -> Result<Option<CreatedUpload>> {
        let inner = &self.store.inner;
        let config = inner.config();
        // A repeat needs no room beside the upload that it finds.
        if let Some(key) = &row.idempotency
            && let Some(there) = inner.metadata.upload_of_key(&row.organization, key).await?
        {
            return self.found(there, row).await;
        }

        self.check_new_permit(new, &row.organization).await?;
        if let Some(length) = new.length {
            terms::shown(&row.terms).policy().check_size(length)?;
            self.expect_room(length, config.uploads.max_size).await?;
        }
        let reservation =
            QuotaReservation::claim(self.store, &row.organization, new.length.unwrap_or(0), freed)
                .await?;
        let created = inner.metadata.create_upload(row.clone(), limits(&config.uploads)).await?;
        match created {
            UploadCreated::Done => reached(Step::ResumableBegun),
            UploadCreated::KeyTaken(there) => return self.found(*there, row).await,
            UploadCreated::Full => return Err(full("the service")),
            UploadCreated::OrganizationFull => return Err(full("the organization")),
            UploadCreated::Erased => return Err(erased()),
        }

        if let Err(error) = inner.stores.local().make_resumable(row.blob_id).await {
            inner.metadata.forget_upload(row.upload_id, row.epoch).await?;
            return Err(error);
        }
        inner.uploads.resumable.hold(row.upload_id, reservation);
        self.note_copy(row, StagedPoint::default());
        let upload = self.view(row.clone()).await?;
        Ok(Some(CreatedUpload { upload, is_replay: false }))
    }

    /// Checks what can be checked before the bytes arrive. Returns the organization, and the bytes in whose place
    /// the new ones go.
    async fn check_target(self, target: &ResumableTarget) -> Result<(OrganizationId, u64)> {
        let name_limit = self.store.name_limit();
        match target {
            ResumableTarget::Partial { organization_id } => Ok((organization_id.clone(), 0)),
            ResumableTarget::New(new) => {
                new.given.check(name_limit)?;
                new.policy.check_name(&new.given.judged())?;
                Ok((new.organization_id.clone(), 0))
            }
            ResumableTarget::Replace { file_id, new, conditions, scope } => {
                new.given.check(name_limit)?;
                new.policy.check_name(&new.given.judged())?;
                let files = self.store.scoped(scope);
                let record = files.check_change(*file_id, conditions).await?;
                Ok((record.organization_id.clone(), record.blob.size_bytes))
            }
        }
    }

    /// Refuses a length that is over the limit, or that the disk cannot take now.
    pub(super) async fn expect_room(self, length: u64, max: u64) -> Result<()> {
        if length > max {
            let message = format!("a resumable upload is at most {max} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_field("Upload-Length")
                .with_limit(max));
        }
        self.expect_space(length).await
    }

    /// Refuses bytes that the disk cannot take now.
    pub(super) async fn expect_space(self, bytes: u64) -> Result<()> {
        let disk = self.store.inner.stores.local().disk_space().await?;
        if bytes > disk.free_bytes.saturating_sub(disk.reserve_bytes) {
            return Err(Error::new(ErrorKind::StorageFull, "the storage is full"));
        }
        Ok(())
    }

    fn row_of(self, new: &NewResumable, organization: OrganizationId) -> Result<UploadRow> {
        let inner = &self.store.inner;
        let now = inner.now();
        Ok(UploadRow {
            upload_id: UploadId::generate(now),
            organization,
            server: inner.metadata.server_name(),
            blob_id: BlobId::generate(now),
            stage: UploadStage::Open,
            era: new.era.unwrap_or_else(|| inner.metadata.era()),
            epoch: 1,
            offset: 0,
            length: new.length,
            held_bytes: new.length.unwrap_or(0),
            digest: DigestState::default().to_bytes(),
            head: Vec::new(),
            terms: Terms::of(new).to_text()?,
            idempotency: match (&new.permit, &new.idempotency) {
                (Some(permit), _) => Some(permit.idempotency()),
                // The form of a key in the stored replies of uploads.
                (None, Some(key)) => Some(format!("{}\n{}", key.caller(), key.key())),
                (None, None) => None,
            },
            file_id: None,
            failure: None,
            created_at: now,
            updated_at: now,
            expires_at: now
                .plus(inner.config().uploads.lifetime)
                .min(permit::latest(new.permit.as_ref())),
        })
    }

    /// Returns the upload that an earlier creation has made, if its terms were the same. An unfinished upload of a
    /// signed URL gives way to one with other terms: `None`.
    async fn found(self, there: UploadRow, wanted: &UploadRow) -> Result<Option<CreatedUpload>> {
        if there.terms != wanted.terms && terms::shown(&wanted.terms).permit.is_some() {
            if there.stage == UploadStage::Finished {
                return Err(permit_spent());
            }
            // A newer request keeps its upload.
            let state = &self.store.inner.uploads.resumable;
            drop(state.enter_as(there.upload_id, self.arrival(), Wish::Keep).await?);
            let address = self.address_of(there.upload_id).await?;
            return match self.cancel(&address, &Scope::All).await {
                Ok(()) => Ok(None),
                Err(gone) if gone.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            };
        }
        if there.terms != wanted.terms {
            let message = "this idempotency key was used for another upload";
            return Err(
                Error::new(ErrorKind::IdempotencyMismatch, message).with_field("idempotency_key")
            );
        }
        // As a request that continues the upload does, it ends the one before.
        let state = &self.store.inner.uploads.resumable;
        match state.enter_as(there.upload_id, self.arrival(), Wish::Keep).await {
            // An older creation that still sends can continue.
            Ok(turn) => turn.fail(),
            // A newer request has the upload, and keeps it.
            Err(error) if error.kind() == ErrorKind::UploadSuperseded => {}
            Err(error) => return Err(error),
        }
        let row = self.store.inner.metadata.upload(there.upload_id).await?;
        let row = row.ok_or_else(super::unknown)?;
        Ok(Some(CreatedUpload { upload: self.view_live(row).await?, is_replay: true }))
    }
}

fn full(whose: &str) -> Error {
    let message = format!("{whose} has as many unfinished uploads, or bytes of them, as it may");
    Error::new(ErrorKind::TooManyUploads, message).with_retry_after_secs(RETRY_AFTER_SECS)
}

/// Returns the configured bounds.
pub(super) fn limits(config: &ResumableConfig) -> UploadLimits {
    UploadLimits {
        all: UploadBounds { uploads: config.max_open, bytes: config.max_bytes },
        organization: UploadBounds {
            uploads: config.max_open_per_organization,
            bytes: config.max_bytes_per_organization,
        },
    }
}

/// Returns the bytes that an upload holds: its length, or its offset in steps.
pub(super) fn held_bytes(length: Option<u64>, offset: u64) -> u64 {
    length.unwrap_or_else(|| offset.div_ceil(HELD_STEP).saturating_mul(HELD_STEP))
}

/// Returns the instant at which an upload expires that made progress at `now`. Never earlier than told before.
pub(super) fn expiry(
    config: &ResumableConfig,
    row: &UploadRow,
    latest: Timestamp,
    now: Timestamp,
) -> Timestamp {
    let latest = latest.min(row.created_at.plus(config.max_age));
    now.plus(config.lifetime).min(latest).max(row.expires_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_of_unknown_length_holds_bytes_in_steps() {
        for (length, offset, held) in [
            (Some(7), 3, 7),
            (None, 0, 0),
            (None, 1, HELD_STEP),
            (None, HELD_STEP, HELD_STEP),
            (None, HELD_STEP + 1, 2 * HELD_STEP),
        ] {
            assert_eq!(held_bytes(length, offset), held);
        }
    }
}
