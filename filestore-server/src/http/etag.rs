//! Entity tags (RFC 9110 section 8.8.3) and the digest of a representation (RFC 9530).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_core::Sha256;
use http::HeaderValue;

use super::values::Values;

/// An entity tag: `"tag"`, or `W/"tag"` if it is weak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag {
    weak: bool,
    tag: String,
}

impl EntityTag {
    /// Makes the strong tag of bytes from their digest.
    pub fn of(sha256: &Sha256) -> Self {
        Self { weak: false, tag: sha256.to_hex() }
    }

    /// Makes a strong tag. Panics on a character that no tag may hold (a space, a quote, a control).
    pub fn strong(tag: impl Into<String>) -> Self {
        let tag = tag.into();
        assert!(tag.bytes().all(is_etagc), "an entity tag holds no such character: {tag:?}");
        Self { weak: false, tag }
    }

    /// Makes a weak tag. Panics as [`strong`](Self::strong) does.
    pub fn weak(tag: impl Into<String>) -> Self {
        Self { weak: true, ..Self::strong(tag) }
    }

    /// Reads one tag as it stands in a header.
    pub fn parse(text: &str) -> Option<Self> {
        let (tag, rest) = Self::parse_start(text.trim())?;
        rest.is_empty().then_some(tag)
    }

    /// Reads the tag that `text` starts with, and what follows it.
    fn parse_start(text: &str) -> Option<(Self, &str)> {
        let (weak, rest) = text.strip_prefix("W/").map_or((false, text), |rest| (true, rest));
        let (tag, rest) = rest.strip_prefix('"')?.split_once('"')?;
        tag.bytes().all(is_etagc).then(|| (Self { weak, tag: tag.to_owned() }, rest))
    }

    /// Tests whether both are strong and equal (section 8.8.3.2): the bytes are the same.
    pub fn strong_eq(&self, other: &Self) -> bool {
        !self.weak && !other.weak && self.tag == other.tag
    }

    /// Tests whether the tags are equal, weak or not: one representation may replace the other.
    pub fn weak_eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }

    /// Returns the value of an ETag header.
    pub fn to_header(&self) -> HeaderValue {
        self.write(&mut Values::with_capacity(self.tag.len() + 4))
    }

    /// Writes the value of an ETag header.
    pub fn write(&self, values: &mut Values) -> HeaderValue {
        let start = if self.weak { "W/\"" } else { "\"" };
        let value = values.join(&[start, &self.tag, "\""]);
        value.expect("a tag holds only etagc, all of which a value may hold")
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.tag)
    }
}

/// `etagc`, without the bytes over 127, which [`HeaderValue::to_str`] does not let through either.
fn is_etagc(b: u8) -> bool {
    b == 0x21 || (0x23..0x7F).contains(&b)
}

/// The value of If-Match or If-None-Match: `*`, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityTags {
    /// `*`: any current representation.
    Any,
    /// The tags, in the order of the header.
    List(Vec<EntityTag>),
}

impl EntityTags {
    /// Reads a list (RFC 9110 section 5.6.1: empty elements are let through). `None` if it is not one.
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

    /// Tests whether one of the tags is the current one, compared strongly (If-Match).
    pub fn match_strongly(&self, current: &EntityTag) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| tag.strong_eq(current)),
        }
    }

    /// Tests whether one of the tags is the current one, compared weakly (If-None-Match).
    pub fn match_weakly(&self, current: &EntityTag) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| tag.weak_eq(current)),
        }
    }
}

/// Returns the value of a Repr-Digest header: `sha-256=:…:` (RFC 9530 section 3, RFC 8941 byte sequence).
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
