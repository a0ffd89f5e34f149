//! GIF, decoded by the gif crate: the first frame, on a transparent screen.
//!
//! The crate is called without `image`, so that a file that ends early still shows the rows that arrived.

use std::io::{self, Cursor, Read};
use std::num::NonZeroU64;

use gif::{ColorOutput, DecodeOptions, DecodingError, Frame, MemoryLimit};

use super::{Decoded, MAX_PROFILE_BYTES, icc, usual_or};
use crate::error::{Error, Result, corrupt, over_memory};
use crate::geometry::Geometry;
use crate::pipeline::header::Header;
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};

/// Bytes for each pixel.
const CHANNELS: usize = 4;

/// The maximum size of the XMP or the profile in a file, in bytes. Programs write less.
const METADATA_BYTES: NonZeroU64 = NonZeroU64::new(2 * MAX_PROFILE_BYTES as u64).expect("not 0");

/// The first row of each pass of an interlaced frame, and the distance of the next (GIF89a,
/// appendix E).
pub(crate) const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];

/// The number of pixels in one read. A small number keeps more pixels of a frame that ends early.
const AT_ONCE: usize = 64;

mod indexed;

type Reader<R> = gif::Decoder<R>;

/// Colours by index, with their alpha.
pub(crate) type Colors = [[u8; CHANNELS]; 256];

/// Returns a frame's colours. As in browsers, an index without an entry is opaque black, and so is every
/// index of a file without a table.
pub(crate) fn colors(transparent: Option<u8>, palette: &[u8]) -> Colors {
    let mut colors = [[0, 0, 0, 255]; 256];
    for (color, [red, green, blue]) in colors.iter_mut().zip(palette.as_chunks().0) {
        *color = [*red, *green, *blue, 255];
    }
    if let Some(transparent) = transparent {
        colors[usize::from(transparent)] = [0; CHANNELS];
    }
    colors
}

/// Returns the colours of the frame that `reader` has read.
pub(crate) fn colors_of<R: Read>(reader: &Reader<R>, frame: &Frame<'_>) -> Colors {
    let palette = frame.palette.as_deref().or(reader.global_palette());
    colors(frame.transparent, palette.unwrap_or_default())
}

/// Returns the options of a decoder that reads frames row by row. The caller limits the pixels. The decoder
/// keeps XMP and a colour profile, and a file can make these as long as the file itself.
pub(crate) fn options() -> DecodeOptions {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(METADATA_BYTES));
    // Browsers skip them.
    options.allow_unknown_blocks(true);
    options
}

/// Opens the file. A file without a shared colour table gets a table with two black colours, because the
/// crate refuses frames without any table.
pub(crate) fn reader<'a>(image: &'a ImageFile<'_>) -> io::Result<impl Read + use<'a>> {
    const SCREEN_BYTES: usize = 13;
    const FLAGS_AT: usize = 10;
    const HAS_TABLE: u8 = 0x80;
    const COLORS: u8 = 0x07;

    let mut file = image.reader();
    let mut start = Vec::with_capacity(SCREEN_BYTES + 6);
    file.by_ref().take(SCREEN_BYTES as u64).read_to_end(&mut start)?;
    if let Some(flags) = start.get_mut(FLAGS_AT).filter(|flags| **flags & HAS_TABLE == 0) {
        *flags = HAS_TABLE | (*flags & !COLORS);
        start.resize(SCREEN_BYTES + 6, 0);
    }
    Ok(Cursor::new(start).chain(file))
}

/// Reads the next indexes of a frame. Returns the number of indexes that arrived. Also returns false if the
/// data of the frame ends before the row is full.
pub(crate) fn fill<R: Read>(
    reader: &mut Reader<R>,
    row: &mut [u8],
) -> (usize, Result<bool, DecodingError>) {
    let mut arrived = 0;
    for part in row.chunks_mut(AT_ONCE) {
        let outcome = reader.fill_buffer(part);
        if !matches!(outcome, Ok(true)) {
            return (arrived, outcome);
        }
        arrived += part.len();
    }
    (arrived, Ok(true))
}

/// Decodes the picture, see [`decode`](super::decode).
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let usual = indexed::decode(image, header, wanted);
    usual_or(image, usual, || decode_whole(image, header))
}

/// Decodes a frame to pixels. For a cut or damaged frame, decodes the part that arrived.
fn decode_whole(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let file = reader(image).map_err(|error| image.explain(error))?;
    let mut reader = options().read_info(file).map_err(|error| explain(image, error))?;
    let frame = reader.next_frame_info().map_err(|error| explain(image, error))?;
    let frame = frame.ok_or_else(|| corrupt("no frame"))?.clone();

    let colors = colors_of(&reader, &frame);
    let mut screen = Screen::new(header, &frame);
    let arrived = if frame.interlaced {
        screen.interlaced(&mut reader, &colors)
    } else {
        screen.plain(&mut reader, &colors)
    };
    arrived.or_else(|error| if screen.shows { Ok(()) } else { Err(explain(image, error)) })?;
    Ok(Decoded::whole(screen.pixels, icc(reader.icc_profile().map(<[u8]>::to_vec))))
}

/// The screen with a frame drawn on it. Parts of the frame outside the screen are left out.
struct Screen {
    pixels: Pixels,
    left: usize,
    top: usize,
    /// The indexes of one row of the frame.
    row: Vec<u8>,
    height: usize,
    /// True if a pixel has arrived.
    shows: bool,
}

impl Screen {
    fn new(header: &Header, frame: &Frame<'_>) -> Self {
        let (width, height) = (header.stored.width, header.stored.height);
        let data = vec![0; width as usize * height as usize * CHANNELS];
        Self {
            pixels: Pixels { layout: Layout::Rgba, width, height, data },
            left: frame.left.into(),
            top: frame.top.into(),
            row: vec![0; frame.width.into()],
            // The crate cannot read a row without pixels.
            height: if frame.width == 0 { 0 } else { frame.height.into() },
            shows: false,
        }
    }

    /// Reads the rows of the frame from top to bottom. If an error occurs, draws the pixels before it.
    fn plain<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        colors: &Colors,
    ) -> Result<(), DecodingError> {
        (0..self.height).try_for_each(|y| self.read(reader, colors, y))
    }

    /// Reads the rows of the frame in four passes. After an error, missing rows repeat the row above, as in
    /// browsers during a transfer.
    fn interlaced<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        colors: &Colors,
    ) -> Result<(), DecodingError> {
        let height = self.height;
        let mut arrived = vec![false; height];
        let order = PASSES.iter().flat_map(|(first, step)| (*first..height).step_by(*step));
        for y in order {
            let outcome = self.read(reader, colors, y);
            if outcome.is_ok() {
                arrived[y] = true;
                continue;
            }
            for missing in (1..height).filter(|y| !arrived[*y]) {
                self.repeat(missing);
            }
            return outcome;
        }
        Ok(())
    }

    /// Reads row `y` of the frame. If an error occurs, draws the pixels of the row before it.
    fn read<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        colors: &Colors,
        y: usize,
    ) -> Result<(), DecodingError> {
        let (arrived, outcome) = fill(reader, &mut self.row);
        self.shows |= arrived > 0;
        let line = self.line(y);
        let to = self.pixels.data[line].as_chunks_mut::<CHANNELS>().0;
        for (pixel, index) in to.iter_mut().zip(&self.row[..arrived]) {
            *pixel = colors[usize::from(*index)];
        }
        if outcome? { Ok(()) } else { Err(DecodingError::UnexpectedEof) }
    }

    /// Copies the row above row `y` of the frame.
    fn repeat(&mut self, y: usize) {
        let (above, here) = (self.line(y - 1), self.line(y));
        if above.len() == here.len() {
            self.pixels.data.copy_within(above, here.start);
        }
    }

    /// Returns the bytes of the screen that show row `y` of the frame.
    fn line(&self, y: usize) -> std::ops::Range<usize> {
        let (across, down) = (self.pixels.width as usize, self.pixels.height as usize);
        if self.top + y >= down {
            return 0..0;
        }
        let first = (self.top + y) * across;
        let (left, right) = (self.left.min(across), (self.left + self.row.len()).min(across));
        (first + left) * CHANNELS..(first + right) * CHANNELS
    }
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::OutOfMemory | DecodingError::MemoryLimit => {
            image.outside_failure().unwrap_or_else(over_memory)
        }
        other => image.explain(other),
    }
}
