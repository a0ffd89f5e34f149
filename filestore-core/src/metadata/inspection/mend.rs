//! Repairs of damaged rows from the undamaged parts of the row.

use async_trait::async_trait;

use super::walk::NamedBlob;
use crate::domain::error::Result;

/// Repairs, which restore damaged rows from their undamaged parts.
#[async_trait]
pub trait Mend: Send + Sync + 'static {
    /// Corrects a file's location, if its record still names the blob. Returns true if it did.
    async fn mend_location(&self, blob: &NamedBlob, location: MendLocation) -> Result<bool>;

    /// Repairs a damaged record if the rest of the row determines the damaged part. Otherwise excludes the
    /// row from claims.
    async fn mend_file(&self, file_id: &str) -> Result<MendedRow>;

    /// Returns every stored value of a file's row as a JSON object. `None` if there is no row.
    async fn row_text(&self, file_id: &str) -> Result<Option<String>>;
}

/// The correct location of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MendLocation {
    /// The local disk.
    Local,
    /// The file's provider.
    Cloud,
}

/// The result of repairing a damaged row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MendedRow {
    /// The row can be read again. The text names the repaired part.
    SetRight(String),
    /// The row stays damaged, and claims skip it.
    SetAside,
    /// The row was intact, or no longer exists.
    Sound,
}
