//! Requests and results of resumable uploads.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::resumable::{ResumableUpload, UploadAddress};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::report::erasure::Era;
use crate::metadata::UploadRow;
use crate::service::request::{NewUpload, Preconditions, Replacement};
use crate::service::uploads::idempotency::IdempotencyKey;

use super::permit::ResumablePermit;
use super::terms;

/// A resumable upload to create, without its bytes.
///
/// ```
/// use filestore_core::NewUpload;
/// use filestore_core::uploads::NewResumable;
///
/// # fn main() -> filestore_core::Result<()> {
/// let new = NewUpload::new("42".parse()?, "videos".parse()?).with_name("party.mp4");
/// let new = NewResumable::new(new).with_length(3_000_000_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct NewResumable {
    /// A new file, or a file that gets new bytes.
    pub target: ResumableTarget,
    /// File length. If you do not know the length yet, set it in a later [`Append`].
    pub length: Option<u64>,
    /// Idempotency key. A second creation with the same key and the same terms returns the same upload.
    pub idempotency: Option<IdempotencyKey>,
    /// Client text, for example `Upload-Metadata`. Every [`ResumableUpload`] returns it.
    pub note: String,
    /// Place of the upload in a concatenation, for example `Upload-Concat`. Every [`ResumableUpload`] returns it.
    pub concat: Option<String>,
    /// The signed URL that grants the upload, instead of a key. It takes the place of the idempotency key.
    pub permit: Option<ResumablePermit>,
    /// The era in which the request began; see [`Uploads::begun_in`](super::super::upload::Uploads::begun_in).
    pub era: Option<Era>,
}

/// The file of a resumable upload.
#[derive(Debug)]
pub enum ResumableTarget {
    /// A new file.
    New(NewUpload),
    /// No file. The bytes are a part of another upload of the organization. See
    /// [`ResumableUploads::concatenate`](super::ResumableUploads::concatenate).
    Partial {
        /// Organization.
        organization_id: OrganizationId,
    },
    /// A file that gets new bytes.
    Replace {
        /// File id.
        file_id: FileId,
        /// New name, type and status.
        new: Replacement,
        /// Conditions. The store checks them at the creation and in the commit.
        conditions: Preconditions,
        /// Organizations with files that the caller can change.
        scope: Scope,
    },
}

impl NewResumable {
    /// Describes the upload of a new file.
    pub fn new(new: NewUpload) -> Self {
        Self::of(ResumableTarget::New(new))
    }

    /// Describes new bytes for a file that `scope` covers.
    pub fn replace(file_id: FileId, new: Replacement, scope: Scope) -> Self {
        Self::of(ResumableTarget::Replace {
            file_id,
            new,
            conditions: Preconditions::default(),
            scope,
        })
    }

    /// Describes an upload to `target`.
    pub fn of(target: ResumableTarget) -> Self {
        Self {
            target,
            length: None,
            idempotency: None,
            note: String::new(),
            concat: None,
            permit: None,
            era: None,
        }
    }

    /// Sets the file's length.
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    /// Makes the creation safe to send twice.
    #[must_use]
    pub fn with_idempotency(mut self, key: IdempotencyKey) -> Self {
        self.idempotency = Some(key);
        self
    }

    /// Names the signed URL that grants the upload.
    #[must_use]
    pub fn with_permit(mut self, permit: ResumablePermit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// Stores a text of the client with the upload.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// The result of a creation.
#[derive(Debug, Clone)]
pub struct CreatedUpload {
    /// The upload.
    pub upload: ResumableUpload,
    /// True if an earlier creation with the same idempotency key created the upload.
    pub is_replay: bool,
}

/// Checks the caller's right again before the commit. Returns the organizations that the caller can write to
/// now. The argument is the file that gets new bytes, if the upload replaces a file.
pub type Recheck =
    Box<dyn FnOnce(Option<FileId>) -> BoxFuture<'static, Result<Scope>> + Send + Sync>;

/// A checksum of the bytes of one request.
pub trait BodyCheck: Send + Sync {
    /// Adds the next bytes.
    fn update(&mut self, bytes: &[u8]);

    /// Returns true if all bytes together match the checksum.
    fn holds(&self) -> bool;
}

/// A request that appends bytes to a resumable upload, without the bytes.
#[non_exhaustive]
pub struct Append {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes in this request, if known. If fewer bytes arrive, the request fails.
    pub content_length: Option<u64>,
    /// File length, if this request sets it.
    pub length: Option<u64>,
    /// Decides if the file ends with this request.
    pub ends: Ends,
    /// Checksum of the bytes in this request. If the checksum is wrong, the store drops these bytes.
    pub check: Option<Box<dyn BodyCheck>>,
    /// Organizations with uploads that the caller can continue.
    pub scope: Scope,
    /// Check of the caller's right before the commit. The default is `scope`.
    pub recheck: Option<Recheck>,
    /// True for the bytes of the parts of a final upload.
    pub(super) is_of_parts: bool,
}

/// The end of a file, as a request announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The file ends when its length is reached.
    ByLength,
    /// The file ends with this request.
    WithThisRequest,
    /// Another request follows, even if the length is reached.
    Later,
}

impl Append {
    /// Describes bytes that start at `offset`.
    pub fn at(offset: u64) -> Self {
        Self {
            offset,
            content_length: None,
            length: None,
            ends: Ends::ByLength,
            check: None,
            scope: Scope::All,
            recheck: None,
            is_of_parts: false,
        }
    }

    /// Sets the file's length.
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    /// Sets the end of the file.
    #[must_use]
    pub fn ending(mut self, ends: Ends) -> Self {
        self.ends = ends;
        self
    }

    /// Sets the organizations with uploads that the caller can continue.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

impl fmt::Debug for Append {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Append")
            .field("offset", &self.offset)
            .field("content_length", &self.content_length)
            .field("length", &self.length)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl ResumableUpload {
    pub(super) fn of(row: UploadRow, address: UploadAddress) -> Self {
        let shown = terms::shown(&row.terms);
        Self {
            address,
            stage: row.stage,
            offset: row.offset,
            length: row.length,
            organization_id: row.organization,
            note: shown.note,
            concat: shown.concat,
            original_name: shown.original_name,
            is_replacement: shown.replaces.is_some(),
            file_id: row.file_id,
            failure: row.failure,
            created_at: row.created_at,
            expires_at: row.expires_at,
        }
    }

    /// Makes an entry of a list, without the token.
    pub(super) fn listed(row: UploadRow) -> Self {
        let address = UploadAddress { upload_id: row.upload_id, token: String::new() };
        Self::of(row, address)
    }
}
