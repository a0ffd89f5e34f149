//! Encoded words (RFC 2047 section 2): the names of mail attachments. .NET and PowerShell write them into forms.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::charset::Charset;

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One word: `=?charset?encoding?text?=`.
struct Word<'t> {
    charset: &'t str,
    encoding: &'t str,
    text: &'t str,
}

impl<'t> Word<'t> {
    /// Splits a text that begins with a word into the word and the rest.
    fn split(text: &'t str) -> Option<(Self, &'t str)> {
        let rest = text.strip_prefix("=?")?;
        let (charset, rest) = rest.split_once('?')?;
        let (encoding, rest) = rest.split_once('?')?;
        // RFC 2231 section 5 adds a language to the charset.
        let charset = charset.split('*').next().unwrap_or_default();
        let is_word = matches!(encoding, "b" | "B" | "q" | "Q")
            && !charset.is_empty()
            && charset.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:+".contains(&b));
        if !is_word {
            return None;
        }
        let (text, rest) = rest.split_once("?=")?;
        Some((Self { charset, encoding, text }, rest))
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        if self.encoding.eq_ignore_ascii_case("b") {
            return BASE64.decode(self.text).ok();
        }
        let mut bytes = Vec::with_capacity(self.text.len());
        let mut rest = self.text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            let (byte, after) = match byte {
                b'_' => (b' ', after),
                b'=' => (hex(after.get(..2)?)?, &after[2..]),
                other => (*other, after),
            };
            bytes.push(byte);
            rest = after;
        }
        Some(bytes)
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    let text = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u8::from_str_radix(text, 16).ok()
}

/// Tests whether the text contains an encoded word.
pub(super) fn contains_word(text: &str) -> bool {
    // The last end of a word bounds every search for one, so that the time grows with the length alone.
    let Some(end) = text.rfind("?=") else { return false };
    let text = &text[..end + 2];
    text.match_indices("=?").any(|(at, _)| Word::split(&text[at..]).is_some())
}

/// Decodes a text of nothing but encoded words, with blanks between them that do not count. `None` for other
/// text, an unknown encoding, or bytes that are no text in it.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut decoded = String::new();
    // A character can be cut in two by the end of a word.
    let mut open: Option<(Charset, Vec<u8>)> = None;
    let mut rest = text;

    while !rest.is_empty() {
        let (word, after) = Word::split(rest)?;
        let (charset, bytes) = (Charset::of(word.charset.as_bytes())?, word.bytes()?);
        match &mut open {
            Some((same, joined)) if *same == charset => joined.extend(bytes),
            _ => {
                if let Some((charset, bytes)) = open.replace((charset, bytes)) {
                    decoded.push_str(&charset.decode(&bytes)?);
                }
            }
        }
        rest = after.trim_start_matches([' ', '\t']);
    }

    let (charset, bytes) = open?;
    decoded.push_str(&charset.decode(&bytes)?);
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_decoded_in_both_encodings() {
        for (text, decoded) in [
            ("=?utf-8?B?w6RiYy50eHQ=?=", "äbc.txt"),
            ("=?UTF-8?b?w6RiYy50eHQ?=", "äbc.txt"),
            ("=?utf-8?Q?gr=C3=B6=C3=9Fe_1.txt?=", "größe 1.txt"),
            ("=?iso-8859-1?q?gr=F6=DFe?=", "größe"),
            ("=?utf-8*de?Q?gr=c3=b6?=", "grö"),
            ("=?utf-8?Q?gr=C3?= \t=?utf-8?Q?=B6=C3=9Fe?=", "größe"),
            ("=?iso-8859-1?Q?gr=F6?= =?utf-8?Q?=C3=9Fe?=", "größe"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(decoded), "{text}");
            assert!(contains_word(text), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_word() {
        for text in [
            "",
            "a.txt",
            "=?utf-8?B?w6Ri",
            "=?utf-8?X?abc?=",
            "=??B?abc?=",
            "=?utf-8?B?w6Q=?=.txt",
            "x =?utf-8?B?w6Q=?=",
            "=?utf-8?B?####?=",
            "=?utf-8?Q?=+1?=",
            "=?utf-8?Q?=C3?=",
            "=?gbk?B?w6Q=?=",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert!(contains_word("=?utf-8?B?w6Q=?=.txt") && contains_word("a =?gbk?B?w6Q=?="));
        assert!(!contains_word("what=?") && !contains_word("=?a?b") && !contains_word("a?b=c"));
    }
}
