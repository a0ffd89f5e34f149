//! Undoes the transforms that an encoder applied to the pixels (RFC 9649, section 3.4), row by row.

use super::bits::Bits;
use super::entropy::Image;
use super::predict::Predictor;
use super::{Argb, Broken, blocks};

/// A transform, with the data that it needs from earlier rows.
pub(super) enum Transform {
    Predict(Predictor),
    Colour(Colour),
    Green,
    Palette(Box<Palette>),
}

impl Transform {
    /// Reads a transform for an image of this size.
    pub(super) fn read(
        bits: &mut Bits<'_>,
        kind: u32,
        width: usize,
        height: usize,
    ) -> Result<Self, Broken> {
        match kind {
            0 | 1 => {
                let side = bits.take(3) + 2;
                let image = Image::whole(bits, blocks(width, side), blocks(height, side))?;
                Ok(match kind {
                    0 => Self::Predict(Predictor::new(side, width, &image)),
                    _ => Self::Colour(Colour { side, width, factors: image, row: 0 }),
                })
            }
            2 => Ok(Self::Green),
            _ => Palette::read(bits, width).map(|palette| Self::Palette(Box::new(palette))),
        }
    }

    /// Returns the stored width of an image with this width.
    pub(super) fn stored_width(&self, width: usize) -> usize {
        match self {
            Self::Palette(palette) => blocks(width, palette.packing),
            _ => width,
        }
    }

    /// Undoes the transform for the next row.
    pub(super) fn undo(&mut self, row: &mut Vec<Argb>) {
        match self {
            Self::Predict(predictor) => predictor.undo(row),
            Self::Colour(colour) => colour.undo(row),
            Self::Green => row.iter_mut().for_each(|pixel| *pixel = with_green(*pixel)),
            Self::Palette(palette) => palette.undo(row),
        }
    }
}

/// Adds green to red and to blue.
#[inline]
fn with_green(pixel: Argb) -> Argb {
    let green = pixel >> 8 & 0xFF;
    let rest = (pixel & 0x00FF_00FF) + (green << 16 | green);
    pixel & 0xFF00_FF00 | rest & 0x00FF_00FF
}

/// The share of green and red that the encoder subtracted from the other colours, for each block.
pub(super) struct Colour {
    side: u32,
    width: usize,
    /// From the lowest byte: green's share of red, green's share of blue, red's share of blue.
    factors: Vec<Argb>,
    row: usize,
}

impl Colour {
    fn undo(&mut self, row: &mut [Argb]) {
        let blocks = blocks(self.width, self.side);
        let factors = &self.factors[(self.row >> self.side) * blocks..];
        for (block, factors) in row.chunks_mut(1 << self.side).zip(factors) {
            let [to_red, to_blue, red_to_blue, _] = factors.to_le_bytes().map(signed);
            for pixel in block {
                let [blue, green, red, alpha] = pixel.to_le_bytes();
                let red = red.wrapping_add(share(to_red, green));
                let blue =
                    blue.wrapping_add(share(to_blue, green)).wrapping_add(share(red_to_blue, red));
                *pixel = u32::from_le_bytes([blue, green, red, alpha]);
            }
        }
        self.row += 1;
    }
}

fn signed(byte: u8) -> i32 {
    i32::from(byte.cast_signed())
}

#[inline]
fn share(factor: i32, colour: u8) -> u8 {
    ((factor * signed(colour)) >> 5) as u8
}

/// Colours by index. If there are few colours, a pixel contains several indexes.
pub(super) struct Palette {
    /// A colour for each possible index. Indexes without a colour are transparent.
    colours: [Argb; 256],
    /// The number of indexes in a pixel, as a power of two.
    packing: u32,
    width: usize,
    numbers: Vec<Argb>,
}

impl Palette {
    fn read(bits: &mut Bits<'_>, width: usize) -> Result<Self, Broken> {
        let count = bits.take(8) as usize + 1;
        let packing = match count {
            ..=2 => 3,
            3..=4 => 2,
            5..=16 => 1,
            _ => 0,
        };

        let mut colours = [0; 256];
        let mut last = [0u8; 4];
        // Each is stored as its difference to the one before.
        for (colour, difference) in colours.iter_mut().zip(Image::whole(bits, count, 1)?) {
            let bytes = difference.to_le_bytes();
            for (byte, more) in last.iter_mut().zip(bytes) {
                *byte = byte.wrapping_add(more);
            }
            *colour = u32::from_le_bytes(last);
        }
        Ok(Self { colours, packing, width, numbers: Vec::new() })
    }

    fn undo(&mut self, row: &mut Vec<Argb>) {
        let bits = 8 >> self.packing;
        self.numbers.clear();
        self.numbers.extend_from_slice(row);
        row.clear();

        let packed = self.numbers.iter().flat_map(|pixel| {
            let numbers = pixel >> 8 & 0xFF;
            (0..1 << self.packing).map(move |at| numbers >> (bits * at) & ((1 << bits) - 1))
        });
        row.extend(packed.take(self.width).map(|number| self.colours[number as usize]));
    }
}
