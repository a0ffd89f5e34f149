//! Requests of an application for an upload, a batch or a change, and their results.

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::media;
use crate::domain::file::policy::{FilePolicy, Judged};
use crate::domain::file::record::FileRecord;
use crate::domain::file::reply::StoredReply;
use crate::domain::id::{OrganizationId, Sha256, SubSystem};
use crate::domain::patch::{MetadataPatch, Patch};
use crate::domain::time::clock::Timestamp;

/// A file to upload, without its bytes.
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
    /// The file's organization.
    pub organization_id: OrganizationId,
    /// The file's sub-system: an area of your application, for example `invoices`.
    pub sub_system: SubSystem,
    /// The file's name and type, if the caller gave them.
    pub given: GivenName,
    /// True for a TEMP file, which stays local and expires.
    pub temp: bool,
    /// The expected digest. An upload with another digest fails.
    pub sha256: Option<Sha256>,
    /// The custom metadata: JSON that your application keeps with the file.
    pub metadata: CustomMetadata,
    /// The files that the caller accepts.
    pub policy: FilePolicy,
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
            metadata: CustomMetadata::default(),
            policy: FilePolicy::default(),
        }
    }

    /// Sets the file's name. [`GivenName::name`] has the rules.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.given.name = Some(name.into());
        self
    }

    /// Sets the file's media type. [`GivenName::mime_type`] has the rules.
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

    /// Sets the custom metadata of the file.
    #[must_use]
    pub fn with_metadata(mut self, metadata: CustomMetadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the policy that the file must satisfy. An upload that breaks the policy leaves nothing behind.
    #[must_use]
    pub fn with_policy(mut self, policy: FilePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Makes the file TEMP: it stays local and expires.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.temp = true;
        self
    }

    /// Sets the expected digest. An upload of other bytes fails.
    #[must_use]
    pub fn with_sha256(mut self, sha256: Sha256) -> Self {
        self.sha256 = Some(sha256);
        self
    }
}

/// The name and media type of a file, if the caller gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenName {
    /// The name that the user gave. [`media::check_name`] has the rules.
    pub name: Option<String>,
    /// The media type that the user gave. [`media::check_mime_type`] has the rules.
    pub mime_type: Option<String>,
    /// Hints from the transport. The hints apply if the user gave no name or type.
    pub hints: PartHints,
}

impl GivenName {
    /// Returns a `GivenName` with this name and without a type.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Returns `InvalidField` for a name with more than `name_chars` characters or with control characters,
    /// and for an invalid media type.
    pub(super) fn check(&self, name_chars: usize) -> Result<()> {
        check_given(self.name.as_deref(), self.mime_type.as_deref(), name_chars)
    }

    /// Returns the properties that a policy judges.
    pub(super) fn judged(&self) -> Judged<'_> {
        let name = self.name.as_deref().or(self.hints.file_name.as_deref());
        let claimed_type = self.mime_type.as_deref().or(self.hints.content_type.as_deref());
        Judged { name: name.unwrap_or_default(), claimed_type }
    }
}

fn check_given(name: Option<&str>, mime_type: Option<&str>, name_chars: usize) -> Result<()> {
    if let Some(name) = name {
        media::check_name(name, name_chars)?;
    }
    mime_type.map_or(Ok(()), |mime| media::check_mime_type("mime_type", mime))
}

/// Hints from the transport about a file. The hints apply if the user gave no name or type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartHints {
    /// The file name of the multipart part, percent-decoded. [`media::name_from_part`] interprets it.
    pub file_name: Option<String>,
    /// The media type from the part's Content-Type.
    pub content_type: Option<String>,
}

/// The common properties of all items in a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewBatch {
    /// The organization of the files.
    pub organization_id: OrganizationId,
    /// The files' sub-system: an area of your application, for example `invoices`.
    pub sub_system: SubSystem,
    /// The files that the caller accepts. If one file breaks the policy, no file is stored.
    pub policy: FilePolicy,
}

impl NewBatch {
    /// Describes a batch.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self { organization_id, sub_system, policy: FilePolicy::default() }
    }

    /// Sets the policy that each file must satisfy.
    #[must_use]
    pub fn with_policy(mut self, policy: FilePolicy) -> Self {
        self.policy = policy;
        self
    }
}

/// One item of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchItem {
    /// The item's number. Errors contain the number, and results have the order of these numbers.
    pub index: u32,
    /// The file's name and type, if the caller gave them.
    pub given: GivenName,
    /// The custom metadata: JSON that your application keeps with the file.
    pub metadata: CustomMetadata,
}

impl BatchItem {
    /// Describes the item with the number `index`, without a name.
    pub fn new(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    /// Sets the custom metadata of the file.
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

/// The upload result. `T` is a record, or a batch's list of records.
#[derive(Debug, Clone)]
pub enum Uploaded<T> {
    /// The committed record, or the committed records in the order of the items.
    New(T),
    /// The reply to an earlier request with the same idempotency key and content.
    Replayed(StoredReply),
}

/// A change of a file that keeps its bytes. To replace the bytes, use a [`Replacement`].
#[derive(Debug)]
pub enum Change {
    /// Turns a TEMP file into a THUMBNAIL.
    MakeThumbnail,
    /// Makes a file of any status READY.
    MakeReady,
    /// Changes the file's name, type or custom metadata.
    Edit(Edit),
}

/// A change of a file's name, type or custom metadata, with the rules of a JSON merge patch (RFC 7396). Bytes
/// and version stay the same. The default changes no field.
///
/// ```
/// use filestore_core::{Edit, Patch};
///
/// # fn main() -> filestore_core::Result<()> {
/// let edit = Edit::default()
///     .with_name("invoice-7.pdf")
///     .with_metadata(r#"{"paid": true, "draft": null}"#.parse()?);
/// assert_eq!(edit.mime_type, Patch::Keep);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The new name. [`media::check_name`] has the rules. If you clear the name, the file's id becomes the
    /// name. The extension follows the name.
    pub name: Patch<String>,
    /// The new media type. [`media::check_mime_type`] has the rules. If you clear the type, the store detects
    /// it from the bytes, or else from the name. A new name alone does not change the type.
    pub mime_type: Patch<String>,
    /// The change of single members in the custom metadata. If you clear the metadata, all members are
    /// removed.
    pub metadata: Patch<MetadataPatch>,
}

impl Edit {
    /// Sets the new name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Patch::Set(name.into());
        self
    }

    /// Sets the new media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Patch::Set(mime_type.into());
        self
    }

    /// Sets the change of custom metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: MetadataPatch) -> Self {
        self.metadata = Patch::Set(metadata);
        self
    }

    /// Removes all custom metadata.
    #[must_use]
    pub fn without_metadata(mut self) -> Self {
        self.metadata = Patch::Clear;
        self
    }

    /// Applies the checks of [`GivenName::check`].
    pub(super) fn check(&self, name_chars: usize) -> Result<()> {
        check_given(given(&self.name), given(&self.mime_type), name_chars)
    }

    /// Applies the edit to `record`. Fails if the custom metadata would exceed their limits.
    pub(super) fn apply(&self, record: &mut FileRecord) -> Result<()> {
        let sniffed = record.blob.sniffed_type.as_deref();
        let name = match &self.name {
            Patch::Keep => None,
            Patch::Clear => Some(record.file_id.to_string()),
            Patch::Set(name) => Some(name.clone()),
        };
        if let Some(name) = name {
            record.ext = media::extension(&name, sniffed);
            record.original_name = name;
        }

        match &self.mime_type {
            Patch::Keep => {}
            Patch::Clear => {
                record.mime_type = media::choose_type(None, sniffed, None, &record.original_name);
            }
            Patch::Set(mime_type) => record.mime_type.clone_from(mime_type),
        }
        match &self.metadata {
            Patch::Keep => {}
            Patch::Clear => record.metadata = CustomMetadata::default(),
            Patch::Set(patch) => record.metadata = patch.apply(&record.metadata)?,
        }
        Ok(())
    }
}

fn given(text: &Patch<String>) -> Option<&str> {
    match text {
        Patch::Keep | Patch::Clear => None,
        Patch::Set(text) => Some(text),
    }
}

/// The properties that change when a file's bytes are replaced.
///
/// ```
/// use filestore_core::Replacement;
///
/// # fn main() -> filestore_core::Result<()> {
/// let new = Replacement::new().with_metadata(r#"{"paid": true}"#.parse()?).make_ready();
/// assert!(new.make_ready);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replacement {
    /// The name and type of the new bytes. Without a name, the file keeps its name.
    pub given: GivenName,
    /// The custom metadata of the new bytes. With `None`, the file keeps its metadata.
    pub metadata: Option<CustomMetadata>,
    /// True if the file becomes READY. Otherwise the file keeps its status.
    pub make_ready: bool,
    /// The files that the caller accepts.
    pub policy: FilePolicy,
}

impl Replacement {
    /// Describes new bytes without a name, a type or custom metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the file READY.
    #[must_use]
    pub fn make_ready(mut self) -> Self {
        self.make_ready = true;
        self
    }

    /// Sets the policy that the new bytes must satisfy. Otherwise the file keeps its bytes.
    #[must_use]
    pub fn with_policy(mut self, policy: FilePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the custom metadata of the new bytes.
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

/// The content that a file must have for a change (RFC 9110 §13.1.1). Entity tags are digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: any content.
    Any,
    /// One of these digests. Entity tags that are not digests match no content.
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

/// Conditions for changing or deleting a file (RFC 9110 §13.1). If a condition does not hold, the call fails
/// and changes nothing.
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
    /// The file's content must not be newer than this time, to the second. Ignored if `if_match` is set
    /// (§13.1.4).
    pub unmodified_since: Option<Timestamp>,
    /// The content that the file must not have. `Any` refuses every existing file.
    pub if_none_match: Option<IfMatch>,
}

impl Preconditions {
    /// Returns `PreconditionFailed` if a condition does not hold for the record. The conditions are checked
    /// in the order of §13.2.2.
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
    use crate::domain::file::lifecycle::FileState;
    use crate::domain::file::path::BlobKey;
    use crate::domain::file::record::Blob;
    use crate::domain::file::status::Location;
    use crate::domain::id::{BlobId, FileId};
    use crate::domain::provider::ProviderCode;

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
