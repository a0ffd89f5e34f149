//! Recognizes picture formats that this crate does not decode, so that the error can name the format.
//!
//! AVIF and HEIC (ISO/IEC 23008-12) have no decoder here. Decoders in memory-safe Rust are young, or have a
//! licence that a library cannot pass on. Other decoders need C++ or an assembler to build.

/// The bytes of a file that this module reads. The brands of real files end long before.
pub(super) const MAGIC_BYTES: usize = 64;

/// Names the format of a file that begins with `magic`. `None` for other formats.
pub(super) fn name(magic: &[u8]) -> Option<&'static str> {
    match magic {
        [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => Some("JPEG XL"),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..] => {
            Some("JPEG 2000")
        }
        [b'8', b'B', b'P', b'S', 0, 1 | 2, ..] => Some("Photoshop"),
        [a, b, c, d, b'f', b't', b'y', b'p', ..] => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            brand_name(&magic[..length.clamp(8, magic.len())])
        }
        _ => None,
    }
}

/// Reads the name from a file type box (ISO/IEC 14496-12, section 4.3): length, `ftyp`, the major brand, its
/// version, and the compatible brands. A video has none of these brands.
fn brand_name(file_type: &[u8]) -> Option<&'static str> {
    let major = file_type.get(8..12).into_iter();
    let compatible = file_type.get(16..).unwrap_or_default().chunks_exact(4);
    major.chain(compatible).find_map(|brand| match brand {
        b"avif" | b"avis" => Some("AVIF"),
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => Some("HEIC"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_are_not_decoded_are_named() {
        for (magic, expected) in [
            (&b"\0\0\0\x1Cftypavif\0\0\0\0avifmif1miaf"[..], Some("AVIF")),
            (b"\0\0\0\x1Cftypmif1\0\0\0\0mif1miafavif", Some("AVIF")),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", Some("HEIC")),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", Some("HEIC")),
            (b"\xFF\x0A\xFA\x1F", Some("JPEG XL")),
            (b"\0\0\0\x0CJXL \r\n\x87\n", Some("JPEG XL")),
            (b"\0\0\0\x0CjP  \r\n\x87\n", Some("JPEG 2000")),
            (b"8BPS\0\x01\0\0", Some("Photoshop")),
            // Videos, and brands after the box.
            (b"\0\0\0\x18ftypisom\0\0\x02\0isommp41", None),
            (b"\0\0\0\x10ftypisom\0\0\x02\0avif", None),
            (b"\0\0\0\0ftypavif", None),
            (b"\0\0\0\x20ftyp", None),
            (b"", None),
        ] {
            assert_eq!(name(magic), expected, "{}", String::from_utf8_lossy(magic));
        }
    }
}
