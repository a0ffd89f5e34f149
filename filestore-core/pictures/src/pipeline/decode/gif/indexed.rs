//! Decodes a complete GIF frame. All indexes are decoded at once, one byte for each pixel. Rows of colours
//! are then made from the indexes and reduced one by one.

use std::num::NonZeroU64;

use gif::{Frame, MemoryLimit};

use super::super::rows::Rows;
use super::super::{Decoded, icc};
use super::{Colors, METADATA_BYTES, PASSES, colors, options, reader};
use crate::geometry::Geometry;
use crate::lzw::{self, Dialect, Strings};
use crate::pipeline::budget::decode_bytes;
use crate::pipeline::header::Header;
use crate::pipeline::image_file::ImageFile;
use crate::pixels::Layout;

/// Decodes the picture as [`decode`](super::super::decode) says; `None` for a frame that did not come
/// whole, and for whatever else is unusual.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Option<Decoded> {
    if !frame_fits(image, header)? {
        return None;
    }

    let mut options = options();
    options.skip_frame_decoding(true);
    // Compressed, a pixel has twelve bits at most.
    let pixels = u64::from(header.stored.width) * u64::from(header.stored.height);
    let most = METADATA_BYTES.get().max(2 * pixels).min(METADATA_BYTES.get() + image.len());
    options.set_memory_limit(MemoryLimit::Bytes(NonZeroU64::new(most)?));

    let mut reader = options.read_info(reader(image).ok()?).ok()?;
    let shared = reader.global_palette().map(<[u8]>::to_vec);
    let frame = reader.read_next_frame().ok()??;
    let count = usize::from(frame.width) * usize::from(frame.height);
    let (literal_bits, data) = frame.buffer.split_first()?;
    let indexes = lzw::decode(data, Dialect::gif(*literal_bits)?, count, &mut Strings::new());
    if indexes.len() < count {
        return None;
    }
    let palette = frame.palette.as_deref().or(shared.as_deref()).unwrap_or_default();
    let colors = colors(frame.transparent, palette);
    let rows = rows(image, header, wanted, (frame, &indexes, &colors))?;
    Decoded::of_rows(rows, icc(reader.icc_profile().map(<[u8]>::to_vec))).ok()
}

/// Tells whether memory is meant for the first frame; `None` if there is none. To be asked first: the crate
/// makes room for the size that a frame says it has before a byte of it arrived.
fn frame_fits(image: &ImageFile<'_>, header: &Header) -> Option<bool> {
    let mut reader = options().read_info(reader(image).ok()?).ok()?;
    let frame = reader.next_frame_info().ok()??;
    let pixels = u64::from(frame.width) * u64::from(frame.height);
    Some(frame.width > 0 && 4 * pixels <= decode_bytes(header, image.len()) / 2)
}

/// Makes the rows of the screen, which is transparent around the frame; `None` past the deadline.
fn rows(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
    (frame, indexes, colors): (&Frame<'_>, &[u8], &Colors),
) -> Option<Rows> {
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (width, height) = (usize::from(frame.width), usize::from(frame.height));
    let (across, down) = (header.stored.width as usize, header.stored.height as usize);

    let covers = (left, top) == (0, 0) && width >= across && height >= down;
    let is_opaque = covers
        && (colors.iter().all(|color| color[3] == 255)
            || indexes.iter().all(|index| colors[usize::from(*index)][3] == 255));
    let layout = if is_opaque { Layout::Rgb } else { Layout::Rgba };

    let stored_at = frame.interlaced.then(|| order(height));
    let mut rows = Rows::new(header.stored, layout, wanted);
    let mut row = vec![0; rows.row_bytes()];
    for y in 0..down {
        if rows.is_complete() || (y % 64 == 0 && image.is_late()) {
            break;
        }
        if !rows.wants_next() {
            rows.skip();
            continue;
        }

        row.fill(0);
        if let Some(within) = y.checked_sub(top).filter(|within| *within < height) {
            let at = stored_at.as_ref().map_or(within, |stored_at| stored_at[within]);
            let line = &indexes[at * width..(at + 1) * width];
            let first = left.min(across) * layout.channels();
            paint(layout, &mut row[first..], line, colors);
        }
        rows.push(&row);
    }
    rows.is_complete().then_some(rows)
}

fn paint(layout: Layout, row: &mut [u8], line: &[u8], colors: &Colors) {
    if layout == Layout::Rgb {
        for (pixel, index) in row.as_chunks_mut().0.iter_mut().zip(line) {
            let [red, green, blue, _] = colors[usize::from(*index)];
            *pixel = [red, green, blue];
        }
    } else {
        for (pixel, index) in row.as_chunks_mut().0.iter_mut().zip(line) {
            *pixel = colors[usize::from(*index)];
        }
    }
}

/// Returns the stored row of each shown row of an interlaced frame.
fn order(height: usize) -> Vec<usize> {
    let mut stored_at = vec![0; height];
    let shown = PASSES.iter().flat_map(|(first, step)| (*first..height).step_by(*step));
    for (at, shown) in shown.enumerate() {
        stored_at[shown] = at;
    }
    stored_at
}
