//! The part of a store that a caller can access. Not a key's scopes: see `key.rs`.

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;

/// The organizations that a call can access. A file outside the scope returns `NotFound`, like an
/// unknown id. Pass the scope to [`FileStore::scoped`](crate::FileStore::scoped).
///
/// ```
/// use filestore_core::Scope;
///
/// # fn main() -> filestore_core::Result<()> {
/// let own = Scope::Organizations(vec!["42".parse()?]);
/// assert!(own.covers(&"42".parse()?));
/// assert!(!own.covers(&"43".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All organizations.
    All,
    /// Only these organizations.
    Organizations(Vec<OrganizationId>),
}

impl Scope {
    /// Tests whether the scope contains `organization`.
    pub fn covers(&self, organization: &OrganizationId) -> bool {
        match self {
            Self::All => true,
            Self::Organizations(list) => list.contains(organization),
        }
    }

    /// Checks that the scope contains an organization that a caller names. `Forbidden` if not.
    pub fn check(&self, organization: &OrganizationId) -> Result<()> {
        if self.covers(organization) {
            return Ok(());
        }
        let message = "the key may not act on this organization";
        Err(Error::new(ErrorKind::Forbidden, message).with_field("organization_id"))
    }
}
