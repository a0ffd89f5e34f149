//! The words in which readers ask for events: places in the log, and lists of kinds.

use std::fmt;
use std::str::FromStr;

use super::{After, EventKind};
use crate::domain::error::{Error, Result};

/// The end of a word that stands for all kinds with the same beginning, for example `file.*`.
const ALL_BELOW: &str = ".*";

impl FromStr for After {
    type Err = Error;

    /// Accepts `start`, `end`, and the id of an event.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "start" => Ok(Self::Start),
            "end" => Ok(Self::End),
            id => id.parse().map(Self::Event).map_err(|_| {
                Error::invalid("after", "use start, end, or the id of an event (22 characters)")
            }),
        }
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::End => f.write_str("end"),
            Self::Event(id) => id.fmt(f),
        }
    }
}

impl EventKind {
    /// Reads a list that is separated by commas, for example `file.ready,key.*`. `key.*` stands for all kinds
    /// that begin with `key.`. An unknown kind is refused, with the known ones.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let mut kinds = Vec::new();
        for word in text.split(',') {
            let named = Self::named(word.trim());
            if named.is_empty() {
                let message = format!("unknown type of events: {word:?}");
                let known = Self::ALL.iter().map(|kind| kind.as_str());
                return Err(Error::invalid("types", message).with_allowed(known));
            }
            kinds.extend(named);
        }
        kinds.sort_unstable();
        kinds.dedup();
        Ok(kinds)
    }

    /// Returns the kinds that a word names. Empty for an unknown word.
    fn named(word: &str) -> Vec<Self> {
        let kinds = Self::ALL.iter().copied();
        match word.strip_suffix(ALL_BELOW) {
            Some(group) => kinds.filter(|kind| kind.group() == group).collect(),
            None => kinds.filter(|kind| kind.as_str() == word).collect(),
        }
    }

    /// Returns the part of the name before the dot.
    fn group(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_it_was_written() {
        for text in ["start", "end", "BwcHBwcHBwcAAAAAAAAwOQ"] {
            assert_eq!(text.parse::<After>().unwrap().to_string(), text);
        }
        for bad in ["", "Start", "7", "BwcHBwcHBwcAAAAAAAAwO", "BwcHBwcHBwcAAAAAAAAwOQ=="] {
            let error = bad.parse::<After>().unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("after"), "{bad}");
        }
    }

    #[test]
    fn a_list_names_kinds_and_groups_once_each() {
        let kinds = EventKind::parse_list("file.ready, key.*,file.ready,key.revoked").unwrap();
        let names: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(
            names,
            ["file.ready", "key.created", "key.rotated", "key.changed", "key.revoked"]
        );
        let of_files = EventKind::ALL.iter().filter(|kind| kind.is_of_file()).count();
        assert_eq!(EventKind::parse_list("file.*").unwrap().len(), of_files);
    }

    #[test]
    fn an_unknown_kind_is_refused_with_the_known_ones() {
        for bad in ["", "file", "file.", "*", ".*", "fil.*", "file.ready,", "FILE.READY"] {
            let error = EventKind::parse_list(bad).unwrap_err();
            assert_eq!(error.details().allowed.len(), EventKind::ALL.len(), "{bad}");
            assert_eq!(error.details().field.as_deref(), Some("types"));
        }
    }
}
