//! PNG with the png crate.
//!
//! Called directly, not through `image`: text chunks are skipped instead of kept, and a colour
//! profile inflates no further than a profile can be.

use png::{ColorType, Decoder, DecodingError, Limits, Transformations};

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::header::{Header, PngHeader};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, over_memory};
use crate::variant::pixels::{Layout, Pixels};

/// The bytes that the decoder may hold besides rows: an inflated profile and the chunk it came in.
const CHUNK_BYTES: usize = 2 * MAX_PROFILE_BYTES;

pub(super) fn decode(image: &ImageFile<'_>, header: &Header, png: PngHeader) -> Result<Decoded> {
    let mut decoder = Decoder::new_with_limits(image.reader(), Limits { bytes: CHUNK_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(png.profile_bytes as usize > MAX_PROFILE_BYTES);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| explain(image, error))?;
    let (width, height) = reader.info().size();
    check_same_size(header, width as usize, height as usize)?;

    let layout = match reader.output_color_type().0 {
        ColorType::Grayscale => Layout::Grey,
        ColorType::GrayscaleAlpha => Layout::GreyAlpha,
        ColorType::Rgb => Layout::Rgb,
        ColorType::Rgba => Layout::Rgba,
        ColorType::Indexed => return Err(corrupt("a palette that cannot be expanded")),
    };
    let mut data = vec![0; width as usize * height as usize * layout.channels()];
    let frame = reader.next_frame(&mut data).map_err(|error| explain(image, error))?;
    // The default picture of an animation must fill the canvas.
    check_same_size(header, frame.width as usize, frame.height as usize)?;

    let profile = reader.info().icc_profile.as_ref().map(|profile| profile.to_vec());
    Ok(Decoded::whole(Pixels { layout, width, height, data }, profile))
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::LimitsExceeded => image.outside_failure().unwrap_or_else(over_memory),
        other => image.explain(other),
    }
}
