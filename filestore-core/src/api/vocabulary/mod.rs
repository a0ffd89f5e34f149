//! The enumerated values of the API, shared by server, client and CLI.
//!
//! An *open* word occurs in replies. A later server can know more words, so each open enum has
//! `Unknown`, which keeps the text. A *closed* word occurs only in requests. An unknown closed word
//! is an error of the caller.
//!
//! The domain has enums of its own. `api/convert` maps them, and tests compare the spellings.

mod closed;
mod error_code;
mod event_type;
mod open;
#[cfg(feature = "schema")]
mod schema;

pub use closed::{Disposition, DryRun, EventOrder, Fit, ListOrder, UnknownWord, UrlCache};
pub use error_code::ErrorCode;
pub use event_type::EventType;
pub use open::{
    AccessMode, AdviceCode, BreakerState, CheckOutcome, PurgeStatus, Status, StorageLocation,
    SyncStatus,
};

use std::fmt;
use std::marker::PhantomData;

use serde::de::Visitor;

/// Defines an open word: an enum with a last variant `Unknown(String)` for words of later servers.
macro_rules! open_word {
    (
        $(#[doc = $doc:literal])*
        $type:ident { $($(#[doc = $word_doc:literal])* $name:ident = $text:literal,)* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[doc = $word_doc])* $name,)*
            /// A word of a later server.
            Unknown(String),
        }

        impl $type {
            /// The words that this version knows, in declaration order.
            pub const KNOWN: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word as in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$name,)*
                    _ => Self::Unknown(text.to_owned()),
                }
            }
        }

        impl From<String> for $type {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$name,)*
                    _ => Self::Unknown(text),
                }
            }
        }

        /// Never fails. An unknown word becomes `Unknown`.
        impl std::str::FromStr for $type {
            type Err = std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(text))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// Compares with the word as in JSON.
        impl PartialEq<str> for $type {
            fn eq(&self, text: &str) -> bool {
                self.as_str() == text
            }
        }

        /// Compares with the word as in JSON.
        impl PartialEq<&str> for $type {
            fn eq(&self, text: &&str) -> bool {
                self.as_str() == *text
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::api::vocabulary::OpenWord::new(stringify!($type)))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::api::vocabulary::schema::open_word(
                    concat!($($doc, "\n"),*),
                    &[$(($text, concat!($($word_doc, "\n"),*)),)*],
                )
            }
        }
    };
}

/// Defines a closed word: a `Copy` enum. If `FromStr` fails, the error names the allowed words.
macro_rules! closed_word {
    (
        $(#[doc = $doc:literal])*
        $type:ident $what:literal {
            $($(#[doc = $word_doc:literal])* $name:ident = $text:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[doc = $word_doc])* $name,)*
        }

        impl $type {
            /// All words of this type, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word as in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::api::vocabulary::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => Err(Self::Err::new($what, &[$($text,)*])),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::api::vocabulary::ClosedWord::new($what))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::api::vocabulary::schema::closed_word(
                    concat!($($doc, "\n"),*),
                    &[$(($text, concat!($($word_doc, "\n"),*)),)*],
                )
            }
        }
    };
}

use {closed_word, open_word};

/// Reads an open word. Accepts every text.
struct OpenWord<T> {
    expected: &'static str,
    word: PhantomData<T>,
}

impl<T> OpenWord<T> {
    fn new(expected: &'static str) -> Self {
        Self { expected, word: PhantomData }
    }
}

impl<T: for<'a> From<&'a str>> Visitor<'_> for OpenWord<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string for {}", self.expected)
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from(text))
    }
}

/// Reads a closed word. Refuses unknown text.
struct ClosedWord<T> {
    expected: &'static str,
    word: PhantomData<T>,
}

impl<T> ClosedWord<T> {
    fn new(expected: &'static str) -> Self {
        Self { expected, word: PhantomData }
    }
}

impl<T: std::str::FromStr<Err = UnknownWord>> Visitor<'_> for ClosedWord<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string for {}", self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_comes_back_as_it_was_sent() {
        let status: Status = serde_json::from_str("\"ARCHIVED\"").unwrap();
        assert_eq!(status, Status::Unknown("ARCHIVED".to_owned()));
        assert_eq!(serde_json::to_string(&status).unwrap(), "\"ARCHIVED\"");
    }

    #[test]
    fn every_known_word_is_read_as_what_it_was_written() {
        for code in ErrorCode::KNOWN {
            let text = serde_json::to_string(code).unwrap();
            assert_eq!(text, format!("\"{code}\""));
            assert_eq!(&serde_json::from_str::<ErrorCode>(&text).unwrap(), code);
            assert!(!matches!(ErrorCode::from(code.as_str()), ErrorCode::Unknown(_)));
        }
    }

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<_> = ErrorCode::KNOWN.iter().map(ErrorCode::as_str).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorCode::KNOWN.len());
    }

    #[test]
    fn a_closed_word_names_what_is_allowed() {
        let error = "fill".parse::<Fit>().unwrap_err();
        assert_eq!(error.to_string(), "fit is one of cover, inside");
        assert_eq!(serde_json::from_str::<Fit>("\"inside\"").unwrap(), Fit::Inside);
        assert!(serde_json::from_str::<Disposition>("\"INLINE\"").is_err());
    }

    #[test]
    fn words_compare_with_their_spelling() {
        assert_eq!(SyncStatus::Pending, "PENDING");
        assert_ne!(StorageLocation::Cloud, *"cloud");
    }
}
