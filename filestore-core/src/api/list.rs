//! Listing on the wire: the query and its pages.

use serde::{Deserialize, Serialize};

use super::file::FileRecord;
use super::vocabulary::{PurgeStatus, Status};

/// The filter and position of a listing, newest records first. Fields that are `None` do not
/// filter, and are not sent.
///
/// ```
/// use filestore_core::api::{ListQuery, Status};
///
/// let query = ListQuery::new().organization_id("42").status(Status::Ready).limit(50);
/// assert_eq!(query.limit, Some(50));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ListQuery {
    /// Organization whose files are listed.
    pub organization_id: Option<String>,
    /// Part of the application whose files are listed.
    pub sub_system: Option<String>,
    /// Stage of life that files must have.
    pub status: Option<Status>,
    /// Mark that files must have; unmarked files only if `None`.
    pub purge_status: Option<PurgeStatus>,
    /// Records of one page, 1 to 1000; 100 if `None`.
    pub limit: Option<u32>,
    /// Position after the last page, from its `next_cursor`.
    pub cursor: Option<String>,
}

impl ListQuery {
    /// Asks for every record that the caller may see, except deleted ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only records of one organization.
    #[must_use]
    pub fn organization_id(mut self, id: impl Into<String>) -> Self {
        self.organization_id = Some(id.into());
        self
    }

    /// Keeps only records of one part of the application.
    #[must_use]
    pub fn sub_system(mut self, name: impl Into<String>) -> Self {
        self.sub_system = Some(name.into());
        self
    }

    /// Keeps only records with this status.
    #[must_use]
    pub fn status(mut self, status: impl Into<Status>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Asks for deleted files that are not yet purged, instead of the others.
    #[must_use]
    pub fn purge_status(mut self, status: impl Into<PurgeStatus>) -> Self {
        self.purge_status = Some(status.into());
        self
    }

    /// Sets the number of records of one page, 1 to 1000; 100 otherwise.
    #[must_use]
    pub fn limit(mut self, records: u32) -> Self {
        self.limit = Some(records);
        self
    }

    /// Continues after the page that had this `next_cursor`. The other fields must be the same.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListReply {
    /// Records of this page, newest first.
    pub items: Vec<FileRecord>,
    /// Position of the next page, to be passed back as `cursor`; null on the last page.
    pub next_cursor: Option<String>,
}

impl ListReply {
    /// Makes a page of records, with the position of the next one.
    pub fn new(items: Vec<FileRecord>, next_cursor: Option<String>) -> Self {
        Self { items, next_cursor }
    }
}
