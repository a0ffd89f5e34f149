//! The inverse DCT at scale N/8: turns the lowest N×N coefficients of a block into N×N samples.
//!
//! The N-point transform of the lowest coefficients is the block reduced without aliasing. The code uses
//! floating point and loops over whole rows. Compilers turn these loops into vector instructions on all
//! processors. Compilers cannot do this for 32-bit integer products on the oldest x86-64.
//!
//! The pass over the columns sums even and odd parts separately. A sample and its mirror image share these
//! sums, which halves the work of this pass.

use std::f64::consts::PI;

/// The middle of a sample's range. The middle corresponds to a coefficient of 0.
const MIDDLE: f32 = 128.0;
/// Adding this number (1.5 · 2²³) to another one leaves the rounded value in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// The N-point transform, as tables of weights.
#[derive(Debug, Clone)]
pub(super) struct Transform<const N: usize> {
    /// The weight of each coefficient in each sample: `[coefficient][sample]`.
    rows: [[f32; N]; N],
    /// The same weights, as `[sample][coefficient]`.
    columns: [[f32; N]; N],
}

impl<const N: usize> Transform<N> {
    pub(super) fn new() -> Self {
        let (mut rows, mut columns) = ([[0.0; N]; N], [[0.0; N]; N]);
        for sample in 0..N {
            for coefficient in 0..N {
                let angle = (2 * sample + 1) as f64 * coefficient as f64 * PI / (2 * N) as f64;
                // Of an 8-point transform, so that the mean stays the same at every N.
                let weight = if coefficient == 0 { 0.125f64.sqrt() } else { 0.5 };
                let value = (weight * angle.cos()) as f32;
                rows[coefficient][sample] = value;
                columns[sample][coefficient] = value;
            }
        }
        Self { rows, columns }
    }

    /// Transforms dequantized `coefficients` into samples, row by row.
    #[inline(always)]
    pub(super) fn inverse(&self, coefficients: &[[f32; N]; N]) -> [[u8; N]; N] {
        let mut between = [[0.0; N]; N];

        // A sample and its mirror image have the same even parts and opposite odd ones.
        for sample in 0..N.div_ceil(2) {
            let (mut even, mut odd) = ([0.0; N], [0.0; N]);
            let weighted = coefficients.iter().zip(&self.columns[sample]);
            for (number, (row, weight)) in weighted.enumerate() {
                let sums = if number % 2 == 0 { &mut even } else { &mut odd };
                for (sum, coefficient) in sums.iter_mut().zip(row) {
                    *sum += weight * coefficient;
                }
            }
            for column in 0..N {
                between[sample][column] = even[column] + odd[column];
                between[N - 1 - sample][column] = even[column] - odd[column];
            }
        }

        let mut samples = [[0; N]; N];
        for (line, between) in samples.iter_mut().zip(&between) {
            let mut sums = [MIDDLE; N];
            for (coefficient, weights) in between.iter().zip(&self.rows) {
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += coefficient * weight;
                }
            }
            for (sample, sum) in line.iter_mut().zip(&sums) {
                *sample = to_sample(*sum);
            }
        }
        samples
    }
}

/// Rounds a value and clamps it to a byte.
#[inline(always)]
pub(super) fn to_sample(value: f32) -> u8 {
    let value = if value < 255.0 { value } else { 255.0 };
    let value = if value > 0.0 { value } else { 0.0 };
    (value + ROUND).to_bits() as u8
}

/// Returns the only sample of a block at scale 1/8, which is the block's mean.
#[inline(always)]
pub(super) fn mean(dequantized_dc: f32) -> u8 {
    to_sample(dequantized_dc * 0.125 + MIDDLE)
}
