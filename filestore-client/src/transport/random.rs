//! Unpredictable random numbers, from the cryptography library of TLS.

use rustls::crypto::ring;

/// Returns 128 random bits.
pub(crate) fn random_u128() -> u128 {
    let mut bytes = [0; 16];
    ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .expect("the operating system has random bytes");
    u128::from_le_bytes(bytes)
}
