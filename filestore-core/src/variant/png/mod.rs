//! Rows of usual PNGs: eight bits a sample, not interlaced (W3C PNG third edition, sections 7
//! to 10).
//!
//! # The way through the modules
//! 1. `idat` is the data as one stream; `inflated` inflates it into a window of rows.
//! 2. `unfilter` undoes the filters of four rows at once, with `wave` where the processor has SSE2.
//! 3. `palette` has the colours of a picture whose samples name them.
//!
//! The png crate undoes a filter pixel by pixel, and a pixel waits for the one on its left: that takes half
//! as long as inflating. Four rows, each a pixel behind the one above it, wait no longer than one.
//!
//! # Limits
//! All else is the png crate's: other kinds, and whatever is wrong with a file. Here any doubt is an error, after
//! which the file is decoded again there.

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

/// The longest row that is decoded here, in bytes: some sixteen of them are held.
const MOST_ROW_BYTES: usize = 256 << 10;

/// The reason why nothing more comes.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

/// The size of a picture and of its pixels, as they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// The bytes of a pixel, 1 to 4.
    pub(crate) channels: usize,
}

impl Shape {
    /// Counts the bytes of a row without its filter.
    fn row_bytes(self) -> usize {
        self.width * self.channels
    }

    /// Returns true if its rows are short enough to be decoded here.
    pub(crate) fn fits(self) -> bool {
        self.row_bytes() <= MOST_ROW_BYTES
    }
}

/// Inflates the first rows of the PNG in `file`, whose header said `shape`, and gives them to `taken`, some at
/// once, each stored behind the name of its filter. After the picture's last row the rest of the data is read,
/// as its checksum may be wrong.
///
/// Fails on whatever is wrong with the file, perhaps after rows were given out.
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
