//! Refuses JSON objects with duplicate keys.
//!
//! RFC 8259 section 4 does not define which of two equal keys a reader keeps, so two readers could keep
//! different values. RFC 7493 section 2.3 forbids such objects. A signed receipt depends on this rule:
//! otherwise a second member could contradict the signed member.

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// A JSON value without duplicate keys in its objects, at any depth.
pub(in crate::domain) struct UniqueKeys(pub(in crate::domain) Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeepsKeysUnique).map(Self)
    }
}

struct KeepsKeysUnique;

impl<'de> Visitor<'de> for KeepsKeysUnique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(UniqueKeys(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, UniqueKeys(value))) = members.next_entry::<String, UniqueKeys>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format_args!("a key is given more than once: {key}")));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}
