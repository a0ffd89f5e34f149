//! Requests: what an application hands in with an upload, a batch or a change, and what it gets back.

use crate::domain::clock::Timestamp;
use crate::domain::custom_metadata::CustomMetadata;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{OrganizationId, Sha256, SubSystem};
use crate::domain::media;
use crate::domain::record::FileRecord;
use crate::domain::reply::StoredReply;
use crate::domain::signed_url::UploadPermit;
use crate::storage::StagedBlob;

use super::idempotency::IdempotencyGuard;

/// A file to upload: everything but its bytes.
///
/// ```
/// use filestore_core::NewUpload;
///
/// # fn main() -> filestore_core::Result<()> {
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?)
///     .with_name("portrait.jpg")
///     .with_mime_type("image/jpeg")
///     .temp();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct NewUpload {
    /// The organization that the file belongs to.
    pub organization_id: OrganizationId,
    /// The part of the application that the file belongs to.
    pub sub_system: SubSystem,
    /// The file's name and type, as far as they were given.
    pub given: GivenName,
    /// True for a TEMP file: local only, expires.
    pub temp: bool,
    /// The digest that the bytes must have.
    pub sha256: Option<Sha256>,
    /// The claim on an idempotency key, which makes the upload safe to send twice.
    pub idempotency: Option<IdempotencyGuard>,
    /// The permit of a signed URL, which the upload spends.
    pub permit: Option<UploadPermit>,
    /// The object that the application keeps with the file.
    pub metadata: CustomMetadata,
}

impl NewUpload {
    /// Describes an ordinary upload without a name.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self {
            organization_id,
            sub_system,
            given: GivenName::default(),
            temp: false,
            sha256: None,
            idempotency: None,
            permit: None,
            metadata: CustomMetadata::default(),
        }
    }

    /// Sets the file's name; see [`GivenName::name`].
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.given.name = Some(name.into());
        self
    }

    /// Sets the file's media type; see [`GivenName::mime_type`].
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.given.mime_type = Some(mime_type.into());
        self
    }

    /// Sets name, type and hints at once.
    #[must_use]
    pub fn with_given(mut self, given: GivenName) -> Self {
        self.given = given;
        self
    }

    /// Sets the object that the application keeps with the file.
    #[must_use]
    pub fn with_metadata(mut self, metadata: CustomMetadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Makes the file TEMP: local only, expires.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.temp = true;
        self
    }

    /// Sets the digest that the bytes must have.
    #[must_use]
    pub fn with_sha256(mut self, sha256: Sha256) -> Self {
        self.sha256 = Some(sha256);
        self
    }

    /// Makes the upload safe to send twice.
    #[must_use]
    pub fn with_idempotency(mut self, guard: IdempotencyGuard) -> Self {
        self.idempotency = Some(guard);
        self
    }

    /// Lets the upload spend the permit of a signed URL.
    #[must_use]
    pub fn with_permit(mut self, permit: UploadPermit) -> Self {
        self.permit = Some(permit);
        self
    }
}

/// The name and type of a file, as far as they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenName {
    /// The name the user gave; see [`media::check_name`].
    pub name: Option<String>,
    /// The media type the user gave; see [`media::check_mime_type`].
    pub mime_type: Option<String>,
    /// Hints of the transport, for what the user did not give.
    pub hints: PartHints,
}

impl GivenName {
    /// Gives a file the name `name` and no type.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Refuses a name of more than `name_chars` characters or with control characters, and a media
    /// type that is none, with `InvalidField`.
    pub(super) fn check(&self, name_chars: usize) -> Result<()> {
        check_given(self.name.as_deref(), self.mime_type.as_deref(), name_chars)
    }
}

fn check_given(name: Option<&str>, mime_type: Option<&str>, name_chars: usize) -> Result<()> {
    if let Some(name) = name {
        media::check_name(name, name_chars)?;
    }
    mime_type.map_or(Ok(()), |mime| media::check_mime_type("mime_type", mime))
}

/// Hints of the transport about a file, used where the user gave no name or type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartHints {
    /// The part's file name, percent-decoded; see [`media::name_from_part`].
    pub file_name: Option<String>,
    /// The media type in the part's Content-Type.
    pub content_type: Option<String>,
}

/// The properties that the items of a batch share.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewBatch {
    /// The organization that the files belong to.
    pub organization_id: OrganizationId,
    /// The part of the application that the files belong to.
    pub sub_system: SubSystem,
    /// The claim on an idempotency key, which makes the batch safe to send twice.
    pub idempotency: Option<IdempotencyGuard>,
}

impl NewBatch {
    /// Describes a batch without an idempotency key.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self { organization_id, sub_system, idempotency: None }
    }

    /// Makes the batch safe to send twice.
    #[must_use]
    pub fn with_idempotency(mut self, guard: IdempotencyGuard) -> Self {
        self.idempotency = Some(guard);
        self
    }
}

/// One item of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchItem {
    /// The item's number, named in errors. Items are answered in ascending order.
    pub index: u32,
    /// The file's name and type, as far as they were given.
    pub given: GivenName,
    /// The object that the application keeps with the file.
    pub metadata: CustomMetadata,
}

impl BatchItem {
    /// Describes the item with the number `index`, without a name.
    pub fn new(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    /// Sets the object that the application keeps with the file.
    #[must_use]
    pub fn with_metadata(mut self, metadata: CustomMetadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets name, type and hints at once.
    #[must_use]
    pub fn with_given(mut self, given: GivenName) -> Self {
        self.given = given;
        self
    }
}

/// The outcome of an upload: of one file (`T` is its record) or of a batch (`T` is a list).
#[derive(Debug, Clone)]
pub enum Uploaded<T> {
    /// The record or records as they were committed, in the order of the items.
    New(T),
    /// The reply to an earlier request with the same idempotency key and content.
    Replayed(StoredReply),
}

/// A change of a file.
#[derive(Debug)]
pub enum Change {
    /// A TEMP file becomes THUMBNAIL.
    MakeThumbnail,
    /// A file of any status becomes READY, with new bytes if given.
    MakeReady(Option<Replacement>),
    /// The file gets new bytes and keeps its status.
    Replace(Replacement),
    /// The file keeps its bytes and gets another name, type or custom metadata.
    Edit(Edit),
}

/// Another name, type or custom metadata for a file, whose bytes and version stay. What is `None` stays
/// as it is.
///
/// ```
/// use filestore_core::Edit;
///
/// let edit = Edit::default().with_name("invoice-7.pdf").with_mime_type("application/pdf");
/// assert_eq!(edit.metadata, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The new name; see [`media::check_name`]. The extension is that of the new name.
    pub name: Option<String>,
    /// The new media type; see [`media::check_mime_type`]. A new name alone changes no type.
    pub mime_type: Option<String>,
    /// The whole new object, in the place of the old one.
    pub metadata: Option<CustomMetadata>,
}

impl Edit {
    /// Sets the new name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the new media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the new custom metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: CustomMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Refuses what [`GivenName::check`] refuses.
    pub(super) fn check(&self, name_chars: usize) -> Result<()> {
        check_given(self.name.as_deref(), self.mime_type.as_deref(), name_chars)
    }

    /// Makes of `record` what the edit asks for.
    pub(super) fn apply(&self, record: &mut FileRecord) {
        if let Some(name) = &self.name {
            record.ext = media::extension(name, record.blob.sniffed_type.as_deref());
            record.original_name.clone_from(name);
        }
        if let Some(mime_type) = &self.mime_type {
            record.mime_type.clone_from(mime_type);
        }
        if let Some(metadata) = &self.metadata {
            record.metadata.clone_from(metadata);
        }
    }
}

/// New bytes for a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replacement {
    /// The bytes, durable in staging.
    pub staged: StagedBlob,
    /// The name and type that come with the bytes; without a name the file keeps its own.
    pub given: GivenName,
    /// The custom metadata that comes with the bytes; without any the file keeps its own.
    pub metadata: Option<CustomMetadata>,
}

impl Replacement {
    /// Replaces a file's bytes by `staged`.
    pub fn new(staged: StagedBlob) -> Self {
        Self { staged, given: GivenName::default(), metadata: None }
    }

    /// Sets the custom metadata that comes with the bytes.
    #[must_use]
    pub fn with_metadata(mut self, metadata: CustomMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Sets name, type and hints at once.
    #[must_use]
    pub fn with_given(mut self, given: GivenName) -> Self {
        self.given = given;
        self
    }
}

/// The content that a change may be made to (RFC 9110 §13.1.1, over the entity tag's digests).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: a file of any content.
    Any,
    /// Only content with one of these digests. Tags that are no digest match nothing.
    OneOf(Vec<Sha256>),
}

impl IfMatch {
    fn matches(&self, sha256: &Sha256) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(sums) => sums.contains(sha256),
        }
    }
}

/// The conditions on which a file is changed or deleted (RFC 9110 §13.1). All of them hold, or nothing
/// happens.
///
/// ```
/// use filestore_core::{IfMatch, Preconditions, Sha256};
///
/// let seen = Sha256([7; 32]);
/// let conditions = Preconditions::from(IfMatch::OneOf(vec![seen]));
/// assert_eq!(conditions.unmodified_since, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preconditions {
    /// The content that the file must have.
    pub if_match: Option<IfMatch>,
    /// The instant after which the content must not have been stored, to the second. Ignored beside
    /// `if_match` (§13.1.4).
    pub unmodified_since: Option<Timestamp>,
    /// The content that the file must not have; `Any` refuses every file that exists.
    pub if_none_match: Option<IfMatch>,
}

impl Preconditions {
    /// Refuses a record of which a condition does not hold with `PreconditionFailed`, in the order of
    /// §13.2.2.
    pub(super) fn check(&self, record: &FileRecord) -> Result<()> {
        let blob = &record.blob;
        if let Some(wanted) = &self.if_match {
            if !wanted.matches(&blob.sha256) {
                return Err(refused("if_match", "the file's content is another one by now"));
            }
        } else if let Some(since) = self.unmodified_since
            && blob.stored_at.as_secs() > since.as_secs()
        {
            let message = "the file's content was stored after the given time";
            return Err(refused("if_unmodified_since", message));
        }

        match &self.if_none_match {
            Some(unwanted) if unwanted.matches(&blob.sha256) => {
                Err(refused("if_none_match", "the file has content that it must not have"))
            }
            _ => Ok(()),
        }
    }
}

impl From<IfMatch> for Preconditions {
    fn from(wanted: IfMatch) -> Self {
        Self { if_match: Some(wanted), ..Self::default() }
    }
}

impl From<Option<IfMatch>> for Preconditions {
    fn from(wanted: Option<IfMatch>) -> Self {
        Self { if_match: wanted, ..Self::default() }
    }
}

fn refused(field: &str, message: &str) -> Error {
    Error::new(ErrorKind::PreconditionFailed, message).with_field(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{BlobId, FileId};
    use crate::domain::lifecycle::FileState;
    use crate::domain::path::BlobKey;
    use crate::domain::provider::ProviderCode;
    use crate::domain::record::Blob;
    use crate::domain::status::Location;

    const STORED: Timestamp = Timestamp::from_millis(1_795_248_930_500);

    /// A file whose content has the digest of sevens.
    fn sevens() -> FileRecord {
        let (organization, sub_system) = ("7".parse().unwrap(), "s".parse().unwrap());
        let key = BlobKey::new(&organization, &sub_system, STORED, BlobId::generate(STORED));
        let blob = Blob::new(ProviderCode::local(), key, 1, Sha256([7; 32]), STORED);
        let state = FileState::uploaded(Location::Local);
        FileRecord::new(FileId::generate(STORED), organization, sub_system, state, blob)
    }

    #[test]
    fn conditions_of_a_change_are_checked_in_the_order_of_section_13_2_2() {
        let record = sevens();
        let (own, other) =
            (IfMatch::OneOf(vec![Sha256([7; 32])]), IfMatch::OneOf(vec![Sha256([8; 32])]));
        let (before, within) = (Timestamp::from_millis(1_795_248_929_999), STORED);
        let of = |if_match: Option<&IfMatch>, since, none: Option<&IfMatch>| Preconditions {
            if_match: if_match.cloned(),
            unmodified_since: since,
            if_none_match: none.cloned(),
        };

        for (conditions, failed) in [
            (of(None, None, None), None),
            (of(Some(&own), None, None), None),
            (of(Some(&IfMatch::Any), None, None), None),
            (of(Some(&other), None, None), Some("if_match")),
            (of(Some(&IfMatch::OneOf(vec![])), None, None), Some("if_match")),
            (of(None, Some(within), None), None),
            (of(None, Some(before), None), Some("if_unmodified_since")),
            (of(Some(&own), Some(before), None), None),
            (of(None, None, Some(&other)), None),
            (of(None, None, Some(&own)), Some("if_none_match")),
            (of(None, None, Some(&IfMatch::Any)), Some("if_none_match")),
            (of(Some(&other), None, Some(&own)), Some("if_match")),
            (of(Some(&own), None, Some(&own)), Some("if_none_match")),
            (of(None, Some(before), Some(&own)), Some("if_unmodified_since")),
        ] {
            let refused = conditions.check(&record).err();
            let field = refused.as_ref().and_then(|error| error.details().field.as_deref());
            assert_eq!(field, failed, "{conditions:?}");
            assert!(refused.is_none_or(|e| e.kind() == ErrorKind::PreconditionFailed));
        }
    }
}
