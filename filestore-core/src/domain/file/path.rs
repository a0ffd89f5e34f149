//! Storage keys: `<organization_id>/<sub_system>/<yyyy>/<mm>/<dd>/<blob id>`.
//!
//! All parts of a key are checked, and the user's file name is not a part, so no key can leave its
//! directory. Every blob has a new id, so a key is written once and never reused.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};
use crate::domain::id::{BlobId, OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;

/// The storage key of a blob, in JSON `file_path`. For example,
/// `42/gallery/2026/11/21/01JD8QZ4T6X3M2V9B7K5N1R0CE`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BlobKey {
    text: Box<str>,
    blob_id: BlobId,
}

impl BlobKey {
    /// Creates the key of `blob_id`. The UTC date of `uploaded_at` (the first upload) is in the
    /// key, also for later blobs of the file.
    pub fn new(
        organization: &OrganizationId,
        sub_system: &SubSystem,
        uploaded_at: Timestamp,
        blob_id: BlobId,
    ) -> Self {
        let (year, month, day) = uploaded_at.date();
        let text = format!("{organization}/{sub_system}/{year:04}/{month:02}/{day:02}/{blob_id}");
        Self { text: text.into(), blob_id }
    }

    /// Returns the key of `blob_id` in the same directory.
    #[must_use]
    pub fn sibling(&self, blob_id: BlobId) -> Self {
        let text = format!("{}/{blob_id}", self.directory());
        Self { text: text.into(), blob_id }
    }

    /// Returns the whole key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the blob id.
    pub fn blob_id(&self) -> BlobId {
        self.blob_id
    }

    /// Returns the directory, without a trailing slash.
    pub fn directory(&self) -> &str {
        self.text.rsplit_once('/').expect("a key has six parts").0
    }
}

impl FromStr for BlobKey {
    type Err = Error;

    /// Reads a stored key and checks every part again.
    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [organization, sub_system, year, month, day, blob] = parts[..] else {
            return Err(not_a_key());
        };

        organization.parse::<OrganizationId>().map_err(|_| not_a_key())?;
        sub_system.parse::<SubSystem>().map_err(|_| not_a_key())?;
        if !(has_digits(year, 4) && has_digits(month, 2) && has_digits(day, 2)) {
            return Err(not_a_key());
        }

        Ok(Self { text: text.into(), blob_id: blob.parse().map_err(|_| not_a_key())? })
    }
}

fn not_a_key() -> Error {
    Error::invalid("file_path", "not a blob key")
}

fn has_digits(part: &str, count: usize) -> bool {
    part.len() == count && part.bytes().all(|b| b.is_ascii_digit())
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_names_organization_sub_system_and_utc_date() {
        let at = Timestamp::from_millis(1_795_248_930_123);
        let blob = BlobId::generate(at);
        let key = BlobKey::new(&"42".parse().unwrap(), &"gallery".parse().unwrap(), at, blob);
        assert_eq!(key.as_str(), format!("42/gallery/2026/11/21/{blob}"));
        assert_eq!(key.directory(), "42/gallery/2026/11/21");
        assert_eq!(key.as_str().parse::<BlobKey>().unwrap(), key);
    }

    proptest! {
        #[test]
        fn no_text_parses_into_a_key_that_climbs(text in "[a-zA-Z0-9./\\\\_-]{0,90}") {
            if let Ok(key) = text.parse::<BlobKey>() {
                prop_assert!(!key.as_str().contains("..") && !key.as_str().starts_with('/'));
                prop_assert_eq!(key.as_str().split('/').count(), 6);
            }
        }

        #[test]
        fn every_key_reads_back(org in "[A-Za-z_-][A-Za-z0-9_-]{0,63}", sub in "[A-Za-z0-9][A-Za-z0-9_-]{0,63}", ms in 0i64..253_402_300_799_999) {
            let at = Timestamp::from_millis(ms);
            let key = BlobKey::new(&org.parse().unwrap(), &sub.parse().unwrap(), at, BlobId::generate(at));
            prop_assert_eq!(key.as_str().parse::<BlobKey>().unwrap(), key);
        }
    }
}
