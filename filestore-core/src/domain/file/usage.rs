//! Storage usage of organizations and their sub-systems.

use std::fmt;
use std::str::FromStr;

use crate::domain::id::{OrganizationId, SubSystem};
use crate::domain::provider::binding::Binding;

/// Files and bytes of one organization. TEMP files and deleted files count until the purge removes
/// their records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Figures for files in the data directory or backend.
    pub local: Stored,
    /// Figures for files at providers.
    pub cloud: Stored,
    /// Figures for TEMP files that are not deleted. They are also part of `local`.
    pub temp: Stored,
    /// Figures for deleted files, until the purge. They are also part of `local` or `cloud`.
    pub deleted: Stored,
}

/// Number and size of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// File count.
    pub files: u64,
    /// Total size, in bytes.
    pub bytes: u64,
}

impl Usage {
    /// Returns the sum of both locations.
    pub fn total(&self) -> Stored {
        self.local.plus(self.cloud)
    }

    /// Sets the figures of one standing. Files that are live have no figures of their own.
    pub(crate) fn set(&mut self, standing: Standing, stored: Stored) {
        match standing {
            Standing::Live => {}
            Standing::Temp => self.temp = stored,
            Standing::Deleted => self.deleted = stored,
        }
    }
}

impl Stored {
    /// Returns the sum of both figures.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// Files and bytes of one sub-system of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubSystemUsage {
    /// Sub-system.
    pub sub_system: SubSystem,
    /// Figures for all files, TEMP files and deleted files included.
    pub total: Stored,
    /// Figures for TEMP files that are not deleted.
    pub temp: Stored,
    /// Figures for deleted files, until the purge.
    pub deleted: Stored,
}

impl SubSystemUsage {
    /// Describes a sub-system without files.
    pub(crate) fn new(sub_system: SubSystem) -> Self {
        let none = Stored::default();
        Self { sub_system, total: none, temp: none, deleted: none }
    }

    /// Adds the figures of one standing.
    pub(crate) fn add(&mut self, standing: Standing, stored: Stored) {
        self.total = self.total.plus(stored);
        match standing {
            Standing::Live => {}
            Standing::Temp => self.temp = self.temp.plus(stored),
            Standing::Deleted => self.deleted = self.deleted.plus(stored),
        }
    }
}

/// An organization that has files or an active binding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownOrganization {
    /// Organization id.
    pub organization_id: OrganizationId,
    /// Figures for all files, TEMP files and deleted files included.
    pub stored: Stored,
    /// Active binding. `None` if the organization has none.
    pub binding: Option<Binding>,
}

/// The standing of a file, by which the totals of sub-systems tell files apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// THUMBNAIL and READY files that are not deleted.
    Live,
    /// TEMP files that are not deleted.
    Temp,
    /// Deleted files.
    Deleted,
}

impl Standing {
    /// All standings.
    pub(crate) const ALL: [Self; 3] = [Self::Live, Self::Temp, Self::Deleted];

    /// Returns the stored name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Live => "LIVE",
            Self::Temp => "TEMP",
            Self::Deleted => "DELETED",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Standing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or("no standing of a file")
    }
}
