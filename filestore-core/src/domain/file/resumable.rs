//! Resumable uploads: their addresses, stages and state, and the bounds of their number.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, OrganizationId, UploadId};
use crate::domain::time::clock::Timestamp;

/// The address of a resumable upload: its id and a secret token.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadAddress {
    /// Id. Logs and lists show the id without the token.
    pub upload_id: UploadId,
    /// The token, 22 characters of base64url. A secret.
    pub(crate) token: String,
}

impl UploadAddress {
    /// Returns the address as a path segment, `{upload_id}.{token}`. The result is a secret.
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

    /// Parses `{upload_id}.{token}`. Any other text is `NotFound`, like an unknown upload.
    fn from_str(text: &str) -> Result<Self> {
        let read = text.split_once('.').and_then(|(id, token)| Some((id.parse().ok()?, token)));
        let (upload_id, token) = read.ok_or_else(|| Error::not_found("upload"))?;
        Ok(Self { upload_id, token: token.to_owned() })
    }
}

/// The stage of a resumable upload.
///
/// | from | event | to |
/// |---|---|---|
/// | – | creation | `Open` |
/// | `Open` | the last byte is on the disk | `Completing` |
/// | `Completing` | the commit | `Finished` |
/// | `Completing` | the commit was refused for now, or the process ended | `Open` |
/// | `Open`, `Completing` | the upload can never succeed | `Failed` |
/// | `Open` | the lifetime is over | `Expired` |
///
/// A cancelled upload has no stage, because its row is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UploadStage {
    /// Receives bytes.
    Open,
    /// All bytes are here, and the commit runs.
    Completing,
    /// The file exists.
    Finished,
    /// The upload can never succeed.
    Failed,
    /// The lifetime is over.
    Expired,
}

impl UploadStage {
    /// Every stage, in declaration order.
    pub const ALL: &'static [Self] =
        &[Self::Open, Self::Completing, Self::Finished, Self::Failed, Self::Expired];

    /// Returns the stage as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completing => "completing",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }

    /// Tests whether the upload can still become a file.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Open | Self::Completing)
    }
}

impl fmt::Display for UploadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UploadStage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|stage| stage.as_str() == text);
        known.copied().ok_or_else(|| Error::invalid("stage", "not a stage of an upload"))
    }
}

/// The reason why an upload can never succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadFailure {
    /// Stable code of the error, for example `digest_mismatch`.
    pub code: String,
    /// Message of the error.
    pub message: String,
}

/// The state of a resumable upload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumableUpload {
    /// Address. A secret.
    pub address: UploadAddress,
    /// Stage.
    pub stage: UploadStage,
    /// Number of durable bytes. The next request starts at this offset.
    pub offset: u64,
    /// File length, if known.
    pub length: Option<u64>,
    /// File organization.
    pub organization_id: OrganizationId,
    /// Text that the client set at the creation.
    pub note: String,
    /// Place of the upload in a concatenation, as the client set it.
    pub concat: Option<String>,
    /// File name, if the client set one.
    pub original_name: Option<String>,
    /// File id, after the upload is finished.
    pub file_id: Option<FileId>,
    /// True if the upload replaces a file's bytes.
    pub is_replacement: bool,
    /// Reason, if the upload has failed.
    pub failure: Option<UploadFailure>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time at which the upload expires. For an ended upload, the time at which the store forgets it.
    pub expires_at: Timestamp,
}

impl ResumableUpload {
    /// Returns true if the file exists.
    pub fn is_finished(&self) -> bool {
        self.stage == UploadStage::Finished
    }
}

/// Bounds of open uploads: of all organizations, or of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadBounds {
    /// Maximum number of open uploads.
    pub uploads: u64,
    /// Maximum number of bytes that open uploads hold: received or announced.
    pub bytes: u64,
}

/// The number of open uploads and the bytes that they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UploadTotals {
    /// Upload count.
    pub uploads: u64,
    /// Bytes that they hold: received or announced.
    pub bytes: u64,
}

impl UploadTotals {
    /// Tests whether `more` bytes of one more upload, or of none, fit into `bounds`.
    pub(crate) fn fits(self, more: Self, bounds: UploadBounds) -> bool {
        self.uploads.saturating_add(more.uploads) <= bounds.uploads
            && self.bytes.saturating_add(more.bytes) <= bounds.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_reads_back_as_it_is_stored() {
        for &stage in UploadStage::ALL {
            assert_eq!(stage.as_str().parse::<UploadStage>().unwrap(), stage);
        }
        assert!("OPEN".parse::<UploadStage>().is_err());
    }

    #[test]
    fn the_last_upload_and_the_last_byte_fit() {
        let bounds = UploadBounds { uploads: 2, bytes: 10 };
        let held = UploadTotals { uploads: 1, bytes: 4 };
        assert!(held.fits(UploadTotals { uploads: 1, bytes: 6 }, bounds));
        assert!(!held.fits(UploadTotals { uploads: 1, bytes: 7 }, bounds));
        assert!(!held.fits(UploadTotals { uploads: 2, bytes: 0 }, bounds));
        assert!(!held.fits(UploadTotals { uploads: 0, bytes: u64::MAX }, bounds));
    }
}
