//! Custom metadata: a small JSON object that your application keeps with a file.
//!
//! The store can find files by members of the object, and gives them no other meaning. Equal
//! objects have equal text: compact, with sorted keys.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::unique_keys::UniqueKeys;

/// Field name of the object.
const FIELD: &str = "metadata";

/// Maximum JSON text length: 4 KiB.
pub const MAX_BYTES: usize = 4 << 10;

/// Maximum number of members. Each member adds a row to the index for listings.
pub const MAX_MEMBERS: usize = 100;

/// A JSON object of at most [`MAX_BYTES`] and [`MAX_MEMBERS`], empty by default.
///
/// ```
/// use filestore_core::CustomMetadata;
///
/// # fn main() -> filestore_core::Result<()> {
/// let metadata: CustomMetadata = r#"{"paid": true, "customer": "7"}"#.parse()?;
/// assert_eq!(metadata.as_json(), r#"{"customer":"7","paid":true}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct CustomMetadata(Option<Arc<str>>);

impl CustomMetadata {
    /// Returns compact JSON with sorted keys, `{}` if the object is empty.
    pub fn as_json(&self) -> &str {
        self.0.as_deref().unwrap_or("{}")
    }

    /// Tests whether the object is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Reads stored text without a check of the limits, which might have been different then.
    pub(crate) fn stored(json: &str) -> Self {
        Self(Some(json.into()))
    }

    /// Creates an object from its members. `InvalidField` for too many members, `TooLarge` for too
    /// many bytes.
    pub(in crate::domain) fn of(members: Map<String, Value>) -> Result<Self> {
        if members.len() > MAX_MEMBERS {
            let message = format!("metadata has at most {MAX_MEMBERS} members");
            return Err(Error::invalid(FIELD, message).with_limit(MAX_MEMBERS as u64));
        }
        if members.is_empty() {
            return Ok(Self::default());
        }

        let json = Value::Object(members).to_string();
        if json.len() > MAX_BYTES {
            let message = format!("metadata is at most {MAX_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_field(FIELD)
                .with_limit(MAX_BYTES as u64));
        }
        Ok(Self(Some(json.into())))
    }

    /// Returns the members.
    pub(crate) fn members(&self) -> Map<String, Value> {
        let Some(json) = &self.0 else { return Map::new() };
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Returns the members that a listing can filter by: strings as they are, numbers and booleans
    /// as in JSON. Listings cannot filter by arrays, objects and null.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (String, String)> {
        self.members().into_iter().filter_map(|(key, value)| Some((key, term(&value)?)))
    }

    /// Tests whether a file with this object matches all members in `wanted`.
    pub(crate) fn has_all(&self, wanted: &[(String, String)]) -> bool {
        if wanted.is_empty() {
            return true;
        }
        let members = self.members();
        wanted.iter().all(|(key, value)| members.get(key).and_then(term).as_ref() == Some(value))
    }

    /// Returns the size of the object in memory, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |json| json.len())
    }
}

fn term(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl FromStr for CustomMetadata {
    type Err = Error;

    /// Reads a JSON object. `InvalidField` for other text, for a key that occurs twice in an
    /// object, and for too many members. `TooLarge` if the compact text is longer than
    /// [`MAX_BYTES`].
    fn from_str(text: &str) -> Result<Self> {
        Self::of(strict_object(text)?)
    }
}

/// Reads the members of a JSON object. `InvalidField` for other text, and for a key that occurs
/// twice in an object.
pub(in crate::domain) fn strict_object(text: &str) -> Result<Map<String, Value>> {
    let UniqueKeys(value) = serde_json::from_str(text)
        .map_err(|e| Error::invalid(FIELD, format!("metadata is not a JSON object: {e}")))?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Error::invalid(FIELD, "metadata is a JSON object, such as {\"a\": 1}")),
    }
}

impl fmt::Debug for CustomMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> CustomMetadata {
        text.parse().unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    impl CustomMetadata {
        fn has(&self, key: &str, value: &str) -> bool {
            self.has_all(&[(key.to_owned(), value.to_owned())])
        }
    }

    fn refused(text: &str) -> (ErrorKind, Option<u64>) {
        let error = text.parse::<CustomMetadata>().unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("metadata"), "{text}");
        (error.kind(), error.details().limit)
    }

    #[test]
    fn one_object_has_one_text() {
        for (text, json) in [
            ("{}", "{}"),
            (" { } ", "{}"),
            (
                r#"{"b":1, "a":[true,null,{"d":0,"c":"x"}]}"#,
                r#"{"a":[true,null,{"c":"x","d":0}],"b":1}"#,
            ),
            (r#"{"\u00e9":"\u0041\/"}"#, r#"{"é":"A/"}"#),
            (r#"{"":""}"#, r#"{"":""}"#),
            (r#"{"n":-0.50,"m":9007199254740993}"#, r#"{"m":9007199254740993,"n":-0.5}"#),
        ] {
            assert_eq!(read(text).as_json(), json);
        }
        assert!(read("{}").is_empty() && !read(r#"{"a":null}"#).is_empty());
    }

    #[test]
    fn what_is_no_object_or_ambiguous_is_refused() {
        for text in [
            "",
            "[]",
            "null",
            "1",
            "\"{}\"",
            "{",
            "{} x",
            "{'a':1}",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":[{"b":1,"b":2}]}"#,
            r#"{"a":NaN}"#,
            r#"{"a":1e999}"#,
            "{\"a\":\"\u{1}\"}",
            "\u{feff}{}",
            &format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200)),
        ] {
            assert_eq!(refused(text), (ErrorKind::InvalidField, None), "{text}");
        }
    }

    #[test]
    fn the_last_byte_and_the_last_member_go_in() {
        let of = |bytes: usize| format!("{{ \"k\": \"{}\" }}", "x".repeat(bytes - 8));
        assert_eq!(read(&of(4096)).as_json().len(), 4096);
        assert_eq!(refused(&of(4097)), (ErrorKind::TooLarge, Some(4096)));

        let members = |count: usize| {
            let all: Vec<_> = (0..count).map(|number| format!("\"{number}\":0")).collect();
            format!("{{{}}}", all.join(","))
        };
        assert_eq!(read(&members(100)).members().len(), 100);
        assert_eq!(refused(&members(101)), (ErrorKind::InvalidField, Some(100)));
    }

    #[test]
    fn strings_numbers_and_booleans_can_be_asked_for() {
        let metadata =
            read(r#"{"s":"7","n":7,"f":1.50,"t":true,"e":"","z":null,"a":[7],"o":{"s":"7"}}"#);
        for (key, value) in [("s", "7"), ("n", "7"), ("f", "1.5"), ("t", "true"), ("e", "")] {
            assert!(metadata.has(key, value), "{key}={value}");
        }
        for (key, value) in [("s", "07"), ("z", "null"), ("a", "[7]"), ("o", "{}"), ("x", "")] {
            assert!(!metadata.has(key, value), "{key}={value}");
        }
        assert_eq!(metadata.terms().count(), 5);
    }

    #[test]
    fn a_stored_object_is_taken_whatever_its_length() {
        let long = format!(r#"{{"k":"{}"}}"#, "x".repeat(MAX_BYTES));
        assert_eq!(CustomMetadata::stored(&long).as_json(), long);
        assert!(CustomMetadata::stored(&long).has("k", &"x".repeat(MAX_BYTES)));
    }

    #[test]
    fn numbers_keep_their_value() {
        for number in ["0.9452706955539223", "9421405166415.033", "5.03039675277236e-12"] {
            let text = format!(r#"{{"n":{number}}}"#);
            assert_eq!(read(&text).as_json(), text);
            assert!(read(&text).has("n", number));
        }
    }

    proptest! {
        #[test]
        fn any_number_reads_back_the_same(number in prop::num::f64::NORMAL) {
            let metadata = read(&format!(r#"{{"n":{number:?}}}"#));
            prop_assert_eq!(read(metadata.as_json()), metadata.clone());
            prop_assert_eq!(metadata.members()["n"].as_f64(), Some(number));
        }

        #[test]
        fn an_object_that_was_read_reads_back_the_same(members in prop::collection::btree_map(".{0,8}", ".{0,16}", 0..8)) {
            let text = serde_json::to_string(&members).unwrap();
            let metadata: CustomMetadata = text.parse().unwrap();
            prop_assert_eq!(metadata.as_json().parse::<CustomMetadata>().unwrap(), metadata.clone());
            for (key, value) in &members {
                prop_assert!(metadata.has(key, value));
            }
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<CustomMetadata>();
        }
    }
}
