//! Strict JSON bodies: no repeated keys, no unknown keys, and the right type for each value.
//!
//! serde keeps the last of two equal keys, and names a key with the wrong type only in prose. Here, every
//! error names the key. A body that two readers could read differently is refused.

use std::fmt;

use filestore_core::{Error, ErrorKind, Patch, Result};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::{self, Refusal, RefusalKind};

/// The members of an object. Each occurs once and is known.
#[derive(Debug)]
pub(crate) struct Object {
    members: Vec<(String, Value)>,
}

impl Object {
    /// Parses an object with keys in `known`. `MalformedBody`, with line and column, for a body that is not a
    /// JSON object. `RepeatedField` and `UnknownField` name the key.
    pub(crate) fn parse(json: &[u8], known: &[&str]) -> error::Result<Self> {
        let Members(members) = serde_json::from_slice(json).map_err(|e| {
            Error::new(ErrorKind::MalformedBody, format!("the body is not a JSON object: {e}"))
        })?;

        for (at, (key, _)) in members.iter().enumerate() {
            if members[..at].iter().any(|(earlier, _)| earlier == key) {
                let message = format!("a key is given more than once: {key}");
                let refusal = Refusal::new(RefusalKind::RepeatedField, message);
                return Err(refusal.with_field(key).into());
            }

            if !known.contains(&key.as_str()) {
                let message = format!("an unknown key: {key}");
                let refusal = Refusal::new(RefusalKind::UnknownField, message);
                return Err(refusal.with_field(key).with_allowed(known).into());
            }
        }

        Ok(Self { members })
    }

    /// Returns an integer, if the key is present. `1.0` and `"1"` are not integers.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>> {
        self.get(key, "an integer", Value::as_i64)
    }

    /// Returns a non-negative integer, if the key is present.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>> {
        self.get(key, "a whole number, 0 or more", Value::as_u64)
    }

    /// Returns one of `words`, if the key is present. `spelled` returns the spelling of each.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[T],
        spelled: fn(&T) -> &'static str,
    ) -> Result<Option<T>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let found = words.iter().find(|word| spelled(word) == text);
        found.copied().map(Some).ok_or_else(|| {
            let all: Vec<_> = words.iter().map(spelled).collect();
            Error::invalid(key, format!("{key} is one of {}", all.join(", "))).with_allowed(all)
        })
    }

    /// Returns a string, if the key is present.
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>> {
        self.get(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// Returns an array of strings, if the key is present.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        self.get(key, "an array of strings", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    /// Returns a boolean, if the key is present.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.get(key, "true or false", Value::as_bool)
    }

    /// Returns a string, if the key is present and not null.
    pub(crate) fn text_or_null(&self, key: &str) -> Result<Option<String>> {
        let text = self.get(key, "a string or null", |value| match value {
            Value::Null => Some(None),
            other => other.as_str().map(|text| Some(text.to_owned())),
        });
        text.map(Option::flatten)
    }

    /// Returns the change for a member of a merge patch: none if the key is absent, and `Clear` for null.
    pub(crate) fn patch<T>(
        &self,
        key: &str,
        kind: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Patch<T>> {
        let found = self.get(key, &format!("{kind} or null"), |value| match value {
            Value::Null => Some(Patch::Clear),
            other => read(other).map(Patch::Set),
        });
        found.map(Option::unwrap_or_default)
    }

    fn get<T>(
        &self,
        key: &str,
        kind: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some((_, value)) = self.members.iter().find(|(name, _)| name == key) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| Error::invalid(key, format!("{key} must be {kind}")))
    }
}

/// Returns the member. `MissingField` if it is missing.
pub(crate) fn required<T>(key: &str, found: Option<T>) -> Result<T> {
    found.ok_or_else(|| {
        Error::new(ErrorKind::MissingField, format!("a required key is missing: {key}"))
            .with_field(key)
    })
}

/// The members in order, with repetitions.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;

    fn refused(json: &str) -> (ErrorCode, Option<String>) {
        let read = |object: Object| {
            object.integer("n")?;
            object.text("t")?;
            object.flag("f")?;
            object.text_or_null("z")?;
            object.texts("a")?;
            error::Result::Ok(())
        };

        let error =
            Object::parse(json.as_bytes(), &["n", "t", "f", "z", "a"]).and_then(read).unwrap_err();
        (error.code(), error.details().field.clone())
    }

    #[test]
    fn members_are_read_by_type() {
        let object =
            Object::parse(br#" {"n": -7, "t": "\u00e9", "f": true} "#, &["n", "t", "f", "z"])
                .unwrap();
        assert_eq!(object.integer("n").unwrap(), Some(-7));
        assert_eq!(object.text("t").unwrap().as_deref(), Some("é"));
        assert_eq!(object.flag("f").unwrap(), Some(true));
        assert_eq!(object.text_or_null("z").unwrap(), None);

        let object = Object::parse(br#"{"z": null}"#, &["z"]).unwrap();
        assert_eq!(object.text_or_null("z").unwrap(), None);
    }

    #[test]
    fn a_merge_patch_keeps_clears_or_sets() {
        let object = Object::parse(br#"{"n":null,"t":"x","f":1}"#, &["n", "t", "f", "z"]).unwrap();
        let text = |key| object.patch(key, "a string", |value| value.as_str().map(str::to_owned));
        assert_eq!(text("z").unwrap(), Patch::Keep);
        assert_eq!(text("n").unwrap(), Patch::Clear);
        assert_eq!(text("t").unwrap(), Patch::Set("x".to_owned()));

        let error = text("f").unwrap_err();
        assert_eq!(error.message(), "f must be a string or null");
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        for json in [
            "",
            "[]",
            "1",
            "null",
            "{",
            r#"{"n":1} x"#,
            "{\"t\":\"\u{1}\"}",
            "\u{feff}{}",
            r#"{"n":01}"#,
        ] {
            assert_eq!(refused(json), (ErrorCode::MalformedBody, None), "{json}");
        }
    }

    #[test]
    fn a_malformed_body_says_what_is_wrong_and_where() {
        for (json, why) in [
            ("{\n  \"n\": 1,\n}", "trailing comma at line 3 column 1"),
            ("", "EOF while parsing a value at line 1 column 0"),
            ("[]", "invalid type: sequence, expected an object at line 1 column 0"),
        ] {
            let error = Object::parse(json.as_bytes(), &["n"]).unwrap_err();
            assert_eq!(error.to_string(), format!("the body is not a JSON object: {why}"));
        }
    }

    #[test]
    fn repeated_and_unknown_keys_are_named() {
        assert_eq!(refused(r#"{"n":1,"n":1}"#), (ErrorCode::RepeatedField, Some("n".into())));
        assert_eq!(refused(r#"{"n":1,"\u006e":2}"#), (ErrorCode::RepeatedField, Some("n".into())));
        assert_eq!(refused(r#"{"N":1}"#), (ErrorCode::UnknownField, Some("N".into())));
    }

    #[test]
    fn wrong_types_are_named() {
        for (json, key) in [
            (r#"{"n":1.0}"#, "n"),
            (r#"{"n":"1"}"#, "n"),
            (r#"{"n":1e3}"#, "n"),
            (r#"{"n":9223372036854775808}"#, "n"),
            (r#"{"n":null}"#, "n"),
            (r#"{"t":1}"#, "t"),
            (r#"{"t":null}"#, "t"),
            (r#"{"f":"true"}"#, "f"),
            (r#"{"f":1}"#, "f"),
            (r#"{"z":1}"#, "z"),
            (r#"{"a":"x"}"#, "a"),
            (r#"{"a":["x",1]}"#, "a"),
        ] {
            assert_eq!(refused(json), (ErrorCode::InvalidField, Some(key.into())), "{json}");
        }
    }
}
