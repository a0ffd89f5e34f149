//! Writes a transparent picture of any size in 28 bytes.
//!
//! If each prefix code of a lossless WebP has one symbol, no pixel needs a bit (WebP Lossless Bitstream
//! Specification, sections 3 and 6.2). This module writes the file itself, because an encoder would read
//! every pixel to find this out.

use bytes::Bytes;

/// The first byte of a lossless bitstream.
const SIGNATURE: u8 = 0x2F;
/// The flag for alpha, behind two sizes of 14 bits. The three bits of the version follow.
const ALPHA_IS_USED: u64 = 1 << 28;
/// The position of the first prefix code. Before it are the version, and one bit each for "no transform", "no
/// colour cache" and "no second level of codes".
const FIRST_CODE: u32 = 35;
/// The codes of green, red, blue, alpha and distance. Each is a simple code with one symbol of one bit, which
/// is 0.
const CODES: u32 = 5;
const CODE_BITS: u32 = 4;

/// Writes a transparent picture of `width` and `height`, each from 1 to 16384.
pub(crate) fn transparent(width: u32, height: u32) -> Bytes {
    let size = u64::from(width - 1) | u64::from(height - 1) << 14;
    let codes = (0..CODES).fold(0, |bits, code| bits | 1 << (FIRST_CODE + CODE_BITS * code));
    let bits = (size | ALPHA_IS_USED | codes).to_le_bytes();

    let mut file = Vec::with_capacity(28);
    file.extend(b"RIFF\x14\0\0\0WEBPVP8L\x08\0\0\0");
    file.push(SIGNATURE);
    file.extend(&bits[..7]);
    Bytes::from(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decoder_sees_a_transparent_picture_of_the_size() {
        for (width, height) in [(1, 1), (7, 300), (2000, 1200), (16_383, 2)] {
            let file = transparent(width, height);
            assert_eq!(file.len(), 28);

            let ours = image::load_from_memory(&file).unwrap().into_rgba8();
            assert_eq!(ours.dimensions(), (width, height));
            assert!(ours.pixels().all(|pixel| pixel.0[3] == 0));

            let googles = webp::Decoder::new(&file).decode().expect("libwebp reads it");
            assert_eq!((googles.width(), googles.height()), (width, height));
            assert!(googles.is_alpha() && googles.chunks_exact(4).all(|pixel| pixel[3] == 0));
        }
    }
}
