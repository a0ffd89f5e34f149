//! Damage that a store has met: what it passes over, so that one fault stops nobody else.

/// Faults that a store has met since it was opened and cannot repair by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The number of stored rows that cannot be read. They are passed over.
    pub damaged_rows: u64,
    /// Some of the damaged rows, each with the reason.
    pub rows: Vec<DamagedRow>,
    /// The number of live records whose bytes are missing on the service's own disk.
    pub missing_blobs: u64,
}

impl Damage {
    /// Tells whether anything is damaged.
    pub fn is_any(&self) -> bool {
        self.damaged_rows > 0 || self.missing_blobs > 0
    }
}

/// A stored row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedRow {
    /// The row, as in `file 01M80BWY239DJDZF34J2FZ6HPG`.
    pub row: String,
    /// The reason why it cannot be read.
    pub reason: String,
}

impl DamagedRow {
    /// Describes a row and the reason why it cannot be read.
    pub(crate) fn new(row: impl Into<String>, reason: &impl ToString) -> Self {
        Self { row: row.into(), reason: reason.to_string() }
    }
}
