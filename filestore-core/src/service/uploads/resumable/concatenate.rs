//! Concatenation: an upload whose bytes are those of other uploads, in their order.
//!
//! A *partial* upload receives bytes and never becomes a file. It is open until its lifetime is over, or until a
//! *final* upload has become a file: the final one reads the staged files of its parts and appends them like the
//! body of a request. So all rules of a transfer hold, and a crash in the middle goes on at the told offset.

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};

use super::ResumableUploads;
use super::request::{Append, CreatedUpload, Ends, NewResumable, Recheck};
use super::terms;
use super::turns::Wish;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::resumable::{UploadAddress, UploadStage};
use crate::domain::id::OrganizationId;
use crate::metadata::UploadRow;
use crate::service::uploads::idempotency::IdempotencyKey;
use crate::storage::ByteStream;

/// The most parts of a final upload.
const MOST_PARTS: usize = 100;

impl ResumableUploads<'_> {
    /// Joins the bytes of `parts` in their order to an upload, and stores the file. Afterwards, the parts are unknown.
    /// A second call with the same parts returns the same upload. `caller` must be different for each caller.
    ///
    /// Returns `InvalidField` for no parts, more than 100 parts, a repeated part, and a part that is not a complete
    /// partial upload of the organization in `scope`. Other errors are those of [`create`](Self::create) and
    /// [`append`](Self::append).
    pub async fn concatenate(
        self,
        new: NewResumable,
        parts: &[UploadAddress],
        caller: &str,
        scope: &Scope,
        recheck: Option<Recheck>,
    ) -> Result<CreatedUpload> {
        let distinct: HashSet<_> = parts.iter().map(|part| part.upload_id).collect();
        if parts.is_empty() || parts.len() > MOST_PARTS || distinct.len() < parts.len() {
            return Err(bad_parts());
        }
        let key = IdempotencyKey::new(caller, key_of(parts))?;
        let mut created = self.create(new.with_idempotency(key)).await?;
        if created.upload.is_finished() {
            return Ok(created);
        }

        let id = created.upload.address.upload_id;
        // The parts hold the room.
        drop(self.store.inner.uploads.resumable.held(id));
        let rows = match self.parts(parts, &created.upload.organization_id, scope).await {
            Ok(rows) => rows,
            Err(error) => {
                if !created.is_replay {
                    self.cancel(&created.upload.address, &Scope::All).await?;
                }
                return Err(error);
            }
        };

        let offset = created.upload.offset;
        let mut append = Append::at(offset).ending(Ends::WithThisRequest).within(scope.clone());
        (append.recheck, append.is_of_parts) = (recheck, true);
        let body = self.bytes_of(&rows, offset);
        created.upload = self.append(&created.upload.address, append, body).await?;
        for part in parts {
            if let Err(error) = self.cancel(part, &Scope::All).await {
                tracing::warn!(error = %error.chain(), "a part of a finished upload stays until it expires");
            }
        }
        Ok(created)
    }

    /// Returns the rows of the parts. The error does not tell which part is at fault, or why.
    async fn parts(
        self,
        parts: &[UploadAddress],
        organization: &OrganizationId,
        scope: &Scope,
    ) -> Result<Vec<UploadRow>> {
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            let row = self.checked(part, scope).await.map_err(|_| bad_parts())?;
            let is_whole = row.stage == UploadStage::Open && row.length == Some(row.offset);
            if !is_whole
                || row.organization != *organization
                || !terms::shown(&row.terms).is_partial
            {
                return Err(bad_parts());
            }
            let turn = self.store.inner.uploads.resumable.enter(row.upload_id, Wish::Keep).await?;
            rows.push(self.bring_here(row, &turn).await?);
        }
        Ok(rows)
    }

    /// Joins the bytes of staged files, without the first `skipped` ones.
    fn bytes_of(self, rows: &[UploadRow], mut skipped: u64) -> ByteStream {
        let local = self.store.inner.stores.local();
        let mut streams: Vec<ByteStream> = Vec::with_capacity(rows.len());
        for row in rows {
            let passed = skipped.min(row.offset);
            skipped -= passed;
            streams.push(local.read_staged(row.blob_id, passed, row.offset - passed));
        }
        Box::pin(stream::iter(streams).flatten().map(|block: Result<Bytes>| block))
    }
}

fn key_of(parts: &[UploadAddress]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.upload_id.to_string());
    }
    format!("concat {}", hex::encode(hasher.finalize()))
}

fn bad_parts() -> Error {
    let message = format!(
        "a final upload joins 1 to {MOST_PARTS} whole partial uploads of its organization, each once"
    );
    Error::invalid("Upload-Concat", message).with_limit(MOST_PARTS as u64)
}
