//! `Upload-Metadata` (tus 1.0, creation): `key base64,key base64`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_core::{Error, Result};
use http::HeaderMap;

/// The most keys, and the most bytes of the header.
const KEYS: usize = 64;
pub(super) const BYTES: usize = 8 << 10;

const NAME: &str = "Upload-Metadata";

/// The metadata that a client sends with a creation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientMetadata {
    /// The header as it was sent, which each later reply repeats.
    pub(crate) text: String,
    /// The pairs, in their order. A key without a value has an empty one.
    pub(crate) pairs: Vec<(String, String)>,
}

/// Reads the metadata of a creation; empty without the header.
///
/// `InvalidField` for a repeated or empty key, bad base64, a value that is not UTF-8, more than 64 keys or 8 KiB.
pub(crate) fn upload_metadata(headers: &HeaderMap) -> Result<ClientMetadata> {
    let mut lines = headers.get_all(NAME).iter();
    let Some(line) = lines.next() else { return Ok(ClientMetadata::default()) };
    if lines.next().is_some() {
        return Err(bad("the header is there once"));
    }
    parse(line.to_str().map_err(|_| bad("the header is ascii"))?)
}

pub(super) fn parse(text: &str) -> Result<ClientMetadata> {
    if text.len() > BYTES {
        return Err(bad(&format!("the header has at most {BYTES} bytes")).with_limit(BYTES as u64));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
        let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
        if key.is_empty() {
            return Err(bad("a key is not empty"));
        }
        if pairs.iter().any(|(known, _)| known == key) {
            return Err(bad(&format!("a key is there once: {key}")));
        }
        if pairs.len() == KEYS {
            return Err(bad(&format!("there are at most {KEYS} keys")).with_limit(KEYS as u64));
        }
        let value = STANDARD.decode(value.trim()).ok().and_then(|v| String::from_utf8(v).ok());
        let value = value.ok_or_else(|| bad(&format!("the value is base64 of UTF-8: {key}")))?;
        pairs.push((key.to_owned(), value));
    }
    Ok(ClientMetadata { text: text.to_owned(), pairs })
}

fn bad(problem: &str) -> Error {
    Error::invalid(NAME, format!("{NAME} is a list of keys with base64 values: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().pairs
    }

    #[test]
    fn pairs_are_read_in_their_order() {
        assert_eq!(pairs(""), []);
        let read = pairs("filename d29ybGQucGRm, is_confidential,relativePath bnVsbA==");
        let expected =
            [("filename", "world.pdf"), ("is_confidential", ""), ("relativePath", "null")];
        assert_eq!(read, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn bad_base64_repeated_keys_and_too_many_are_refused() {
        let many: Vec<String> = (0..=KEYS).map(|key| format!("k{key} YQ==")).collect();
        let long = format!("a {}", "YWFh".repeat(3000));
        for bad in
            ["a !!!", "a YQ=", "a YQ==,a YQ==", ",", "a YQ==,", "a /w==", &many.join(","), &long]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
