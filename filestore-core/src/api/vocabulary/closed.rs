//! Choices of a caller, as requests hold them.

use std::error::Error as StdError;
use std::fmt;

use super::closed_word;

closed_word! {
    /// The way a picture fills the square of its variant.
    Fit "fit" {
        /// Fills the square; the overhang is cut off evenly on both sides.
        Cover = "cover",
        /// Keeps the whole picture within the square; the result is square only if the picture is.
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
    /// The wish for a browser to show a file or to save it.
    Disposition "disposition" {
        /// Saves the file to the user's disk.
        Attachment = "attachment",
        /// Shows the file, if its type is safe to show.
        Inline = "inline",
    }
}

/// The choice between doing the work and only counting it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// The work is only counted; nothing is touched.
    Yes,
    /// The work is done.
    #[default]
    No,
}

/// A text that is none of the allowed words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    allowed: &'static [&'static str],
}

impl UnknownWord {
    pub(super) fn new(what: &'static str, allowed: &'static [&'static str]) -> Self {
        Self { what, allowed }
    }

    /// Returns the words that are allowed.
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
