//! TIFF, decoded by our own code. The crates `fdeflate` and `fax` decompress Deflate and CCITT Group 4.
//!
//! A band of rows is read at once: the strip or the tiles side by side that hold them, of each plane.
//! `chunks` finds the strips and tiles in the file, and `codec` decompresses each one into its part of the
//! band. `samples` then makes samples of 8 bits of a row, and `colors` makes pixels of the samples.
//!
//! # Damaged files
//! Strips and tiles are independent, so damage to one of them does not hide the others, as in libtiff. The
//! rows of a strip or tile after its damage have samples of 0: black in most files. The rows after the last
//! row of the file that arrived are transparent, as in every cut picture.

use std::mem;
use std::ops::Range;

use super::rows::Rows;
use super::{Decoded, MAX_PROFILE_BYTES, icc};
use crate::error::{Error, ErrorKind, Result, corrupt, unsupported};
use crate::geometry::Geometry;
use crate::lzw::ROOM_BYTES;
use crate::pipeline::header::{Header, TiffHeader, Values};
use crate::pipeline::image_file::ImageFile;

mod chunks;
mod codec;
mod jpeg;
mod samples;
mod colors;

use chunks::Chunks;
use codec::Codec;
use colors::Colors;

/// Decodes the picture, see [`decode`](super::decode).
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    tiff: TiffHeader,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let model = tiff.model.ok_or_else(|| unsupported("TIFF"))?;
    let mut bands = Bands {
        colors: Colors::read(image, tiff, model)?,
        codec: Codec::open(image, tiff),
        chunks: Chunks::read(image, tiff)?,
        band: vec![0; usize::try_from(tiff.band_bytes()).map_err(corrupt)? + ROOM_BYTES],
        samples: Vec::new(),
        refused: None,
        tiff,
        image,
    };
    let mut rows = Rows::new(header.stored, bands.colors.layout(), wanted);
    let (arrived, last) = bands.decode(header.stored.height, &mut rows)?;
    image.check()?;

    let is_cut = !rows.is_complete();
    if is_cut && arrived == 0 {
        return Err(bands.refused.unwrap_or_else(|| corrupt("not a row came")));
    }
    while !rows.is_complete() {
        rows.push(&last);
    }
    let decoded = Decoded::of_rows(rows, icc(profile(image, tiff)))?;
    Ok(Decoded { arrived: is_cut.then_some(0..arrived), ..decoded })
}

/// Reads the colour profile, for a picture of any size. Ignores a profile that is cut, or larger than the
/// limit of all formats.
fn profile(image: &ImageFile<'_>, tiff: TiffHeader) -> Option<Vec<u8>> {
    let values = tiff.profile?;
    let bytes =
        usize::try_from(values.bytes()?).ok().filter(|bytes| *bytes <= MAX_PROFILE_BYTES)?;
    let profile = stored(image, values, bytes);
    (profile.len() == bytes).then_some(profile)
}

/// Reads the first bytes of the values of a tag, at most `most`. Reads fewer bytes if the file ends.
fn stored(image: &ImageFile<'_>, values: Values, most: usize) -> Vec<u8> {
    let bytes = values.bytes().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    let left = usize::try_from(image.len().saturating_sub(values.at())).unwrap_or(usize::MAX);
    let mut stored = vec![0; bytes.min(most).min(left)];
    let arrived = chunks::Source::open(image, false).fill(values.at(), &mut stored);
    stored.truncate(arrived);
    stored
}

/// The rows of strips or tiles in one read, with all tiles side by side.
struct Bands<'a> {
    image: &'a ImageFile<'a>,
    tiff: TiffHeader,
    chunks: Chunks,
    codec: Codec<'a>,
    colors: Colors,
    /// Stored rows of the first strip or tile, then of the next.
    band: Vec<u8>,
    samples: Vec<u8>,
    /// The first damage of a strip or tile. This is the error of the picture if no row arrives.
    refused: Option<Error>,
}

impl Bands<'_> {
    /// Decodes up to the last visible row. Returns the number of rows up to the last one that arrived, and
    /// this row. The later rows are missing.
    fn decode(&mut self, height: u32, rows: &mut Rows) -> Result<(u32, Vec<u8>)> {
        let (of_chunk, at_once) = (self.tiff.chunks.size.height, self.tiff.rows_at_once());
        let mut pixels = Vec::with_capacity(rows.row_bytes());
        // Nothing was read yet, so all samples are 0.
        self.row(0, &mut pixels);
        let blank = pixels.clone();
        let (mut arrived, mut missing) = (0, 0);

        for down in 0..self.tiff.chunks.number.height {
            let top = down * of_chunk;
            let shown = of_chunk.min(height - top);
            for first in (0..shown).step_by(at_once.max(1) as usize) {
                if rows.is_complete() {
                    return Ok((arrived, pixels));
                }
                let count = at_once.min(shown - first);
                let read = self.read(down, first, count)?;
                if read > 0 {
                    (0..mem::take(&mut missing)).for_each(|_| rows.push(&blank));
                    arrived = top + first + read;
                }
                for y in 0..read {
                    if rows.wants_next() {
                        self.row(y, &mut pixels);
                        rows.push(&pixels);
                    } else {
                        rows.skip();
                    }
                }
                missing += count - read;
            }
        }
        Ok((arrived, pixels))
    }

    /// Reads `count` rows from row `first` of the strips or tiles that are side by side. Returns the number
    /// of rows that arrived in one of them at least, in all planes. The samples that are missing are 0.
    fn read(&mut self, down: u32, first: u32, count: u32) -> Result<u32> {
        let bytes = band_part(self.tiff);
        let row_bytes = usize::try_from(self.tiff.row_bytes()).map_err(corrupt)?;
        let across = self.tiff.chunks.number.width;
        let planes = if self.tiff.is_planar { self.tiff.samples } else { 1 };

        let mut arrived = vec![count; across as usize];
        let mut at = 0;
        for plane in 0..planes as u64 {
            for (column, arrived) in (0..u64::from(across)).zip(&mut arrived) {
                self.image.check()?;
                let number =
                    plane * self.tiff.chunks.count() + u64::from(down) * u64::from(across) + column;
                let part = at..at + row_bytes * count as usize;
                *arrived = self.read_part(number, first, part)?.min(*arrived);
                at += bytes;
            }
        }
        Ok(arrived.into_iter().max().unwrap_or(0))
    }

    /// Reads rows of a strip or tile into a part of the band, from row `first`. Returns the number of rows
    /// that arrived. The bytes after them are 0.
    fn read_part(&mut self, number: u64, first: u32, part: Range<usize>) -> Result<u32> {
        let row_bytes = usize::try_from(self.tiff.row_bytes()).map_err(corrupt)?;
        // The spare bytes are in the next strip or tile, which is read later, or after the last.
        let roomy = &mut self.band[part.start..part.end + ROOM_BYTES];
        let read = match self.chunks.place(number) {
            Some(place) => self.codec.read(place, first, roomy),
            None => Ok(0),
        };
        let read = match read {
            // Other strips and tiles can be sound. A kind that is not supported is no damage.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.refused.get_or_insert(error);
                0
            }
            read => read?,
        };

        let part = &mut self.band[part];
        let (rows, rest) = part.split_at_mut(read - read % row_bytes);
        rows.chunks_exact_mut(row_bytes).for_each(|row| samples::undo_predictor(row, self.tiff));
        rest.fill(0);
        u32::try_from(read / row_bytes).map_err(corrupt)
    }

    /// Makes the pixels of row `y` of the rows that were read.
    fn row(&mut self, y: u32, pixels: &mut Vec<u8>) {
        let Self { tiff, band, colors, samples, .. } = self;
        samples::of_row(band, *tiff, y as usize, colors.width(), samples);
        colors.row(samples, pixels);
    }
}

/// Counts the bytes of the rows of a strip or tile in one read.
fn band_part(tiff: TiffHeader) -> usize {
    let bytes = tiff.row_bytes().saturating_mul(tiff.rows_at_once().into());
    usize::try_from(bytes).expect("the band fits into memory")
}
