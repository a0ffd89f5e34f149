//! Stored totals, compared with the sums of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;

use crate::domain::error::Result;

/// Stored totals, compared with the sums of their files.
#[async_trait]
pub trait Totals: Send + Sync + 'static {
    /// Lists at most `limit` organizations after `after` that have files or totals, in order.
    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>>;

    /// Compares the totals of an organization, or of the sync statuses if `None`, with its files.
    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>>;

    /// Corrects totals by their drift, all or none. The call does not count again, because a drift does not
    /// change while files are added and removed. A drift that was found earlier is therefore still correct,
    /// but must be applied only once.
    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()>;
}

/// A total that differs from the sum of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedTotal {
    /// The total.
    pub total: Total,
    /// The stored files and bytes.
    pub stored: (i64, i64),
    /// The counted files and bytes, at the same time.
    pub counted: (i64, i64),
}

/// Totals of files and bytes, by name.
#[derive(Debug, Default)]
pub(in crate::metadata) struct Sums(BTreeMap<String, (i64, i64)>);

impl Sums {
    /// Adds files and bytes to a total.
    pub(in crate::metadata) fn add(&mut self, name: String, files: i64, bytes: i64) {
        let sum = self.0.entry(name).or_default();
        sum.0 += files;
        sum.1 += bytes;
    }

    /// Lists the totals that differ. `total` creates them from their names.
    pub(in crate::metadata) fn compare(
        stored: &Self,
        counted: &Self,
        total: impl Fn(&str) -> Total,
    ) -> Vec<DriftedTotal> {
        let parts: BTreeSet<&String> = stored.0.keys().chain(counted.0.keys()).collect();
        let of = |sums: &Self, part| sums.0.get(part).copied().unwrap_or_default();
        let totals = parts.into_iter().map(|part| DriftedTotal {
            total: total(part),
            stored: of(stored, part),
            counted: of(counted, part),
        });
        totals.filter(|total| total.stored != total.counted).collect()
    }
}

/// A total that is updated when files are added and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Total {
    /// The files of an organization at a location.
    Usage {
        /// The organization, as stored.
        organization: String,
        /// The location, as stored.
        location: String,
    },
    /// The files of a sub-system with a standing.
    SubSystem {
        /// The organization, as stored.
        organization: String,
        /// The sub-system, as stored.
        sub_system: String,
        /// The standing, as stored.
        standing: String,
    },
    /// The files with a sync status. Bytes are not counted.
    Syncs {
        /// The status, as stored.
        status: String,
    },
}

impl Total {
    /// Makes the total of a sub-system of its name in [`Sums`]: sub-system and standing with a space between.
    pub(in crate::metadata) fn of_part(organization: &str, name: &str) -> Self {
        let (sub_system, standing) = name.rsplit_once(' ').unwrap_or((name, ""));
        Self::SubSystem {
            organization: organization.to_owned(),
            sub_system: sub_system.to_owned(),
            standing: standing.to_owned(),
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { organization, location } => {
                write!(f, "usage of {organization}, {location}")
            }
            Self::SubSystem { organization, sub_system, standing } => {
                write!(f, "usage of {organization}, sub-system {sub_system}, {standing}")
            }
            Self::Syncs { status } => write!(f, "files with sync {status}"),
        }
    }
}
