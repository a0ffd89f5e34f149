//! Predicts a pixel from its neighbours (RFC 9649, section 3.4.1).
//!
//! The code computes the four channels of a pixel at once, as lanes of 16 bits in a 64-bit word. The code
//! cannot compute several pixels at once, because most predictions need the pixel to the left.

use super::{Argb, blocks};

/// The alpha of opaque black, the prediction for the first pixel.
const OPAQUE: Argb = 0xFF00_0000;

/// The prediction modes of an image's blocks, and the row above the current row.
pub(super) struct Predictor {
    side: u32,
    blocks: usize,
    modes: Vec<u8>,
    /// The row above, followed by the first pixel of the current row. This pixel is the top-right neighbour
    /// of the last pixel.
    above: Vec<Argb>,
    row: usize,
}

impl Predictor {
    /// Reads the modes from the green channel of `image`: one mode for each block of 2^`side` pixels.
    pub(super) fn new(side: u32, width: usize, image: &[Argb]) -> Self {
        let modes = image.iter().map(|pixel| (pixel >> 8) as u8 & 15).collect();
        Self { side, blocks: blocks(width, side), modes, above: Vec::new(), row: 0 }
    }

    /// Adds the predictions to the differences of the next row.
    pub(super) fn undo(&mut self, row: &mut [Argb]) {
        let Some((first, rest)) = row.split_first_mut() else { return };
        let Some(above) = self.above.first() else {
            *first = add(*first, OPAQUE);
            sum_up(rest, *first);
            self.keep(row);
            return;
        };

        *first = add(*first, *above);
        self.above.push(*first);
        let modes = &self.modes[(self.row >> self.side) * self.blocks..][..self.blocks];
        for (block, mode) in modes.iter().enumerate() {
            let start = (block << self.side).max(1);
            let end = row.len().min((block + 1) << self.side);
            let (before, now) = row.split_at_mut(start.min(end));
            if let (Some(left), Some(above)) = (before.last(), self.above.get(start - 1..=end)) {
                predict(*mode, &mut now[..end - start], *left, above);
            }
        }
        self.keep(row);
    }

    fn keep(&mut self, row: &[Argb]) {
        self.above.clear();
        self.above.extend_from_slice(row);
        self.row += 1;
    }
}

/// The neighbours in the row above: top left, top, top right.
#[derive(Clone, Copy)]
struct Above {
    left: Lanes,
    here: Lanes,
    right: Lanes,
}

/// Adds the predictions of a mode to `pixels`. `left` is the pixel before the first one. `above` has one more
/// pixel on both sides.
fn predict(mode: u8, pixels: &mut [Argb], left: Argb, above: &[Argb]) {
    match mode {
        1 => sum_up(pixels, left),
        2 => along(pixels, left, above, |_, above| above.here),
        3 => along(pixels, left, above, |_, above| above.right),
        4 => along(pixels, left, above, |_, above| above.left),
        5 => along(pixels, left, above, |left, above| left.mean(above.right).mean(above.here)),
        6 => along(pixels, left, above, |left, above| left.mean(above.left)),
        7 => along(pixels, left, above, |left, above| left.mean(above.here)),
        8 => along(pixels, left, above, |_, above| above.left.mean(above.here)),
        9 => along(pixels, left, above, |_, above| above.here.mean(above.right)),
        10 => along(pixels, left, above, |left, above| {
            left.mean(above.left).mean(above.here.mean(above.right))
        }),
        11 => along(pixels, left, above, select),
        12 => along(pixels, left, above, |left, above| left.slope(above.here, above.left)),
        13 => {
            along(pixels, left, above, |left, above| left.mean(above.here).half_slope(above.left));
        }
        _ => along(pixels, left, above, |_, _| Lanes::of(OPAQUE)),
    }
}

/// Adds the previous pixel to each pixel.
fn sum_up(pixels: &mut [Argb], left: Argb) {
    pixels.iter_mut().fold(left, |left, pixel| {
        *pixel = add(*pixel, left);
        *pixel
    });
}

/// Adds the prediction `predicted` to each of `pixels`, from the left.
#[inline(always)]
fn along(
    pixels: &mut [Argb],
    left: Argb,
    above: &[Argb],
    predicted: impl Fn(Lanes, Above) -> Lanes,
) {
    let mut left = Lanes::of(left);
    let [mut corner, mut here] =
        [above.first(), above.get(1)].map(|pixel| Lanes::of(*pixel.unwrap_or(&0)));
    let rights = above.get(2..).unwrap_or_default();
    for (pixel, right) in pixels.iter_mut().zip(rights) {
        let right = Lanes::of(*right);
        left = left_of(*pixel, predicted(left, Above { left: corner, here, right }));
        *pixel = left.pixel();
        (corner, here) = (here, right);
    }
}

#[inline(always)]
fn left_of(difference: Argb, predicted: Lanes) -> Lanes {
    Lanes((Lanes::of(difference).0 + predicted.0) & BYTES)
}

/// Adds two pixels, channel by channel.
fn add(a: Argb, b: Argb) -> Argb {
    left_of(a, Lanes::of(b)).pixel()
}

/// Returns the left or upper neighbour, whichever is closer to the slope.
#[inline(always)]
fn select(left: Lanes, above: Above) -> Lanes {
    let to_left = above.here.distance(above.left);
    let to_above = left.distance(above.left);
    if to_left < to_above { left } else { above.here }
}

/// Bytes in lanes of 16 bits.
#[derive(Debug, Clone, Copy)]
struct Lanes(u64);

/// In all lanes: the bits of a byte, a one, and the bias that keeps differences positive.
const BYTES: u64 = 0x00FF_00FF_00FF_00FF;
const ONES: u64 = 0x0001_0001_0001_0001;
const BIAS: u64 = 256 * ONES;

impl Lanes {
    #[inline(always)]
    fn of(pixel: Argb) -> Self {
        let (even, odd) = (pixel & 0x00FF_00FF, pixel >> 8 & 0x00FF_00FF);
        Self(u64::from(even) | u64::from(odd) << 32)
    }

    #[inline(always)]
    fn pixel(self) -> Argb {
        self.0 as u32 | ((self.0 >> 32) as u32) << 8
    }

    /// Returns the means, rounded down.
    #[inline(always)]
    fn mean(self, other: Self) -> Self {
        Self((self.0 + other.0) >> 1 & BYTES)
    }

    /// Returns `self` + `above` − `corner`, at least 0 and at most 255.
    #[inline(always)]
    fn slope(self, above: Self, corner: Self) -> Self {
        Self::clamped(self.0 + (above.0 + BIAS - corner.0))
    }

    /// Returns `self` + (`self` − `corner`) / 2, rounded towards `self`, at least 0 and at most 255.
    #[inline(always)]
    fn half_slope(self, corner: Self) -> Self {
        let biased = self.0 + BIAS - corner.0;
        let is_negative = !(biased >> 8) & ONES;
        let half = (biased + is_negative) >> 1 & BYTES;
        // The half has half of the bias.
        Self::clamped(self.0 + half + BIAS / 2)
    }

    /// Removes the bias from values from 1 to 767, and clamps them to a byte.
    #[inline(always)]
    fn clamped(biased: u64) -> Self {
        let is_within = biased >> 8 & ONES;
        let is_over = biased >> 9 & ONES;
        Self(biased & BYTES & spread(is_within) | spread(is_over))
    }

    /// Returns the sum of all channel differences.
    #[inline(always)]
    fn distance(self, other: Self) -> u64 {
        let biased = self.0 + BIAS - other.0;
        let is_negative = !(biased >> 8) & ONES;
        let magnitudes = ((biased & BYTES) ^ spread(is_negative)) + is_negative;
        magnitudes.wrapping_mul(ONES) >> 48
    }
}

/// Turns each one into a byte with all bits set.
#[inline(always)]
const fn spread(ones: u64) -> u64 {
    (ones << 8) - ones
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prediction of one channel, as the specification has it, from left, above left, above, above
    /// right; the choice of mode 11 is given.
    fn channel(mode: u8, [l, tl, t, tr]: [i32; 4], left_is_nearer: bool) -> i32 {
        let mean = i32::midpoint;
        match mode {
            1 => l,
            3 => tr,
            4 => tl,
            5 => mean(mean(l, tr), t),
            6 => mean(l, tl),
            7 => mean(l, t),
            8 => mean(tl, t),
            9 => mean(t, tr),
            10 => mean(mean(l, tl), mean(t, tr)),
            11 if left_is_nearer => l,
            2 | 11 => t,
            12 => (l + t - tl).clamp(0, 255),
            13 => (mean(l, t) + (mean(l, t) - tl) / 2).clamp(0, 255),
            _ => 0,
        }
    }

    #[test]
    fn predictions_are_those_of_the_specification() {
        let mut random = fastrand::Rng::with_seed(5);
        for turn in 0..20_000 {
            // Extremes, and noise.
            let mut pixel = || match turn % 3 {
                0 => {
                    u32::from_le_bytes([(); 4].map(|()| *random.choice(&[0, 1, 254, 255]).unwrap()))
                }
                _ => random.u32(..),
            };
            let [left, corner, above, right, difference] = [(); 5].map(|()| pixel());
            let bytes = [left, corner, above, right].map(u32::to_le_bytes);
            let of = |at: usize| bytes.map(|pixel| i32::from(pixel[at]));
            let sums = (0..4).map(of).map(|[l, tl, t, _]| [(t - tl).abs(), (l - tl).abs()]);
            let [to_left, to_above] = sums.fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);

            for mode in 1..=13 {
                let expected: [u8; 4] = std::array::from_fn(|at| {
                    let predicted = channel(mode, of(at), to_left < to_above) as u8;
                    predicted.wrapping_add(difference.to_le_bytes()[at])
                });
                let mut pixels = [difference];
                predict(mode, &mut pixels, left, &[corner, above, right]);
                assert_eq!(pixels[0].to_le_bytes(), expected, "{mode}: {bytes:?}");
            }
        }
    }
}
