//! Limits that a picture must meet before it is decoded, and estimates of the memory that decoding takes.
//!
//! The estimate includes the reduced copy that is retained of a large picture. The resize to this copy runs
//! while the decoded picture is still in memory. With this estimate, 64 concurrent requests for RGB PNGs of
//! 50 megapixels on 16 threads take 426 MiB instead of 623, at a budget of 512. Baseline JPEGs take 184 MiB,
//! and 32 requests for RGBA PNGs take 412.
//!
//! A small file can contain a large picture. Within the budget, it is rendered. On a loaded machine, a PNG of
//! 14 KB that becomes 7000² RGBA pixels took 2.0 s on the clock (0.37 s of the processor) and 393 MiB at its
//! peak. A GIF of 300² on a screen of 7000² took 2.3 s (0.42 s) and 394 MiB. Larger pictures are refused from
//! their headers.

use super::header::{
    Compression, Format, Header, JpegHeader, Predictor, TiffAlpha, TiffHeader, WebPHeader,
};
use super::plan::plan_reduced;
use crate::Dimensions;
use crate::error::{Result, too_large};
use crate::geometry::{Geometry, area};
use crate::settings::Limits;
use crate::{jpeg, webp};

/// Memory that every decoder and the encoder use in addition to pixels: tables, buffers and a colour profile.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// The maximum number of pixels in all scans of a JPEG together. A usual progressive picture has about ten
/// scans, so a picture of 50 megapixels passes. A small file with hundreds of scans over a large frame fails.
const MAX_SCAN_PIXELS: u64 = 1 << 30;

/// Refuses pictures that exceed the allowed size. The error contains the limit.
pub(crate) fn check_size(size: Dimensions, limits: &Limits) -> Result<()> {
    let side = size.width.max(size.height);
    if side > limits.max_side {
        let message = format!("the image is over {} pixels a side: {side}", limits.max_side);
        return Err(too_large(message).with_limit(limits.max_side.into()));
    }

    let pixels = area(size);
    if pixels > limits.max_pixels {
        let message = format!("the image has more than {} pixels: {pixels}", limits.max_pixels);
        return Err(too_large(message).with_limit(limits.max_pixels));
    }
    Ok(())
}

/// Refuses a JPEG if its `scans` over a frame of `size` would take too long.
pub(crate) fn check_scans(size: Dimensions, scans: u64) -> Result<()> {
    if area(size).saturating_mul(scans) <= MAX_SCAN_PIXELS {
        return Ok(());
    }
    Err(too_large(format!("the image has too many scans: {scans}"))
        .with_limit(MAX_SCAN_PIXELS / area(size).max(1)))
}

/// Estimates the peak memory for making the `wanted` variants, in bytes (an upper bound). The estimate
/// includes the reduced copy that can be retained for later sizes.
///
/// Returns an error if the estimate exceeds the whole budget, because such work could never start.
pub(crate) fn memory_needed(
    header: &Header,
    wanted: &[Geometry],
    file_bytes: u64,
    limits: &Limits,
) -> Result<u64> {
    let (decoding, retaining) = match &header.format {
        // Planes are retained as they are, if at all.
        Format::Jpeg(jpeg) => (planes_bytes(header, *jpeg, file_bytes, wanted), 0),
        Format::WebP(WebPHeader::Lossy { has_alpha: false }) => {
            (webp::memory_needed(header.stored, file_bytes, false, wanted), 0)
        }
        _ => (decode_bytes(header, file_bytes), reduce_bytes(header)),
    };
    let making = decoding.saturating_add(resize_bytes(wanted));
    let needed = making.max(retaining).saturating_add(overhead_bytes(header, file_bytes));

    if needed <= limits.memory_bytes {
        return Ok(needed);
    }
    Err(too_large(format!("the image needs too much memory to decode: {needed} bytes"))
        .with_limit(limits.memory_bytes))
}

impl Geometry {
    /// Returns an upper bound for the memory, in bytes, if the result needs no decoding.
    pub fn memory_bytes(self) -> u64 {
        resize_bytes(&[self]) + OVERHEAD_BYTES
    }
}

/// Estimates the memory of a decoder for a picture of this format, in bytes, including the returned pixels.
/// Decoders with a limit of their own get the same number as the limit.
pub(crate) fn decode_bytes(header: &Header, file_bytes: u64) -> u64 {
    let pixels = area(header.stored);
    match &header.format {
        Format::Jpeg(jpeg) => planes_bytes(header, *jpeg, file_bytes, &[]),
        // A frame and the canvas, or the canvas and its premultiplied copy.
        Format::Png(png) if png.hides_default => pixels * u64::from(4 + png.channels).max(8),
        // With alpha, which is the second or fourth channel, a premultiplied copy stands beside it.
        Format::Png(png) => {
            pixels * u64::from(png.channels) * if png.channels % 2 == 0 { 2 } else { 1 }
        }
        // GIF: the screen and a frame of the same size, four channels each. BMP: with alpha a
        // premultiplied copy stands beside it; the header does not say whether there is.
        Format::Gif | Format::Bmp => 8 * pixels,
        Format::WebP(WebPHeader::Lossy { has_alpha }) => {
            webp::memory_needed(header.stored, file_bytes, *has_alpha, &[])
        }
        // The result, of which with alpha a premultiplied copy stands beside it.
        Format::WebP(WebPHeader::Lossless) => {
            8 * pixels + webp::lossless_memory_needed(header.stored, file_bytes)
        }
        // The decoder's pixels and the result, composed on a canvas.
        Format::WebP(WebPHeader::Animated) => 16 * pixels + file_bytes,
        Format::Tiff(tiff) => tiff_bytes(*tiff, pixels, file_bytes),
    }
}

/// Estimates the memory of the TIFF decoder, in bytes: the stored rows of one read, the memory of the
/// compression, the samples of one row, and the result. With alpha, a premultiplied copy is added later. An
/// unsupported kind needs no memory.
fn tiff_bytes(tiff: TiffHeader, pixels: u64, file_bytes: u64) -> u64 {
    if tiff.model.is_none() {
        return 0;
    }
    let channels = tiff.channels();
    let band = tiff.band_bytes();
    let reading = match tiff.compression {
        // Inflated, or unpacked, as it is read.
        Compression::None | Compression::Deflate | Compression::PackBits | Compression::Fax4 => {
            band
        }
        Compression::Lzw => band.saturating_add(file_bytes.min(band.saturating_mul(2))),
        // What is stored, and the JPEG.
        Compression::Jpeg => {
            let jpeg = tiff_jpeg_bytes(tiff, file_bytes);
            band.saturating_add(file_bytes).saturating_add(jpeg)
        }
    };
    // The samples of a row, of which planes make a second list. A row of floats is copied as it is stored.
    let samples = tiff.samples_of_row().saturating_mul(if tiff.is_planar { 2 } else { 1 });
    let copied = if tiff.predictor == Predictor::FloatDifferences { tiff.row_bytes() } else { 0 };
    let reading = reading.saturating_add(samples).saturating_add(copied);

    let premultiplied = if tiff.alpha == TiffAlpha::None { 0 } else { 2 * channels };
    let decoding = pixels.saturating_mul(channels).saturating_add(reading);
    decoding.max(pixels.saturating_mul(premultiplied))
}

/// Estimates the bytes that the JPEG of one strip or tile takes: its components and the pixels that they make,
/// and twice the stored bytes, because the tables are copied in front of them. The decoder has the same limit.
pub(crate) fn tiff_jpeg_bytes(tiff: TiffHeader, file_bytes: u64) -> u64 {
    /// Blocks are filled up to whole units of at most so many pixels.
    const UNIT: u64 = 32;
    /// The tables of a file, and those of a strip or tile, at most.
    const TABLES_BYTES: u64 = 256 << 10;
    let Dimensions { width, height } = tiff.chunks.size;
    let padded = (u64::from(width) + UNIT).saturating_mul(u64::from(height) + UNIT);
    let samples = padded.saturating_mul(tiff.samples_of_chunk() as u64);
    let stored = file_bytes.saturating_add(TABLES_BYTES).saturating_mul(2);
    samples.saturating_mul(3).saturating_add(stored)
}

/// Estimates the bytes of the places and lengths of a TIFF's strips or tiles, no more than the file has.
fn tiff_directory_bytes(tiff: TiffHeader, file_bytes: u64) -> u64 {
    const NUMBER_BYTES: u64 = 8;
    let chunks = tiff.chunk_count().min(file_bytes);
    // Both are lists that double as they grow, and a third one puts the places in order.
    chunks.saturating_mul(6 * NUMBER_BYTES)
}

/// Estimates the bytes that our own JPEG decoder holds.
fn planes_bytes(header: &Header, jpeg: JpegHeader, file_bytes: u64, wanted: &[Geometry]) -> u64 {
    let outline = jpeg::Outline {
        size: header.stored,
        components: jpeg.components,
        holds_coefficients: jpeg.holds_coefficients,
        sampling: jpeg.sampling,
    };
    jpeg::memory_needed(outline, file_bytes, wanted)
}

/// Returns the bytes that decoding takes besides pixels.
fn overhead_bytes(header: &Header, file_bytes: u64) -> u64 {
    match &header.format {
        Format::Tiff(tiff) => {
            OVERHEAD_BYTES.saturating_add(tiff_directory_bytes(*tiff, file_bytes))
        }
        _ => OVERHEAD_BYTES,
    }
}

/// Estimates the memory of the results, in bytes. Each result can be kept as a source of smaller ones. Making
/// the largest result adds the picture between the two resize passes and its copies on the way to the file.
fn resize_bytes(wanted: &[Geometry]) -> u64 {
    let making = wanted.iter().map(|one| between_passes(one) + 3 * area(one.target)).max();
    let results: u64 = wanted.iter().map(|one| area(one.target)).sum();
    4 * (making.unwrap_or(0) + results)
}

/// Counts the pixels between the two resize passes, when the width is final and the height is not.
fn between_passes(geometry: &Geometry) -> u64 {
    u64::from(geometry.target.width) * u64::from(geometry.crop.height)
}

/// Estimates the memory, in bytes, while a fully decoded picture is reduced to the copy for later requests:
/// both pictures, and the picture between the two resize passes.
fn reduce_bytes(header: &Header) -> u64 {
    let Some(reduced) = plan_reduced(header.stored) else { return 0 };
    let pixels = area(header.stored);

    // Pixels, with alpha twice: a premultiplied copy stands beside them.
    let (channels, decoded) = match &header.format {
        Format::Png(png) if png.hides_default => (4, 8),
        Format::Png(png) if png.channels % 2 == 0 => {
            (u64::from(png.channels), 2 * u64::from(png.channels))
        }
        Format::Png(png) => (u64::from(png.channels), u64::from(png.channels)),
        Format::Jpeg(jpeg) => (u64::from(jpeg.components), u64::from(jpeg.components)),
        Format::Tiff(tiff) if tiff.alpha == TiffAlpha::None => (tiff.channels(), tiff.channels()),
        Format::Tiff(tiff) => (tiff.channels(), 2 * tiff.channels()),
        Format::Gif | Format::WebP(_) | Format::Bmp => (4, 8),
    };
    decoded * pixels + channels * (between_passes(&reduced) + 2 * area(reduced.target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::geometry::Rectangle;
    use crate::jpeg::Sampling;
    use crate::pipeline::header::{Order, PngHeader, TiffChunks, TiffModel};
    use crate::pipeline::orient::Orientation;
    use crate::pixels::Model;

    fn size(width: u32, height: u32) -> Dimensions {
        Dimensions { width, height }
    }

    /// A TIFF of 8-bit RGB in strips of `rows`.
    fn plain_tiff(stored: Dimensions, rows: u32) -> TiffHeader {
        let number = size(1, stored.height.div_ceil(rows));
        let chunks =
            TiffChunks { size: size(stored.width, rows), number, offsets: None, lengths: None };
        TiffHeader {
            width: stored.width,
            model: Some(TiffModel::Rgb),
            alpha: TiffAlpha::None,
            samples: 3,
            bits: 8,
            is_float: false,
            order: Order::Little,
            compression: Compression::None,
            predictor: Predictor::None,
            is_planar: false,
            is_reversed: false,
            chunks,
            jpeg_tables: None,
            palette: None,
            profile: None,
        }
    }

    #[test]
    fn a_tiff_of_50_megapixels_passes() {
        let limits = Limits::default();
        let stored = size(8160, 6120);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 8160, height: 6120 },
            target: size(1000, 750),
        };
        let file_bytes = 3 * area(stored);
        let plain = plain_tiff(stored, 6120);
        let alpha = TiffHeader { samples: 4, alpha: TiffAlpha::Associated, ..plain };
        let cmyk = TiffHeader { samples: 4, model: Some(TiffModel::Cmyk), ..plain };
        let deep = TiffHeader { bits: 16, ..plain };
        let deflated = TiffHeader { bits: 16, compression: Compression::Deflate, ..plain };
        let jpeg = TiffHeader { compression: Compression::Jpeg, ..plain_tiff(stored, 16) };
        let rows = plain_tiff(stored, 1);
        for tiff in [plain, alpha, cmyk, deep, deflated, jpeg, rows] {
            let file_bytes = if tiff == jpeg { file_bytes / 8 } else { file_bytes };
            let format = Format::Tiff(tiff);
            let header = Header { format, stored, orientation: Orientation::default() };
            let needed = memory_needed(&header, &[geometry], file_bytes, &limits);
            assert!(needed.is_ok(), "{tiff:?}: {needed:?}");
        }
    }

    #[test]
    fn the_limits_are_inclusive_and_named() {
        let limits = Limits::default();
        assert!(check_size(size(16_384, 3051), &limits).is_ok());
        let side = check_size(size(16_385, 1), &limits).unwrap_err();
        assert_eq!((side.kind(), side.limit()), (ErrorKind::TooLarge, Some(16_384)));
        let pixels = check_size(size(10_000, 5_001), &limits).unwrap_err();
        assert_eq!((pixels.kind(), pixels.limit()), (ErrorKind::TooLarge, Some(50_000_000)));
        assert!(check_size(size(u32::MAX, u32::MAX), &limits).is_err());
    }

    #[test]
    fn a_large_progressive_photograph_passes_and_a_deep_tiff_of_that_size_does_not() {
        let limits = Limits::default();
        let stored = size(8000, 6250);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 8000, height: 6250 },
            target: size(1000, 781),
        };
        let header = |format| Header { format, stored, orientation: Orientation::default() };
        let jpeg = JpegHeader {
            model: Some(Model::YCbCr),
            components: 3,
            holds_coefficients: true,
            sampling: Sampling::Usual,
        };
        assert!(check_scans(stored, 12).is_ok());
        assert!(memory_needed(&header(Format::Jpeg(jpeg)), &[geometry], 12 << 20, &limits).is_ok());
        let tiff = TiffHeader {
            samples: 4,
            bits: 16,
            compression: Compression::Lzw,
            ..plain_tiff(stored, 6250)
        };
        let error = memory_needed(&header(Format::Tiff(tiff)), &[geometry], 400 << 20, &limits)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn a_png_with_alpha_counts_its_premultiplied_copy() {
        let limits = Limits { memory_bytes: 300 << 20, ..Limits::default() };
        let stored = size(7000, 7000);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 7000, height: 7000 },
            target: size(200, 200),
        };
        let needed = |channels| {
            let format = Format::Png(PngHeader { channels, ..PngHeader::default() });
            memory_needed(
                &Header { format, stored, orientation: Orientation::default() },
                &[geometry],
                0,
                &limits,
            )
        };
        assert!(needed(3).is_ok(), "147 MB and no copy");
        assert_eq!(needed(4).unwrap_err().kind(), ErrorKind::TooLarge, "twice 196 MB");
    }

    #[test]
    fn a_tiff_counts_its_directory_and_the_tiles_that_are_read_at_once() {
        let limits = Limits { memory_bytes: 50 << 20, ..Limits::default() };
        let stored = size(300, 300);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 300, height: 300 },
            target: size(200, 200),
        };
        let needed = |format, file_bytes| {
            let header = Header { format, stored, orientation: Orientation::default() };
            memory_needed(&header, &[geometry], file_bytes, &limits)
        };
        assert!(needed(Format::Bmp, 0).is_ok());
        let plain = plain_tiff(stored, 300);
        assert!(needed(Format::Tiff(plain), 1 << 20).is_ok());

        let tiny = TiffChunks { size: size(1, 1), number: stored, ..plain.chunks };
        let tiny = TiffHeader { chunks: tiny, samples: 100, is_planar: true, ..plain };
        assert!(needed(Format::Tiff(tiny), 1 << 20).is_err());
        let huge = TiffChunks { size: size(60_000, 60_000), number: size(1, 1), ..tiny.chunks };
        for compression in [Compression::Lzw, Compression::Deflate, Compression::Jpeg] {
            let huge = TiffHeader { chunks: huge, compression, ..plain };
            assert!(needed(Format::Tiff(huge), 1 << 20).is_err(), "{compression:?}");
        }
        let stored_plainly = TiffHeader { chunks: huge, ..plain };
        assert!(needed(Format::Tiff(stored_plainly), 1 << 20).is_ok());
    }

    #[test]
    fn a_tiff_counts_the_samples_of_a_row_and_a_row_of_floats_twice() {
        let stored = size(1000, 1);
        let plain = plain_tiff(stored, 1);
        let floats = TiffHeader {
            bits: 32,
            is_float: true,
            predictor: Predictor::FloatDifferences,
            ..plain
        };
        let many = TiffHeader { bits: 1, samples: 32, ..plain };
        let planes = TiffHeader { is_planar: true, ..many };
        let unknown = TiffHeader { model: None, ..many };
        for (tiff, expected) in [
            (plain, 3000 + 3000 + 3000),
            (floats, 3000 + 12_000 + 3000 + 12_000),
            (many, 3000 + 4000 + 32_000),
            (planes, 3000 + 4000 + 2 * 32_000),
            (unknown, 0),
        ] {
            assert_eq!(tiff_bytes(tiff, 1000, 9), expected, "{tiff:?}");
        }
    }

    #[test]
    fn a_large_picture_counts_the_smaller_one_that_is_kept_of_it() {
        let limits = Limits { memory_bytes: 240 << 20, ..Limits::default() };
        let needed = |stored: Dimensions| {
            let geometry = Geometry {
                crop: Rectangle { left: 0, top: 0, width: stored.width, height: stored.height },
                target: size(200, 200),
            };
            let format = Format::Png(PngHeader { channels: 3, ..PngHeader::default() });
            let header = Header { format, stored, orientation: Orientation::default() };
            memory_needed(&header, &[geometry], 0, &limits)
        };
        // 168 and 182 MB of pixels, and 7 for the variant itself: the kept one takes 63 and 66.
        assert!(needed(size(8000, 7000)).is_ok());
        assert_eq!(needed(size(8200, 7400)).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn a_bitmap_counts_the_copy_that_alpha_would_need() {
        let header = Header {
            format: Format::Bmp,
            stored: size(1000, 1000),
            orientation: Orientation::default(),
        };
        assert_eq!(decode_bytes(&header, 0), 8_000_000);
    }

    #[test]
    fn scans_times_pixels_are_bounded() {
        assert!(check_scans(size(1000, 1000), 1000).is_ok());
        let error = check_scans(size(8000, 6250), 100).unwrap_err();
        assert_eq!((error.kind(), error.limit()), (ErrorKind::TooLarge, Some(21)));
    }
}
