//! Content-Disposition of a reply (RFC 6266, RFC 8187).

use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::error::Error;

/// Tells browsers to save a file or to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// The browser saves the file.
    Attachment,
    /// The browser shows the file.
    Inline,
}

impl Disposition {
    /// Returns the word for the header and for `?disposition=`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attachment => "attachment",
            Self::Inline => "inline",
        }
    }

    /// Returns the Content-Disposition header's value for a file name. The value is printable
    /// ASCII.
    ///
    /// `filename*` has the exact name. `filename` is for clients that do not read `filename*`. In
    /// `filename`, `_` replaces every character that is not ASCII, and every character that ends a
    /// quoted string, is decoded by some browser, or is part of a path (RFC 6266 appendix D: quote,
    /// backslash, percent, and also the slash).
    pub fn to_value(self, name: &str) -> String {
        let mut value = String::with_capacity(name.len() * 2 + 40);
        value.push_str(self.as_str());
        if !name.is_empty() {
            value.push_str("; filename=\"");
            value.extend(name.chars().map(fallback));
            value.push_str("\"; filename*=UTF-8''");
            value.extend(utf8_percent_encode(name, NOT_ATTR_CHAR));
        }
        value
    }
}

impl FromStr for Disposition {
    type Err = Error;

    /// Reads the value of `?disposition=`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "attachment" => Ok(Self::Attachment),
            "inline" => Ok(Self::Inline),
            _ => Err(Error::invalid("disposition", "disposition is attachment or inline")
                .with_allowed(["attachment", "inline"])),
        }
    }
}

/// All characters except `attr-char` (RFC 8187 section 3.2.1).
const NOT_ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

fn fallback(c: char) -> char {
    match c {
        '"' | '\\' | '%' | '/' => '_',
        ' '..='~' => c,
        _ => '_',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A strict reader of exactly the form RFC 6266 section 4.1 gives: type, filename, filename*.
    fn read(value: &str) -> Option<(&str, &str, String)> {
        let (kind, rest) = value.split_once("; filename=\"")?;
        let (plain, rest) = rest.split_once('"')?;
        let encoded = rest.strip_prefix("; filename*=UTF-8''")?;
        let attr_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&b);
        let (mut name, mut at) = (Vec::new(), 0);

        while at < encoded.len() {
            match encoded.as_bytes()[at] {
                b'%' => {
                    let digits = encoded.get(at + 1..at + 3)?;
                    if digits.contains('+') {
                        return None;
                    }
                    name.push(u8::from_str_radix(digits, 16).ok()?);
                    at += 3;
                }
                byte if attr_char(byte) => {
                    name.push(byte);
                    at += 1;
                }
                _ => return None,
            }
        }

        Some((kind, plain, String::from_utf8(name).ok()?))
    }

    #[test]
    fn names_of_every_kind_are_written() {
        for (name, plain, encoded) in [
            ("a b.txt", "a b.txt", "a%20b.txt"),
            ("grüße.png", "gr__e.png", "gr%C3%BC%C3%9Fe.png"),
            ("say \"hi\".txt", "say _hi_.txt", "say%20%22hi%22.txt"),
            ("100%41\\x", "100_41_x", "100%2541%5Cx"),
            ("a\r\nSet-Cookie: b", "a__Set-Cookie: b", "a%0D%0ASet-Cookie%3A%20b"),
            ("../../etc/passwd", ".._.._etc_passwd", "..%2F..%2Fetc%2Fpasswd"),
            ("🎉", "_", "%F0%9F%8E%89"),
        ] {
            let value = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
            assert_eq!(Disposition::Attachment.to_value(name), value, "{name}");
        }

        assert_eq!(Disposition::Inline.to_value(""), "inline");
    }

    #[test]
    fn the_parameter_knows_two_values() {
        assert_eq!("inline".parse::<Disposition>().unwrap(), Disposition::Inline);
        for bad in ["", "Inline", "attachment;"] {
            let error = bad.parse::<Disposition>().unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("disposition"));
        }
    }

    proptest! {
        #[test]
        fn the_exact_name_comes_back(name in any::<String>().prop_filter("not empty", |name| !name.is_empty())) {
            let value = Disposition::Attachment.to_value(&name);
            let (kind, plain, read) = read(&value).expect("strictly of that form");
            prop_assert_eq!(kind, "attachment");
            prop_assert_eq!(read, name.as_str());
            prop_assert_eq!(plain.len(), name.chars().count());
            prop_assert!(plain.bytes().all(|b| (0x20..0x7F).contains(&b) && !b"\"\\%".contains(&b)));
        }
    }
}
