//! The only parser of media types.
//!
//! Every media type from a client, a part header or an old record is read here before filestore
//! makes a decision. Browsers read the header `Content-Type` as a list ("extract a MIME type" of
//! the Fetch Standard): they split the header at commas outside quotes, and use the last type. So a
//! text that only begins like a type is not a type. Tests compare this parser with
//! [`super::fetch`], a model of browsers.

use std::borrow::Cow;

use super::is_token;
use super::params::{ParamSyntax, Params};

/// Maximum length of a media type, in characters.
pub const MEDIA_TYPE_CHARS: usize = 255;

/// Charsets that a `Content-Type` can name: UTF-8, and encodings with one byte for each character.
/// In all of them, a byte below 0x80 is the ASCII character. UTF-7, UTF-16, ISO-2022-JP and similar
/// encodings are excluded.
const CHARSETS: [&str; 29] = [
    "utf-8",
    "us-ascii",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-3",
    "iso-8859-4",
    "iso-8859-5",
    "iso-8859-6",
    "iso-8859-7",
    "iso-8859-8",
    "iso-8859-9",
    "iso-8859-10",
    "iso-8859-11",
    "iso-8859-13",
    "iso-8859-14",
    "iso-8859-15",
    "iso-8859-16",
    "windows-874",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1253",
    "windows-1254",
    "windows-1255",
    "windows-1256",
    "windows-1257",
    "windows-1258",
    "koi8-r",
    "koi8-u",
];

/// A media type: `type "/" subtype *( OWS ";" OWS [ parameter ] )` of RFC 9110 section 8.3.1. A
/// parameter is a token, `=`, and a token or quoted string.
///
/// ```
/// use filestore_core::web::media::MediaType;
///
/// let page = MediaType::parse("Text/HTML; charset=\"utf-8\"").unwrap();
/// assert_eq!((page.essence(), page.charset()), ("text/html", Some("utf-8")));
/// assert!(MediaType::parse("text/plain;,text/html").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType<'t> {
    essence: Cow<'t, str>,
    has_params: bool,
    charset: Option<&'static str>,
}

impl<'t> MediaType<'t> {
    /// Reads a media type of printable ASCII, with at most [`MEDIA_TYPE_CHARS`] characters and no
    /// white space around it. `None` for other text, and for a range such as `image/*`.
    pub fn parse(text: &'t str) -> Option<Self> {
        let is_printable = text.bytes().all(|b| (0x20..0x7F).contains(&b));
        if text.len() > MEDIA_TYPE_CHARS || !is_printable || text.trim() != text {
            return None;
        }

        let (essence, params) = text.split_at(text.find(';').unwrap_or(text.len()));
        let essence = essence.trim_end();
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }

        let mut charset = None;
        for param in Params::new(params.as_bytes(), ParamSyntax::Strict) {
            let param = param.ok()?;
            // Of several the first counts (MIME Sniffing Standard, "parse a MIME type").
            if param.name == "charset" {
                charset.get_or_insert(param.value);
            }
        }

        Some(Self {
            essence: lower_case(essence),
            has_params: !params.is_empty(),
            charset: charset.and_then(|label| known_charset(&label)),
        })
    }

    /// Returns type and subtype in lower case, without parameters.
    pub fn essence(&self) -> &str {
        &self.essence
    }

    /// Returns the essence. Does not copy text that is already in lower case.
    pub fn into_essence(self) -> Cow<'t, str> {
        self.essence
    }

    /// Tests whether text follows the essence.
    pub fn has_params(&self) -> bool {
        self.has_params
    }

    /// Returns the charset, if a `Content-Type` can name it.
    pub fn charset(&self) -> Option<&'static str> {
        self.charset
    }
}

fn lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

fn known_charset(label: &[u8]) -> Option<&'static str> {
    CHARSETS.into_iter().find(|known| known.as_bytes().eq_ignore_ascii_case(label))
}

/// Tests whether `text` is a media type without parameters, or a family such as `video/*`.
pub fn is_range(text: &str) -> bool {
    match text.strip_suffix("/*") {
        Some(family) => is_token(family),
        None => MediaType::parse(text).is_some_and(|media_type| !media_type.has_params()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_its_essence_and_a_known_charset() {
        for (text, essence, charset) in [
            ("image/png", "image/png", None),
            ("IMAGE/PNG; x=y", "image/png", None),
            ("text/plain ;x=y", "text/plain", None),
            ("text/plain;", "text/plain", None),
            ("text/plain; ;;x=y;", "text/plain", None),
            ("text/plain;  charset=utf-8", "text/plain", Some("utf-8")),
            ("text/plain;CHARSET=\"ISO-8859-1\"", "text/plain", Some("iso-8859-1")),
            ("text/plain;charset=\"utf\\-8\"", "text/plain", Some("utf-8")),
            ("text/plain;charset=utf-8;charset=koi8-r", "text/plain", Some("utf-8")),
            ("text/plain;charset=utf-7;charset=utf-8", "text/plain", None),
            ("text/plain;charset=utf-16", "text/plain", None),
            ("text/plain;charset=iso-2022-jp", "text/plain", None),
            ("text/plain;charset=\"utf-8,text/html\"", "text/plain", None),
            ("text/plain;x=\",text/html\"", "text/plain", None),
            ("text/plain;x=\"\\\",text/html;\"", "text/plain", None),
            ("application/vnd.api+json", "application/vnd.api+json", None),
        ] {
            let media_type = MediaType::parse(text).unwrap_or_else(|| panic!("{text} is a type"));
            assert_eq!((media_type.essence(), media_type.charset()), (essence, charset), "{text}");
            assert_eq!(media_type.has_params(), text.contains(';'), "{text}");
        }
    }

    #[test]
    fn a_text_that_only_begins_like_a_type_is_none() {
        let long = format!("a/{}", "b".repeat(MEDIA_TYPE_CHARS));
        for text in [
            "",
            "png",
            "image/",
            "/png",
            "image/p ng",
            "image /png",
            "image/png/x",
            "ä/b",
            "text/plain;,text/javascript",
            "text/plain,text/html",
            "text/plain, text/html",
            ",text/html",
            "text/html,",
            "text/plain;x=y,text/html",
            "text/plain;x=\"y\",text/html",
            "text/plain;x=\"y\\\",text/html",
            "text/plain;x=\"y,text/html",
            "text/plain;charset",
            "text/plain;charset=",
            "text/plain;charset =utf-8",
            "text/plain;charset= utf-8",
            "text/plain;=utf-8",
            "text/plain;charset=utf-8 x",
            "text/plain;x=y z=w",
            "text/plain;x=a/b",
            "text/plain;x=\"ä\"",
            "text/plain\t;x=y",
            "text/plain\r\nX: y",
            " image/png",
            "image/png ",
            "image/png; ",
            "*/*",
            "image/*",
            "*/png",
            &long,
        ] {
            assert_eq!(MediaType::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_range_is_a_type_or_a_family() {
        for (text, expected) in [
            ("application/pdf", true),
            ("video/*", true),
            ("application/pdf;x=y", false),
            ("*/*", false),
            ("/*", false),
            ("pdf", false),
            ("video/*,image/png", false),
        ] {
            assert_eq!(is_range(text), expected, "{text}");
        }
    }
}
