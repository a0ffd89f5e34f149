//! Requests: what an application hands in with a resumable upload, and what it gets back.

use std::fmt;
use std::str::FromStr;

use futures_util::future::BoxFuture;

use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::resumable::{UploadFailure, UploadStage};
use crate::domain::id::{FileId, OrganizationId, UploadId};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::metadata::UploadRow;
use crate::service::request::{NewUpload, Preconditions, Replacement};
use crate::service::uploads::idempotency::IdempotencyKey;

use super::permit::ResumablePermit;
use super::terms;

/// The address of a resumable upload: its id, and a token without which nobody can use it.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadAddress {
    /// The id, which logs and lists show.
    pub upload_id: UploadId,
    /// The token, 22 characters of base64url. A secret.
    pub(super) token: String,
}

impl UploadAddress {
    /// Returns the address as a segment of a path: `{upload_id}.{token}`. A secret.
    pub fn to_segment(&self) -> String {
        format!("{}.{}", self.upload_id, self.token)
    }
}

/// Hides the token.
impl fmt::Debug for UploadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.upload_id)
    }
}

impl FromStr for UploadAddress {
    type Err = Error;

    /// Reads `{upload_id}.{token}`. Any other text is `NotFound`, like an unknown upload.
    fn from_str(text: &str) -> Result<Self> {
        let read = text.split_once('.').and_then(|(id, token)| Some((id.parse().ok()?, token)));
        let (upload_id, token) = read.ok_or_else(super::unknown)?;
        Ok(Self { upload_id, token: token.to_owned() })
    }
}

/// A resumable upload to create: everything but its bytes.
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
    /// The new file, or the file that gets new bytes.
    pub target: ResumableTarget,
    /// The length of the file. If it is not known yet, a later request names it.
    pub length: Option<u64>,
    /// The idempotency key: a second creation with the same key and the same terms finds the same upload.
    pub idempotency: Option<IdempotencyKey>,
    /// A text of the client that comes back with each [`ResumableUpload`], for example `Upload-Metadata`.
    pub note: String,
    /// The place of the upload in a concatenation, for example `Upload-Concat`. It comes back with each
    /// [`ResumableUpload`].
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
    /// None: the bytes are a part of another upload of the organization. See
    /// [`ResumableUploads::concatenate`](super::ResumableUploads::concatenate).
    Partial {
        /// The organization.
        organization_id: OrganizationId,
    },
    /// A file that gets new bytes.
    Replace {
        /// The file.
        file_id: FileId,
        /// What comes with the bytes.
        new: Replacement,
        /// The conditions, which are checked at the creation and in the commit.
        conditions: Preconditions,
        /// The organizations whose files the caller may change.
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

    /// Announces the length of the file.
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

    /// Keeps a text of the client with the upload.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A creation that succeeded.
#[derive(Debug, Clone)]
pub struct CreatedUpload {
    /// The upload.
    pub upload: ResumableUpload,
    /// True if an earlier creation with the same idempotency key has made the upload.
    pub is_replay: bool,
}

/// The right of a request, asked for again before the commit. Returns the organizations that the caller may
/// write to by then.
pub type Recheck = Box<dyn FnOnce() -> BoxFuture<'static, Result<Scope>> + Send + Sync>;

/// A checksum of the bytes of one request.
pub trait BodyCheck: Send + Sync {
    /// Takes the next bytes.
    fn update(&mut self, bytes: &[u8]);

    /// Tests whether the bytes are the announced ones.
    fn holds(&self) -> bool;
}

/// Bytes for a resumable upload: everything but the bytes.
#[non_exhaustive]
pub struct Append {
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes of this request, if it is known. A body with fewer bytes was cut.
    pub content_length: Option<u64>,
    /// The length of the file, if this request names it.
    pub length: Option<u64>,
    /// The end of the file.
    pub ends: Ends,
    /// A checksum of this request's bytes. They count only if it holds.
    pub check: Option<Box<dyn BodyCheck>>,
    /// The organizations whose uploads the caller may continue.
    pub scope: Scope,
    /// The right of the request, asked for again before the commit; by default, `scope`.
    pub recheck: Option<Recheck>,
    /// True for the bytes of the parts of a final upload.
    pub(super) is_of_parts: bool,
}

/// The sign by which the last byte of a file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The length of the file is reached.
    ByLength,
    /// The request is the last one.
    WithThisRequest,
    /// Another request follows, even if the length is reached.
    Later,
}

impl Append {
    /// Describes bytes that begin at `offset`.
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

    /// Names the length of the file.
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    /// Says when the file ends.
    #[must_use]
    pub fn ending(mut self, ends: Ends) -> Self {
        self.ends = ends;
        self
    }

    /// Names the organizations whose uploads the caller may continue.
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

/// A resumable upload, as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumableUpload {
    /// The address.
    pub address: UploadAddress,
    /// The stage.
    pub stage: UploadStage,
    /// The number of bytes that are on the disk. The next request starts here.
    pub offset: u64,
    /// The length of the file, once it is known.
    pub length: Option<u64>,
    /// The organization of the file.
    pub organization_id: OrganizationId,
    /// The text that the client gave at the creation.
    pub note: String,
    /// The place of the upload in a concatenation, as the client gave it.
    pub concat: Option<String>,
    /// The given name of the file.
    pub original_name: Option<String>,
    /// The file, once the upload is finished.
    pub file_id: Option<FileId>,
    /// True if the upload replaces the bytes of a file.
    pub is_replacement: bool,
    /// The reason, once the upload has failed.
    pub failure: Option<UploadFailure>,
    /// The instant of the creation.
    pub created_at: Timestamp,
    /// The instant at which the upload ends, or is forgotten if it has ended.
    pub expires_at: Timestamp,
}

impl ResumableUpload {
    /// Tests whether the file exists.
    pub fn is_finished(&self) -> bool {
        self.stage == UploadStage::Finished
    }

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
