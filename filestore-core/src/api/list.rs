//! Listing on the wire: the query and its pages.

use std::collections::BTreeMap;

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
    /// Text that names must begin with. With it, and with an organization, records come by name.
    pub name_prefix: Option<String>,
    /// Media type without parameters that files must have.
    pub mime_type: Option<String>,
    /// Time of the earliest upload shown, ISO 8601.
    pub created_after: Option<String>,
    /// Time before which uploads are shown, ISO 8601.
    pub created_before: Option<String>,
    /// Members of custom metadata that files must have, each as a parameter `metadata.<key>`: numbers
    /// and booleans as JSON writes them.
    #[serde(flatten, with = "members")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub metadata: BTreeMap<String, String>,
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

    /// Keeps only records whose name begins with `text`.
    #[must_use]
    pub fn name_prefix(mut self, text: impl Into<String>) -> Self {
        self.name_prefix = Some(text.into());
        self
    }

    /// Keeps only records with this media type, whatever its parameters are.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Keeps only records created at this time or later: ISO 8601 with a zone, or a date.
    #[must_use]
    pub fn created_after(mut self, time: impl Into<String>) -> Self {
        self.created_after = Some(time.into());
        self
    }

    /// Keeps only records created before this time.
    #[must_use]
    pub fn created_before(mut self, time: impl Into<String>) -> Self {
        self.created_before = Some(time.into());
        self
    }

    /// Keeps only records whose custom metadata has this member; several calls ask for all of them.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Continues after the page that had this `next_cursor`. The other fields must be the same.
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
