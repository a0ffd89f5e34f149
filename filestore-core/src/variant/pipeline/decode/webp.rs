//! WebP: lossy stills with our own decoder (`variant::webp`), lossless and animated ones with
//! image-webp. Both are safe Rust: untrusted bytes do not reach libwebp.

use image_webp::{DecodingError, WebPDecoder};

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::geometry::Geometry;
use crate::variant::pipeline::header::Header;
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, unsupported};
use crate::variant::pixels::{Layout, Pixels};
use crate::variant::webp::{Failure, WebP};

/// Decodes a lossy still as [`decode`](super::decode) says.
pub(super) fn decode_lossy(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let file = image.read_all()?;
    let webp = WebP::survey(&file);
    let still =
        webp.decode(header.stored, wanted, &|| image.is_late()).map_err(
            |failure| match failure {
                Failure::Late => image.explain("deadline"),
                Failure::Corrupt(why) => corrupt(why),
            },
        )?;

    let profile = webp.profile().filter(|profile| profile.len() <= MAX_PROFILE_BYTES);
    Ok(Decoded { picture: still.picture, profile: profile.map(<[u8]>::to_vec), came: still.came })
}

/// Decodes a lossless still, or the first frame of an animation.
pub(super) fn decode_whole(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
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
