//! Scopes: the part of a store that one caller sees.

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
}
