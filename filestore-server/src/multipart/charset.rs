//! Text in forms: UTF-8, or an older encoding that a client names or that its bytes give away.

use filestore_core::api::decode_windows_1252;

/// An encoding of text in forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// UTF-8, as RFC 7578 recommends.
    Utf8,
    /// Windows-1252, which contains the printable characters of ISO-8859-1. Browsers decode both labels as
    /// this encoding (WHATWG Encoding Standard, section 4.2).
    Windows1252,
}

impl Charset {
    /// Finds the encoding with this label, in any case.
    pub(super) fn of(label: &[u8]) -> Option<Self> {
        Some(match label.to_ascii_lowercase().as_slice() {
            b"utf-8" | b"utf8" => Self::Utf8,
            b"iso-8859-1" | b"iso8859-1" | b"iso_8859-1" | b"latin1" | b"l1" | b"windows-1252"
            | b"cp1252" | b"x-cp1252" | b"us-ascii" | b"ascii" => Self::Windows1252,
            _ => return None,
        })
    }

    /// Decodes text. `None` if the bytes are no text in this encoding.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Windows1252 => decode_windows_1252(bytes),
        }
    }
}

/// Decodes text that is UTF-8, or else in the encoding `named`. UTF-8 goes first, because clients put labels of
/// other encodings on UTF-8, and text in another encoding is almost never UTF-8 by chance.
pub(super) fn decode(bytes: Vec<u8>, named: Option<Charset>) -> Option<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => named?.decode(error.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_or_what_its_label_says() {
        let latin = Charset::of(b"ISO-8859-1");
        for (bytes, named, text) in [
            ("größe €".as_bytes(), None, Some("größe €")),
            ("größe €".as_bytes(), latin, Some("größe €")),
            (b"gr\xF6\xDFe", latin, Some("größe")),
            (b"\x80 \x93x\x94 \xA0", latin, Some("€ “x” \u{A0}")),
            (b"gr\xF6\xDFe", None, None),
            (b"gr\xF6\xDFe", Charset::of(b"utf-8"), None),
            (b"\x81", latin, None),
        ] {
            assert_eq!(decode(bytes.to_vec(), named).as_deref(), text, "{bytes:?}");
        }
    }

    #[test]
    fn labels_are_those_of_two_encodings() {
        for label in ["Latin1", "windows-1252", "US-ASCII", "iso8859-1"] {
            assert_eq!(Charset::of(label.as_bytes()), Some(Charset::Windows1252), "{label}");
        }
        for label in ["UTF-8", "utf8"] {
            assert_eq!(Charset::of(label.as_bytes()), Some(Charset::Utf8), "{label}");
        }
        for label in ["", "utf-16", "iso-8859-15", "shift_jis", "gbk"] {
            assert_eq!(Charset::of(label.as_bytes()), None, "{label}");
        }
    }
}
