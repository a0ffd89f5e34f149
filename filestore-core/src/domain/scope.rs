//! Scopes: the part of a store that one caller sees.

use super::error::{Error, ErrorKind, Result};
use super::id::OrganizationId;

/// The organizations whose files a caller may see. Enforced in the look-up itself, so that a
/// foreign file cannot be told from an unknown one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All organizations.
    All,
    /// The listed organizations only.
    Organizations(Vec<OrganizationId>),
}

impl Scope {
    /// Tells if the scope covers `organization`.
    pub fn covers(&self, organization: &OrganizationId) -> bool {
        match self {
            Self::All => true,
            Self::Organizations(list) => list.contains(organization),
        }
    }

    /// Checks that the scope covers an organization that a caller names: `Forbidden` otherwise.
    pub fn check(&self, organization: &OrganizationId) -> Result<()> {
        if self.covers(organization) {
            return Ok(());
        }
        let message = "the key may not act on this organization";
        Err(Error::new(ErrorKind::Forbidden, message).with_field("organization_id"))
    }
}
