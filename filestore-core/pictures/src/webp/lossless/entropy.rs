//! Images of prefix codes, copies and cached colours (RFC 9649, sections 3.5 and 3.6).

use std::ops::ControlFlow;

use super::bits::{Bits, REFILLED};
use super::codes::{Code, Tables};
use super::{Argb, Broken, blocks};

/// The symbols of a group's first code: green values, then copy lengths, then cached colours.
const GREENS: usize = 256;
const LENGTHS: usize = 24;
/// The symbols of the distance code.
const DISTANCES: usize = 40;

/// The maximum copy length and the maximum distance, in pixels.
const MOST_LENGTH: usize = 4096;
const MOST_DISTANCE: usize = 1 << 20;
/// The number of pixels in one copy step.
const BLOCK: usize = 4;

/// The first distances: the rows up, and 8 minus the pixels to the left, with four bits each.
const NEAR: [u8; 120] = [
    0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1A, 0x26, 0x2A, 0x38, 0x05, 0x37, 0x39,
    0x15, 0x1B, 0x36, 0x3A, 0x25, 0x2B, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1C, 0x35, 0x3B, 0x46, 0x4A,
    0x24, 0x2C, 0x58, 0x45, 0x4B, 0x34, 0x3C, 0x03, 0x57, 0x59, 0x13, 0x1D, 0x56, 0x5A, 0x23, 0x2D,
    0x44, 0x4C, 0x55, 0x5B, 0x33, 0x3D, 0x68, 0x02, 0x67, 0x69, 0x12, 0x1E, 0x66, 0x6A, 0x22, 0x2E,
    0x54, 0x5C, 0x43, 0x4D, 0x65, 0x6B, 0x32, 0x3E, 0x78, 0x01, 0x77, 0x79, 0x53, 0x5D, 0x11, 0x1F,
    0x64, 0x6C, 0x42, 0x4E, 0x76, 0x7A, 0x21, 0x2F, 0x75, 0x7B, 0x31, 0x3F, 0x63, 0x6D, 0x52, 0x5E,
    0x00, 0x74, 0x7C, 0x41, 0x4F, 0x10, 0x20, 0x62, 0x6E, 0x30, 0x73, 0x7D, 0x51, 0x5F, 0x40, 0x72,
    0x7E, 0x61, 0x6F, 0x50, 0x71, 0x7F, 0x60, 0x70,
];

/// An image with its codes.
pub(super) struct Image {
    width: usize,
    height: usize,
    tables: Tables,
    groups: Vec<Group>,
    /// The group for each block, if there are several groups.
    plan: Option<Plan>,
    cache: Cache,
}

/// The codes of a block.
#[derive(Clone, Copy)]
struct Group {
    green: Code,
    red: Code,
    blue: Code,
    alpha: Code,
    distance: Code,
}

/// The groups for blocks of 2^`bits` pixels on each side. A row has `width` blocks.
struct Plan {
    bits: u32,
    width: usize,
    groups: Vec<u16>,
}

/// The recent colours, each at the position of its hash.
struct Cache {
    /// 32 minus the number of bits in a position.
    shift: u32,
    /// The colours. Empty if the image has no cache.
    colours: Vec<Argb>,
}

impl Cache {
    fn read(bits: &mut Bits<'_>) -> Result<Self, Broken> {
        if bits.take(1) == 0 {
            return Ok(Self { shift: 31, colours: Vec::new() });
        }
        match bits.take(4) {
            places @ 1..=11 => Ok(Self { shift: 32 - places, colours: vec![0; 1 << places] }),
            _ => Err("a cache of colours of no size"),
        }
    }

    #[inline(always)]
    fn add(&mut self, colour: Argb) {
        let place = (0x1E35_A7BDu32.wrapping_mul(colour) >> self.shift) as usize;
        if let Some(kept) = self.colours.get_mut(place) {
            *kept = colour;
        }
    }
}

impl Image {
    /// Reads the data before the pixels. Only the picture itself can have several groups of codes.
    pub(super) fn read(
        bits: &mut Bits<'_>,
        width: usize,
        height: usize,
        is_picture: bool,
    ) -> Result<Self, Broken> {
        let cache = Cache::read(bits)?;
        let plan = if is_picture && bits.take(1) == 1 {
            Some(Plan::read(bits, width, height)?)
        } else {
            None
        };
        let count = plan
            .iter()
            .flat_map(|plan| &plan.groups)
            .max()
            .map_or(1, |last| 1 + usize::from(*last));

        let mut tables = Tables::new(width * height);
        let mut groups = Vec::new();
        for _ in 0..count {
            if bits.is_past_end() {
                return Err("cut within the codes");
            }
            groups.push(Group {
                green: tables.read(bits, GREENS + LENGTHS + cache.colours.len())?,
                red: tables.read(bits, 256)?,
                blue: tables.read(bits, 256)?,
                alpha: tables.read(bits, 256)?,
                distance: tables.read(bits, DISTANCES)?,
            });
        }
        Ok(Self { width, height, tables, groups, plan, cache })
    }

    /// Reads a whole image that controls a transform.
    pub(super) fn whole(
        bits: &mut Bits<'_>,
        width: usize,
        height: usize,
    ) -> Result<Vec<Argb>, Broken> {
        let mut pixels = Vec::new();
        let image = Self::read(bits, width, height, false)?;
        image.decode(bits, |row| {
            pixels.extend_from_slice(row);
            ControlFlow::Continue(())
        })?;
        Ok(pixels)
    }

    /// Decodes the pixels and passes each row to `taken`, until `taken` breaks.
    pub(super) fn decode(
        mut self,
        bits: &mut Bits<'_>,
        mut taken: impl FnMut(&[Argb]) -> ControlFlow<()>,
    ) -> Result<(), Broken> {
        let width = self.width;
        let mut made = Made::new(width, self.height);
        let (mut x, mut y) = (0, 0);

        while y < self.height {
            let (group, until) = self.block(x, y);
            made.make_room(until - x);
            x = self.run(bits, group, &mut made, (x, until))?;
            if x < width {
                continue;
            }

            (y, x) = (y + x / width, x % width);
            if y > self.height || (y == self.height && x > 0) {
                return Err("a copy that is too long");
            }
            while made.position - made.row >= width {
                if bits.is_past_end() {
                    return Err("cut within the picture");
                }
                if taken(&made.pixels[made.row..made.row + width]).is_break() {
                    return Ok(());
                }
                made.row += width;
            }
        }
        Ok(())
    }

    /// Returns the group at a position, and the end of its block in the row.
    fn block(&self, x: usize, y: usize) -> (Group, usize) {
        let Some(plan) = &self.plan else { return (self.groups[0], self.width) };
        let at = (y >> plan.bits) * plan.width + (x >> plan.bits);
        let until = ((x >> plan.bits) + 1) << plan.bits;
        (self.groups[usize::from(plan.groups[at])], until.min(self.width))
    }

    /// Decodes from `x` to the end of a block. Returns the end, which can lie beyond the block after a copy.
    #[inline]
    fn run(
        &mut self,
        bits: &mut Bits<'_>,
        group: Group,
        made: &mut Made,
        (x, until): (usize, usize),
    ) -> Result<usize, Broken> {
        let Self { tables, cache, width, .. } = self;
        // Of our own, so that they stay in registers.
        let mut own = bits.clone();
        // What a group has one symbol of need not be looked up: that is alpha, mostly.
        let alpha = group.alpha.is_one_symbol().then(|| tables.symbol(&mut own, group.alpha));
        let mut x = x;

        while x < until {
            own.refill();
            let symbol = tables.symbol(&mut own, group.green);
            if symbol < GREENS {
                let red = tables.symbol(&mut own, group.red);
                let blue = tables.symbol(&mut own, group.blue);
                let alpha = alpha.unwrap_or_else(|| {
                    own.refill();
                    tables.symbol(&mut own, group.alpha)
                });
                let colour = (alpha << 24 | red << 16 | symbol << 8 | blue) as Argb;
                made.push(colour);
                cache.add(colour);
                x += 1;
            } else if symbol < GREENS + LENGTHS {
                let length = extended(&mut own, symbol - GREENS);
                own.refill();
                let symbol = tables.symbol(&mut own, group.distance);
                let distance = distance(extended(&mut own, symbol), *width);
                made.copy(distance, length)?;
                if !cache.colours.is_empty() {
                    let copied = made.position - length..made.position;
                    made.pixels[copied].iter().for_each(|colour| cache.add(*colour));
                }
                x += length;
            } else {
                let place = symbol - GREENS - LENGTHS;
                made.push(*cache.colours.get(place).ok_or("a colour that is not cached")?);
                x += 1;
            }
        }
        *bits = own;
        Ok(x)
    }
}

impl Plan {
    fn read(bits: &mut Bits<'_>, width: usize, height: usize) -> Result<Self, Broken> {
        let side = bits.take(3) + 2;
        let width = blocks(width, side);
        let image = Image::whole(bits, width, blocks(height, side))?;
        // Red and green.
        let groups = image.into_iter().map(|pixel| (pixel >> 8) as u16).collect();
        Ok(Self { bits: side, width, groups })
    }
}

/// The decoded pixels: the window for copies, and the current rows.
struct Made {
    pixels: Vec<Argb>,
    /// The index of the next pixel.
    position: usize,
    /// The start of the first row that was not passed on yet.
    row: usize,
}

/// Returns the number of pixels in memory for an image.
pub(super) fn window(width: usize, height: usize) -> usize {
    let held = MOST_DISTANCE + width.max(MOST_DISTANCE / 2);
    held.min(width * height) + width + MOST_LENGTH + BLOCK
}

impl Made {
    fn new(width: usize, height: usize) -> Self {
        Self { pixels: vec![0; window(width, height)], position: 0, row: 0 }
    }

    /// Makes room for `count` pixels, and for a copy beyond them.
    fn make_room(&mut self, count: usize) {
        if self.position + count + MOST_LENGTH + BLOCK <= self.pixels.len() {
            return;
        }
        let first = self.position.saturating_sub(MOST_DISTANCE).min(self.row);
        self.pixels.copy_within(first..self.position, 0);
        self.position -= first;
        self.row -= first;
    }

    #[inline(always)]
    fn push(&mut self, colour: Argb) {
        self.pixels[self.position] = colour;
        self.position += 1;
    }

    /// Copies `length` pixels from `distance` pixels back. The source can overlap the copy.
    #[inline]
    fn copy(&mut self, distance: usize, length: usize) -> Result<(), Broken> {
        let to = self.position;
        let from = to.checked_sub(distance).ok_or("a copy from before the picture")?;
        if distance < BLOCK {
            for at in 0..length {
                self.pixels[to + at] = self.pixels[from + at];
            }
        } else {
            for at in (0..length).step_by(BLOCK) {
                self.pixels.copy_within(from + at..from + at + BLOCK, to + at);
            }
        }
        self.position += length;
        Ok(())
    }
}

/// Returns the length or distance with the prefix `symbol`. Reads its additional bits, which must be
/// available.
#[inline(always)]
fn extended(bits: &mut Bits<'_>, symbol: usize) -> usize {
    if symbol < 4 {
        return symbol + 1;
    }
    let further = (symbol as u32 - 2) / 2;
    let base = (2 + symbol % 2) << further;
    base + bits.take(further) as usize + 1
}

/// Returns the number of pixels to go back. Small codes refer to nearby pixels in two dimensions.
#[inline(always)]
fn distance(code: usize, width: usize) -> usize {
    match NEAR.get(code - 1) {
        Some(near) => {
            let (up, right) = (usize::from(near >> 4), usize::from(near & 15));
            // Narrow images have fewer pixels than the distance goes back.
            (up * width + 8).saturating_sub(right).max(1)
        }
        None => code - NEAR.len(),
    }
}

const _: () = assert!(REFILLED >= 3 * 15 && REFILLED >= 15 + 18, "what is taken between refills");
