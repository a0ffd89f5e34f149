//! Decodes the VP8L bitstream (RFC 9649, section 3), row by row.
//!
//! # Modules
//! 1. `bits` reads bits from the data, and `codes` stores the prefix codes as tables.
//! 2. `entropy` decodes an image of codes. This is the picture, or an image that controls a transform.
//! 3. `transform` turns a row of codes into colours, with the predictions of `predict`.
//!
//! image-webp decodes a whole picture, and then transforms all its pixels in four passes. This module
//! transforms a row while it is in the first-level cache, and the caller reduces it at the same time. Only
//! the window for copies stays in memory.
//!
//! # Limits
//! If the data ends or is invalid, the caller gets the rows before the fault, and their number. The size of
//! the code tables is limited, because a small file can request 65,536 groups of codes.

use std::ops::ControlFlow;

use super::Dimensions;

mod bits;
mod codes;
mod entropy;
mod predict;
mod transform;

#[cfg(test)]
mod tests;

use bits::Bits;
use entropy::Image;
use transform::Transform;

/// The first byte of a bitstream.
const SIGNATURE: u32 = 0x2F;

/// A pixel: alpha in the highest byte, then red, green, blue.
pub(super) type Argb = u32;

/// The reason why decoding stops.
type Broken = &'static str;

/// A bitstream after its header.
pub(super) struct Stream<'a> {
    bits: Bits<'a>,
    size: Dimensions,
    /// The alpha flag of the header. Without this flag, the picture is opaque, even if its pixels contain
    /// alpha values.
    pub(super) has_alpha: bool,
}

impl<'a> Stream<'a> {
    /// Reads the header of `data`.
    pub(super) fn open(data: &'a [u8]) -> Result<Self, Broken> {
        let mut bits = Bits::new(data);
        if bits.take(8) != SIGNATURE {
            return Err("no lossless signature");
        }

        let size = Dimensions { width: bits.take(14) + 1, height: bits.take(14) + 1 };
        let has_alpha = bits.take(1) == 1;
        if bits.take(3) != 0 {
            return Err("an unknown version of lossless");
        }
        Ok(Self { bits, size, has_alpha })
    }

    /// Opens `data` without a header as a picture of `size`. Alpha planes have this form.
    pub(super) fn headless(data: &'a [u8], size: Dimensions) -> Self {
        Self { bits: Bits::new(data), size, has_alpha: false }
    }

    /// Returns the picture's size.
    pub(super) fn size(&self) -> Dimensions {
        self.size
    }

    /// Decodes the picture and passes each row to `taken`, until `taken` breaks. Returns the number of
    /// decoded rows. The number is smaller than the height if the data ends or is invalid.
    pub(super) fn rows(
        mut self,
        mut taken: impl FnMut(&[Argb]) -> ControlFlow<()>,
    ) -> Result<u32, Broken> {
        let (mut transforms, width) = self.transforms()?;
        let image = Image::read(&mut self.bits, width, self.size.height as usize, true)?;

        let mut rows = 0;
        let mut row = Vec::with_capacity(self.size.width as usize);
        let outcome = image.decode(&mut self.bits, |stored| {
            row.clear();
            row.extend_from_slice(stored);
            for transform in transforms.iter_mut().rev() {
                transform.undo(&mut row);
            }
            rows += 1;
            taken(&row)
        });
        if rows == 0 { outcome.map(|()| 0) } else { Ok(rows) }
    }

    /// Reads the transforms in the order in which the encoder applied them. Returns the width of the picture
    /// after them.
    fn transforms(&mut self) -> Result<(Vec<Transform>, usize), Broken> {
        let height = self.size.height as usize;
        let mut width = self.size.width as usize;
        let mut read = Vec::new();
        let mut kinds = 0u32;

        while self.bits.take(1) == 1 {
            let kind = self.bits.take(2);
            if kinds & 1 << kind != 0 {
                return Err("a transform twice");
            }
            kinds |= 1 << kind;
            let transform = Transform::read(&mut self.bits, kind, width, height)?;
            width = transform.stored_width(width);
            read.push(transform);
        }
        if self.bits.is_past_end() { Err("cut before the picture") } else { Ok((read, width)) }
    }
}

/// Returns an upper bound for the decoding memory of a picture with this `size`, in bytes. The file, and the
/// results made from the picture's rows, are extra.
pub(super) fn memory_needed(size: Dimensions) -> u64 {
    let pixels = u64::from(size.width) * u64::from(size.height);
    let window = entropy::window(size.width as usize, size.height as usize) as u64;
    // An image that steers a transform has a sixteenth of the pixels at most. There are two, and one of
    // groups.
    let tables = codes::most_bytes(pixels as usize) as u64;
    4 * (window + 3 * pixels.div_ceil(16) + 8 * u64::from(size.width)) + tables
}

/// Returns the length of a side in blocks of 2^`bits`.
fn blocks(length: usize, bits: u32) -> usize {
    length.div_ceil(1 << bits)
}
