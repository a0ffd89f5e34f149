//! Contents that tell where they come from.

use bytes::Bytes;

/// A content by its number: 2,000 bytes at most of them, some more than a buffer of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(pub(crate) u64);

impl Content {
    /// Makes the bytes: the number and the offset in every 16 of them.
    pub(crate) fn bytes(self) -> Bytes {
        let mut random = fastrand::Rng::with_seed(self.0);
        let length = match random.u8(..50) {
            0 => 0,
            1 => random.usize(250_000..600_000),
            _ => random.usize(1..2_000),
        };

        let mut bytes = Vec::with_capacity(length + 16);
        while bytes.len() < length {
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(&self.0.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        bytes.truncate(length);
        bytes.into()
    }
}
