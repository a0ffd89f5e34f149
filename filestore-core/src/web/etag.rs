//! Entity tags (RFC 9110 section 8.8.3) and the digest of a representation (RFC 9530).

use std::fmt;

use crate::domain::id::Sha256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use super::values::Values;

/// An entity tag: `"tag"`, or `W/"tag"` for a weak tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag {
    weak: bool,
    tag: String,
}

impl EntityTag {
    /// Creates the strong tag of bytes from their digest.
    pub fn of(sha256: &Sha256) -> Self {
        Self { weak: false, tag: sha256.to_hex() }
    }

    /// Creates a strong tag. Panics on a character that a tag cannot contain (a space, a quote, a control
    /// character).
    pub fn strong(tag: impl Into<String>) -> Self {
        let tag = tag.into();
        assert!(tag.bytes().all(is_etagc), "an entity tag holds no such character: {tag:?}");
        Self { weak: false, tag }
    }

    /// Creates a weak tag. Panics like [`strong`](Self::strong).
    pub fn weak(tag: impl Into<String>) -> Self {
        Self { weak: true, ..Self::strong(tag) }
    }

    /// Parses a tag from a header.
    pub fn parse(text: &str) -> Option<Self> {
        let (tag, rest) = Self::parse_start(text.trim())?;
        rest.is_empty().then_some(tag)
    }

    /// Parses the tag at the start of `text`. Also returns the rest.
    fn parse_start(text: &str) -> Option<(Self, &str)> {
        let (weak, rest) = text.strip_prefix("W/").map_or((false, text), |rest| (true, rest));
        let (tag, rest) = rest.strip_prefix('"')?.split_once('"')?;
        tag.bytes().all(is_etagc).then(|| (Self { weak, tag: tag.to_owned() }, rest))
    }

    /// Returns true if both tags are strong and equal (section 8.8.3.2), so that the bytes are the same.
    pub fn strong_eq(&self, other: &Self) -> bool {
        !self.weak && !other.weak && self.tag == other.tag
    }

    /// Returns true if the tags are equal, weak or not, so that the representations are equivalent.
    pub fn weak_eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }

    /// Returns the ETag header's value.
    pub fn to_header(&self) -> HeaderValue {
        self.write(&mut Values::with_capacity(self.tag.len() + 4))
    }

    /// Writes the ETag header's value.
    pub fn write(&self, values: &mut Values) -> HeaderValue {
        let start = if self.weak { "W/\"" } else { "\"" };
        let value = values.join(&[start, &self.tag, "\""]);
        value.expect("a tag holds only etagc, and a header value allows all of them")
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.tag)
    }
}

/// `etagc`, without bytes over 127, which [`HeaderValue::to_str`] also refuses.
fn is_etagc(b: u8) -> bool {
    b == 0x21 || (0x23..0x7F).contains(&b)
}

/// The value of If-Match or If-None-Match: `*`, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityTags {
    /// `*`: any current representation.
    Any,
    /// The tags, in the header's order.
    List(Vec<EntityTag>),
}

impl EntityTags {
    /// Parses a list. Accepts empty elements (RFC 9110 section 5.6.1). `None` if the text is not a list.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if rest == "*" {
            return Some(Self::Any);
        }

        let mut tags = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return (!tags.is_empty()).then_some(Self::List(tags));
            }

            let (tag, after) = EntityTag::parse_start(rest)?;
            tags.push(tag);
            rest = after.trim_start();
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        }
    }

    /// Returns true if one of the tags is the current tag, with strong comparison (If-Match).
    pub fn match_strongly(&self, current: &EntityTag) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| tag.strong_eq(current)),
        }
    }

    /// Returns true if one of the tags is the current tag, with weak comparison (If-None-Match).
    pub fn match_weakly(&self, current: &EntityTag) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| tag.weak_eq(current)),
        }
    }
}

/// Returns the Repr-Digest header's value: `sha-256=:…:` (RFC 9530 section 3, RFC 8941 byte sequence).
pub fn repr_digest(sha256: &Sha256, values: &mut Values) -> HeaderValue {
    let mut digits = [0; 44];
    STANDARD.encode_slice(sha256.0, &mut digits).expect("44 digits write 32 bytes");
    let digits = str::from_utf8(&digits).expect("base64 is ASCII");
    values.join(&["sha-256=:", digits, ":"]).expect("base64 is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_compare_as_the_table_of_section_8_8_3_2_says() {
        for (a, b, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            let (a, b) = (EntityTag::parse(a).unwrap(), EntityTag::parse(b).unwrap());
            assert_eq!((a.strong_eq(&b), a.weak_eq(&b)), (strong, weak), "{a} {b}");
        }
    }

    #[test]
    fn lists_are_read_and_other_text_is_not() {
        let list = |tags: &[EntityTag]| Some(EntityTags::List(tags.to_vec()));
        let (a, b) = (EntityTag::strong("a,b"), EntityTag::weak("c"));

        for (text, expected) in [
            ("*", Some(EntityTags::Any)),
            ("\"a,b\"", list(std::slice::from_ref(&a))),
            ("\"a,b\", W/\"c\"", list(&[a.clone(), b.clone()])),
            (", \"a,b\" ,,\tW/\"c\",", list(&[a.clone(), b])),
            ("\"\"", list(&[EntityTag::strong("")])),
            ("", None),
            (",", None),
            ("a", None),
            ("\"a", None),
            ("\"a\" \"b\"", None),
            ("w/\"a\"", None),
            ("\"a b\"", None),
            ("*, \"a\"", None),
        ] {
            assert_eq!(EntityTags::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tag_and_a_digest_come_from_the_sha256() {
        // SHA-256 of nothing.
        let empty: Sha256 =
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse().unwrap();
        let mut values = Values::with_capacity(0);
        assert_eq!(
            repr_digest(&empty, &mut values),
            "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
        );
        assert_eq!(
            EntityTag::of(&empty).to_header(),
            "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
        );
        assert_eq!(EntityTag::weak("x").to_header(), "W/\"x\"");
    }

    #[test]
    #[should_panic(expected = "no such character")]
    fn a_tag_with_a_quote_is_a_bug() {
        EntityTag::strong("a\"b");
    }
}
