//! The files that an application accepts.

use super::media;
use crate::domain::error::{Error, ErrorKind, Result};

/// Types whose bytes begin with a signature, in addition to pictures, sounds, videos, fonts and office documents. Bytes
/// without a signature are none of them, whatever the caller says.
const SIGNED: [&str; 5] = [
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/x-7z-compressed",
    "application/vnd.rar",
];

/// The files that an application accepts: largest size, media types, extensions. An upload that breaks the policy
/// leaves nothing behind.
///
/// A policy belongs to one call, in addition to the limits of the store. A resumable upload keeps its policy until the
/// file is stored. Without a rule, a policy accepts everything. For example, for the picture of a person:
///
/// ```
/// use filestore_core::{ErrorKind, FilePolicy, FileStore, NewUpload};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// let store = FileStore::temporary().await?;
/// let pictures = FilePolicy::new().max_bytes(5_000_000).types(["image/png", "image/jpeg"]);
/// let new = NewUpload::new("42".parse()?, "avatars".parse()?).with_policy(pictures);
///
/// let page = &b"<!DOCTYPE html><html></html>"[..];
/// let refused = store.upload(new.with_name("me.png"), page).await.unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::InvalidField);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePolicy {
    max_bytes: Option<u64>,
    types: Vec<String>,
    extensions: Vec<String>,
}

/// The properties of a file that a policy judges.
pub(crate) struct Judged<'a> {
    /// The name that the caller gave, or else that of the form part.
    pub(crate) name: &'a str,
    /// The media type that the caller gave, or else that of the form part.
    pub(crate) claimed_type: Option<&'a str>,
}

impl FilePolicy {
    /// Accepts every file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts files of at most `bytes` bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Accepts these media types, for example `application/pdf` or `image/*`. A second call adds more types.
    ///
    /// The type is that of the bytes. A type or extension from the caller counts only if the bytes agree, for example
    /// for the documents within a ZIP archive. A picture, sound, video, font, PDF or archive without a known signature
    /// is refused.
    #[must_use]
    pub fn types<S: Into<String>>(mut self, types: impl IntoIterator<Item = S>) -> Self {
        self.types.extend(types.into_iter().map(|one| one.into().to_ascii_lowercase()));
        self
    }

    /// Accepts these extensions, without a dot and in any case, for example `pdf`. A file without an extension has
    /// that of its media type. A second call adds more extensions.
    #[must_use]
    pub fn extensions<S: Into<String>>(mut self, extensions: impl IntoIterator<Item = S>) -> Self {
        self.extensions.extend(extensions.into_iter().map(|one| one.into().to_ascii_lowercase()));
        self
    }

    /// Returns the media types that it accepts. Empty: all.
    pub(crate) fn accepted_types(&self) -> &[String] {
        &self.types
    }

    /// Returns the extensions that it accepts. Empty: all.
    pub(crate) fn accepted_extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Returns the largest size, in bytes.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        self.max_bytes
    }

    /// Checks the name before the first byte arrives.
    pub(crate) fn check_name(&self, file: &Judged<'_>) -> Result<()> {
        if file.name.contains('.') { self.check_extension(file, None) } else { Ok(()) }
    }

    /// Checks a size before the bytes arrive. `TooLarge`.
    pub(crate) fn check_size(&self, bytes: u64) -> Result<()> {
        match self.max_bytes {
            Some(max) if bytes > max => {
                let message = format!("the file has more bytes than {max}");
                Err(Error::new(ErrorKind::TooLarge, message).with_field("file").with_limit(max))
            }
            _ => Ok(()),
        }
    }

    /// Checks a file whose bytes have arrived. `TooLarge` or `InvalidField`.
    pub(crate) fn check(
        &self,
        file: &Judged<'_>,
        size_bytes: u64,
        sniffed: Option<&str>,
    ) -> Result<()> {
        self.check_size(size_bytes)?;
        self.check_type(file, sniffed)?;
        self.check_extension(file, sniffed)
    }

    fn check_type(&self, file: &Judged<'_>, sniffed: Option<&str>) -> Result<()> {
        if self.types.is_empty() {
            return Ok(());
        }
        // Without a type from the caller, whose word is final in a record.
        let shown = media::choose_type(None, sniffed, file.claimed_type, file.name);
        let shown = media::essence(&shown);
        let has_signature = sniffed.is_some_and(|sniffed| sniffed != "text/plain");
        let is_shown = has_signature || !needs_signature(&shown);
        if is_shown && self.types.iter().any(|allowed| covers(allowed, &shown)) {
            return Ok(());
        }
        let message = format!("files of this type are not accepted: {shown}");
        Err(Error::invalid("mime_type", message).with_allowed(self.types.iter().cloned()))
    }

    fn check_extension(&self, file: &Judged<'_>, sniffed: Option<&str>) -> Result<()> {
        if self.extensions.is_empty() {
            return Ok(());
        }
        let extension = media::extension(file.name, sniffed);
        if self.extensions.contains(&extension) {
            return Ok(());
        }
        let message = format!("files with this extension are not accepted: {extension:?}");
        Err(Error::invalid("original_name", message).with_allowed(self.extensions.iter().cloned()))
    }
}

fn needs_signature(essence: &str) -> bool {
    SIGNED.contains(&essence) || media::is_binary(essence)
}

/// Returns true if an allowed type is `shown`, or a kind of media that contains it.
fn covers(allowed: &str, shown: &str) -> bool {
    match allowed.strip_suffix("/*") {
        Some(kind) => shown.split('/').next() == Some(kind),
        None => allowed == shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged<'a>(name: &'a str, claimed_type: Option<&'a str>) -> Judged<'a> {
        Judged { name, claimed_type }
    }

    #[test]
    fn the_bytes_decide_the_type_and_a_claim_only_refines_it() {
        let policy = FilePolicy::new().types(["image/*", "application/pdf", "text/csv"]);
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        let documents = FilePolicy::new().types([docx]);
        for (policy, name, claimed, sniffed, is_accepted) in [
            (&policy, "a.png", Some("image/png"), Some("image/png"), true),
            (&policy, "a", None, Some("image/webp"), true),
            (&policy, "a.pdf", None, Some("application/pdf"), true),
            (&policy, "a.csv", None, Some("text/plain"), true),
            (&policy, "a.png", Some("image/png"), Some("text/html"), false),
            (&policy, "a.png", Some("image/png"), None, false),
            (&policy, "a.png", Some("image/png"), Some("text/plain"), false),
            (&policy, "a.pdf", Some("application/pdf"), Some("text/plain"), false),
            (&policy, "a.txt", Some("text/plain"), Some("text/plain"), false),
            (&policy, "a.bin", None, None, false),
            (&documents, "a.docx", None, Some("application/zip"), true),
            (&documents, "a.zip", None, Some("application/zip"), false),
            (&documents, "a.docx", Some(docx), Some("image/png"), false),
        ] {
            let checked = policy.check(&judged(name, claimed), 1, sniffed);
            assert_eq!(checked.is_ok(), is_accepted, "{name} {claimed:?} {sniffed:?}");
        }
    }

    #[test]
    fn an_extension_is_that_of_the_name_or_else_that_of_the_type() {
        let policy = FilePolicy::new().extensions(["PDF"]);
        policy.check(&judged("a.pdf", None), 1, None).unwrap();
        policy.check(&judged("a", None), 1, Some("application/pdf")).unwrap();
        let refused = policy.check(&judged("a.exe", None), 1, Some("application/pdf")).unwrap_err();
        assert_eq!(refused.details().allowed, ["pdf"]);
        assert_eq!(refused.details().field.as_deref(), Some("original_name"));

        policy.check_name(&judged("a", None)).unwrap();
        assert!(policy.check_name(&judged("a.exe", None)).is_err(), "before the first byte");
    }

    #[test]
    fn the_largest_size_is_accepted_and_one_byte_more_is_not() {
        let policy = FilePolicy::new().max_bytes(5);
        policy.check(&judged("a", None), 5, None).unwrap();
        let refused = policy.check(&judged("a", None), 6, None).unwrap_err();
        assert_eq!((refused.kind(), refused.details().limit), (ErrorKind::TooLarge, Some(5)));
        FilePolicy::new().check(&judged("a", None), u64::MAX, None).unwrap();
    }
}
