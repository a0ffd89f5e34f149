//! Decodes the rows of usual PNGs: eight bits a sample, not interlaced (W3C PNG third edition, sections 7 to
//! 10).
//!
//! # Modules
//! 1. `idat` reads the data as one stream, and `inflated` inflates it into a window of rows.
//! 2. `unfilter` undoes the filters of four rows at once, with `wave` if the processor has SSE2.
//! 3. `palette` contains the colours of a picture with palette indexes.
//!
//! The png crate undoes a filter pixel by pixel, and each pixel waits for its left neighbour. This takes half
//! as long as inflating. The decoder processes four rows at once, each one pixel behind the row above. The
//! four rows together wait no longer than a single row.
//!
//! # Limits
//! The png crate decodes all other kinds of PNG, and all faulty files. This module returns an error if it
//! finds any fault. The png crate then decodes the file again.

use std::io::BufRead;

mod idat;
mod inflated;
mod palette;
mod unfilter;
#[cfg(target_arch = "x86_64")]
mod wave;

#[cfg(test)]
mod tests;

use inflated::Inflated;
pub(crate) use palette::Palette;
use unfilter::GROUP;
pub(crate) use unfilter::Unfilter;

/// The maximum length of a row, in bytes. About sixteen rows are in memory.
const MOST_ROW_BYTES: usize = 256 << 10;

/// The reason why decoding stops.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

/// The stored size of a picture and its pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// The bytes of a pixel, 1 to 4.
    pub(crate) channels: usize,
}

impl Shape {
    /// Returns the size of a row without its filter byte.
    fn row_bytes(self) -> usize {
        self.width * self.channels
    }

    /// Returns true if the rows are short enough for this module.
    pub(crate) fn fits(self) -> bool {
        self.row_bytes() <= MOST_ROW_BYTES
    }
}

/// Inflates the first rows of the PNG in `file`. `shape` comes from its header. Passes rows to `taken`,
/// several at once, each stored behind its filter byte. After the picture's last row, reads the rest of the
/// data to verify its checksum.
///
/// Fails on any fault of the file, perhaps after `taken` received rows.
pub(crate) fn stored_rows(
    file: impl BufRead,
    shape: Shape,
    wanted: usize,
    mut taken: impl FnMut(&[u8]) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let stored_bytes = 1 + shape.row_bytes();
    let mut inflated = Inflated::open(file, GROUP * stored_bytes)?;

    let mut left = wanted.min(shape.height);
    while left > 0 {
        let rows = left.min(GROUP);
        taken(inflated.take(rows * stored_bytes)?)?;
        left -= rows;
    }
    if wanted < shape.height { Ok(()) } else { inflated.finish() }
}
