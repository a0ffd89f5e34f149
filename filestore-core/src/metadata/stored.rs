//! The stored form of values, the same in every engine. A value that is read passes its checked constructor
//! again.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::str::FromStr;

use sha2::Digest as _;

use crate::domain::access::key::{KeyScope, KeyScopes};
use crate::domain::access::scope::Scope;
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::record::{Blob, Deletion, Dimensions, FileRecord, Thumbhash};
use crate::domain::file::resumable::UploadFailure;
use crate::domain::id::{FileId, OrganizationId, Sha256};
use crate::domain::provider::ProviderCode;
use crate::domain::report::erasure::Era;
use crate::domain::report::fsck::FindingKind;
use crate::domain::time::clock::Timestamp;
use crate::metadata::resumable::UploadRow;

/// The reason why a stored value is invalid.
pub(super) type Source = Box<dyn StdError + Send + Sync>;

/// An instant that is never reached: the end of the year 9999.
pub(super) const NEVER: i64 = 253_402_300_799_999;

/// The stored form of "all organizations". No organization has this id.
const ALL_ORGANIZATIONS: &str = "*";

/// The columns of a record's row, in the order of the values that an engine reads and binds.
macro_rules! record_columns {
    () => {
        "file_id, organization_id, sub_system, original_name, mime_type, ext, status, sync_status, \
         purge_status, storage_location, storage_provider, blob_key, size_bytes, sha256, sniffed_type, \
         width, height, stored_at, version, created_at, updated_at, expires_at, metadata, edited_at, \
         thumbhash, purge_marked_at, deleted_at, sync_attempts, sync_error"
    };
}
pub(super) use record_columns;

/// The number of [`record_columns!`].
pub(super) const RECORD_COLUMNS: usize = 29;

/// The values of a record's row, as stored.
pub(super) struct RecordRow<'r> {
    pub(super) file_id: &'r str,
    pub(super) organization_id: &'r str,
    pub(super) sub_system: &'r str,
    pub(super) original_name: &'r str,
    pub(super) mime_type: &'r str,
    pub(super) ext: &'r str,
    pub(super) status: &'r str,
    pub(super) sync_status: &'r str,
    pub(super) purge_status: Option<&'r str>,
    pub(super) storage_location: &'r str,
    pub(super) storage_provider: &'r str,
    pub(super) blob_key: &'r str,
    pub(super) size_bytes: i64,
    pub(super) sha256: &'r [u8],
    pub(super) sniffed_type: Option<&'r str>,
    pub(super) width: Option<i64>,
    pub(super) height: Option<i64>,
    pub(super) stored_at: i64,
    pub(super) version: i64,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) expires_at: Option<i64>,
    pub(super) metadata: Option<&'r str>,
    pub(super) edited_at: Option<i64>,
    pub(super) thumbhash: Option<&'r [u8]>,
    pub(super) purge_marked_at: Option<i64>,
    pub(super) deleted_at: Option<i64>,
    pub(super) sync_attempts: i64,
    pub(super) sync_error: Option<&'r str>,
}

/// The columns of a resumable upload's row, in the order of the values that an engine reads and binds.
macro_rules! upload_columns {
    () => {
        "upload_id, organization_id, server, blob_id, stage, era, epoch, offset_bytes, length_bytes, \
         held_bytes, digest, head, terms, idempotency, file_id, failure_code, failure_message, created_at, \
         updated_at, expires_at"
    };
}
pub(super) use upload_columns;

/// The values of a resumable upload's row, as the database has them.
pub(super) struct RawUpload<'r> {
    pub(super) upload_id: &'r str,
    pub(super) organization_id: &'r str,
    pub(super) server: &'r str,
    pub(super) blob_id: &'r str,
    pub(super) stage: &'r str,
    pub(super) era: i64,
    pub(super) epoch: i64,
    pub(super) offset: i64,
    pub(super) length: Option<i64>,
    pub(super) held_bytes: i64,
    pub(super) digest: &'r [u8],
    pub(super) head: &'r [u8],
    pub(super) terms: &'r str,
    pub(super) idempotency: Option<&'r str>,
    pub(super) file_id: Option<&'r str>,
    pub(super) failure_code: Option<&'r str>,
    pub(super) failure_message: Option<&'r str>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) expires_at: i64,
}

impl RawUpload<'_> {
    /// Checks the values and makes the row of them.
    pub(super) fn row(self) -> Result<UploadRow, Source> {
        let failure = self.failure_code.zip(self.failure_message);
        Ok(UploadRow {
            upload_id: self.upload_id.parse()?,
            organization: self.organization_id.parse()?,
            server: self.server.to_owned(),
            blob_id: self.blob_id.parse()?,
            stage: self.stage.parse()?,
            era: Era::from_number(self.era),
            epoch: u64::try_from(self.epoch)?,
            offset: u64::try_from(self.offset)?,
            length: self.length.map(u64::try_from).transpose()?,
            held_bytes: u64::try_from(self.held_bytes)?,
            digest: self.digest.to_vec(),
            head: self.head.to_vec(),
            terms: self.terms.to_owned(),
            idempotency: self.idempotency.map(str::to_owned),
            file_id: self.file_id.map(str::parse).transpose()?,
            failure: failure.map(|(code, message)| UploadFailure {
                code: code.to_owned(),
                message: message.to_owned(),
            }),
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

impl RecordRow<'_> {
    /// Checks the values and creates the record.
    pub(super) fn record(self) -> Result<FileRecord, Source> {
        Ok(FileRecord {
            file_id: self.file_id.parse()?,
            organization_id: self.organization_id.parse()?,
            sub_system: self.sub_system.parse()?,
            original_name: self.original_name.to_owned(),
            mime_type: self.mime_type.to_owned(),
            ext: self.ext.to_owned(),
            state: FileState::from_row(
                self.status.parse()?,
                self.sync_status.parse()?,
                self.purge_status.map(str::parse).transpose()?,
                self.storage_location.parse()?,
            )?,
            blob: Blob {
                provider: self.storage_provider.parse()?,
                key: self.blob_key.parse()?,
                size_bytes: u64::try_from(self.size_bytes)?,
                sha256: Sha256(self.sha256.try_into().map_err(|_| "no SHA-256")?),
                sniffed_type: self.sniffed_type.map(str::to_owned),
                dimensions: dimensions(self.width, self.height)?,
                stored_at: Timestamp::from_millis(self.stored_at),
                thumbhash: self
                    .thumbhash
                    .map(|bytes| Thumbhash::new(bytes).ok_or("no ThumbHash"))
                    .transpose()?,
            },
            version: u64::try_from(self.version)?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            metadata: self.metadata.map(CustomMetadata::stored).unwrap_or_default(),
            edited_at: self.edited_at.map(Timestamp::from_millis),
            deletion: self.purge_status.and(self.deletion()),
            sync_attempts: u32::try_from(self.sync_attempts)?,
            sync_error: self.sync_error.map(str::to_owned),
        })
    }

    /// Reads the deletion. Files that were deleted before the column existed have no `deleted_at`.
    fn deletion(&self) -> Option<Deletion> {
        let marked_at = self.purge_marked_at?;
        Some(Deletion {
            deleted_at: Timestamp::from_millis(self.deleted_at.unwrap_or(self.updated_at)),
            marked_at: Timestamp::from_millis(marked_at),
        })
    }
}

fn dimensions(width: Option<i64>, height: Option<i64>) -> Result<Option<Dimensions>, Source> {
    match (width, height) {
        (Some(width), Some(height)) => {
            Ok(Some(Dimensions { width: width.try_into()?, height: height.try_into()? }))
        }
        (None, None) => Ok(None),
        _ => Err("width and height go together".into()),
    }
}

/// The digest of one member of custom metadata.
pub(super) type Term = [u8; 16];

/// Computes the term of a member. The length of the key separates key and value.
pub(super) fn term(key: &str, value: &str) -> Term {
    let digest = sha2::Sha256::new()
        .chain_update((key.len() as u64).to_le_bytes())
        .chain_update(key)
        .chain_update(value)
        .finalize();
    *digest.first_chunk().expect("a SHA-256 has 32 bytes")
}

/// Encodes a key's organizations.
pub(super) fn organizations_text(scope: &Scope) -> String {
    match scope {
        Scope::All => ALL_ORGANIZATIONS.to_owned(),
        Scope::Organizations(list) => {
            list.iter().map(OrganizationId::as_str).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Parses a key's organizations.
pub(super) fn organizations(text: &str) -> Result<Scope, Source> {
    if text == ALL_ORGANIZATIONS {
        return Ok(Scope::All);
    }
    Ok(Scope::Organizations(words(text)?))
}

/// Encodes a key's scopes.
pub(super) fn scopes_text(scopes: KeyScopes) -> String {
    scopes.iter().map(KeyScope::as_str).collect::<Vec<_>>().join(" ")
}

/// Parses a key's scopes.
pub(super) fn scopes(text: &str) -> Result<KeyScopes, Source> {
    Ok(words(text)?.into_iter().collect())
}

/// Encodes the files of a remembered reply.
pub(super) fn file_ids_text(ids: &[FileId]) -> String {
    ids.iter().map(FileId::to_string).collect::<Vec<_>>().join(" ")
}

/// Parses values that are separated by spaces.
pub(super) fn words<T: FromStr<Err: Into<Source>>>(text: &str) -> Result<Vec<T>, Source> {
    text.split_whitespace().map(|word| word.parse().map_err(Into::into)).collect()
}

/// Encodes the holders that a check skipped, one line for each.
pub(super) fn postponed_text(postponed: &[(ProviderCode, String)]) -> String {
    let mut text = String::new();
    for (code, reason) in postponed {
        let reason = reason.replace('\n', " ");
        writeln!(text, "{code} {reason}").expect("a string takes every write");
    }
    text
}

/// Parses the holders that a check skipped.
pub(super) fn postponed(text: &str) -> Result<Vec<(ProviderCode, String)>, Source> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(code, reason)| Ok((code.parse()?, reason.to_owned()))).collect()
}

/// Returns the rank of a finding kind, most serious first.
pub(super) fn rank(kind: FindingKind) -> i64 {
    let at = FindingKind::ALL.iter().position(|one| *one == kind);
    at.and_then(|at| i64::try_from(at).ok()).unwrap_or(i64::MAX)
}

/// Parses the organization and the holder of waiting files.
pub(super) fn pair(
    organization: &str,
    holder: &str,
) -> Result<(OrganizationId, ProviderCode), Source> {
    Ok((organization.parse()?, holder.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_have_two_terms() {
        assert_eq!(term("a", "b"), term("a", "b"));
        for (key, value) in [("", "ab"), ("ab", ""), ("b", "a"), ("a", "B"), ("a", "b ")] {
            assert_ne!(term(key, value), term("a", "b"), "{key}={value}");
        }
    }
}
