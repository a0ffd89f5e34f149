//! Pixels that are stored as runs (`BI_RLE8`, `BI_RLE4`, and that of OS/2 with 24 bits).

use std::io::{BufRead, Seek, SeekFrom};

use super::{Info, color};
use crate::error::{Result, corrupt};
use crate::pipeline::image_file::ImageFile;

/// The pixels of a run.
pub(super) enum Kind {
    /// Indexes of a byte.
    Bytes(Vec<[u8; 3]>),
    /// Indexes of half a byte: two in turn.
    Halves(Vec<[u8; 3]>),
    /// Blue, green and red.
    Colors,
}

/// Decodes the runs, or those before the damage or the end of the file, and gives the picture to `taken`, row by
/// row from the top: RGBA, until that returns false. Pixels that no run has are transparent, as browsers show
/// them. Fails if the data ends before the first run.
pub(super) fn decode(
    image: &ImageFile<'_>,
    info: &Info,
    kind: &Kind,
    mut taken: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    let mut reader = image.reader();
    reader.seek(SeekFrom::Start(info.pixels_at)).map_err(|error| image.explain(error))?;
    let pixels = info.width * info.height;
    let each = kind.bytes();
    let mut canvas = Canvas {
        samples: vec![0; each * pixels],
        is_drawn: vec![false; pixels],
        each,
        info,
        place: (0, 0),
        shows: false,
    };
    // The end of the data is the end of what arrived.
    let ended = canvas.draw(&mut reader, kind);
    image.check()?;
    if ended.is_none() && !canvas.shows {
        return Err(corrupt("not a run came"));
    }

    let mut row = Vec::with_capacity(4 * info.width);
    let (samples, drawn) = (&canvas.samples, &canvas.is_drawn);
    let rows = samples.chunks(each * info.width).zip(drawn.chunks(info.width));
    for (samples, drawn) in rows {
        row.clear();
        for (sample, is_drawn) in samples.chunks(each).zip(drawn) {
            let [red, green, blue] = kind.color(sample);
            row.extend(if *is_drawn { [red, green, blue, 255] } else { [0; 4] });
        }
        if !taken(&row) {
            break;
        }
    }
    Ok(())
}

impl Kind {
    /// Returns the bytes of a sample.
    fn bytes(&self) -> usize {
        match self {
            Self::Bytes(_) | Self::Halves(_) => 1,
            Self::Colors => 3,
        }
    }

    fn color(&self, sample: &[u8]) -> [u8; 3] {
        match (self, sample) {
            (Self::Bytes(palette) | Self::Halves(palette), [index, ..]) => color(palette, *index),
            (Self::Colors, [blue, green, red]) => [*red, *green, *blue],
            _ => [0; 3],
        }
    }
}

/// The picture that is drawn, and the place of the next pixel, from the first stored row on.
struct Canvas<'a> {
    /// Samples from the top row on, and those that a run has.
    samples: Vec<u8>,
    is_drawn: Vec<bool>,
    each: usize,
    info: &'a Info,
    place: (usize, usize),
    shows: bool,
}

impl Canvas<'_> {
    /// Draws all runs; `None` where the data ends before them.
    fn draw(&mut self, reader: &mut impl BufRead, kind: &Kind) -> Option<()> {
        while self.place.1 < self.info.height {
            match (byte(reader)?, kind) {
                (0, _) => match byte(reader)? {
                    0 => self.place = (0, self.place.1 + 1),
                    1 => return Some(()),
                    2 => {
                        self.place.0 += usize::from(byte(reader)?);
                        self.place.1 += usize::from(byte(reader)?);
                    }
                    count => self.literals(reader, kind, count.into())?,
                },
                (count, Kind::Bytes(_)) => {
                    let index = [byte(reader)?];
                    (0..count).for_each(|_| self.put(&index));
                }
                (count, Kind::Halves(_)) => {
                    let pair = byte(reader)?;
                    let pair = [pair >> 4, pair & 15];
                    (0..count).for_each(|at| self.put(&[pair[usize::from(at % 2)]]));
                }
                (count, Kind::Colors) => {
                    let color = bgr(reader)?;
                    (0..count).for_each(|_| self.put(&color));
                }
            }
        }
        Some(())
    }

    /// Draws `count` pixels of their own colours, which fill an even number of bytes.
    fn literals(&mut self, reader: &mut impl BufRead, kind: &Kind, count: usize) -> Option<()> {
        let bytes = match kind {
            Kind::Bytes(_) => {
                for _ in 0..count {
                    let index = byte(reader)?;
                    self.put(&[index]);
                }
                count
            }
            Kind::Halves(_) => {
                for at in (0..count).step_by(2) {
                    let pair = byte(reader)?;
                    self.put(&[pair >> 4]);
                    if at + 1 < count {
                        self.put(&[pair & 15]);
                    }
                }
                count.div_ceil(2)
            }
            Kind::Colors => {
                for _ in 0..count {
                    let color = bgr(reader)?;
                    self.put(&color);
                }
                3 * count
            }
        };
        if bytes % 2 == 1 {
            byte(reader)?;
        }
        Some(())
    }

    /// Draws a pixel. What is beyond the end of a row is left out.
    fn put(&mut self, sample: &[u8]) {
        let (x, y) = self.place;
        self.place.0 += 1;
        if x >= self.info.width || y >= self.info.height {
            return;
        }
        let row = if self.info.is_top_down { y } else { self.info.height - 1 - y };
        let at = row * self.info.width + x;
        self.samples[self.each * at..self.each * (at + 1)].copy_from_slice(sample);
        self.is_drawn[at] = true;
        self.shows = true;
    }
}

fn byte(reader: &mut impl BufRead) -> Option<u8> {
    let byte = *reader.fill_buf().ok()?.first()?;
    reader.consume(1);
    Some(byte)
}

/// Reads the three bytes of a colour as they are stored.
fn bgr(reader: &mut impl BufRead) -> Option<[u8; 3]> {
    Some([byte(reader)?, byte(reader)?, byte(reader)?])
}
