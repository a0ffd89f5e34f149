//! Converts a block's coefficients to samples of a plane.

use super::huffman::END;
use super::idct::{Transform, mean};
use super::markers::ZIGZAG;
use super::scale::Part;

/// The position for coefficients that are not needed.
pub(super) const NOWHERE: u8 = 64;

/// The coefficients that scale N/8 needs, and their positions.
#[derive(Debug, Clone)]
pub(super) struct Needed {
    /// The position in N×N rows for each place in zigzag order, or [`NOWHERE`]. The second half stands for
    /// places behind the block's end.
    pub(super) places: [u8; 2 * END],
    /// One bit for each place in zigzag order. The bit is set if the coefficient is needed.
    pub(super) mask: u64,
    /// The last needed place.
    pub(super) last: usize,
}

impl Needed {
    pub(super) fn new(n: u8) -> Self {
        let mut needed = Self { places: [NOWHERE; 2 * END], mask: 0, last: 0 };

        for (at, natural) in ZIGZAG.iter().enumerate() {
            let (x, y) = (natural % 8, natural / 8);
            if x < n && y < n {
                needed.places[at] = y * n + x;
                needed.mask |= 1 << at;
                needed.last = at;
            }
        }
        needed
    }
}

/// Dequantized coefficients of a block in N×N rows, and one more element for coefficients that are not
/// needed.
pub(super) type Coefficients = [f32; NOWHERE as usize + 1];

/// The inverse transform for a component's scale.
#[derive(Debug)]
pub(super) enum Inverse {
    N1,
    N2(Transform<2>),
    N3(Transform<3>),
    N4(Transform<4>),
    N5(Transform<5>),
    N6(Transform<6>),
    N7(Transform<7>),
    N8(Box<Transform<8>>),
}

impl Inverse {
    pub(super) fn new(n: u8) -> Self {
        match n {
            1 => Self::N1,
            2 => Self::N2(Transform::new()),
            3 => Self::N3(Transform::new()),
            4 => Self::N4(Transform::new()),
            5 => Self::N5(Transform::new()),
            6 => Self::N6(Transform::new()),
            7 => Self::N7(Transform::new()),
            _ => Self::N8(Box::new(Transform::new())),
        }
    }

    /// Transforms block `x`, `y`, and writes its samples to `plane`.
    #[inline(always)]
    pub(super) fn put(&self, coefficients: &Coefficients, plane: &mut Plane, x: u32, y: u32) {
        match self {
            Self::N1 => plane.put(x, y, &[[mean(coefficients[0])]]),
            Self::N2(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N3(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N4(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N5(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N6(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N7(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
            Self::N8(transform) => plane.put(x, y, &transform.inverse(rows(coefficients))),
        }
    }

    /// Writes a block with only the first coefficient to `plane`, like [`put`](Self::put).
    #[inline(always)]
    pub(super) fn put_flat(&self, dc: f32, plane: &mut Plane, x: u32, y: u32) {
        let sample = mean(dc);
        match self {
            Self::N1 => plane.put(x, y, &[[sample]]),
            Self::N2(_) => plane.put(x, y, &[[sample; 2]; 2]),
            Self::N3(_) => plane.put(x, y, &[[sample; 3]; 3]),
            Self::N4(_) => plane.put(x, y, &[[sample; 4]; 4]),
            Self::N5(_) => plane.put(x, y, &[[sample; 5]; 5]),
            Self::N6(_) => plane.put(x, y, &[[sample; 6]; 6]),
            Self::N7(_) => plane.put(x, y, &[[sample; 7]; 7]),
            Self::N8(_) => plane.put(x, y, &[[sample; 8]; 8]),
        }
    }
}

#[inline(always)]
fn rows<const N: usize>(coefficients: &Coefficients) -> &[[f32; N]; N] {
    let (rows, _) = coefficients.as_chunks();
    rows.first_chunk().expect("N×N are at most 64")
}

/// The decoded samples of a component, written block by block.
#[derive(Debug)]
pub(super) struct Plane {
    part: Part,
    /// Rows without padding. Parts that were not decoded are grey.
    pub(super) samples: Vec<u8>,
}

impl Plane {
    pub(super) fn new(part: Part) -> Self {
        Self { part, samples: vec![128; part.width as usize * part.height as usize] }
    }

    /// Writes block `x`, `y` of the component to its position. Drops samples outside the part.
    #[inline(always)]
    fn put<const N: usize>(&mut self, x: u32, y: u32, block: &[[u8; N]; N]) {
        let Part { columns, rows, width, height, .. } = self.part;
        if x < columns.0 || y < rows.0 {
            return;
        }

        let (left, top) = ((x - columns.0) as usize * N, (y - rows.0) as usize * N);
        let (width, height) = (width as usize, height as usize);
        if left >= width || top >= height {
            return;
        }

        let start = top * width + left;
        if left + N <= width && top + N <= height {
            // One check for all rows.
            let Some(target) = self.samples.get_mut(start..start + (N - 1) * width + N) else {
                return;
            };
            for (row, line) in block.iter().enumerate() {
                target[row * width..row * width + N].copy_from_slice(line);
            }
        } else {
            let kept = N.min(width - left);
            let rows = self.samples[start..].chunks_mut(width);
            for (line, row) in block.iter().zip(rows).take(height - top) {
                row[..kept].copy_from_slice(&line[..kept]);
            }
        }
    }
}
