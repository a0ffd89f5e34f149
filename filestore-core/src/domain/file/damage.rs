//! Damage in a store. The store skips damaged rows, so that a fault affects only its own file.

/// Damage that the store has found since its opening and cannot repair automatically.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Number of damaged rows. The store skips them.
    pub damaged_rows: u64,
    /// Some of the damaged rows, each with the reason.
    pub rows: Vec<DamagedRow>,
    /// Number of live records without bytes on the local disk.
    pub missing_blobs: u64,
}

impl Damage {
    /// Tests whether any damage was found.
    pub fn is_any(&self) -> bool {
        self.damaged_rows > 0 || self.missing_blobs > 0
    }
}

/// A damaged row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedRow {
    /// Row name, for example `file 01M80BWY239DJDZF34J2FZ6HPG`.
    pub row: String,
    /// Reason why the row cannot be read.
    pub reason: String,
}

impl DamagedRow {
    /// Describes a row and the reason.
    pub(crate) fn new(row: impl Into<String>, reason: &impl ToString) -> Self {
        Self { row: row.into(), reason: reason.to_string() }
    }
}
