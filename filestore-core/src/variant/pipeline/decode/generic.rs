//! GIF, BMP and TIFF with `image`, whose decoders keep limits for them.

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::tiff::TiffDecoder;
use image::error::ImageError;
use image::{DynamicImage, ImageDecoder, Limits};

use super::{Decoded, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::budget::decode_bytes;
use crate::variant::pipeline::header::{Format, Header};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{over_memory, unsupported};
use crate::variant::pixels::{Layout, Pixels};

pub(super) fn decode(source: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let decoded = match &header.format {
        Format::Gif => {
            GifDecoder::new(source.reader()).and_then(|decoder| read(decoder, header, source))
        }
        Format::Tiff(_) => {
            TiffDecoder::new(source.reader()).and_then(|decoder| read(decoder, header, source))
        }
        _ => BmpDecoder::new(source.reader()).and_then(|decoder| read(decoder, header, source)),
    };
    let (image, profile) = decoded.map_err(|error| explain(source, header, error))?;
    check_same_size(header, image.width() as usize, image.height() as usize)?;
    Ok(Decoded::whole(to_8_bits(image), profile))
}

fn read(
    mut decoder: impl ImageDecoder,
    header: &Header,
    source: &ImageFile<'_>,
) -> Result<(DynamicImage, Option<Vec<u8>>), ImageError> {
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(header.stored.width);
    limits.max_image_height = Some(header.stored.height);
    limits.max_alloc = Some(decode_bytes(header, source.len()));
    decoder.set_limits(limits)?;
    let profile = decoder.icc_profile().unwrap_or_default();
    DynamicImage::from_decoder(decoder).map(|image| (image, profile))
}

fn to_8_bits(image: DynamicImage) -> Pixels {
    let (width, height) = (image.width(), image.height());
    let (layout, data) = match (image.color().has_color(), image.color().has_alpha()) {
        (false, false) => (Layout::Grey, image.into_luma8().into_raw()),
        (false, true) => (Layout::GreyAlpha, image.into_luma_alpha8().into_raw()),
        (true, false) => (Layout::Rgb, image.into_rgb8().into_raw()),
        (true, true) => (Layout::Rgba, image.into_rgba8().into_raw()),
    };
    Pixels { layout, width, height, data }
}

fn explain(source: &ImageFile<'_>, header: &Header, error: ImageError) -> Error {
    match error {
        ImageError::Limits(_) => source.outside_failure().unwrap_or_else(over_memory),
        ImageError::Unsupported(_) => source.outside_failure().unwrap_or_else(|| {
            unsupported(match header.format {
                Format::Gif => "GIF",
                Format::Tiff(_) => "TIFF",
                _ => "BMP",
            })
        }),
        other => source.explain(other),
    }
}
