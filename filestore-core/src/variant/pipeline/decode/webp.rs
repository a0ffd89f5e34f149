//! WebP with image-webp, which is pure Rust: untrusted bytes do not reach libwebp.

use image_webp::{DecodingError, WebPDecoder};

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::header::Header;
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::unsupported;
use crate::variant::pixels::{Layout, Pixels};

pub(super) fn decode(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let mut decoder = WebPDecoder::new(image.reader()).map_err(|error| explain(image, error))?;
    let (width, height) = decoder.dimensions();
    check_same_size(header, width as usize, height as usize)?;
    // The limit covers metadata only; the header has bounded the pictures.
    decoder.set_memory_limit(MAX_PROFILE_BYTES);
    let profile = decoder.icc_profile().unwrap_or_default();

    let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let mut data = vec![0; width as usize * height as usize * layout.channels()];
    decoder.read_image(&mut data).map_err(|error| explain(image, error))?;
    Ok(Decoded::whole(Pixels { layout, width, height, data }, profile))
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::UnsupportedFeature(_) => {
            image.outside_failure().unwrap_or_else(|| unsupported("WebP"))
        }
        other => image.explain(other),
    }
}
