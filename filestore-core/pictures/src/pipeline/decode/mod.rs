//! Decodes a blob to pixels, with one module for each decoder.
//!
//! [`decode`] receives the requested parts and sizes of the picture. A decoder can return a reduced picture
//! or a part of it, with its extent, if this is cheaper than the whole picture. The resize crops in the exact
//! extent of the reduced picture. Rounding in a scaled decode therefore does not shift the result.
//!
//! The decoders are called without `image`, because `image` hides necessary details: four inks as stored,
//! text chunks, and the length of a deflated profile.
//!
//! If a file ends early or is damaged, the rows before that are shown, like in browsers. A failed read is
//! different: the read error is the result, even if the decoder returned a picture.

use std::ops::Range;

use rows::Rows;

use super::color::Profile;
use super::guard::guarded;
use super::header::{Format, Header, WebPHeader};
use super::image_file::ImageFile;
use super::spare::Spare;
use crate::error::{ErrorKind, Result, corrupt};
use crate::geometry::Geometry;
use crate::pixels::{Picture, Pixels};

mod jpeg;
mod png;
mod webp;
mod gif;
mod bmp;
mod tiff;
mod rows;

pub(crate) use gif::{
    Colors as GifColors, PASSES as GIF_PASSES, colors_of as gif_colors, fill as fill_gif,
    options as gif_options, reader as gif_reader,
};
pub(crate) use png::{
    hides_default as hides_default_png, open as open_png, profile as png_profile, rows as png_rows,
};

/// The maximum size of a colour profile, in bytes. Real profiles end at 3 MiB.
pub(crate) const MAX_PROFILE_BYTES: usize = 4 << 20;

/// A decoded picture, before its rotation.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) picture: Picture,
    /// The colour profile, if the file has one.
    pub(crate) profile: Option<Profile>,
    /// The rows that arrived, if some are missing. Missing rows repeat the nearest row.
    pub(crate) arrived: Option<Range<u32>>,
}

impl Decoded {
    /// Wraps a picture that was decoded as a whole.
    fn whole(pixels: Pixels, profile: Option<Profile>) -> Self {
        Self { picture: Picture::Whole(pixels), profile, arrived: None }
    }

    /// Wraps the picture of `rows`. Fails if rows are missing.
    fn of_rows(rows: Rows, profile: Option<Profile>) -> Result<Self> {
        let picture = rows.finish().ok_or_else(|| corrupt("rows are missing"))?;
        Ok(Self { picture, profile, arrived: None })
    }
}

/// Reads an embedded ICC profile. Ignores a profile that is larger than the limit.
pub(crate) fn icc(bytes: Option<Vec<u8>>) -> Option<Profile> {
    let bytes = bytes.filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_PROFILE_BYTES);
    bytes.map(Profile::Icc)
}

/// Decodes the picture that `header` describes. The size has passed the limits. `wanted` contains the
/// required parts and sizes, in stored axes. A single decode serves all of them.
pub(crate) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
    spare: &dyn Spare,
) -> Result<Decoded> {
    let decoded = match &header.format {
        Format::Jpeg(jpeg) => jpeg::decode(image, header, *jpeg, wanted),
        Format::WebP(WebPHeader::Lossy { .. }) => {
            or_corrupt(|| webp::decode_lossy(image, header, wanted))
        }
        Format::WebP(WebPHeader::Lossless) => {
            or_corrupt(|| webp::decode_lossless(image, header, wanted))
        }
        _ => decode_or_what_came(image, header, wanted, spare),
    };
    // Some decoders treat an error of their reader as the end of the file.
    image.settle(decoded)
}

/// Decodes with our own JPEG or WebP decoder. A panic makes only this file corrupt.
fn or_corrupt(decode: impl FnOnce() -> Result<Decoded>) -> Result<Decoded> {
    guarded(decode).unwrap_or_else(|panic| Err(corrupt(panic)))
}

/// Decodes formats that can panic or fail in a third-party decoder, and also BMP and TIFF. For a damaged
/// picture, returns the part that arrived.
fn decode_or_what_came(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
    spare: &dyn Spare,
) -> Result<Decoded> {
    let whole = guarded(|| decode_undamaged(image, header, wanted, spare));
    let error = match whole.unwrap_or_else(|panic| Err(corrupt(panic))) {
        Err(error) if error.kind() == ErrorKind::Corrupt => error,
        other => return other,
    };

    let part = guarded(|| match &header.format {
        Format::Png(png) => png::decode_what_came(image, header, *png),
        _ => Ok(None),
    });
    match part {
        Ok(Ok(Some(decoded))) => Ok(decoded),
        _ => Err(error),
    }
}

/// Returns the result of a decoder for usual files. Without a result, calls `whole`, which decodes all files.
/// Exception: if the disk or the deadline failed, returns this error.
fn usual_or(
    image: &ImageFile<'_>,
    usual: Option<Decoded>,
    whole: impl FnOnce() -> Result<Decoded>,
) -> Result<Decoded> {
    match usual {
        Some(decoded) => Ok(decoded),
        None => image.outside_failure().map_or_else(whole, Err),
    }
}

fn decode_undamaged(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
    spare: &dyn Spare,
) -> Result<Decoded> {
    match &header.format {
        Format::Png(png) => png::decode(image, header, *png, wanted, spare),
        Format::WebP(_) => webp::decode_whole(image, header),
        Format::Gif => gif::decode(image, header, wanted),
        Format::Bmp => bmp::decode(image, header, wanted),
        Format::Tiff(tiff) => tiff::decode(image, header, *tiff, wanted),
        Format::Jpeg(_) => unreachable!("decoded by our own decoder"),
    }
}

/// Fails if the decoder sees another size than the size that passed the limits.
fn check_same_size(header: &Header, width: usize, height: usize) -> Result<()> {
    if (width, height) == (header.stored.width as usize, header.stored.height as usize) {
        return Ok(());
    }
    Err(corrupt(format!("header and decoder disagree about the size: {width}×{height}")))
}
