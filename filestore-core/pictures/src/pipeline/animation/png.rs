//! The frames of an APNG (W3C PNG third edition, section 11.3.4.3).

use std::io::{BufRead, Seek};
use std::time::Duration;

use png::{
    BlendOp, DecodingError, DisposeOp, FrameControl, InterlaceInfo, Reader, expand_interlaced_row,
};

use super::canvas::{Blend, Canvas, Disposal};
use super::frames::{Frames, to_grey};
use crate::Dimensions;
use crate::error::{Error, Result, corrupt};
use crate::geometry::Rectangle;
use crate::pipeline::color::Profile;
use crate::pipeline::decode;
use crate::pipeline::header::{Header, PngHeader};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};

/// The first pixel of each pass of an interlaced picture, and the distance to the next pixel, across and down
/// (section 8.1).
const PASSES: [((u32, u32), (u32, u32)); 7] = [
    ((0, 8), (0, 8)),
    ((4, 8), (0, 8)),
    ((0, 4), (4, 8)),
    ((2, 4), (0, 4)),
    ((0, 2), (2, 4)),
    ((1, 2), (0, 2)),
    ((0, 1), (1, 2)),
];

/// An APNG as a sequence of frames.
pub(super) struct PngFrames<R: BufRead + Seek> {
    reader: Reader<R>,
    /// Memory for the pixels of any frame.
    frame: Pixels,
    /// The current row, as RGBA for the canvas.
    row: Vec<u8>,
    is_first: bool,
}

/// Opens the frames of `image`.
pub(super) fn open<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<PngFrames<impl BufRead + Seek + use<'a>>> {
    let (reader, frame) = decode::open_png(image, header, png)?;
    Ok(PngFrames { reader, frame, row: Vec::new(), is_first: true })
}

/// Draws the first frame of an animation whose default picture is hidden, as pixels of the canvas: greys if
/// the file stores those. The rows that are missing in a cut or damaged file are transparent. `None` if the
/// default picture is visible. Fails if no row of the frame arrived.
pub(crate) fn first_frame(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Option<(Pixels, Option<Profile>)>> {
    let mut frames = open(image, header, png)?;
    if !decode::hides_default_png(png, frames.reader.info()) {
        return Ok(None);
    }

    let mut canvas = Canvas::new(header.stored);
    frames.draw_what_came(&mut canvas)?;
    let mut pixels = canvas.into_pixels();
    if frames.is_grey() {
        pixels = to_grey(pixels);
    }
    Ok(Some((pixels, frames.profile())))
}

impl<R: BufRead + Seek> PngFrames<R> {
    /// Moves to the next frame. The default picture is a frame if a frame control announces it.
    fn next(&mut self) -> Result<FrameControl> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if is_first && let Some(control) = self.reader.info().frame_control {
            return Ok(control);
        }
        self.reader.next_frame_info().copied().map_err(broken)
    }

    /// Reads the frame's pixels to the start of `frame`. The call reads no data behind these pixels, because
    /// a file can end there.
    fn read(&mut self, size: Dimensions) -> Result<()> {
        let Self { reader, frame, .. } = self;
        let channels = frame.layout.channels();
        let bits = u8::try_from(8 * channels).expect("at most four channels");
        let stride = size.width as usize * channels;
        let is_interlaced = reader.info().interlaced;
        let rows = if is_interlaced { interlaced_rows(size) } else { size.height as usize };

        for at in 0..rows {
            let row = reader.next_interlaced_row().map_err(broken)?;
            let row = row.ok_or_else(|| corrupt("a row is missing"))?;
            match row.interlace() {
                InterlaceInfo::Null(_) => {
                    frame.data[at * stride..][..stride].copy_from_slice(row.data());
                }
                InterlaceInfo::Adam7(pass) => {
                    expand_interlaced_row(&mut frame.data, stride, row.data(), pass, bits);
                }
            }
        }
        Ok(())
    }

    /// Draws the rows of the next frame that arrived. Fails if no row arrived.
    fn draw_what_came(&mut self, canvas: &mut Canvas) -> Result<()> {
        let FrameControl { width, height, x_offset: left, y_offset: top, .. } = self.next()?;
        // The rows of a frame are side by side in the memory for the canvas.
        (self.frame.width, self.frame.height) = (width, height);
        let arrived = decode::png_rows(&mut self.reader, &mut self.frame);
        if arrived == 0 {
            return Err(corrupt("no row of the first frame arrived"));
        }

        canvas.begin(Rectangle { left, top, width, height }, Disposal::Keep);
        self.draw(Dimensions { width, height: arrived }, Blend::Replace, canvas);
        Ok(())
    }

    fn draw(&mut self, size: Dimensions, blend: Blend, canvas: &mut Canvas) {
        let Self { frame, row, .. } = self;
        let stride = size.width as usize * frame.layout.channels();
        for (y, pixels) in (0..size.height).zip(frame.data.chunks_exact(stride)) {
            to_rgba(frame.layout, pixels, row);
            canvas.draw(y, row, blend);
        }
    }
}

impl<R: BufRead + Seek> Frames for PngFrames<R> {
    fn draw_next(&mut self, canvas: &mut Canvas) -> Result<Option<Duration>> {
        let control = self.next()?;
        let FrameControl { width, height, x_offset: left, y_offset: top, .. } = control;
        let size = Dimensions { width, height };
        self.read(size)?;

        let disposal = match control.dispose_op {
            DisposeOp::None => Disposal::Keep,
            DisposeOp::Background => Disposal::Clear,
            // Before the first frame the canvas is transparent, so that this clears it, as it must.
            DisposeOp::Previous => Disposal::Restore,
        };
        let blend = match control.blend_op {
            BlendOp::Source => Blend::Replace,
            BlendOp::Over => Blend::Over,
        };
        canvas.begin(Rectangle { left, top, width, height }, disposal);
        self.draw(size, blend, canvas);
        Ok(Some(delay(&control)))
    }

    fn profile(&self) -> Option<Profile> {
        decode::png_profile(self.reader.info())
    }

    fn is_grey(&self) -> bool {
        matches!(self.frame.layout, Layout::Grey | Layout::GreyAlpha)
    }
}

/// Returns the duration of a frame: a fraction of seconds. A denominator of 0 means 100.
fn delay(control: &FrameControl) -> Duration {
    let parts = if control.delay_den == 0 { 100 } else { control.delay_den };
    Duration::from_secs(control.delay_num.into()) / u32::from(parts)
}

/// Counts the stored rows of an interlaced picture.
fn interlaced_rows(size: Dimensions) -> usize {
    let shown = PASSES.iter().filter(|((first, _), _)| *first < size.width);
    let rows = shown.map(|(_, (first, step))| size.height.saturating_sub(*first).div_ceil(*step));
    rows.map(|rows| rows as usize).sum()
}

/// Writes a row of pixels as RGBA.
fn to_rgba(layout: Layout, pixels: &[u8], row: &mut Vec<u8>) {
    row.clear();
    match layout {
        Layout::Grey => row.extend(pixels.iter().flat_map(|grey| [*grey, *grey, *grey, 255])),
        Layout::GreyAlpha => {
            let pixels = pixels.as_chunks().0;
            row.extend(pixels.iter().flat_map(|[grey, alpha]| [*grey, *grey, *grey, *alpha]));
        }
        Layout::Rgb => {
            let pixels = pixels.as_chunks().0;
            row.extend(pixels.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]));
        }
        Layout::Rgba | Layout::Inks(_) => row.extend_from_slice(pixels),
    }
}

fn broken(error: DecodingError) -> Error {
    corrupt(error)
}
