//! The frames of a GIF, read row by row. Memory contains only one row of a frame.

use std::io::Read;
use std::time::Duration;

use gif::{Decoder, DecodingError, DisposalMethod};

use super::canvas::{Blend, Canvas, Disposal};
use super::frames::Frames;
use crate::error::{Error, Result, corrupt};
use crate::geometry::Rectangle;
use crate::pipeline::color::Profile;
use crate::pipeline::decode::{
    GIF_PASSES, GifColors, fill_gif, gif_colors, gif_options, gif_reader, icc,
};
use crate::pipeline::image_file::ImageFile;

/// The unit of GIF's delays, in milliseconds.
const CENTISECOND: u64 = 10;

/// A GIF as a sequence of frames.
pub(super) struct GifFrames<R: Read> {
    reader: Decoder<R>,
    /// The indexes of a row, and their colours.
    indexes: Vec<u8>,
    row: Vec<u8>,
}

/// The description of a frame, without its pixels.
struct Frame {
    place: Rectangle,
    disposal: Disposal,
    delay: Duration,
    interlaced: bool,
    colors: Box<GifColors>,
}

/// Opens the frames of `image`.
pub(super) fn open<'a>(image: &'a ImageFile<'_>) -> Result<GifFrames<impl Read + use<'a>>> {
    let file = gif_reader(image).map_err(corrupt)?;
    let reader = gif_options().read_info(file).map_err(broken)?;
    Ok(GifFrames { reader, indexes: Vec::new(), row: Vec::new() })
}

impl<R: Read> GifFrames<R> {
    fn next(&mut self) -> Result<Option<Frame>> {
        let Some(frame) = self.reader.next_frame_info().map_err(broken)?.cloned() else {
            return Ok(None);
        };
        Ok(Some(Frame {
            colors: Box::new(gif_colors(&self.reader, &frame)),
            place: Rectangle {
                left: frame.left.into(),
                top: frame.top.into(),
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

    /// Reads the frame's rows. A frame with too little data still counts as whole, and its missing rows are
    /// transparent.
    fn draw(&mut self, frame: &Frame, canvas: &mut Canvas) -> Result<()> {
        let Rectangle { width, height, .. } = frame.place;
        if width == 0 {
            return Ok(());
        }

        self.indexes.resize(width as usize, 0);
        for y in order(height, frame.interlaced) {
            let (arrived, outcome) = fill_gif(&mut self.reader, &mut self.indexes);
            self.row.clear();
            let arrived = self.indexes[..arrived].iter();
            self.row.extend(arrived.flat_map(|index| frame.colors[usize::from(*index)]));
            canvas.draw(y, &self.row, Blend::Over);
            if !outcome.map_err(broken)? {
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

    fn profile(&self) -> Option<Profile> {
        icc(self.reader.icc_profile().map(<[u8]>::to_vec))
    }
}

/// Lists the rows of a frame in storage order.
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
