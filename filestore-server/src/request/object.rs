//! JSON bodies read strictly: no key twice, none unknown, each of its type.
//!
//! serde keeps the last of two equal keys and says only in prose which key has the wrong type. Here
//! every error names the key, and a body that two readers could read differently is refused.

use std::fmt;

use filestore_core::{Error, ErrorKind, Result};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The members of an object, each once, all of them known.
#[derive(Debug)]
pub(crate) struct Object {
    members: Vec<(String, Value)>,
}

impl Object {
    /// Reads an object whose keys are among `known`. `MalformedBody` with line and column for a body
    /// that is no JSON object; `RepeatedField` and `UnknownField` with the key.
    pub(crate) fn parse(json: &[u8], known: &[&str]) -> Result<Self> {
        let Members(members) = serde_json::from_slice(json).map_err(|e| {
            Error::new(ErrorKind::MalformedBody, format!("the body is not a JSON object: {e}"))
        })?;

        for (at, (key, _)) in members.iter().enumerate() {
            if members[..at].iter().any(|(earlier, _)| earlier == key) {
                let message = format!("a key is given more than once: {key}");
                return Err(Error::new(ErrorKind::RepeatedField, message).with_field(key));
            }

            if !known.contains(&key.as_str()) {
                let message = format!("an unknown key: {key}");
                return Err(Error::new(ErrorKind::UnknownField, message)
                    .with_field(key)
                    .with_allowed(known.iter().copied()));
            }
        }

        Ok(Self { members })
    }

    /// Returns an integer, if the key is present. `1.0` and `"1"` are no integers.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>> {
        self.get(key, "an integer", Value::as_i64)
    }

    /// Returns a whole number that is not negative, if the key is present.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>> {
        self.get(key, "a whole number, 0 or more", Value::as_u64)
    }

    /// Returns one of `words`, if the key is present; `spelled` says how each is written.
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

/// Requires that a member was found; `MissingField` otherwise.
pub(crate) fn required<T>(key: &str, found: Option<T>) -> Result<T> {
    found.ok_or_else(|| {
        Error::new(ErrorKind::MissingField, format!("a required key is missing: {key}"))
            .with_field(key)
    })
}

/// The members in their order, repeated ones included.
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
    use super::*;

    fn refused(json: &str) -> (ErrorKind, Option<String>) {
        let read = |object: Object| {
            object.integer("n")?;
            object.text("t")?;
            object.flag("f")?;
            object.text_or_null("z")?;
            object.texts("a")?;
            Ok(())
        };

        let error =
            Object::parse(json.as_bytes(), &["n", "t", "f", "z", "a"]).and_then(read).unwrap_err();
        (error.kind(), error.details().field.clone())
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
            assert_eq!(refused(json), (ErrorKind::MalformedBody, None), "{json}");
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
            assert_eq!(error.message(), format!("the body is not a JSON object: {why}"));
        }
    }

    #[test]
    fn repeated_and_unknown_keys_are_named() {
        assert_eq!(refused(r#"{"n":1,"n":1}"#), (ErrorKind::RepeatedField, Some("n".into())));
        assert_eq!(refused(r#"{"n":1,"\u006e":2}"#), (ErrorKind::RepeatedField, Some("n".into())));
        assert_eq!(refused(r#"{"N":1}"#), (ErrorKind::UnknownField, Some("N".into())));
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
            assert_eq!(refused(json), (ErrorKind::InvalidField, Some(key.into())), "{json}");
        }
    }
}
