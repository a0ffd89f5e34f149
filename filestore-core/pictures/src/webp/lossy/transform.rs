//! The inverse transforms (RFC 6386, section 14), from coefficients to residues.

use super::tokens::Block;

/// Multiplies by √2 · cos(π/8), with 16 fractional bits. Wraps if the data is damaged.
#[inline(always)]
fn times_cosine(value: i32) -> i32 {
    value + (value.wrapping_mul(20_091) >> 16)
}

/// Multiplies by √2 · sin(π/8), with 16 fractional bits. Wraps if the data is damaged.
#[inline(always)]
fn times_sine(value: i32) -> i32 {
    value.wrapping_mul(35_468) >> 16
}

/// Distributes the means of the 16 luminance blocks to their first coefficients (a Walsh-Hadamard transform).
pub(super) fn inverse_means(means: &Block, blocks: &mut [Block; 24]) {
    let input = means.map(i32::from);
    let mut between = [0; 16];
    for column in 0..4 {
        let a = input[column] + input[12 + column];
        let b = input[4 + column] + input[8 + column];
        let c = input[4 + column] - input[8 + column];
        let d = input[column] - input[12 + column];
        between[column] = a + b;
        between[4 + column] = c + d;
        between[8 + column] = a - b;
        between[12 + column] = d - c;
    }

    let rows = blocks.as_chunks_mut::<4>().0.iter_mut();
    for (row, [w, x, y, z]) in rows.zip(between.as_chunks::<4>().0) {
        let first = w + 3;
        let (a, b, c, d) = (first + z, x + y, x - y, first - z);
        for (block, sum) in row.iter_mut().zip([a + b, c + d, a - b, d - c]) {
            block[0] = (sum >> 3) as i16;
        }
    }
}

/// The residue of a block, which is added to the predicted samples.
pub(super) type Residue = [[i16; 4]; 4];

/// Transforms a block.
#[inline(always)]
pub(super) fn inverse(block: &Block) -> Residue {
    let (rows, _) = block.as_chunks::<4>();
    let mut between = [[0; 4]; 4];
    for column in 0..4 {
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|row| i32::from(rows[row][column]));
        let a = first + third;
        let b = first - third;
        let c = times_sine(second) - times_cosine(fourth);
        let d = times_cosine(second) + times_sine(fourth);
        between[0][column] = a + d;
        between[1][column] = b + c;
        between[2][column] = b - c;
        between[3][column] = a - d;
    }

    let mut residue = [[0; 4]; 4];
    for (line, [first, second, third, fourth]) in residue.iter_mut().zip(between) {
        let a = first + 4 + third;
        let b = first + 4 - third;
        let c = times_sine(second) - times_cosine(fourth);
        let d = times_cosine(second) + times_sine(fourth);
        *line = [a + d, b + c, b - c, a - d].map(|sum| (sum >> 3) as i16);
    }
    residue
}

/// Transforms a block that has only the first coefficients of its first row and column.
#[inline(always)]
pub(super) fn inverse_few(block: &Block) -> Residue {
    let (first, across, down) = (i32::from(block[0]) + 4, block[1].into(), block[4].into());
    let (c, d) = (times_sine(across), times_cosine(across));
    let (g, h) = (times_sine(down), times_cosine(down));
    let columns = [d, c, -c, -d];
    [h, g, -g, -h].map(|row| columns.map(|column| ((first + row + column) >> 3) as i16))
}

/// Transforms a block that has only the first coefficient. Every sample gets the same value.
#[inline(always)]
pub(super) fn inverse_flat(first: i16) -> i16 {
    ((i32::from(first) + 4) >> 3) as i16
}
