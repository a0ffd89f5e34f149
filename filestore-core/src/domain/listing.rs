//! Listings: what they show, and where a page of one ends.

use super::clock::Timestamp;
use super::id::{FileId, OrganizationId, SubSystem};
use super::media::essence;
use super::record::FileRecord;
use super::status::{PurgeStatus, Status};

/// The files that a listing shows. Listings are newest first (by file id, descending), except with
/// `name_prefix` in organizations that are known: then by name, and newest first among equal names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListFilter {
    /// Only files of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Only files of this part of the application.
    pub sub_system: Option<SubSystem>,
    /// Only files in this status.
    pub status: Option<Status>,
    /// `None`: only files that are not deleted. `Some`: only files with this purge status.
    pub purge_status: Option<PurgeStatus>,
    /// Only files whose name begins with this text, character by character.
    pub name_prefix: Option<String>,
    /// Only files of this media type, in lower case and without parameters; those of a file do not
    /// count.
    pub mime_type: Option<String>,
    /// Only files created at this instant or later.
    pub created_after: Option<Timestamp>,
    /// Only files created before this instant.
    pub created_before: Option<Timestamp>,
    /// Only files with all of these members in their custom metadata: keys and values, numbers and
    /// booleans as JSON writes them.
    pub metadata: Vec<(String, String)>,
}

impl ListFilter {
    /// Tells if a listing with this filter shows `record`, whoever asks.
    pub(crate) fn admits(&self, record: &FileRecord) -> bool {
        let state = record.state;
        self.organization_id.as_ref().is_none_or(|id| *id == record.organization_id)
            && self.sub_system.as_ref().is_none_or(|part| *part == record.sub_system)
            && self.status.is_none_or(|status| status == state.status())
            && self.purge_status == state.purge()
            && self.name_prefix.as_ref().is_none_or(|start| record.original_name.starts_with(start))
            && self.mime_type.as_ref().is_none_or(|mime| *mime == essence(&record.mime_type))
            && self.created_after.is_none_or(|at| record.file_id.made_at() >= at)
            && self.created_before.is_none_or(|at| record.file_id.made_at() < at)
            && record.metadata.has_all(&self.metadata)
    }
}

/// The place between two files of a listing, where a page ends and the next one begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    /// The name of the file before it, in listings by name.
    pub name: Option<String>,
    /// The id of the file before it.
    pub file_id: FileId,
}

/// Finds the first text that is after every text with the prefix, in the order of characters; `None` if
/// there is none.
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
