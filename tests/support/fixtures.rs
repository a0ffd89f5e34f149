//! Files of every kind, small and made in code.

use std::io::Cursor;

use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{
    DynamicImage, ExtendedColorType, Frame, ImageEncoder as _, ImageFormat, Rgb, RgbImage, Rgba,
    RgbaImage,
};

/// The make and the place that [`jpeg_with_exif`] hides in its metadata: a generated variant must
/// hold neither.
pub const EXIF_SECRET: &[u8] = b"SecretCamera 51N 13E";

/// A picture whose quarters are red (top left), green (top right), blue (bottom left) and white.
/// They tell orientation and crop apart.
pub fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([220, 20, 20]),
        (false, true) => Rgb([20, 200, 20]),
        (true, false) => Rgb([20, 20, 220]),
        (false, false) => Rgb([250, 250, 250]),
    })
}

/// Encodes [`quarters`] as PNG.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    encode(&quarters(width, height).into(), ImageFormat::Png)
}

/// Encodes [`quarters`] as JPEG.
pub fn jpeg(width: u32, height: u32) -> Vec<u8> {
    encode(&quarters(width, height).into(), ImageFormat::Jpeg)
}

/// Encodes [`quarters`] as BMP.
pub fn bmp(width: u32, height: u32) -> Vec<u8> {
    encode(&quarters(width, height).into(), ImageFormat::Bmp)
}

/// Encodes [`quarters`] as TIFF.
pub fn tiff(width: u32, height: u32) -> Vec<u8> {
    encode(&quarters(width, height).into(), ImageFormat::Tiff)
}

/// Encodes [`quarters`] as BigTIFF, in one strip behind the header.
pub fn big_tiff(width: u32, height: u32) -> Vec<u8> {
    let pixels = quarters(width, height).into_raw();
    let directory_at = 16 + pixels.len() as u64;
    let mut bytes = b"II+\0\x08\0\0\0".to_vec();
    bytes.extend(directory_at.to_le_bytes());
    bytes.extend(&pixels);

    // Three samples of 8 bits stand in the entry itself.
    let entries: [(u16, u16, u64, u64); 7] = [
        (256, 4, 1, width.into()),
        (257, 4, 1, height.into()),
        (258, 3, 3, 0x0008_0008_0008),
        (262, 3, 1, 2),
        (273, 16, 1, 16),
        (277, 3, 1, 3),
        (279, 16, 1, pixels.len() as u64),
    ];
    bytes.extend((entries.len() as u64).to_le_bytes());
    for (tag, kind, count, value) in entries {
        bytes.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    bytes.extend([0; 8]);
    bytes
}

/// Encodes [`quarters`] as lossless WebP.
pub fn webp(width: u32, height: u32) -> Vec<u8> {
    encode(&quarters(width, height).into(), ImageFormat::WebP)
}

/// An animation: the first frame red, the second blue.
pub fn gif(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for colour in [Rgba([220, 20, 20, 255]), Rgba([20, 20, 220, 255])] {
        encoder
            .encode_frame(Frame::new(RgbaImage::from_pixel(width, height, colour)))
            .expect("a frame");
    }
    drop(encoder);
    bytes
}

/// A PNG that is wholly transparent but for an opaque red square in its middle.
pub fn png_with_alpha(side: u32) -> Vec<u8> {
    let middle = side / 4..side * 3 / 4;
    let image = RgbaImage::from_fn(side, side, |x, y| {
        if middle.contains(&x) && middle.contains(&y) {
            Rgba([220, 20, 20, 255])
        } else {
            Rgba([0; 4])
        }
    });
    encode(&image.into(), ImageFormat::Png)
}

/// [`jpeg`] with Exif (TIFF 6.0, Exif 2.32): an orientation, a make, and GPS coordinates.
pub fn jpeg_with_exif(width: u32, height: u32, orientation: u16) -> Vec<u8> {
    with_exif(&jpeg(width, height), orientation)
}

/// A JPEG with the Exif of [`jpeg_with_exif`] behind its first marker.
pub fn with_exif(jpeg: &[u8], orientation: u16) -> Vec<u8> {
    let segment = exif_segment(orientation);
    [&jpeg[..2], &segment, &jpeg[2..]].concat()
}

/// A picture as JPEG, in the quality of cameras.
pub fn photo_jpeg(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 88).encode_image(picture).expect("a photograph");
    bytes
}

/// [`webp`] with the Exif of [`jpeg_with_exif`].
pub fn webp_with_exif(width: u32, height: u32, orientation: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut bytes);
    encoder.set_exif_metadata(exif(orientation)).expect("a WebP can have metadata");
    let pixels = quarters(width, height).into_raw();
    encoder.write_image(&pixels, width, height, ExtendedColorType::Rgb8).expect("a picture");
    bytes
}

/// APP1 with [`exif`].
fn exif_segment(orientation: u16) -> Vec<u8> {
    let exif = exif(orientation);
    let length = u16::try_from(exif.len() + 8).expect("a short segment");
    [b"\xFF\xE1".as_slice(), &length.to_be_bytes(), b"Exif\0\0", &exif].concat()
}

/// A little-endian TIFF structure: IFD0 (make, orientation, GPS pointer), GPS IFD.
fn exif(orientation: u16) -> Vec<u8> {
    let make_at = 8 + 2 + 3 * 12 + 4;
    let gps_at = make_at + EXIF_SECRET.len() + 1;

    let mut tiff = Vec::new();
    tiff.extend(b"II\x2A\0\x08\0\0\0\x03\0");
    tiff.extend(ifd_entry(0x010F, 2, EXIF_SECRET.len() + 1, make_at));
    tiff.extend(ifd_entry(0x0112, 3, 1, orientation.into()));
    tiff.extend(ifd_entry(0x8825, 4, 1, gps_at));
    tiff.extend([0; 4]);

    tiff.extend(EXIF_SECRET);
    tiff.push(0);
    tiff.extend(b"\x01\0");
    tiff.extend(ifd_entry(0x0001, 2, 2, usize::from(b'N')));
    tiff.extend([0; 4]);
    tiff
}

fn ifd_entry(tag: u16, kind: u16, count: usize, value: usize) -> Vec<u8> {
    let long = |number: usize| u32::try_from(number).expect("a small number").to_le_bytes();
    [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &long(count), &long(value)].concat()
}

/// A PNG that says it is `width` by `height` and holds no pixels at all: 57 bytes.
pub fn png_bomb(width: u32, height: u32) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    [
        b"\x89PNG\r\n\x1a\n".as_slice(),
        &chunk(b"IHDR", &header),
        &chunk(b"IDAT", b""),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

/// A PNG whose header is right and whose pixels are cut off in the middle.
pub fn broken_png(width: u32, height: u32) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let noise: Vec<u8> = (0u8..=255).cycle().take(4096).collect();
    [
        b"\x89PNG\r\n\x1a\n".as_slice(),
        &chunk(b"IHDR", &header),
        &chunk(b"IDAT", &noise),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("a small chunk").to_be_bytes();
    let crc = crc32(&[kind, data].concat()).to_be_bytes();
    [&length[..], kind, data, &crc].concat()
}

/// The CRC of PNG chunks (ISO 3309, as in the PNG specification, annex D).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 }
        })
    })
}

/// A ZIP archive of small entries that are stored as they are (APPNOTE.TXT, 4.3.7 and 4.3.12).
pub fn zip<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<u8> {
    const DATA: &[u8] = b"<x/>";
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    let size = u32::try_from(DATA.len()).expect("a small entry").to_le_bytes();

    for name in names {
        let offset = u32::try_from(archive.len()).expect("a small archive").to_le_bytes();
        let length = u16::try_from(name.len()).expect("a short name").to_le_bytes();
        let sizes = [&crc32(DATA).to_le_bytes()[..], &size, &size, &length].concat();
        // Version 2.0, no flags, stored, no time.
        let common = [&b"\x14\0\0\0\0\0\0\0\x21\0"[..], &sizes, b"\0\0"].concat();

        archive.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), DATA].concat());
        directory.extend([&b"PK\x01\x02\x14\0"[..], &common, &[0; 10]].concat());
        directory.extend([&offset[..], name.as_bytes()].concat());
        count += 1;
    }

    let start = u32::try_from(archive.len()).expect("a small archive").to_le_bytes();
    let length = u32::try_from(directory.len()).expect("a small directory").to_le_bytes();
    archive.extend_from_slice(&directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend([&length[..], &start, b"\0\0"].concat());
    archive
}

/// The beginning of an MP4: an `ftyp` box (ISO/IEC 14496-12).
pub const MP4: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free";

/// The beginning of a WebM: an EBML header with DocType `webm` (RFC 8794, RFC 9559), a Void element.
pub fn webm() -> Vec<u8> {
    [EBML, b"\xEC\x41\x00", &[0; 256]].concat()
}

const EBML: &[u8] = b"\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\xF7\x81\x01\x42\xF2\x81\x04\x42\xF3\x81\x08\x42\x82\x84webm\x42\x87\x81\x04\x42\x85\x81\x02";

/// The beginning of an MP3: an ID3v2.4 tag and a frame header.
pub const MP3: &[u8] = b"ID3\x04\0\0\0\0\0\0\xFF\xFB\x90\x64\0\0\0\0";

/// The beginning of an Ogg stream (RFC 3533) with a Vorbis header.
pub const OGG: &[u8] =
    b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x1E\x01vorbis\0\0\0\0";

/// A WAV without samples.
pub const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xAC\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0";

/// The beginning of an AVIF: an `ftyp` box with brand `avif`.
pub const AVIF: &[u8] = b"\0\0\0\x1Cftypavif\0\0\0\0avifmif1miaf\0\0\0\x08free";

/// A PDF without pages.
pub const PDF: &[u8] =
    b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n";

/// A page that would run a script if a browser rendered it.
pub const HTML: &[u8] =
    b"<!DOCTYPE html><html><body><script>alert(document.domain)</script></body></html>";

/// A drawing that would run a script if a browser rendered it.
pub const SVG: &[u8] =
    b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(document.domain)</script></svg>";

/// An XML document, which browsers render.
pub const XML: &[u8] = b"<?xml version=\"1.0\"?><feed/>";

/// A script, which browsers run.
pub const JS: &[u8] = b"alert(document.domain);\n";

/// Bytes of no known kind.
pub const UNKNOWN: &[u8] = b"\0\x01\x02\x03\xFE\xFF\0\x10\x80\x81";

/// `length` bytes that differ from place to place and from `seed` to `seed`, of no known kind.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = vec![0];
    while bytes.len() < length {
        // xorshift64 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }

    bytes.truncate(length);
    bytes
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("the fixture encodes");
    bytes.into_inner()
}
