//! Resumable uploads: their stages, and the bounds of their number.

use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};

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
    /// Number of uploads.
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
