//! Words that a request can contain.

use std::error::Error as StdError;
use std::fmt;

use super::closed_word;

closed_word! {
    /// The order of a listing.
    ListOrder "order" {
        /// The newest file comes first.
        Newest = "newest",
        /// The oldest file comes first.
        Oldest = "oldest",
        /// The latest deletion comes first. Lists deleted files only.
        Deleted = "deleted",
    }
}

closed_word! {
    /// Fit of a picture in the square of a variant.
    Fit "fit" {
        /// Fills the square. Both sides of the longer dimension are cut off evenly.
        Cover = "cover",
        /// Keeps the whole picture and the aspect ratio. The result is square only if the picture
        /// is.
        Inside = "inside",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro writes the enum, and one word has a default")]
impl Default for Fit {
    fn default() -> Self {
        Self::Cover
    }
}

closed_word! {
    /// Behaviour of a browser: show or save the file.
    Disposition "disposition" {
        /// Saves the file to disk.
        Attachment = "attachment",
        /// Shows the file, if the type is safe to show.
        Inline = "inline",
    }
}

closed_word! {
    /// Order of a page of events.
    EventOrder "order" {
        /// Oldest first.
        Asc = "asc",
        /// Newest first.
        Desc = "desc",
    }
}

closed_word! {
    /// Caches that can keep the reply to a signed URL.
    UrlCache "cache" {
        /// Any cache, until the time window ends.
        Public = "public",
        /// Only the reader's own cache, which asks each time.
        Private = "private",
    }
}

/// The choice between doing the work and only counting it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// Only counts the work, without changes.
    Yes,
    /// Does the work.
    #[default]
    No,
}

/// The error for a word that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    allowed: &'static [&'static str],
}

impl UnknownWord {
    pub(super) fn new(what: &'static str, allowed: &'static [&'static str]) -> Self {
        Self { what, allowed }
    }

    /// Returns the allowed words.
    pub fn allowed(&self) -> &'static [&'static str] {
        self.allowed
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is one of {}", self.what, self.allowed.join(", "))
    }
}

impl StdError for UnknownWord {}
