//! SHA-256 as the service writes it: hex in records, base64 in `Repr-Digest`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Digest> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).ok()?;
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
        assert_eq!(hex::encode(from_hex(EMPTY).unwrap()), EMPTY);
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
