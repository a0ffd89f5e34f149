//! A 16-bit PNG with samples that are not sRGB. The samples are converted before they are reduced to 8 bits.
//! Otherwise, linear light would have no shades in the dark.

use std::io::{BufRead, Seek};

use png::{BitDepth, Info, Reader, Transformations};

use super::super::Decoded;
use super::super::rows::Rows;
use super::{explain, profile, start_with};
use crate::error::{Result, corrupt};
use crate::geometry::Geometry;
use crate::pipeline::color::{Defined, Profile, Transfer};
use crate::pipeline::header::{Header, PngHeader};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::Layout;

/// Returns the colours of a file that this module decodes. `None` for other files.
pub(super) fn colors(info: &Info<'_>) -> Option<Defined> {
    if info.bit_depth != BitDepth::Sixteen || info.interlaced {
        return None;
    }
    match profile(info) {
        Some(Profile::Defined(defined)) if defined.transfer.is_of_a_page() => Some(defined),
        _ => None,
    }
}

/// Decodes the rows up to the last visible row.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
    wanted: &[Geometry],
    colors: Defined,
) -> Result<Decoded> {
    let (mut reader, layout) = start_with(image, header, png, Transformations::EXPAND)?;
    let samples = colors.transfer.samples_of_srgb();
    let mut rows = Rows::new(header.stored, layout, wanted);
    let mut wide = vec![0; 2 * rows.row_bytes()];
    let mut row = Vec::with_capacity(rows.row_bytes());
    while !rows.is_complete() {
        read(image, &mut reader, &mut wide)?;
        narrow(&wide, layout, &samples, &mut row);
        rows.push(&row);
    }
    let srgb = Defined { transfer: Transfer::Srgb, ..colors };
    Decoded::of_rows(rows, Some(Profile::Defined(srgb)))
}

fn read<R: BufRead + Seek>(
    image: &ImageFile<'_>,
    reader: &mut Reader<R>,
    row: &mut [u8],
) -> Result<()> {
    let read = reader.read_row(row).map_err(|error| explain(image, error))?;
    read.map(drop).ok_or_else(|| corrupt("a row is missing"))
}

/// Converts each 16-bit sample to 8 bits. Alpha is not light, so it is only rounded.
fn narrow(wide: &[u8], layout: Layout, samples: &[u8], row: &mut Vec<u8>) {
    row.clear();
    let channels = layout.channels();
    let colors = if layout.has_alpha() { channels - 1 } else { channels };
    for pixel in wide.chunks_exact(2 * channels) {
        for (channel, bytes) in pixel.as_chunks::<2>().0.iter().enumerate() {
            let sample = u16::from_be_bytes(*bytes);
            row.push(if channel < colors { samples[usize::from(sample)] } else { bytes[0] });
        }
    }
}
