//! SHA-256 as the service writes it: hex in records, base64 in `Repr-Digest`.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// Writes bytes as lower-case hexadecimal digits, two each.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes everything");
        hex
    })
}

/// Reads a digest of 64 hexadecimal digits.
pub(crate) fn from_hex(hex: &str) -> Option<Digest> {
    let mut digest = [0; 32];
    // Digits alone: the parser below would take a sign as well.
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// Finds the `sha-256` member of a `Repr-Digest` header (RFC 9530): `sha-256=:<base64>:`.
pub(crate) fn from_repr_digest(header: &str) -> Option<Digest> {
    header.split(',').find_map(|member| {
        let value = member.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
        STANDARD.decode(value).ok()?.try_into().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn hex_and_back() {
        assert_eq!(to_hex(&from_hex(EMPTY).unwrap()), EMPTY);
        assert_eq!(from_hex(&EMPTY[1..]), None);
        assert_eq!(from_hex(&format!("+3{}", &EMPTY[2..])), None, "a sign is no digit");
    }

    #[test]
    fn repr_digest_is_found_among_others() {
        let header = "sha-512=:AAAA:, sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        assert_eq!(from_repr_digest(header), from_hex(EMPTY));
        assert_eq!(from_repr_digest("sha-256=:c2hvcnQ=:"), None);
    }
}
