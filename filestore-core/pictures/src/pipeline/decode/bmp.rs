//! BMP with our own decoder.
//!
//! `info` reads the headers, `masks` extracts colours from packed pixels, and `runs` decodes run lengths.
//! Uncompressed rows need only a block of the file at a time. Exception: a picture with alpha is decoded as a
//! whole, because its alpha might turn out to have no meaning.

use std::ops::Range;

use super::rows::Rows;
use super::{Decoded, check_same_size, icc};
use crate::error::{Result, corrupt};
use crate::geometry::Geometry;
use crate::pipeline::header::Header;
use crate::pipeline::image_file::ImageFile;
use crate::pixels::{Layout, Pixels};

mod info;
mod masks;
mod runs;

use info::{Info, Stored};
use masks::Masks;

/// The bytes of rows in one read.
const BLOCK_BYTES: usize = 256 << 10;

/// Decodes the picture, see [`decode`](super::decode).
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let info = Info::read(image)?;
    check_same_size(header, info.width, info.height)?;
    let profile = icc(info.profile(image));
    if let Stored::Runs(kind) = &info.stored {
        let mut rows = Rows::new(header.stored, Layout::Rgba, wanted);
        runs::decode(image, &info, kind, |row| {
            rows.push(row);
            !rows.is_complete()
        })?;
        return Decoded::of_rows(rows, profile);
    }

    let rows = StoredRows::of(image, &info)?;
    if rows.layout() == Layout::Rgba {
        let pixels = rows.whole()?;
        let arrived = rows.missing().then(|| rows.arrived.clone());
        return Ok(Decoded { arrived, ..Decoded::whole(pixels, profile) });
    }
    let mut reduced = Rows::new(header.stored, Layout::Rgb, wanted);
    rows.each(|row| {
        reduced.push(row);
        !reduced.is_complete()
    })?;
    let arrived = rows.missing().then(|| rows.arrived.clone());
    Ok(Decoded { arrived, ..Decoded::of_rows(reduced, profile)? })
}

/// Rows without compression.
struct StoredRows<'a> {
    image: &'a ImageFile<'a>,
    info: &'a Info,
    /// Bytes of a row in the file. Rows begin at multiples of four.
    stride: usize,
    /// The rows that arrived, counted from the top.
    arrived: Range<u32>,
}

impl<'a> StoredRows<'a> {
    /// Fails if no row arrived.
    fn of(image: &'a ImageFile<'a>, info: &'a Info) -> Result<Self> {
        let stride = (info.width * info.bits).div_ceil(32) * 4;
        // The last row can end after its last pixel.
        let unpadded = (info.width * info.bits).div_ceil(8);
        let bytes = image.len().saturating_sub(info.pixels_at);
        let padding = (stride - unpadded) as u64;
        let there = (bytes + padding) / stride.max(1) as u64;

        let height = u32::try_from(info.height).unwrap_or(u32::MAX);
        let there = u32::try_from(there).unwrap_or(u32::MAX).min(height);
        if there == 0 {
            return Err(corrupt("not a row came"));
        }
        let arrived = if info.is_top_down { 0..there } else { height - there..height };
        Ok(Self { image, info, stride, arrived })
    }

    fn missing(&self) -> bool {
        self.arrived.len() < self.info.height
    }

    fn layout(&self) -> Layout {
        match &self.info.stored {
            Stored::Masks(masks) if masks.has_alpha() => Layout::Rgba,
            _ => Layout::Rgb,
        }
    }

    /// Gives the pixels of each row to `taken`, from top to bottom, until `taken` returns false. Missing rows
    /// repeat the nearest row.
    fn each(&self, mut taken: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let height = u32::try_from(self.info.height).unwrap_or(u32::MAX);
        let mut pixels = Vec::new();
        let mut goes_on = true;
        let at_once = u32::try_from(BLOCK_BYTES / self.stride.max(1)).unwrap_or(1).max(1);

        let mut top = self.arrived.start;
        while goes_on && top < self.arrived.end {
            let block = top..self.arrived.end.min(top + at_once);
            let stored = self.block(&block, height)?;
            let mut rows: Vec<&[u8]> = stored.chunks(self.stride).collect();
            if !self.info.is_top_down {
                rows.reverse();
            }
            for row in rows {
                pixels.clear();
                self.info.stored.pixels(row, self.info, &mut pixels);
                let repeats = if top == 0 || top > self.arrived.start { 1 } else { top + 1 };
                goes_on = goes_on && (0..repeats).all(|_| taken(&pixels));
                top += 1;
            }
        }
        if goes_on {
            let _ = (self.arrived.end..height).all(|_| taken(&pixels));
        }
        Ok(())
    }

    /// Reads the stored rows of a block, in the file's order. The padding of the last row can be
    /// missing.
    fn block(&self, rows: &Range<u32>, height: u32) -> Result<Vec<u8>> {
        let first = if self.info.is_top_down { rows.start } else { height - rows.end };
        let at = self.info.pixels_at + u64::from(first) * self.stride as u64;
        let mut stored = vec![0; rows.len() * self.stride];
        info::fill(self.image, at, &mut stored);
        self.image.check()?;
        Ok(stored)
    }

    /// Makes pixels of all rows. If alpha is 0 everywhere, the picture is opaque, as in browsers, because
    /// many programs write no alpha.
    fn whole(&self) -> Result<Pixels> {
        let (width, height) = (self.info.width, self.info.height);
        let mut data = Vec::with_capacity(4 * width * height);
        self.each(|row| {
            data.extend_from_slice(row);
            true
        })?;
        if data.as_chunks::<4>().0.iter().all(|pixel| pixel[3] == 0) {
            data.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel[3] = 255);
        }
        let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(0));
        Ok(Pixels { layout: Layout::Rgba, width, height, data })
    }
}

impl Stored {
    /// Adds the pixels of a stored row.
    fn pixels(&self, row: &[u8], info: &Info, pixels: &mut Vec<u8>) {
        match self {
            Self::Palette(palette) => {
                let (bits, each) = (info.bits, 8 / info.bits);
                let mask = u8::try_from((1u32 << bits) - 1).unwrap_or(u8::MAX);
                for x in 0..info.width {
                    let index = row[x / each] >> (8 - bits * (x % each + 1)) & mask;
                    pixels.extend_from_slice(&color(palette, index));
                }
            }
            Self::Bgr => {
                let stored = row.as_chunks::<3>().0[..info.width].iter();
                pixels.extend(stored.flat_map(|[blue, green, red]| [*red, *green, *blue]));
            }
            Self::Masks(masks) => masks.pixels(row, info, pixels),
            Self::Runs(_) => {}
        }
    }
}

/// Looks up a colour. If the palette lacks it, the colour is black.
fn color(palette: &[[u8; 3]], index: u8) -> [u8; 3] {
    palette.get(usize::from(index)).copied().unwrap_or_default()
}
