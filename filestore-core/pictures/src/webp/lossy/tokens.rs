//! Reads the coefficients of macroblocks (RFC 6386, section 13).

use super::bools::Bools;
use super::frame::{OfPlace, PlacedProbabilities, Quantizer};
use super::tables::ZIGZAG;
use super::transform::inverse_means;

/// The coefficients of a block: dequantized, row by row.
pub(super) type Block = [i16; 16];

/// The probabilities for one block kind.
type OfKind = [OfPlace; 17];

/// Kinds of blocks, as the tables number them.
const LUMINANCE_WITHOUT_MEAN: usize = 0;
const MEANS: usize = 1;
const CHROMINANCE: usize = 2;
const LUMINANCE: usize = 3;

/// The bits of the largest values, first bit first, by category (section 13.2).
const LARGE: [&[u8]; 4] = [
    &[173, 148, 140],
    &[176, 155, 140, 135],
    &[180, 157, 141, 134, 130],
    &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
];

/// The coefficients of one macroblock.
#[derive(Debug)]
pub(super) struct Coefficients {
    /// 16 blocks of luminance, then 4 blocks of each chrominance component.
    pub(super) blocks: [Block; 24],
    /// The extent of each block's coefficients.
    pub(super) extents: [Extent; 24],
}

/// How many coefficients of a block can be other than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Empty,
    /// Only the first coefficient.
    Flat,
    /// Only the first three coefficients in zigzag order.
    Few,
    Full,
}

/// The blocks with coefficients along one side of a macroblock. The next macroblocks depend on them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Neighbours {
    luminance: [u8; 4],
    chrominance: [[u8; 2]; 2],
    means: u8,
}

impl Neighbours {
    /// Records a macroblock without coefficients. The flag for means stays that of the last macroblock with a
    /// block of means.
    pub(super) fn pass(&mut self, has_means: HasMeans) {
        let means = if has_means == HasMeans::Yes { 0 } else { self.means };
        *self = Self { means, ..Self::default() };
    }
}

/// The presence of a block with the means of a macroblock's luminance blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HasMeans {
    Yes,
    No,
}

impl Coefficients {
    pub(super) const NONE: Self = Self { blocks: [[0; 16]; 24], extents: [Extent::Empty; 24] };

    /// Reads the coefficients of a macroblock. Returns true if the macroblock has coefficients.
    pub(super) fn read(
        &mut self,
        bools: &mut Bools<'_>,
        probabilities: &PlacedProbabilities,
        quantizer: &Quantizer,
        has_means: HasMeans,
        (above, left): (&mut Neighbours, &mut Neighbours),
    ) -> bool {
        self.blocks = [[0; 16]; 24];
        let mut local = *bools;
        let bools_before = bools;
        let bools = &mut local;

        let mut first = 0;
        let mut kind = LUMINANCE;
        let mut any = false;
        if has_means == HasMeans::Yes {
            let mut means = [0; 16];
            let context = usize::from(above.means + left.means);
            let end =
                read_block(bools, &probabilities[MEANS], context, 0, quantizer.y2, &mut means);
            let is_set = u8::from(end > 0);
            (above.means, left.means) = (is_set, is_set);
            if end > 0 {
                inverse_means(&means, &mut self.blocks);
            }
            (first, kind) = (1, LUMINANCE_WITHOUT_MEAN);
        }

        let of_kind = &probabilities[kind];
        let (luminance, chrominance) = self.blocks.split_at_mut(16);
        let (of_luminance, of_chrominance) = self.extents.split_at_mut(16);
        let rows = luminance.as_chunks_mut::<4>().0.iter_mut();
        let of_rows = of_luminance.as_chunks_mut::<4>().0.iter_mut();
        for ((row, extents), left) in rows.zip(of_rows).zip(&mut left.luminance) {
            let blocks = row.iter_mut().zip(extents);
            for ((block, extent), above) in blocks.zip(&mut above.luminance) {
                let context = usize::from(*above + *left);
                let end = read_block(bools, of_kind, context, first, quantizer.y1, block);
                let is_set = u8::from(end > first);
                (*above, *left) = (is_set, is_set);
                *extent = Extent::of(end, block);
                any |= *extent != Extent::Empty;
            }
        }

        let of_kind = &probabilities[CHROMINANCE];
        let components = chrominance.as_chunks_mut::<4>().0.iter_mut();
        let of_components = of_chrominance.as_chunks_mut::<4>().0.iter_mut();
        let sides = above.chrominance.iter_mut().zip(&mut left.chrominance);
        for ((blocks, extents), (above, left)) in components.zip(of_components).zip(sides) {
            let rows = blocks.as_chunks_mut::<2>().0.iter_mut();
            let of_rows = extents.as_chunks_mut::<2>().0.iter_mut();
            for ((row, extents), left) in rows.zip(of_rows).zip(left) {
                let blocks = row.iter_mut().zip(extents);
                for ((block, extent), above) in blocks.zip(above.iter_mut()) {
                    let context = usize::from(*above + *left);
                    let end = read_block(bools, of_kind, context, 0, quantizer.uv, block);
                    let is_set = u8::from(end > 0);
                    (*above, *left) = (is_set, is_set);
                    *extent = Extent::of(end, block);
                    any |= *extent != Extent::Empty;
                }
            }
        }

        *bools_before = local;
        any
    }
}

impl Extent {
    /// Returns the extent of a block with coefficients before `end`, in zigzag order.
    #[inline(always)]
    fn of(end: usize, block: &Block) -> Self {
        match end {
            0 | 1 if block[0] == 0 => Self::Empty,
            0 | 1 => Self::Flat,
            2 | 3 => Self::Few,
            _ => Self::Full,
        }
    }
}

/// Reads and dequantizes the coefficients of one block from place `first` on. Returns the place behind the
/// last coefficient, or 0 if there is none.
#[inline(always)]
fn read_block(
    bools: &mut Bools<'_>,
    probabilities: &OfKind,
    context: usize,
    first: usize,
    steps: [i32; 2],
    block: &mut Block,
) -> usize {
    let mut local = *bools;
    let end = read_coefficients(&mut local, probabilities, context, first, steps, block);
    *bools = local;
    end
}

#[inline(always)]
fn read_coefficients(
    bools: &mut Bools<'_>,
    probabilities: &OfKind,
    context: usize,
    first: usize,
    steps: [i32; 2],
    block: &mut Block,
) -> usize {
    let mut at = first;
    let mut decisions = &probabilities[first & 1][context & 3];
    bools.refill();
    if !bools.next(decisions[0]) {
        // Before the first place: as if nothing was there.
        return 0;
    }

    loop {
        while !bools.next(decisions[1]) {
            at += 1;
            if at >= 16 {
                return 16;
            }
            decisions = &probabilities[at][0];
            bools.refill();
        }

        let value;
        let next = &probabilities[at + 1];
        if bools.next(decisions[2]) {
            value = read_large(bools, decisions);
            decisions = &next[2];
        } else {
            value = 1;
            decisions = &next[1];
        }
        let step = if at > 0 { steps[1] } else { steps[0] };
        block[usize::from(ZIGZAG[at] & 15)] = (bools.signed(value) * step) as i16;

        at += 1;
        bools.refill();
        if at >= 16 || !bools.next(decisions[0]) {
            return at;
        }
    }
}

/// Reads a value of at least 2, and refills.
#[inline(always)]
fn read_large(bools: &mut Bools<'_>, decisions: &[u8; 16]) -> i32 {
    if !bools.next(decisions[3]) {
        if !bools.next(decisions[4]) {
            return 2;
        }
        return 3 + i32::from(bools.next(decisions[5]));
    }

    read_larger(bools, decisions)
}

#[inline(always)]
fn read_larger(bools: &mut Bools<'_>, decisions: &[u8; 16]) -> i32 {
    bools.refill();
    if !bools.next(decisions[6]) {
        if !bools.next(decisions[7]) {
            return 5 + i32::from(bools.next(159));
        }
        return 7 + 2 * i32::from(bools.next(165)) + i32::from(bools.next(145));
    }

    let high = bools.next(decisions[8]);
    let low = bools.next(decisions[if high { 10 } else { 9 }]);
    let category = 2 * usize::from(high) + usize::from(low);
    let mut value = 0;
    for probability in LARGE[category] {
        bools.refill();
        value = 2 * value + i32::from(bools.next(*probability));
    }
    bools.refill();
    value + 3 + (8 << category)
}
