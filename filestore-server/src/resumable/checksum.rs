//! `Upload-Checksum` (tus 1.0, checksum): an algorithm, a space, the digest in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_core::uploads::BodyCheck;
use filestore_core::{Error, Result};
use sha2::Digest;

/// The algorithms, as `Tus-Checksum-Algorithm` lists them.
pub(crate) const ALGORITHMS: &str = "sha1,sha256";

/// The checksum of a request's body.
#[derive(Debug)]
pub(crate) struct Checksum {
    hasher: Hasher,
    expected: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Checksum {
    /// Reads the header. `InvalidField` for an unknown algorithm and a digest that is none.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (name, digest) = text.split_once(' ').unwrap_or((text, ""));
        let (hasher, bytes) = match name {
            "sha1" => (Hasher::Sha1(sha1::Sha1::new()), 20),
            "sha256" => (Hasher::Sha256(sha2::Sha256::new()), 32),
            _ => return Err(bad("the algorithm is unknown").with_allowed(ALGORITHMS.split(','))),
        };
        let expected = STANDARD.decode(digest.trim()).ok().filter(|digest| digest.len() == bytes);
        let expected = expected.ok_or_else(|| bad("the digest is base64 of its bytes"))?;
        Ok(Self { hasher, expected })
    }
}

impl BodyCheck for Checksum {
    fn update(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn holds(&self) -> bool {
        match self.hasher.clone() {
            Hasher::Sha1(hasher) => hasher.finalize()[..] == self.expected[..],
            Hasher::Sha256(hasher) => hasher.finalize()[..] == self.expected[..],
        }
    }
}

fn bad(problem: &str) -> Error {
    Error::invalid("Upload-Checksum", format!("Upload-Checksum names a checksum: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_holds_for_its_bytes_alone() {
        for header in [
            "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=",
            "sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=",
        ] {
            let mut sum = Checksum::parse(header).unwrap();
            assert!(!sum.holds());
            sum.update(b"hello ");
            sum.update(b"world");
            assert!(sum.holds(), "{header}");
            sum.update(b"!");
            assert!(!sum.holds());
        }
    }

    #[test]
    fn an_unknown_algorithm_and_a_bad_digest_are_refused() {
        for bad in ["", "sha1", "sha1 !!", "sha1 YQ==", "md5 XrY7u+Ae7tCTyyK7j1rNww==", "SHA1 YQ=="]
        {
            assert!(Checksum::parse(bad).is_err(), "{bad}");
        }
    }
}
