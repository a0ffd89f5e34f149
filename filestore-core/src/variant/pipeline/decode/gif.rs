//! GIF with the gif crate: the first frame, on a transparent screen.
//!
//! Called directly, not through `image`, for the sake of files that end early: what came of the
//! frame is shown.

use std::num::NonZeroU64;
use std::ops::Range;

use gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, usual_or};
use crate::domain::error::{Error, Result};
use crate::variant::geometry::Geometry;
use crate::variant::pipeline::budget::decode_bytes;
use crate::variant::pipeline::header::Header;
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, over_memory};
use crate::variant::pixels::{Layout, Pixels};

/// Bytes of a pixel: the decoder looks colours up.
const CHANNELS: usize = 4;

/// The most bytes of a file's XMP, or of its profile: beyond those that programs write.
const METADATA_BYTES: NonZeroU64 = NonZeroU64::new(2 * MAX_PROFILE_BYTES as u64).expect("not 0");

/// The first row of each pass of an interlaced frame, and the distance of the next (GIF89a,
/// appendix E).
pub(crate) const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];

mod indexed;

type Reader<R> = gif::Decoder<R>;

/// Returns the options of a decoder whose frames are read row by row. Pixels are the caller's to bound; what the
/// decoder keeps is XMP and a colour profile, which a file may make as long as itself.
pub(crate) fn options() -> DecodeOptions {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    options.set_memory_limit(MemoryLimit::Bytes(METADATA_BYTES));
    // Browsers pass over them.
    options.allow_unknown_blocks(true);
    options
}

/// Decodes the picture as [`decode`](super::decode) says.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let usual = indexed::decode(image, header, wanted);
    usual_or(image, usual, || decode_whole(image, header))
}

/// Decodes a frame to pixels, or what came of one that is cut or damaged.
fn decode_whole(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let mut reader = options().read_info(image.reader()).map_err(|error| explain(image, error))?;

    let frame = reader.next_frame_info().map_err(|error| explain(image, error))?;
    let frame = frame.ok_or_else(|| corrupt("no frame"))?;
    let (width, height) = (usize::from(frame.width), usize::from(frame.height));
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let is_interlaced = frame.interlaced;
    let pixels = header.stored.width as usize * header.stored.height as usize;
    if ((pixels + width * height) * CHANNELS) as u64 > decode_bytes(header, image.len()) {
        return Err(over_memory());
    }

    let mut data = vec![0; width * height * CHANNELS];
    let came = if is_interlaced {
        interlaced(&mut reader, &mut data, width * CHANNELS)
    } else {
        plain(&mut reader, &mut data)
    };
    came.or_else(|error| {
        if data.iter().all(|byte| *byte == 0) { Err(explain(image, error)) } else { Ok(()) }
    })?;

    // A screen of no size is as large as its frame.
    let (left, top) = if reader.width() == 0 || reader.height() == 0 {
        (0, 0)
    } else {
        check_same_size(header, reader.width().into(), reader.height().into())?;
        (left, top)
    };
    let pixels = place(header, data, (left, width), (top, height));
    Ok(Decoded::whole(pixels, reader.icc_profile().map(<[u8]>::to_vec)))
}

/// Reads the rows of a frame from top to bottom. On an error, `data` has what came.
fn plain<R: std::io::Read>(reader: &mut Reader<R>, data: &mut [u8]) -> Result<(), DecodingError> {
    if data.is_empty() || reader.fill_buffer(data)? { Ok(()) } else { Err(ended()) }
}

/// Reads the rows of a frame in four passes. On an error, rows that did not come repeat the one above
/// them, as browsers show a frame that is still being sent.
fn interlaced<R: std::io::Read>(
    reader: &mut Reader<R>,
    data: &mut [u8],
    row: usize,
) -> Result<(), DecodingError> {
    let height = data.len() / row.max(1);
    let mut came = vec![false; height];

    let order = PASSES.iter().flat_map(|(first, step)| (*first..height).step_by(*step));
    for at in order {
        let outcome = reader.fill_buffer(&mut data[rows(at, row)]);
        if let Ok(true) = outcome {
            came[at] = true;
            continue;
        }

        for missing in (1..height).filter(|at| !came[*at]) {
            data.copy_within(rows(missing - 1, row), missing * row);
        }
        return Err(outcome.err().unwrap_or_else(ended));
    }
    Ok(())
}

/// Returns the bytes of row `at`.
fn rows(at: usize, row: usize) -> Range<usize> {
    at * row..(at + 1) * row
}

fn ended() -> DecodingError {
    DecodingError::UnexpectedEof
}

/// Puts a frame in its place on the screen; what is outside is left out.
fn place(
    header: &Header,
    frame: Vec<u8>,
    (left, width): (usize, usize),
    (top, height): (usize, usize),
) -> Pixels {
    let (across, down) = (header.stored.width as usize, header.stored.height as usize);
    let pixels = |data| Pixels {
        layout: Layout::Rgba,
        width: header.stored.width,
        height: header.stored.height,
        data,
    };
    if (left, top, width, height) == (0, 0, across, down) {
        return pixels(frame);
    }

    let mut data = vec![0; across * down * CHANNELS];
    let kept = width.min(across.saturating_sub(left)) * CHANNELS;
    if kept > 0 {
        let to = data.chunks_exact_mut(across * CHANNELS).skip(top);
        for (to, from) in to.zip(frame.chunks_exact(width * CHANNELS)) {
            to[left * CHANNELS..][..kept].copy_from_slice(&from[..kept]);
        }
    }
    pixels(data)
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::OutOfMemory | DecodingError::MemoryLimit => {
            image.outside_failure().unwrap_or_else(over_memory)
        }
        other => image.explain(other),
    }
}
