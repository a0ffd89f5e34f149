//! Usage: the files and bytes that an organization stores.

/// Files and bytes of one organization, all states counted until their records are gone: TEMP and
/// deleted ones too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The part that the data directory holds.
    pub local: Stored,
    /// The part that providers hold.
    pub cloud: Stored,
}

/// A number of files, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// The number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Usage {
    /// Returns the files and bytes of both locations.
    pub fn total(&self) -> Stored {
        Stored {
            files: self.local.files.saturating_add(self.cloud.files),
            bytes: self.local.bytes.saturating_add(self.cloud.bytes),
        }
    }
}
