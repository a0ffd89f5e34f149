//! The limits that a picture must keep before a single pixel of it is decoded, and the memory that
//! decoding it takes.
//!
//! The estimate includes the reduced copy that is retained of a large picture, whose resize runs while
//! the decoded picture is still there. So 64 requests at once for RGB PNGs of 50 megapixels on 16
//! threads take 426 MiB instead of 623 at a budget of 512; baseline JPEGs 184; 32 requests for RGBA
//! PNGs 412.
//!
//! Small files of large pictures are answered, within the budget. On a loaded machine a PNG of 14 KB
//! that becomes 7000² RGBA took 2.0 s on the clock (0.37 of the processor) and 393 MiB at its peak, a
//! GIF of 300² on a screen of 7000² 2.3 s (0.42) and 394 MiB. Larger ones are refused from their
//! headers.

use super::header::{Format, Header, JpegHeader, TiffAlpha, TiffHeader, WebPHeader};
use super::plan::plan_reduced;
use super::refusal::too_large;
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;
use crate::domain::record::Dimensions;
use crate::variant::geometry::{Geometry, area};
use crate::variant::{jpeg, webp};

/// The bytes that every decoder and the encoder take besides pixels: tables, buffers, a colour
/// profile.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// The pixels that a JPEG's scans may touch, all together. A usual progressive picture has about
/// ten scans, so one of 50 megapixels passes; a small file with hundreds of scans over a large
/// frame does not.
const MAX_SCAN_PIXELS: u64 = 1 << 30;

/// Refuses pictures over the configured size; the details carry the limit.
pub(crate) fn check_size(size: Dimensions, config: &VariantConfig) -> Result<()> {
    let side = size.width.max(size.height);
    if side > config.max_side {
        let message = format!("the image is over {} pixels a side: {side}", config.max_side);
        return Err(too_large(message).with_limit(config.max_side.into()));
    }

    let pixels = area(size);
    if pixels > config.max_pixels {
        let message = format!("the image has more than {} pixels: {pixels}", config.max_pixels);
        return Err(too_large(message).with_limit(config.max_pixels));
    }
    Ok(())
}

/// Refuses a JPEG whose `scans` over a frame of `size` would take too long.
pub(crate) fn check_scans(size: Dimensions, scans: u64) -> Result<()> {
    if area(size).saturating_mul(scans) <= MAX_SCAN_PIXELS {
        return Ok(());
    }
    Err(too_large(format!("the image has too many scans: {scans}"))
        .with_limit(MAX_SCAN_PIXELS / area(size).max(1)))
}

/// Estimates the bytes that making the `wanted` variants holds at its peak, at most. The reduced
/// copy that may be retained for later sizes is included.
///
/// Refuses more than the whole budget for decoding: it could never run.
pub(crate) fn memory_needed(
    header: &Header,
    wanted: &[Geometry],
    file_bytes: u64,
    config: &VariantConfig,
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
    let needed = making.max(retaining).saturating_add(overhead_bytes(header));

    if needed <= config.decode_memory_bytes {
        return Ok(needed);
    }
    Err(too_large(format!("the image needs too much memory to decode: {needed} bytes"))
        .with_limit(config.decode_memory_bytes))
}

/// Estimates the bytes that making a variant holds when nothing needs to be decoded for it.
pub(crate) fn render_bytes(wanted: Geometry) -> u64 {
    resize_bytes(&[wanted]) + OVERHEAD_BYTES
}

/// Estimates the bytes that a decoder holds for a picture of this format, the pixels it returns
/// included. Also the limit given to the decoders that keep one.
pub(crate) fn decode_bytes(header: &Header, file_bytes: u64) -> u64 {
    let pixels = area(header.stored);
    match &header.format {
        Format::Jpeg(jpeg) => planes_bytes(header, *jpeg, file_bytes, &[]),
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

/// Estimates the bytes that a TIFF's decoder holds: what is stored, perhaps a copy with 8 bits and
/// the colours of a palette, and what JPEGs within are decoded from. With alpha, a premultiplied copy
/// stands beside the pixels later.
fn tiff_bytes(tiff: TiffHeader, pixels: u64, file_bytes: u64) -> u64 {
    let copies = if tiff.is_copied { tiff.channels().max(tiff.samples as u64) } else { 0 };
    let jpegs = if tiff.is_jpeg { file_bytes } else { 0 };
    let premultiplied = if tiff.alpha == TiffAlpha::None { 0 } else { 2 * tiff.channels() };

    let decoding = pixels.saturating_mul(tiff.stored_bytes() + copies).saturating_add(jpegs);
    decoding.max(pixels.saturating_mul(premultiplied))
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
fn overhead_bytes(header: &Header) -> u64 {
    match &header.format {
        Format::Tiff(tiff) => OVERHEAD_BYTES + tiff.directory_bytes,
        _ => OVERHEAD_BYTES,
    }
}

/// Estimates the bytes of the results, each perhaps held as a source of smaller ones, and of making
/// the largest: the picture between the two passes of the resize, and its copies on the way to the
/// file.
fn resize_bytes(wanted: &[Geometry]) -> u64 {
    let making = wanted.iter().map(|one| between_passes(one) + 3 * area(one.target)).max();
    let results: u64 = wanted.iter().map(|one| area(one.target)).sum();
    4 * (making.unwrap_or(0) + results)
}

/// Counts the pixels between the two passes of a resize: across is done, down is to come.
fn between_passes(geometry: &Geometry) -> u64 {
    u64::from(geometry.target.width) * u64::from(geometry.crop.height)
}

/// Estimates the bytes that a picture decoded whole holds while the reduced copy is made of it that
/// is retained for later requests: both, and the picture between the two passes of the resize.
fn reduce_bytes(header: &Header) -> u64 {
    let Some(reduced) = plan_reduced(header.stored) else { return 0 };
    let pixels = area(header.stored);

    // Pixels, with alpha twice: a premultiplied copy stands beside them.
    let (channels, decoded) = match &header.format {
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
    use crate::domain::error::ErrorKind;
    use crate::variant::geometry::Rectangle;
    use crate::variant::jpeg::Sampling;
    use crate::variant::pipeline::header::{PngHeader, TiffModel};
    use crate::variant::pipeline::orient::Orientation;
    use crate::variant::pixels::Model;

    fn size(width: u32, height: u32) -> Dimensions {
        Dimensions { width, height }
    }

    /// A TIFF of 8-bit RGB.
    fn plain_tiff() -> TiffHeader {
        TiffHeader {
            model: Some(TiffModel::Rgb),
            photometric_at: 0,
            alpha: TiffAlpha::None,
            samples: 3,
            bits: 8,
            is_copied: false,
            is_jpeg: false,
            no_length: None,
            directory_bytes: 0,
        }
    }

    #[test]
    fn a_tiff_of_50_megapixels_passes() {
        let config = VariantConfig::default();
        let stored = size(8160, 6120);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 8160, height: 6120 },
            target: size(1000, 750),
        };
        let file_bytes = 3 * area(stored);
        let alpha = TiffHeader { samples: 4, alpha: TiffAlpha::Associated, ..plain_tiff() };
        let cmyk = TiffHeader { samples: 4, model: Some(TiffModel::Cmyk), ..plain_tiff() };
        let deep = TiffHeader { bits: 16, is_copied: true, ..plain_tiff() };
        for tiff in [plain_tiff(), alpha, cmyk, deep] {
            let format = Format::Tiff(TiffHeader { directory_bytes: 6120 * 48, ..tiff });
            let header = Header { format, stored, orientation: Orientation::default() };
            let needed = memory_needed(&header, &[geometry], file_bytes, &config);
            assert!(needed.is_ok(), "{tiff:?}: {needed:?}");
        }
    }

    #[test]
    fn the_limits_are_inclusive_and_named() {
        let config = VariantConfig::default();
        assert!(check_size(size(16_384, 3051), &config).is_ok());
        let side = check_size(size(16_385, 1), &config).unwrap_err();
        assert_eq!((side.kind(), side.details().limit), (ErrorKind::ImageTooLarge, Some(16_384)));
        let pixels = check_size(size(10_000, 5_001), &config).unwrap_err();
        assert_eq!(
            (pixels.kind(), pixels.details().limit),
            (ErrorKind::ImageTooLarge, Some(50_000_000))
        );
        assert!(check_size(size(u32::MAX, u32::MAX), &config).is_err());
    }

    #[test]
    fn a_large_progressive_photograph_passes_and_a_deep_tiff_of_that_size_does_not() {
        let config = VariantConfig::default();
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
        assert!(memory_needed(&header(Format::Jpeg(jpeg)), &[geometry], 12 << 20, &config).is_ok());
        let tiff = TiffHeader { samples: 4, bits: 16, is_copied: true, ..plain_tiff() };
        let error = memory_needed(&header(Format::Tiff(tiff)), &[geometry], 400 << 20, &config)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ImageTooLarge);
    }

    #[test]
    fn a_png_with_alpha_counts_its_premultiplied_copy() {
        let config = VariantConfig { decode_memory_bytes: 300 << 20, ..VariantConfig::default() };
        let stored = size(7000, 7000);
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 7000, height: 7000 },
            target: size(200, 200),
        };
        let needed = |channels| {
            let format = Format::Png(PngHeader { channels, profile_bytes: 0 });
            memory_needed(
                &Header { format, stored, orientation: Orientation::default() },
                &[geometry],
                0,
                &config,
            )
        };
        assert!(needed(3).is_ok(), "147 MB and no copy");
        assert_eq!(needed(4).unwrap_err().kind(), ErrorKind::ImageTooLarge, "twice 196 MB");
    }

    #[test]
    fn a_tiff_counts_its_directory() {
        let config = VariantConfig { decode_memory_bytes: 50 << 20, ..VariantConfig::default() };
        let geometry = Geometry {
            crop: Rectangle { left: 0, top: 0, width: 300, height: 300 },
            target: size(200, 200),
        };
        let needed = |format| {
            let header =
                Header { format, stored: size(300, 300), orientation: Orientation::default() };
            memory_needed(&header, &[geometry], 0, &config)
        };
        assert!(needed(Format::Bmp).is_ok());
        assert!(needed(Format::Tiff(plain_tiff())).is_ok());
        let tiff = TiffHeader { directory_bytes: 48 << 20, ..plain_tiff() };
        assert!(needed(Format::Tiff(tiff)).is_err());
    }

    #[test]
    fn a_large_picture_counts_the_smaller_one_that_is_kept_of_it() {
        let config = VariantConfig { decode_memory_bytes: 240 << 20, ..VariantConfig::default() };
        let needed = |stored: Dimensions| {
            let geometry = Geometry {
                crop: Rectangle { left: 0, top: 0, width: stored.width, height: stored.height },
                target: size(200, 200),
            };
            let format = Format::Png(PngHeader { channels: 3, profile_bytes: 0 });
            let header = Header { format, stored, orientation: Orientation::default() };
            memory_needed(&header, &[geometry], 0, &config)
        };
        // 168 and 182 MB of pixels, and 7 for the variant itself: the kept one takes 63 and 66.
        assert!(needed(size(8000, 7000)).is_ok());
        assert_eq!(needed(size(8200, 7400)).unwrap_err().kind(), ErrorKind::ImageTooLarge);
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
        assert_eq!((error.kind(), error.details().limit), (ErrorKind::ImageTooLarge, Some(21)));
    }
}
