//! From a blob to pixels, one module for each decoder.
//!
//! The seam for faster decoders: [`decode`] is told the parts and sizes that are wanted of the
//! picture. A decoder that can hand out a reduced picture, or a part of it, more cheaply than the
//! whole one returns that with its extent. The resize takes its crop in the true extent of the
//! reduced picture, so a scaled decode whose size was rounded up does not shift the result.
//!
//! The decoders are called directly where `image` would hide what matters: four inks as they are
//! stored, text chunks, and the length of a deflated profile. GIF, BMP and TIFF go through `image`.

use super::header::{Format, Header};
use super::image_file::ImageFile;
use super::refusal::corrupt;
use crate::domain::error::Result;
use crate::variant::geometry::Geometry;
use crate::variant::pixels::{Picture, Pixels};

mod jpeg;
mod png;
mod webp;
mod generic;

/// The largest colour profile taken into account, in bytes; real ones end at 3 MiB.
const MAX_PROFILE_BYTES: usize = 4 << 20;

/// A decoded picture, not yet turned upright.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) picture: Picture,
    /// The embedded ICC profile, as found.
    pub(crate) profile: Option<Vec<u8>>,
}

impl Decoded {
    /// Wraps a picture decoded whole. A profile over the limit is left out.
    fn whole(pixels: Pixels, profile: Option<Vec<u8>>) -> Self {
        let profile = profile.filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_PROFILE_BYTES);
        Self { picture: Picture::Whole(pixels), profile }
    }
}

/// Decodes the picture that `header` describes, whose size has passed the limits. `wanted` are the
/// parts and sizes needed of it, in stored axes: one decode serves them all.
pub(crate) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    match &header.format {
        Format::Jpeg(jpeg) => jpeg::decode(image, header, *jpeg, wanted),
        Format::Png(png) => png::decode(image, header, *png),
        Format::WebP(_) => webp::decode(image, header),
        Format::Gif | Format::Bmp | Format::Tiff(_) => generic::decode(image, header),
    }
}

/// Fails unless the decoder sees the size that passed the limits.
fn check_same_size(header: &Header, width: usize, height: usize) -> Result<()> {
    if (width, height) == (header.stored.width as usize, header.stored.height as usize) {
        return Ok(());
    }
    Err(corrupt(format!("header and decoder disagree about the size: {width}×{height}")))
}
