//! Query strings in form encoding: `+` is a space, and other characters are percent-encoded (WHATWG URL,
//! application/x-www-form-urlencoded).

use filestore_core::{Error, Result};
use percent_encoding::percent_decode;

/// A request's decoded parameters, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Parses a query string (without `?`). A parameter in `known` can occur once and must be UTF-8.
    /// Otherwise the call returns [`InvalidField`](filestore_core::ErrorKind::InvalidField) with its name. A
    /// known name with a trailing dot means all names that begin with this text. Other parameters are kept
    /// for [`pairs`](Self::pairs), with replacement characters for invalid UTF-8.
    pub fn parse(raw: &str, known: &[&str]) -> Result<Self> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for piece in raw.split('&').filter(|piece| !piece.is_empty()) {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let (name, value) =
                (String::from_utf8_lossy(&decode(name)).into_owned(), decode(value));

            let is_known = known.iter().any(|known| is_named(&name, known));
            if is_known && pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Error::invalid(
                    &name,
                    format!("the parameter is given more than once: {name}"),
                ));
            }
            let value = match String::from_utf8(value) {
                Ok(value) => value,
                Err(_) if is_known => {
                    return Err(Error::invalid(
                        &name,
                        format!("the parameter is not UTF-8: {name}"),
                    ));
                }
                Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
            };
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// Returns a parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns all parameters in order, known or not, with repetitions.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Returns true if a parameter is the known parameter, or belongs to its family.
fn is_named(name: &str, known: &str) -> bool {
    name == known || known.ends_with('.') && name.starts_with(known)
}

fn decode(text: &str) -> Vec<u8> {
    let spaced: Vec<u8> = text.bytes().map(|b| if b == b'+' { b' ' } else { b }).collect();
    percent_decode(&spaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::ErrorKind;

    #[test]
    fn parameters_are_decoded_in_their_order() {
        for (raw, expected) in [
            ("", vec![]),
            ("a=1&b=2", vec![("a", "1"), ("b", "2")]),
            ("a+b=c+d%2B", vec![("a b", "c d+")]),
            ("gr%C3%BC%C3%9Fe=%F0%9F%8E%89", vec![("grüße", "🎉")]),
            ("a&b=&=c&&", vec![("a", ""), ("b", ""), ("", "c")]),
            ("a=b=c", vec![("a", "b=c")]),
            ("a=100%&b=%zz", vec![("a", "100%"), ("b", "%zz")]),
            ("x=1&x=2&y=%FF", vec![("x", "1"), ("x", "2"), ("y", "\u{FFFD}")]),
        ] {
            let query = Query::parse(raw, &["a"]).unwrap();
            assert_eq!(query.pairs().collect::<Vec<_>>(), expected, "{raw}");
        }

        assert_eq!(Query::parse("a=1", &["a"]).unwrap().get("a"), Some("1"));
        assert_eq!(Query::parse("a=1", &["a"]).unwrap().get("b"), None);
    }

    #[test]
    fn a_name_that_ends_in_a_dot_stands_for_its_family() {
        for (raw, field) in [
            ("m.a=1&m.a=2", "m.a"),
            ("m.=1&m.=2", "m."),
            ("m.b=%FF", "m.b"),
            ("m.a=1&m.%61=2", "m.a"),
        ] {
            let error = Query::parse(raw, &["m."]).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some(field), "{raw}");
        }
        assert_eq!(Query::parse("m.a=1&m.b=2&m=3&m=4", &["m."]).unwrap().pairs().count(), 4);
    }

    #[test]
    fn a_known_parameter_repeated_or_not_utf8_is_named() {
        for raw in ["a=1&a=1", "a=1&b=2&%61=3", "a=%FF"] {
            let error = Query::parse(raw, &["a"]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidField, "{raw}");
            assert_eq!(error.details().field.as_deref(), Some("a"), "{raw}");
        }
    }
}
