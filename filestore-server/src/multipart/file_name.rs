//! The file name of a part: `filename`, `filename*`, and the forms that older clients send.
//!
//! RFC 7578 section 4.2 wants `filename` in UTF-8 and no `filename*`. But .NET, PowerShell, Apache HttpClient,
//! Python's email package and others send an encoded word, question marks or Latin-1 in `filename`, and the
//! exact name in `filename*` (RFC 8187) or nowhere.

use filestore_core::web::media::{Param, is_token_byte};
use filestore_core::{Error, Result};
use percent_encoding::percent_decode;

use super::charset::Charset;
use super::{charset, encoded_word, malformed, params};

/// Reads the file name, decoded, with any directory that the client put in front. `None` if the part has none.
///
/// `filename` counts, unless it only stands in for the exact name in `filename*`. Bytes that are not UTF-8 are
/// read as Windows-1252, and no character is ever replaced: a name that cannot be read is refused.
pub(super) fn file_name(params: &[Param]) -> Result<Option<String>> {
    let plain = params::find(params, "filename").map(|param| browser_decoded(&param.value));
    let exact = exact_value(params).map(|(value, text)| (value, text.ok_or_else(not_exact)));

    match (plain, exact) {
        (None, None) => Ok(None),
        (None, Some((_, text))) => text.map(Some),
        (Some(plain), Some((value, Ok(text)))) if stands_in(&plain, &value, &text) => {
            Ok(Some(text))
        }
        (Some(plain), _) => read_plain(plain).map(Some),
    }
}

/// Reads the file name in the Content-Disposition of a whole body (RFC 6266), in which `filename*` has priority.
/// `None` if there is no name, or none that can be read.
pub(crate) fn file_name_of(disposition: &str) -> Option<String> {
    let (_, rest) = disposition.split_once(';')?;
    let params = params::parse(format!(";{rest}").as_bytes(), is_token_byte).ok()?;
    let exact = exact_value(&params).and_then(|(_, text)| text);
    let plain = || params::find(&params, "filename").map(|param| read_plain(param.value.clone()));
    exact.or_else(|| plain()?.ok())
}

fn read_plain(plain: Vec<u8>) -> Result<String> {
    let text = charset::decode(plain, Some(Charset::Windows1252)).ok_or_else(|| {
        malformed("a part's filename is neither UTF-8 nor Windows-1252: send it in UTF-8")
    })?;
    Ok(encoded_word::decode(&text).unwrap_or(text))
}

fn not_exact() -> Error {
    malformed(
        "a part's filename* is not a value of RFC 8187 in UTF-8 or ISO-8859-1, \
         for example UTF-8''na%C3%AFve.txt",
    )
}

/// Decodes a name as the WHATWG multipart/form-data encoding wrote it: `%22`, `%0D` and `%0A`. Every
/// other percent sign was typed by the user.
pub(super) fn browser_decoded(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;

    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match rest.get(..3) {
            Some(b"%22") => (b'"', &rest[3..]),
            Some(b"%0D") => (b'\r', &rest[3..]),
            Some(b"%0A") => (b'\n', &rest[3..]),
            _ => (*byte, after),
        };
        decoded.push(byte);
        rest = after;
    }

    decoded
}

/// Reads `filename*`, or its pieces `filename*0*`, `filename*1*` and so on (RFC 2231 section 3). Returns the
/// value as it was sent, and the text, if the value is one. Quotes around the value do not matter.
fn exact_value(params: &[Param]) -> Option<(Vec<u8>, Option<String>)> {
    if let Some(whole) = params::find(params, "filename*") {
        return Some((whole.value.clone(), extended_text(&whole.value)));
    }
    let pieces: Vec<_> = (0..).map_while(|number| piece(params, number)).collect();
    let value = pieces.iter().flat_map(|(piece, _)| piece.iter().copied()).collect();
    (!pieces.is_empty()).then(|| (value, joined_text(&pieces)))
}

/// Joins the pieces of a value. If the first is percent-encoded, it begins with the charset.
fn joined_text(pieces: &[(&[u8], bool)]) -> Option<String> {
    let (first, has_charset) = *pieces.first()?;
    let (charset, start) =
        if has_charset { split_charset(first)? } else { (Some(Charset::Utf8), first) };

    let rest = pieces[1..].iter().copied();
    let mut bytes = Vec::new();
    for (piece, is_encoded) in std::iter::once((start, has_charset)).chain(rest) {
        if is_encoded {
            bytes.extend(unescaped(piece)?);
        } else {
            bytes.extend_from_slice(piece);
        }
    }
    charset?.decode(&bytes)
}

/// Finds a piece of a value, and whether the piece is percent-encoded.
fn piece(params: &[Param], number: usize) -> Option<(&[u8], bool)> {
    let plain = params::find(params, &format!("filename*{number}")).map(|piece| (piece, false));
    let encoded =
        || params::find(params, &format!("filename*{number}*")).map(|piece| (piece, true));
    plain.or_else(encoded).map(|(piece, is_encoded)| (&*piece.value, is_encoded))
}

/// Reads a value of RFC 8187: `charset'language'percent-encoded`.
fn extended_text(value: &[u8]) -> Option<String> {
    let (charset, text) = split_charset(value)?;
    charset?.decode(&unescaped(text)?)
}

/// Splits a value into its charset, `None` for an unknown one, and its text.
fn split_charset(value: &[u8]) -> Option<(Option<Charset>, &[u8])> {
    let mut pieces = value.splitn(3, |b| *b == b'\'');
    let charset = pieces.next()?;
    Some((Charset::of(charset), pieces.nth(1)?))
}

/// Decodes percent signs. `None` if one has no two hexadecimal digits.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let escapes_whole = text
        .split(|b| *b == b'%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit));
    escapes_whole.then(|| percent_decode(text).collect())
}

/// Tests whether `plain` only stands in for the name `exact`, which was sent as `value`: it is empty, in
/// another encoding than UTF-8, an encoded word, the percent-encoded name, or has lost characters.
fn stands_in(plain: &[u8], value: &[u8], exact: &str) -> bool {
    let Ok(plain) = str::from_utf8(plain) else { return true };
    let encoded = value.splitn(3, |b| *b == b'\'').last().unwrap_or_default();
    plain.is_empty()
        || encoded_word::contains_word(plain)
        || plain.as_bytes().eq_ignore_ascii_case(encoded) && plain != exact
        || is_row(plain)
        || has_lost_characters(plain, exact)
}

/// The characters that clients write for those that their encoding lacks.
const SUBSTITUTES: [char; 3] = ['?', '_', '\u{FFFD}'];

/// Tests whether nothing is left of a name but its extension, as in `????.txt`.
fn is_row(plain: &str) -> bool {
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    !stem.is_empty() && stem.chars().all(|c| SUBSTITUTES.contains(&c))
}

/// Tests whether `plain` is `exact` with substitutes for characters other than ASCII letters and digits. A
/// client writes one for each character, byte or UTF-16 unit.
fn has_lost_characters(plain: &str, exact: &str) -> bool {
    let mut kept = plain.split(SUBSTITUTES);
    let Some(mut rest) = kept.next().and_then(|start| exact.strip_prefix(start)) else {
        return false;
    };
    let kept: Vec<_> = kept.collect();
    let Some((end, middle)) = kept.split_last() else { return false };

    for text in middle.iter().filter(|text| !text.is_empty()) {
        let Some(at) = lost(rest).find(|at| rest[*at..].starts_with(text)) else { return false };
        rest = &rest[at + text.len()..];
    }
    lost(rest).any(|at| rest[at..] == **end)
}

/// Returns the ends of the rows of characters that can have been lost at the start of a text.
fn lost(text: &str) -> impl Iterator<Item = usize> {
    let row = text.char_indices().take_while(|(_, c)| !c.is_ascii_alphanumeric());
    row.map(|(at, c)| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use filestore_core::Disposition;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8]) -> Result<Option<String>> {
        file_name(&params::parse(text, is_token_byte).unwrap())
    }

    #[test]
    fn the_name_of_a_whole_body_is_the_extended_one_if_there_is_one() {
        for (disposition, name) in [
            ("inline; filename=\"a.txt\"", Some("a.txt")),
            ("inline; filename=\"a.txt\"; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt", Some("grüße.txt")),
            ("inline", None),
            ("inline; filename", None),
        ] {
            assert_eq!(file_name_of(disposition).as_deref(), name, "{disposition}");
        }
    }

    #[test]
    fn the_exact_name_wins_over_a_name_that_stands_in_for_it() {
        for (text, name) in [
            // .NET, PowerShell 7
            (r#"; filename="=?utf-8?B?w6RiYy50eHQ=?="; filename*=utf-8''%C3%A4bc.txt"#, "äbc.txt"),
            (r#"; filename="=?gbk?B?1tDOxA==?=.txt"; filename*=UTF-8''%E4%B8%AD.txt"#, "中.txt"),
            // Apache HttpClient, EXTENDED
            (
                r#"; filename="???.txt"; filename*=UTF-8''%E4%B8%AD%E6%96%87%E5%AD%97.txt"#,
                "中文字.txt",
            ),
            (r#"; filename="gr??e.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt"#, "größe.txt"),
            (r#"; filename="gr____e.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt"#, "größe.txt"),
            (r#"; filename="__"; filename*=UTF-8''%F0%9F%8E%89"#, "🎉"),
            (r#"; filename="a_b_.txt"; filename*=UTF-8''a%20b%C3%A4.txt"#, "a bä.txt"),
            (r#"; filename="%C3%A4bc.txt"; filename*=UTF-8''%c3%a4bc.txt"#, "äbc.txt"),
            (r#"; filename=""; filename*=UTF-8''%C3%A4"#, "ä"),
            (r#"; filename*=UTF-8''gr%C3%B6%C3%9Fe; filename="gr__e""#, "größe"),
            // a name that is one
            (r#"; filename="a_b.txt"; filename*=UTF-8''other.txt"#, "a_b.txt"),
            (r#"; filename="plain.txt"; filename*=UTF-8''other.txt"#, "plain.txt"),
            (r#"; filename="why?.txt"; filename*=UTF-8''other.txt"#, "why?.txt"),
            (r#"; filename="größe.txt"; filename*=UTF-8''gr%C3%B6sse.txt"#, "größe.txt"),
            // an exact name that is none
            (r#"; filename="???.txt"; filename*=UTF-8''%E4%B8"#, "???.txt"),
            (r#"; filename="=?utf-8?B?w6Q=?="; filename*=gbk''%D6"#, "ä"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn an_encoded_word_alone_is_decoded_if_it_is_the_whole_name() {
        for (text, name) in [
            (r#"; filename="=?utf-8?B?w6RiYy50eHQ=?=""#, "äbc.txt"),
            (r#"; filename="=?utf-8?Q?=C3=A4?= =?utf-8?Q?bc.txt?=""#, "äbc.txt"),
            (r#"; filename="=?utf-8?B?w6Q=?=.txt""#, "=?utf-8?B?w6Q=?=.txt"),
            (r#"; filename="=?what?.txt""#, "=?what?.txt"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn an_exact_name_alone_can_be_latin_1_quoted_or_in_pieces() {
        for (text, name) in [
            ("; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("; filename*=utf-8'en'a%22b", "a\"b"),
            ("; filename*=ISO-8859-1''gr%F6%DFe.txt", "größe.txt"),
            ("; filename*=iso-8859-1'de'%80.txt", "€.txt"),
            (r#"; filename*="UTF-8''na%C3%AFve.txt""#, "naïve.txt"),
            ("; filename*0*=utf-8''gr%C3; filename*1*=%B6%C3%9Fe; filename*2=.txt", "größe.txt"),
            (r#"; filename*0="long "; filename*1="name.txt""#, "long name.txt"),
            ("; filename*1*=c; filename*0*=utf-8''b", "bc"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().as_deref(), Some(name), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_this_server_sends_is_the_name_that_it_reads(name in "[^\\p{Cc}]{1,30}") {
            let sent = Disposition::Attachment.to_value(&name);
            let read = read(&sent.as_bytes()["attachment".len()..]).unwrap();
            prop_assert_eq!(read, Some(name));
        }

        #[test]
        fn no_name_has_a_character_that_was_not_sent(
            plain in prop::collection::vec(any::<u8>().prop_filter("ends no string", |b| !b"\"\\".contains(b)), 0..20),
        ) {
            let text = [b"; filename=\"", &plain[..], b"\""].concat();
            if let Ok(params) = params::parse(&text, is_token_byte)
                && let Ok(Some(name)) = file_name(&params)
            {
                let was_sent = memchr::memmem::find(&plain, "\u{FFFD}".as_bytes()).is_some();
                prop_assert!(was_sent || !name.contains('\u{FFFD}'), "{name:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_mapped_and_no_character_is_replaced() {
        let latin = read(b"; filename=\"gr\xF6\xDFe \x80.txt\"").unwrap();
        assert_eq!(latin.as_deref(), Some("größe €.txt"));
        let beside = read(b"; filename=\"gr\xF6\xDFe\"; filename*=UTF-8''gr%C3%B6%C3%9Fe");
        assert_eq!(beside.unwrap().as_deref(), Some("größe"));

        for bad in [
            &b"; filename=\"\x81\x8F\""[..],
            b"; filename*=GBK''%D6%D0",
            b"; filename*=UTF-8''%FF",
            b"; filename*=UTF-8''%4",
            b"; filename*=UTF-8''%+1",
            b"; filename*=ISO-8859-1''%81",
            b"; filename*=abc",
            b"; filename*0*=abc",
            b"; filename*0*=utf-8''%C3; filename*2*=%B6",
        ] {
            let refused = read(bad).map_err(|error| error.message().to_owned());
            let message = refused.unwrap_err();
            assert!(message.contains("filename"), "{}: {message}", bad.escape_ascii());
        }
    }
}
