//! WebP with image-webp, which is pure Rust: untrusted bytes do not reach libwebp.

use image_webp::{DecodingError, WebPDecoder};

use super::{Decoded, Layout, MAX_PROFILE_BYTES, Pixels, check_same_size, unsupported};
use crate::domain::error::{Error, Result};
use crate::variant::header::Header;
use crate::variant::source::Source;

pub(super) fn decode(source: &Source<'_>, header: &Header) -> Result<Decoded> {
    let mut decoder = WebPDecoder::new(source.reader()).map_err(|error| explain(source, error))?;
    let (width, height) = decoder.dimensions();
    check_same_size(header, width as usize, height as usize)?;
    // The limit covers metadata only; the header has bounded the pictures.
    decoder.set_memory_limit(MAX_PROFILE_BYTES);
    let profile = decoder.icc_profile().unwrap_or_default();

    let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let mut data = vec![0; width as usize * height as usize * layout.channels()];
    decoder.read_image(&mut data).map_err(|error| explain(source, error))?;
    Ok(Decoded::whole(Pixels { layout, width, height, data }, profile))
}

fn explain(source: &Source<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::UnsupportedFeature(_) => {
            source.outside_failure().unwrap_or_else(|| unsupported("WebP"))
        }
        other => source.explain(other),
    }
}
