//! A model of how browsers read a `Content-Type`: "extract a MIME type" of the Fetch Standard
//! (section 3.4.2) and "parse a MIME type" of the MIME Sniffing Standard (section 4.4), step by
//! step.
//!
//! Only tests and fuzz targets use this model. [`judge`] compares the store's decisions with it.

use crate::domain::file::disposition::Disposition;
use crate::domain::file::media::MediaType;
use crate::domain::file::serving;

/// The type that a browser assumes for a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// Type and subtype, in lower case.
    pub essence: String,
    /// Parameters, in order.
    pub params: Vec<(String, String)>,
}

impl Extracted {
    /// Returns a parameter's value.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Extracts the type of a reply with this `Content-Type`. `None` means failure.
pub fn extract(header: &str) -> Option<Extracted> {
    let mut found: Option<Extracted> = None;
    let mut charset: Option<String> = None;

    for value in split(header) {
        let Some(mut next) = parse(&value).filter(|next| next.essence != "*/*") else { continue };
        if found.as_ref().is_none_or(|found| found.essence != next.essence) {
            charset = next.param("charset").map(str::to_owned);
        } else if next.param("charset").is_none()
            && let Some(charset) = &charset
        {
            next.params.push(("charset".to_owned(), charset.clone()));
        }
        found = Some(next);
    }

    found
}

/// Splits a header at commas outside quoted strings ("get, decode, and split").
fn split(header: &str) -> Vec<String> {
    let text: Vec<char> = header.chars().collect();
    let (mut values, mut value, mut at) = (Vec::new(), String::new(), 0);

    while at < text.len() {
        match text[at] {
            '"' => {
                let (_, end) = quoted(&text, at);
                value.extend(&text[at..end]);
                at = end;
            }
            ',' => {
                values.push(std::mem::take(&mut value));
                at += 1;
            }
            other => {
                value.push(other);
                at += 1;
            }
        }
    }

    values.push(value);
    values.iter().map(|value| value.trim_matches([' ', '\t']).to_owned()).collect()
}

/// Collects a quoted string that begins at `at` ("collect an HTTP quoted string"). Returns its
/// value and its end.
fn quoted(text: &[char], at: usize) -> (String, usize) {
    let (mut value, mut at) = (String::new(), at + 1);
    loop {
        match (text.get(at), text.get(at + 1)) {
            (None, _) => return (value, at),
            (Some('"'), _) => return (value, at + 1),
            (Some('\\'), None) => {
                value.push('\\');
                return (value, at + 1);
            }
            (Some('\\'), Some(next)) => {
                value.push(*next);
                at += 2;
            }
            (Some(other), _) => {
                value.push(*other);
                at += 1;
            }
        }
    }
}

/// Parses one MIME type. `None` means failure.
fn parse(value: &str) -> Option<Extracted> {
    let text: Vec<char> = value.trim_matches(is_white).chars().collect();
    let until = |from: usize, ends: &[char]| {
        text[from..].iter().position(|c| ends.contains(c)).map_or(text.len(), |at| from + at)
    };
    let part = |from: usize, to: usize| text[from..to].iter().collect::<String>();

    let slash = until(0, &['/']);
    let kind = part(0, slash);
    if !is_token(&kind) || slash == text.len() {
        return None;
    }
    let mut at = until(slash + 1, &[';']);
    let subtype = part(slash + 1, at).trim_end_matches(is_white).to_owned();
    if !is_token(&subtype) {
        return None;
    }

    let essence = format!("{kind}/{subtype}").to_ascii_lowercase();
    let mut found = Extracted { essence, params: Vec::new() };
    while at < text.len() {
        at += 1;
        at += text[at..].iter().take_while(|c| is_white(**c)).count();
        let end = until(at, &[';', '=']);
        let name = part(at, end).to_ascii_lowercase();
        at = end;
        if at == text.len() {
            break;
        }
        if text[at] == ';' {
            continue;
        }

        at += 1;
        let value = if text.get(at) == Some(&'"') {
            let (value, end) = quoted(&text, at);
            at = until(end, &[';']);
            value
        } else {
            let end = until(at, &[';']);
            let value = part(at, end).trim_end_matches(is_white).to_owned();
            at = end;
            if value.is_empty() {
                continue;
            }
            value
        };

        let is_value = value.chars().all(|c| matches!(c, '\t' | ' '..='~' | '\u{80}'..='\u{FF}'));
        if is_token(&name) && is_value && found.param(&name).is_none() {
            found.params.push((name, value));
        }
    }

    Some(found)
}

fn is_white(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | ' ')
}

fn is_token(text: &str) -> bool {
    let is_token_char = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_token_char)
}

/// Compares the store with the model for a file of type `claimed`.
///
/// # Panics
///
/// Panics if a browser reads an accepted type, or a sent `Content-Type`, differently from the
/// store.
pub fn judge(claimed: &str) {
    let accepted = MediaType::parse(claimed);
    if let Some(media_type) = &accepted {
        let theirs = extract(claimed).expect("a type that is accepted is one for browsers");
        assert_eq!(theirs.essence, media_type.essence(), "{claimed:?}");
        if let Some(charset) = media_type.charset() {
            let theirs = theirs.param("charset").map(str::to_ascii_lowercase);
            assert_eq!(theirs.as_deref(), Some(charset), "{claimed:?}");
        }
    }

    let own = accepted.map(|media_type| media_type.into_essence().into_owned());
    for sniffed in [None, own.as_deref()] {
        for requested in [None, Some(Disposition::Inline), Some(Disposition::Attachment)] {
            let how = serving::decide(claimed, sniffed, requested);
            let theirs = extract(&how.content_type).expect("the sent type is a type for browsers");

            let is_octets = theirs.essence == super::OCTET_STREAM;
            assert!(is_octets || Some(&theirs.essence) == own.as_ref(), "{claimed:?}: {how:?}");
            let sent = match theirs.params.as_slice() {
                [] => theirs.essence,
                [(name, charset)] if name == "charset" => {
                    assert_eq!(theirs.essence, "text/plain", "{claimed:?}: {how:?}");
                    format!("{}; charset={charset}", theirs.essence)
                }
                _ => panic!("{claimed:?} is sent with other parameters: {how:?}"),
            };
            assert_eq!(sent, how.content_type, "{claimed:?}: only the canonical form is sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_model_reads_the_examples_of_the_standards() {
        // Fetch Standard, "extract a MIME type" and "get, decode, and split"; web-platform-tests,
        // fetch/content-type/resources/content-types.json.
        for (header, essence, charset) in [
            ("text/plain;charset=gbk, text/html", Some("text/html"), None),
            ("text/html;charset=gbk;a=b, text/html;x=y", Some("text/html"), Some("gbk")),
            ("text/html;charset=gbk, x/x, text/html;x=y", Some("text/html"), None),
            ("text/html, cannot-parse", Some("text/html"), None),
            ("text/html, */*", Some("text/html"), None),
            ("text/html,", Some("text/html"), None),
            ("text/html;\", text/plain", Some("text/html"), None),
            ("text/html;\",text/plain\"", Some("text/html"), None),
            ("text/html;charset=\"gbk\\\"\"", Some("text/html"), Some("gbk\"")),
            ("text/html ;charset=gbk", Some("text/html"), Some("gbk")),
            ("text/html;charset= gbk", Some("text/html"), Some(" gbk")),
            ("text/plain;,text/javascript", Some("text/javascript"), None),
            ("text/plain;,text/css", Some("text/css"), None),
            ("cannot-parse", None, None),
            ("", None, None),
        ] {
            let found = extract(header);
            assert_eq!(found.as_ref().map(|f| f.essence.as_str()), essence, "{header}");
            assert_eq!(found.as_ref().and_then(|f| f.param("charset")), charset, "{header}");
        }
    }

    #[test]
    fn the_tricks_of_the_review_are_types_of_nothing() {
        for trick in [
            "text/plain;,text/javascript",
            "text/plain;,text/css",
            "text/plain;,text/html",
            "video/mp4;,text/html",
            "application/pdf;,text/html",
        ] {
            judge(trick);
            assert_eq!(MediaType::parse(trick), None, "{trick}");
        }
    }

    /// Texts made of the pieces that readings differ about.
    fn adversarial() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "text/plain",
            "TEXT/html",
            "text/css",
            "text/javascript",
            "image/png",
            "video/mp4",
            "*/*",
            "image/*",
            "multipart/mixed",
            ";",
            ";",
            ",",
            ",",
            "=",
            "\"",
            "\"",
            "\\",
            "\\\"",
            " ",
            "\t",
            "/",
            "x=y",
            "charset=",
            "charset=utf-8",
            "charset=utf-7",
            "charset=\"utf-8\"",
            "boundary=b",
            "\r\n",
            "\u{e4}",
            "\u{7f}",
            "*",
            "a",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// Texts of the grammar.
    fn grammatical() -> impl Strategy<Value = String> {
        let token = "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,6}";
        let value = prop_oneof![
            token.prop_map(String::from),
            r"[ !#-\[\]-~]{0,6}".prop_map(|text| format!("\"{text}\"")),
            r"(\\[ -~]){0,3}".prop_map(|text| format!("\"{text}\"")),
        ];
        let param = (" {0,2}; {0,2}", token, value)
            .prop_map(|(start, name, value)| format!("{start}{name}={value}"));
        let params =
            prop::collection::vec(prop_oneof![4 => param, 1 => Just(";".to_owned())], 0..5);
        ("[a-zA-Z]{1,6}", token, params).prop_map(|(kind, subtype, params)| {
            // A subtype that is all stars may be a range.
            format!("{kind}/x{subtype}{}", params.concat())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn browsers_take_what_is_accepted_and_sent_for_what_was_decided_by(text in prop_oneof![adversarial(), ".{0,40}"]) {
            judge(&text);
        }

        #[test]
        fn whatever_the_grammar_has_is_accepted_and_read_as_browsers_do(text in grammatical()) {
            prop_assert!(MediaType::parse(&text).is_some(), "{text:?}");
            judge(&text);
        }
    }
}
