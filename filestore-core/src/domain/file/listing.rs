//! Listings: filters and pages.

use std::str::FromStr;

use super::media::listed_as;
use super::record::FileRecord;
use super::status::{PurgeStatus, Status, SyncStatus};
use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;

/// The order of a listing.
///
/// For example, `"oldest".parse::<ListOrder>()` is `ListOrder::Oldest`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListOrder {
    /// By file id, descending. With `name_prefix` and organizations, by name, and newest first among
    /// equal names.
    #[default]
    Newest,
    /// By file id, ascending.
    Oldest,
    /// By the start of the grace period, latest deletion first. Lists deleted files only.
    Deleted,
}

impl ListOrder {
    /// Every order.
    pub const ALL: &'static [Self] = &[Self::Newest, Self::Oldest, Self::Deleted];

    /// Returns the word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Deleted => "deleted",
        }
    }
}

impl FromStr for ListOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|order| order.as_str() == text);
        found.copied().ok_or_else(|| {
            let words = Self::ALL.iter().map(|order| order.as_str());
            Error::invalid("order", "order is newest, oldest or deleted").with_allowed(words)
        })
    }
}

/// A listing filter. [`order`](Self::order) decides which files come first.
///
/// For example, `ListFilter::new().status(Status::Ready)` lists all READY files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListFilter {
    /// Only this organization's files.
    pub organization_id: Option<OrganizationId>,
    /// Only this sub-system's files.
    pub sub_system: Option<SubSystem>,
    /// Only files with this status.
    pub status: Option<Status>,
    /// Only files with this sync status.
    pub sync_status: Option<SyncStatus>,
    /// `None`: only files that are not deleted. `Some`: only files with this purge status.
    pub purge_status: Option<PurgeStatus>,
    /// Only files with a name that begins with this text, compared character by character.
    pub name_prefix: Option<String>,
    /// Only files with this media type, in lower case and without parameters. Parameters of a
    /// file's type are ignored.
    pub mime_type: Option<String>,
    /// Only files uploaded at this time or later.
    pub created_after: Option<Timestamp>,
    /// Only files uploaded before this time.
    pub created_before: Option<Timestamp>,
    /// Only files with all these members in their custom metadata. Values are text: write `7` and
    /// `true` for a JSON number and boolean.
    pub metadata: Vec<(String, String)>,
    /// Only files with a name that contains this text. Upper and lower case are the same.
    pub name_contains: Option<String>,
    /// The order of the files.
    pub order: ListOrder,
}

impl ListFilter {
    /// Creates a filter for all files that are not deleted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only one organization's files.
    #[must_use]
    pub fn organization(mut self, id: OrganizationId) -> Self {
        self.organization_id = Some(id);
        self
    }

    /// Keeps only one sub-system's files.
    #[must_use]
    pub fn sub_system(mut self, name: SubSystem) -> Self {
        self.sub_system = Some(name);
        self
    }

    /// Keeps only files with this status.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Keeps only files with this sync status.
    #[must_use]
    pub fn sync_status(mut self, status: SyncStatus) -> Self {
        self.sync_status = Some(status);
        self
    }

    /// Lists deleted files that are not yet purged.
    #[must_use]
    pub fn deleted(mut self) -> Self {
        self.purge_status = Some(PurgeStatus::SystemPurge);
        self
    }

    /// Keeps only files with a name that begins with `text`.
    #[must_use]
    pub fn name_prefix(mut self, text: impl Into<String>) -> Self {
        self.name_prefix = Some(text.into());
        self
    }

    /// Keeps only files with this media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Keeps only files uploaded at this time or later.
    #[must_use]
    pub fn created_after(mut self, time: Timestamp) -> Self {
        self.created_after = Some(time);
        self
    }

    /// Keeps only files uploaded before this time.
    #[must_use]
    pub fn created_before(mut self, time: Timestamp) -> Self {
        self.created_before = Some(time);
        self
    }

    /// Keeps only files with this member of custom metadata. If you call this several times, files
    /// must match all members.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Keeps only files with a name that contains `text`, in upper or lower case.
    #[must_use]
    pub fn name_contains(mut self, text: impl Into<String>) -> Self {
        self.name_contains = Some(text.into());
        self
    }

    /// Sets the order of the files.
    #[must_use]
    pub fn order(mut self, order: ListOrder) -> Self {
        self.order = order;
        self
    }

    /// Tests whether a listing with this filter shows `record`, for any caller.
    pub(crate) fn admits(&self, record: &FileRecord) -> bool {
        let state = record.state;
        self.organization_id.as_ref().is_none_or(|id| *id == record.organization_id)
            && self.sub_system.as_ref().is_none_or(|part| *part == record.sub_system)
            && self.status.is_none_or(|status| status == state.status())
            && self.sync_status.is_none_or(|status| status == state.sync())
            && self.purge_status == state.purge()
            && self.name_prefix.as_ref().is_none_or(|start| record.original_name.starts_with(start))
            && self.mime_type.as_ref().is_none_or(|mime| *mime == listed_as(&record.mime_type))
            && self.name_contains.as_ref().is_none_or(|part| contains(&record.original_name, part))
            && self.created_after.is_none_or(|at| record.file_id.made_at() >= at)
            && self.created_before.is_none_or(|at| record.file_id.made_at() < at)
            && record.metadata.has_all(&self.metadata)
    }
}

/// The position between two files, where one page ends and the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    /// File name before the position, in listings by name.
    pub name: Option<String>,
    /// File id before the position.
    pub file_id: FileId,
    /// Start of the grace period of the file before the position, in listings by deletion.
    pub marked_at: Option<Timestamp>,
}

/// Tests whether `text` contains `part`, in upper or lower case.
fn contains(text: &str, part: &str) -> bool {
    folded(text).contains(&folded(part))
}

/// Returns the text in lower case, each character by itself: in `str::to_lowercase`, a sigma depends on what follows.
fn folded(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

/// Returns the smallest text after all texts with this prefix, in the order of characters. `None`
/// if no such text exists.
pub(crate) fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end: Vec<char> = prefix.chars().collect();
    while let Some(last) = end.pop() {
        // Surrogates are no characters.
        let next = ((u32::from(last) + 1)..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            return Some(end.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_contains_a_text_in_upper_or_lower_case() {
        for (name, part) in [
            ("Invoice-7.PDF", "voice"),
            ("Invoice-7.PDF", ".pdf"),
            ("GRÖSSE", "größe".to_uppercase().as_str()),
            ("Überweisung", "ÜBER"),
            ("ΑΣ", "ας"),
            ("ΟΔΟΣ.pdf", "ΟΔΟΣ"),
        ] {
            assert!(contains(name, part), "{name} {part}");
        }
        for (name, part) in [("invoice", "invoices"), ("a b", "ab"), ("", "a")] {
            assert!(!contains(name, part), "{name} {part}");
        }
    }

    #[test]
    fn an_order_reads_back_from_its_word() {
        for order in ListOrder::ALL {
            assert_eq!(order.as_str().parse::<ListOrder>().unwrap(), *order);
        }
        for bad in ["", "Newest", "name"] {
            let error = bad.parse::<ListOrder>().unwrap_err();
            assert_eq!(error.details().allowed, ["newest", "oldest", "deleted"], "{bad}");
        }
    }

    #[test]
    fn a_prefix_ends_before_the_next_text() {
        for (prefix, end) in [
            ("a", Some("b")),
            ("ab", Some("ac")),
            ("a\u{10FFFF}", Some("b")),
            ("a\u{D7FF}", Some("a\u{E000}")),
            ("\u{7F}", Some("\u{80}")),
            ("", None),
            ("\u{10FFFF}\u{10FFFF}", None),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
        }
    }

    proptest! {
        #[test]
        fn exactly_the_texts_with_the_prefix_lie_between(prefix in ".{1,3}", text in ".{0,5}", with in any::<bool>()) {
            let text = if with { format!("{prefix}{text}") } else { text };
            let end = end_of_prefix(&prefix);
            let lies = text >= prefix && end.is_none_or(|end| text < end);
            prop_assert_eq!(lies, text.starts_with(&prefix));
        }
    }
}
