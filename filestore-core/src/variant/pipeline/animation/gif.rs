//! The frames of a GIF, row by row: only one row of a frame is held.

use std::io::Read;
use std::time::Duration;

use gif::{Decoder, DecodingError, DisposalMethod};

use super::canvas::{Blend, Canvas, Disposal};
use super::frames::Frames;
use crate::domain::error::{Error, Result};
use crate::variant::geometry::Rectangle;
use crate::variant::pipeline::decode::{GIF_PASSES, gif_options};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::corrupt;

/// Bytes of a pixel: the decoder looks colours up.
const CHANNELS: usize = 4;
/// The unit of GIF's delays, in milliseconds.
const CENTISECOND: u64 = 10;

/// A GIF whose frames are read one after another.
pub(super) struct GifFrames<R: Read> {
    reader: Decoder<R>,
    /// False for a screen of no size, which is as large as the first frame.
    has_screen: bool,
    row: Vec<u8>,
}

/// One frame, before its pixels.
struct Frame {
    place: Rectangle,
    disposal: Disposal,
    delay: Duration,
    interlaced: bool,
}

/// Opens the frames of `image`.
pub(super) fn open<'a>(image: &'a ImageFile<'_>) -> Result<GifFrames<impl Read + use<'a>>> {
    let reader = gif_options().read_info(image.reader()).map_err(broken)?;

    let has_screen = reader.width() > 0 && reader.height() > 0;
    Ok(GifFrames { reader, has_screen, row: Vec::new() })
}

impl<R: Read> GifFrames<R> {
    fn next(&mut self) -> Result<Option<Frame>> {
        let Some(frame) = self.reader.next_frame_info().map_err(broken)? else { return Ok(None) };
        let (left, top) = if self.has_screen { (frame.left, frame.top) } else { (0, 0) };

        Ok(Some(Frame {
            place: Rectangle {
                left: left.into(),
                top: top.into(),
                width: frame.width.into(),
                height: frame.height.into(),
            },
            disposal: match frame.dispose {
                DisposalMethod::Any | DisposalMethod::Keep => Disposal::Keep,
                DisposalMethod::Background => Disposal::Clear,
                DisposalMethod::Previous => Disposal::Restore,
            },
            delay: Duration::from_millis(CENTISECOND * u64::from(frame.delay)),
            interlaced: frame.interlaced,
        }))
    }

    /// Reads the frame's rows. One whose data ends before its pixels do is whole: the others are
    /// transparent.
    fn draw(&mut self, frame: &Frame, canvas: &mut Canvas) -> Result<()> {
        let Rectangle { width, height, .. } = frame.place;
        if width == 0 {
            return Ok(());
        }

        self.row.resize(CHANNELS * width as usize, 0);
        for y in order(height, frame.interlaced) {
            // A colour that no table has is not written.
            self.row.fill(0);
            let is_full = self.reader.fill_buffer(&mut self.row).map_err(broken)?;
            canvas.draw(y, &self.row, Blend::Over);
            if !is_full {
                break;
            }
        }
        Ok(())
    }
}

impl<R: Read> Frames for GifFrames<R> {
    fn draw_next(&mut self, canvas: &mut Canvas) -> Result<Option<Duration>> {
        let Some(frame) = self.next()? else { return Ok(None) };
        canvas.begin(frame.place, frame.disposal);
        self.draw(&frame, canvas)?;
        Ok(Some(frame.delay))
    }

    fn profile(&self) -> Option<&[u8]> {
        self.reader.icc_profile()
    }
}

/// Lists the rows of a frame in the order in which they are stored.
fn order(height: u32, interlaced: bool) -> impl Iterator<Item = u32> {
    let whole = &[(0, 1)][..];
    let passes = if interlaced { &GIF_PASSES[..] } else { whole };
    passes.iter().flat_map(move |(first, step)| {
        let first = u32::try_from(*first).expect("a row of the first eight");
        (first..height).step_by(*step)
    })
}

fn broken(error: DecodingError) -> Error {
    corrupt(error)
}
