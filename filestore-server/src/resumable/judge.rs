//! A judge of the headers of resumable uploads, for tests and fuzz targets alone.
//!
//! Each function takes any text. A header is refused, or it is read in the one way that its specification
//! allows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::metadata::{BYTES, ClientMetadata, parse, upload_metadata};
use super::{Concat, Protocol, byte_count};

/// Reads a request from lines of `name: value`. All protocols read the headers, whatever the lines say.
pub fn headers(text: &str) {
    let mut headers = HeaderMap::new();
    for line in text.lines().take(32) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value.trim())) {
            headers.append(name, value);
        }
    }

    let _ = upload_metadata(&headers);
    let Ok(protocol) = Protocol::of(&headers) else { return };
    if let Ok(creation) = protocol.creation(&headers) {
        assert!(creation.length.is_none_or(is_integer), "{creation:?}");
    }
    if let Ok(appending) = protocol.appending(&headers) {
        assert!(is_integer(appending.offset), "{appending:?}");
        assert!(appending.length.is_none_or(is_integer), "{appending:?}");
    }
}

/// Tests whether a number can be an integer of a structured field.
fn is_integer(number: u64) -> bool {
    number < 1_000_000_000_000_000
}

/// Reads `Upload-Metadata`, and compares the pairs with the text. Written again, they are read as before.
pub fn metadata(text: &str) {
    let Ok(ClientMetadata { text: kept, pairs }) = parse(text) else { return };
    assert_eq!(kept, text);
    for (at, (key, _)) in pairs.iter().enumerate() {
        assert!(!key.is_empty() && !key.contains([' ', ',']), "{key:?} of {text:?}");
        assert!(pairs[..at].iter().all(|(other, _)| other != key), "{key:?} twice: {text:?}");
    }

    let again: Vec<_> =
        pairs.iter().map(|(key, value)| format!("{key} {}", STANDARD.encode(value))).collect();
    let again = again.join(",");
    if again.len() <= BYTES {
        assert_eq!(parse(&again).expect("it was read before").pairs, pairs, "{again:?}");
    }
}

/// Reads `Upload-Concat`. The parts are those of the text, in their order.
pub fn concat(text: &str) {
    let Ok(read) = Concat::parse(text) else { return };
    assert_eq!(read.text, text);
    match read.parts {
        None => assert_eq!(text, "partial"),
        Some(parts) => {
            let urls = text.strip_prefix("final;").expect("the word of a final upload");
            let urls: Vec<_> = urls.split_ascii_whitespace().collect();
            assert_eq!(parts.len(), urls.len(), "{text:?}");
            for (part, url) in parts.iter().zip(urls) {
                assert!(url.contains(&part.to_segment()), "{part:?} of {url:?}");
            }
        }
    }
}

/// Reads a boolean and an integer of the draft's headers, and compares them with a model of RFC 9651.
pub fn structured_field(text: &str) {
    let Ok(value) = HeaderValue::from_str(text) else { return };
    let model = item(text.trim_matches([' ', '\t']));
    if let Ok(count) = byte_count("Upload-Length", text.trim()) {
        let count = i64::try_from(count).expect("15 digits at most");
        assert_eq!(model, Some(Item::Integer(count)), "{text:?}");
    }

    for (version, name, is_inverse) in
        [("3", "upload-incomplete", true), ("6", "upload-complete", false)]
    {
        let mut headers = HeaderMap::new();
        headers.insert("upload-draft-interop-version", HeaderValue::from_static(version));
        headers.insert(HeaderName::from_static(name), value.clone());
        let protocol = Protocol::of(&headers).expect("the version is known");
        if let Ok(creation) = protocol.creation(&headers) {
            let expected = Some(Item::Boolean(creation.is_whole != is_inverse));
            assert_eq!(model, expected, "{text:?} in {name}");
        }
    }
}

/// An item of a structured field, as far as the drafts need items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Boolean(bool),
    Integer(i64),
}

/// Parses a boolean or an integer without parameters, by the steps of RFC 9651 (sections 4.2.4 and 4.2.8).
fn item(text: &str) -> Option<Item> {
    match text.as_bytes() {
        [b'?', b'1'] => Some(Item::Boolean(true)),
        [b'?', b'0'] => Some(Item::Boolean(false)),
        [b'-', digits @ ..] => integer(digits).map(|number| Item::Integer(-number)),
        digits => integer(digits).map(Item::Integer),
    }
}

fn integer(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    digits.iter().try_fold(0, |number: i64, digit| match digit {
        b'0'..=b'9' => Some(10 * number + i64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn metadata_is_read_in_one_way(
            text in "([a-c]{0,2} ?[A-Za-z0-9+/]{0,7}={0,2},? ?){0,5}",
        ) {
            metadata(&text);
        }

        #[test]
        fn a_concatenation_names_its_parts(
            parts in proptest::collection::vec("(/|https://x/)?01[A-Z0-9]{24}[.][a-z]{1,3}[?#/]?", 0..4),
        ) {
            concat(&format!("final;{}", parts.join(" ")));
        }

        #[test]
        fn items_are_those_of_structured_fields(text in "[?]?[01]| ?-?[0-9]{1,16}[ ;.a]?|[ -~]{0,6}") {
            structured_field(&text);
        }

        #[test]
        fn lines_of_any_text_are_headers_or_refused(
            names in proptest::collection::vec(
                "Tus-Resumable: 1.0.0|Upload-Draft-Interop-Version: [3-8]|\
                 Upload-(Length|Offset|Complete|Incomplete|Concat|Checksum|Metadata): ?[ -~]{0,12}", 0..6),
        ) {
            headers(&names.join("\n"));
        }
    }

    #[test]
    fn the_model_reads_the_examples_of_the_standard() {
        for (text, read) in [
            ("?1", Some(Item::Boolean(true))),
            ("?0", Some(Item::Boolean(false))),
            ("42", Some(Item::Integer(42))),
            ("-0", Some(Item::Integer(0))),
            ("0042", Some(Item::Integer(42))),
            ("1000000000000000", None),
            ("1.5", None),
            ("?2", None),
            ("", None),
        ] {
            assert_eq!(item(text), read, "{text:?}");
            structured_field(text);
        }
    }
}
