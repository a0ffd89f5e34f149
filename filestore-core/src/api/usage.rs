//! Storage usage in JSON.

use serde::{Deserialize, Serialize};

/// The reply to GET `/organizations/{organization_id}/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsageReply {
    /// Organization id.
    pub organization_id: String,
    /// File count. Temporary files count, and deleted files count until the purge.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// The same figures for each location.
    pub by_location: UsageByLocation,
    /// Temporary files that are not deleted. `files` and `bytes` include them.
    #[serde(default)]
    pub temp: UsageAt,
    /// Deleted files, until the purge. `files` and `bytes` include them.
    #[serde(default)]
    pub deleted: UsageAt,
    /// Maximum files. Null if there is no limit.
    pub quota_files: Option<u64>,
    /// Maximum total size in bytes. Null if there is no limit.
    pub quota_bytes: Option<u64>,
}

/// Files and bytes for each location.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub struct UsageByLocation {
    /// Figures for files that the server stores (`LOCAL`).
    pub local: UsageAt,
    /// Figures for files at providers (`CLOUD`).
    pub cloud: UsageAt,
}

/// Files: number and size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsageAt {
    /// File count.
    pub files: u64,
    /// Total size, in bytes.
    pub bytes: u64,
}

/// The query for GET `/organizations` and GET `/organizations/{organization_id}/sub-systems`.
///
/// ```
/// use filestore_core::api::PageQuery;
///
/// let query = PageQuery::new().limit(50);
/// assert_eq!(query.limit, Some(50));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PageQuery {
    /// Items in a page, 1 to 1000 (default 100).
    pub limit: Option<u32>,
    /// `next_cursor` from the previous page.
    pub cursor: Option<String>,
}

impl PageQuery {
    /// Creates a query for the first page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the page size in items, 1 to 1000 (default 100).
    #[must_use]
    pub fn limit(mut self, items: u32) -> Self {
        self.limit = Some(items);
        self
    }

    /// Continues after the page with this `next_cursor`.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// A page from GET `/organizations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OrganizationsReply {
    /// This page's organizations, ordered by id: each has files or an active binding.
    pub items: Vec<OrganizationReply>,
    /// Cursor for the next page: pass this value as `cursor`. Null on the last page.
    pub next_cursor: Option<String>,
}

/// An organization with its storage usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OrganizationReply {
    /// Organization id.
    pub organization_id: String,
    /// File count. Temporary files count, and deleted files count until the purge.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// Maximum files. Null if there is no limit.
    pub quota_files: Option<u64>,
    /// Maximum total size in bytes. Null if there is no limit.
    pub quota_bytes: Option<u64>,
    /// Active binding. Null if the organization has none: its files are `LOCAL`.
    pub binding: Option<OrganizationBinding>,
}

/// The active binding of an organization, in GET `/organizations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OrganizationBinding {
    /// Organization name, from the binding.
    pub organization_name: String,
    /// Code of the provider that stores new files, for example `LOCAL`.
    pub storage_provider: String,
    /// True if new files are stored locally first and copied in the background.
    pub sync_enabled: bool,
}

/// A page from GET `/organizations/{organization_id}/sub-systems`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SubSystemsReply {
    /// Sub-systems with files, ordered by name.
    pub items: Vec<SubSystemReply>,
    /// Cursor for the next page: pass this value as `cursor`. Null on the last page.
    pub next_cursor: Option<String>,
}

/// A sub-system with its storage usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SubSystemReply {
    /// Sub-system, for example `invoices`.
    pub sub_system: String,
    /// File count. Temporary files count, and deleted files count until the purge.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// Temporary files that are not deleted. `files` and `bytes` include them.
    pub temp: UsageAt,
    /// Deleted files, until the purge. `files` and `bytes` include them.
    pub deleted: UsageAt,
}
