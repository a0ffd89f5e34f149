//! Listings: the query and a page of records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::file::FileRecord;
use super::vocabulary::{ListOrder, PurgeStatus, Status, SyncStatus};

/// The query for GET `/files`. The newest records come first, unless you set `order`. A field that is `None` does not
/// filter.
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
    /// Only this organization's files.
    pub organization_id: Option<String>,
    /// Only this sub-system's files.
    pub sub_system: Option<String>,
    /// Only files with this status.
    pub status: Option<Status>,
    /// Only files with this sync status, for example `FAILED`.
    pub sync_status: Option<SyncStatus>,
    /// Only deleted files with this purge status. If `None`, only files that are not deleted.
    pub purge_status: Option<PurgeStatus>,
    /// Records in a page, 1 to 1000 (default 100).
    pub limit: Option<u32>,
    /// `next_cursor` from the previous page.
    pub cursor: Option<String>,
    /// Only files with a name that begins with this text. If you also set an organization, records
    /// come in the order of names.
    pub name_prefix: Option<String>,
    /// Only files with this media type, without parameters, for example `image/jpeg`.
    pub mime_type: Option<String>,
    /// Only files uploaded at this time or later: RFC 3339, or a date such as `2026-11-21`.
    pub created_after: Option<String>,
    /// Only files uploaded before this time.
    pub created_before: Option<String>,
    /// Only files with a name that contains this text, ignoring case.
    pub name_contains: Option<String>,
    /// Order of the records (default `newest`).
    pub order: Option<ListOrder>,
    /// 1 to 100 file ids, separated by commas: only these files, deleted or not, in this order. Goes
    /// with no other field. [`ids`](Self::ids) joins ids.
    pub ids: Option<String>,
    /// Only files with these members of custom metadata. Each member becomes a parameter
    /// `metadata.<key>`. Values are text: write `7` and `true` for a JSON number and boolean.
    #[serde(flatten, with = "members")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub metadata: BTreeMap<String, String>,
}

impl ListQuery {
    /// Creates a query for all records that the caller can see. Deleted files are not included.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only one organization's files.
    #[must_use]
    pub fn organization_id(mut self, id: impl Into<String>) -> Self {
        self.organization_id = Some(id.into());
        self
    }

    /// Keeps only one sub-system's files.
    #[must_use]
    pub fn sub_system(mut self, name: impl Into<String>) -> Self {
        self.sub_system = Some(name.into());
        self
    }

    /// Keeps only files with this status.
    #[must_use]
    pub fn status(mut self, status: impl Into<Status>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// Keeps only files with this sync status.
    #[must_use]
    pub fn sync_status(mut self, status: impl Into<SyncStatus>) -> Self {
        self.sync_status = Some(status.into());
        self
    }

    /// Lists deleted files that are not yet purged.
    #[must_use]
    pub fn purge_status(mut self, status: impl Into<PurgeStatus>) -> Self {
        self.purge_status = Some(status.into());
        self
    }

    /// Sets the page size in records, 1 to 1000 (default 100).
    #[must_use]
    pub fn limit(mut self, records: u32) -> Self {
        self.limit = Some(records);
        self
    }

    /// Keeps only files with a name that begins with `text`.
    #[must_use]
    pub fn name_prefix(mut self, text: impl Into<String>) -> Self {
        self.name_prefix = Some(text.into());
        self
    }

    /// Keeps only files with a name that contains `text`, ignoring case.
    #[must_use]
    pub fn name_contains(mut self, text: impl Into<String>) -> Self {
        self.name_contains = Some(text.into());
        self
    }

    /// Sets the order of the records. `deleted` needs a purge status.
    #[must_use]
    pub fn order(mut self, order: impl Into<ListOrder>) -> Self {
        self.order = Some(order.into());
        self
    }

    /// Asks for these 1 to 100 files, deleted or not. The reply leaves out unknown files and files of
    /// other organizations.
    ///
    /// ```
    /// use filestore_core::api::ListQuery;
    ///
    /// let query = ListQuery::new().ids(["01JD8QZ4T6X3M2V9B7K5N1R0CE", "01JD8QZ4T6X3M2V9B7K5N1R0CF"]);
    /// assert!(query.asks_for_ids_alone());
    /// assert!(!query.limit(5).asks_for_ids_alone());
    /// ```
    #[must_use]
    pub fn ids(mut self, ids: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut joined = String::new();
        for id in ids {
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(id.as_ref());
        }
        self.ids = Some(joined);
        self
    }

    /// Returns true if `ids` is set and no other field.
    pub fn asks_for_ids_alone(&self) -> bool {
        self.ids.is_some() && Self { ids: None, ..self.clone() } == Self::default()
    }

    /// Keeps only files with this media type. Parameters are ignored.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Keeps only files uploaded at this time or later: RFC 3339 with a time zone, for example
    /// `2026-11-21T08:15:30Z`, or a date.
    #[must_use]
    pub fn created_after(mut self, time: impl Into<String>) -> Self {
        self.created_after = Some(time.into());
        self
    }

    /// Keeps only files uploaded before this time.
    #[must_use]
    pub fn created_before(mut self, time: impl Into<String>) -> Self {
        self.created_before = Some(time.into());
        self
    }

    /// Keeps only files with this member of custom metadata. If you call this several times, files
    /// must match all members.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Continues after the page with this `next_cursor`. Keep all other fields the same.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// The parameters `metadata.<key>`.
mod members {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    const PREFIX: &str = "metadata.";

    pub(super) fn serialize<S: Serializer>(
        members: &BTreeMap<String, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(members.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, String>, D::Error> {
        let all = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        let own = all.into_iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(PREFIX)?.to_owned();
            Some((key, value.as_str()?.to_owned()))
        });
        Ok(own.collect())
    }
}

/// A page from a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListReply {
    /// This page's records, in the order of the query.
    pub items: Vec<FileRecord>,
    /// Cursor for the next page: pass this value as `cursor`. Null on the last page.
    pub next_cursor: Option<String>,
}

impl ListReply {
    /// Creates a page from records and the cursor for the next page.
    pub fn new(items: Vec<FileRecord>, next_cursor: Option<String>) -> Self {
        Self { items, next_cursor }
    }
}
