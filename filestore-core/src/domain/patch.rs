//! Changes of single file properties, and of single members in the custom metadata (JSON merge
//! patch, RFC 7396).

use std::str::FromStr;

use serde_json::{Map, Value};

use super::error::{Error, Result};
use super::file::custom_metadata::{CustomMetadata, strict_object};

/// The change of one property.
///
/// ```
/// use filestore_core::Patch;
///
/// assert_eq!(Patch::<String>::default(), Patch::Keep);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Does not change the property.
    #[default]
    Keep,
    /// Resets the property, as if the file had been uploaded without it.
    Clear,
    /// Sets the property to this value, or changes it by this patch.
    Set(T),
}

/// The change of some members of custom metadata (RFC 7396). A value sets or replaces a member,
/// `null` removes the member, and an object changes the nested object. Absent members do not
/// change.
///
/// ```
/// use filestore_core::MetadataPatch;
///
/// # fn main() -> filestore_core::Result<()> {
/// let patch: MetadataPatch = r#"{"paid": true, "draft": null}"#.parse()?;
/// # let _ = patch;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataPatch(Map<String, Value>);

impl FromStr for MetadataPatch {
    type Err = Error;

    /// Reads a JSON object. `InvalidField` for other text, and for a key that occurs twice in an
    /// object.
    fn from_str(text: &str) -> Result<Self> {
        strict_object(text).map(Self)
    }
}

/// Sets the members of the object. A member that is `null` removes the member.
impl From<CustomMetadata> for MetadataPatch {
    fn from(metadata: CustomMetadata) -> Self {
        Self(metadata.members())
    }
}

impl MetadataPatch {
    /// Applies the change to `old`. `InvalidField` if the result has too many members, `TooLarge`
    /// if it has too many bytes.
    pub(crate) fn apply(&self, old: &CustomMetadata) -> Result<CustomMetadata> {
        if self.0.is_empty() {
            return Ok(old.clone());
        }
        let mut members = old.members();
        merge(&mut members, &self.0);
        CustomMetadata::of(members)
    }
}

/// Merges `patch` into `target` (RFC 7396 section 2). The parser limits the depth of a patch.
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        match change {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(inner) => {
                let there = target.entry(key.as_str()).or_insert(Value::Null);
                if !there.is_object() {
                    *there = Value::Object(Map::new());
                }
                if let Value::Object(there) = there {
                    merge(there, inner);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(key.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    fn patched(old: &str, patch: &str) -> Result<CustomMetadata> {
        patch.parse::<MetadataPatch>()?.apply(&old.parse()?)
    }

    #[test]
    fn objects_of_the_appendix_of_rfc_7396_become_what_it_says() {
        for (old, patch, new) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(patched(old, patch).unwrap().as_json(), new, "{patch}");
        }
    }

    #[test]
    fn nulls_within_arrays_are_values() {
        assert_eq!(patched("{}", r#"{"a":[null]}"#).unwrap().as_json(), r#"{"a":[null]}"#);
    }

    #[test]
    fn a_patch_without_members_changes_nothing() {
        let old: CustomMetadata = r#"{"a":1}"#.parse().unwrap();
        assert_eq!(MetadataPatch::default().apply(&old).unwrap(), old);

        let long = CustomMetadata::stored(&format!(r#"{{"k":"{}"}}"#, "x".repeat(5000)));
        assert_eq!(MetadataPatch::default().apply(&long).unwrap(), long, "whatever its length");
    }

    #[test]
    fn the_limits_hold_for_the_result_and_not_for_the_patch() {
        let removals: Vec<_> = (0..500).map(|key| format!("\"{key}\":null")).collect();
        let patch = format!("{{{}}}", removals.join(","));
        assert_eq!(patched(r#"{"7":1,"x":2}"#, &patch).unwrap().as_json(), r#"{"x":2}"#);

        let more: Vec<_> = (0..100).map(|key| format!("\"{key}\":0")).collect();
        let error = patched(r#"{"x":2}"#, &format!("{{{}}}", more.join(","))).unwrap_err();
        assert_eq!((error.kind(), error.details().limit), (ErrorKind::InvalidField, Some(100)));

        let half = format!(r#"{{"a":"{}"}}"#, "x".repeat(2500));
        let error = patched(&half, &half.replace("\"a\"", "\"b\"")).unwrap_err();
        assert_eq!((error.kind(), error.details().limit), (ErrorKind::TooLarge, Some(4096)));
    }

    #[test]
    fn what_is_no_object_or_ambiguous_is_refused() {
        for text in ["", "null", "[]", "1", r#"{"a":1,"a":null}"#, r#"{"a":{"b":1,"b":2}}"#] {
            let error = text.parse::<MetadataPatch>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField, "{text}");
            assert_eq!(error.details().field.as_deref(), Some("metadata"), "{text}");
        }
    }
}
