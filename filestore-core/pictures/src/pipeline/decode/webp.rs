//! WebP: our own decoder (`webp`) decodes stills, and image-webp decodes animations. Both are safe Rust, so
//! untrusted bytes do not reach libwebp.

use std::ops::ControlFlow;

use image_webp::{DecodingError, WebPDecoder};

use super::rows::Rows;
use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, icc};
use crate::error::{Error, Result, corrupt, unsupported};
use crate::geometry::Geometry;
use crate::pipeline::color::Profile;
use crate::pipeline::header::Header;
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};
use crate::webp::{Failure, WebP};

/// Decodes a lossy still, see [`decode`](super::decode).
pub(super) fn decode_lossy(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let file = image.read_all()?;
    let webp = WebP::survey(&file);
    let still = webp
        .decode(header.stored, wanted, &|| image.is_late())
        .map_err(|failure| explain_own(image, failure))?;
    Ok(Decoded { picture: still.picture, profile: profile(&webp), arrived: still.arrived })
}

/// Decodes a lossless still, see [`decode`](super::decode). Rows are reduced while they arrive.
pub(super) fn decode_lossless(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let file = image.read_all()?;
    let webp = WebP::survey(&file);
    let explain = |failure| explain_own(image, failure);
    let lossless = webp.lossless(header.stored).map_err(explain)?;
    let layout = if lossless.has_alpha { Layout::Rgba } else { Layout::Rgb };
    let mut rows = Rows::new(header.stored, layout, wanted);
    let mut row = Vec::with_capacity(rows.row_bytes());

    let arrived = lossless.rows(|pixels| {
        if rows.wants_next() {
            row.clear();
            write(pixels, layout, &mut row);
            rows.push(&row);
        } else {
            rows.skip();
        }
        if rows.is_complete() || image.is_late() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let arrived = arrived.map_err(explain)?;
    image.check()?;

    let is_cut = !rows.is_complete();
    if row.is_empty() {
        row.resize(rows.row_bytes(), 0);
    }
    while !rows.is_complete() {
        rows.push(&row);
    }
    let decoded = Decoded::of_rows(rows, profile(&webp))?;
    Ok(Decoded { arrived: is_cut.then_some(0..arrived), ..decoded })
}

/// Appends pixels with alpha in the highest byte, then red, green and blue.
fn write(pixels: &[u32], layout: Layout, row: &mut Vec<u8>) {
    if layout.has_alpha() {
        row.extend(pixels.iter().flat_map(|pixel| pixel.rotate_left(8).to_be_bytes()));
    } else {
        row.extend(pixels.iter().flat_map(|pixel| {
            let [_, red, green, blue] = pixel.to_be_bytes();
            [red, green, blue]
        }));
    }
}

fn profile(webp: &WebP<'_>) -> Option<Profile> {
    let profile = webp.profile().filter(|profile| profile.len() <= MAX_PROFILE_BYTES);
    icc(profile.map(<[u8]>::to_vec))
}

fn explain_own(image: &ImageFile<'_>, failure: Failure) -> Error {
    match failure {
        Failure::Late => image.explain("deadline"),
        Failure::Corrupt(why) => corrupt(why),
    }
}

/// Decodes the first frame of an animation.
pub(super) fn decode_whole(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let mut decoder = WebPDecoder::new(image.reader()).map_err(|error| explain(image, error))?;
    let (width, height) = decoder.dimensions();
    check_same_size(header, width as usize, height as usize)?;
    // The limit covers only metadata, because the header has limited the pictures.
    decoder.set_memory_limit(MAX_PROFILE_BYTES);
    let profile = decoder.icc_profile().unwrap_or_default();

    let layout = if decoder.has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let mut data = vec![0; width as usize * height as usize * layout.channels()];
    decoder.read_image(&mut data).map_err(|error| explain(image, error))?;
    Ok(Decoded::whole(Pixels { layout, width, height, data }, icc(profile)))
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::UnsupportedFeature(_) => {
            image.outside_failure().unwrap_or_else(|| unsupported("WebP"))
        }
        other => image.explain(other),
    }
}
