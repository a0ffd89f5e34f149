//! One macroblock during its reconstruction: samples with the borders for prediction (RFC 6386, section 12).
//!
//! All indexes are constants or come from small loops over arrays of fixed sizes. The compiler can therefore
//! remove its checks, and use vector instructions.

use super::modes::{Mode, SubblockMode};
use super::tokens::{Block, Extent};
use super::transform::{Residue, inverse, inverse_few, inverse_flat};

/// The bytes from one row of a patch to the next.
pub(super) const STRIDE: usize = 32;
/// The offset of a patch's first sample in a row, behind the border.
const LEFT: usize = 8;

/// The value of samples above the picture.
const ABOVE_PICTURE: u8 = 127;
/// The value of samples to the left of the picture.
const LEFT_OF_PICTURE: u8 = 129;

/// A square with `ROWS - 1` samples on each side. Row 0 is the border above. The sample before the first
/// sample of a row is the border to the left.
#[derive(Debug, Clone)]
pub(super) struct Patch<const ROWS: usize> {
    rows: [[u8; STRIDE]; ROWS],
}

/// The luminance of a macroblock.
pub(super) type LuminancePatch = Patch<17>;
/// One of the two chrominance components of a macroblock.
pub(super) type ChrominancePatch = Patch<9>;

/// The position of a macroblock relative to the picture's edges, which prediction depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Borders {
    pub(super) has_above: bool,
    pub(super) has_left: bool,
}

impl<const ROWS: usize> Patch<ROWS> {
    /// The samples of a side.
    const SIDE: usize = ROWS - 1;

    pub(super) fn new() -> Self {
        Self { rows: [[ABOVE_PICTURE; STRIDE]; ROWS] }
    }

    /// Returns the samples of row `row`.
    #[inline(always)]
    pub(super) fn row<const SIDE: usize>(&self, row: usize) -> &[u8; SIDE] {
        self.rows[1 + row][LEFT..].first_chunk().expect("a row is longer")
    }

    /// Returns the last row of samples.
    pub(super) fn last_row<const SIDE: usize>(&self) -> &[u8; SIDE] {
        self.row(Self::SIDE - 1)
    }

    /// Sets the borders. `above` contains the last samples of the macroblock above. The left border remains
    /// from the previous macroblock.
    #[inline(always)]
    pub(super) fn set_borders<const SIDE: usize>(&mut self, borders: Borders, above: &[u8; SIDE]) {
        if borders.has_left {
            for row in &mut self.rows {
                row[LEFT - 1] = row[LEFT + Self::SIDE - 1];
            }
        } else {
            for row in &mut self.rows {
                row[LEFT - 1] = LEFT_OF_PICTURE;
            }
            if !borders.has_above {
                self.rows[0][LEFT - 1] = ABOVE_PICTURE;
            }
        }

        if borders.has_above {
            self.rows[0][LEFT..LEFT + SIDE].copy_from_slice(above);
        } else {
            self.rows[0][LEFT..].fill(ABOVE_PICTURE);
        }
    }

    /// Predicts all samples at once.
    #[inline(always)]
    pub(super) fn predict<const SIDE: usize>(&mut self, mode: Mode, borders: Borders) {
        let (first, rest) = self.rows.split_first_mut().expect("a border and samples");
        let above: [u8; SIDE] = *first[LEFT..].first_chunk().expect("a row is longer");
        let corner = i16::from(first[LEFT - 1]);
        match mode {
            Mode::Mean => {
                let left = rest.iter().map(|row| u32::from(row[LEFT - 1])).sum();
                let mean = mean_of(&above, left, borders);
                for row in rest {
                    row[LEFT..LEFT + SIDE].fill(mean);
                }
            }
            Mode::Above => {
                for row in rest {
                    row[LEFT..LEFT + SIDE].copy_from_slice(&above);
                }
            }
            Mode::Left => {
                for row in rest {
                    let left = row[LEFT - 1];
                    row[LEFT..LEFT + SIDE].fill(left);
                }
            }
            Mode::Slope => {
                for row in rest {
                    let change = i16::from(row[LEFT - 1]) - corner;
                    let samples = row[LEFT..].first_chunk_mut::<SIDE>().expect("a row is longer");
                    for (sample, above) in samples.iter_mut().zip(above) {
                        *sample = (i16::from(above) + change).clamp(0, 255) as u8;
                    }
                }
            }
        }
    }

    /// Adds the residue of the block at `row` and `column` (in samples).
    #[inline(always)]
    pub(super) fn add(&mut self, row: usize, column: usize, block: &Block, extent: Extent) {
        match extent {
            Extent::Empty => {}
            Extent::Flat => self.add_residue(row, column, [[inverse_flat(block[0]); 4]; 4]),
            Extent::Few => self.add_residue(row, column, inverse_few(block)),
            Extent::Full => self.add_residue(row, column, inverse(block)),
        }
    }

    #[inline(always)]
    fn add_residue(&mut self, row: usize, column: usize, residue: Residue) {
        for (line, residue) in self.rows[1 + row..5 + row].iter_mut().zip(residue) {
            let samples = line[LEFT + column..].first_chunk_mut::<4>().expect("within a row");
            for (sample, residue) in samples.iter_mut().zip(residue) {
                *sample = (i16::from(*sample).saturating_add(residue)).clamp(0, 255) as u8;
            }
        }
    }
}

/// Returns the mean of the available borders. `left` is the sum of the left border.
#[inline(always)]
fn mean_of<const SIDE: usize>(above: &[u8; SIDE], left: u32, borders: Borders) -> u8 {
    let side = SIDE as u32;
    let above: u32 = above.iter().map(|sample| u32::from(*sample)).sum();
    let mean = match (borders.has_above, borders.has_left) {
        (true, true) => (above + left + side) / (2 * side),
        (true, false) => (above + side / 2) / side,
        (false, true) => (left + side / 2) / side,
        (false, false) => 128,
    };
    mean as u8
}

impl LuminancePatch {
    /// Sets the four samples above and to the right of the macroblock. The subblocks at the right use them in
    /// all rows.
    #[inline(always)]
    pub(super) fn set_above_right(&mut self, above_right: [u8; 4]) {
        for row in [0, 4, 8, 12] {
            self.rows[row][LEFT + 16..LEFT + 20].copy_from_slice(&above_right);
        }
    }

    /// Returns the last sample of the border above.
    pub(super) fn last_above(&self) -> u8 {
        self.rows[0][LEFT + 15]
    }

    /// Predicts each subblock and adds its residue, in this order, because later subblocks are predicted from
    /// the result.
    #[inline(always)]
    pub(super) fn put_subblocks(
        &mut self,
        modes: &[SubblockMode; 16],
        blocks: &[Block],
        extents: &[Extent],
    ) {
        for (number, ((mode, block), extent)) in modes.iter().zip(blocks).zip(extents).enumerate() {
            let (row, column) = (number / 4 * 4, number % 4 * 4);
            self.predict_subblock(row, column, *mode);
            self.add(row, column, block, *extent);
        }
    }

    #[inline(always)]
    fn predict_subblock(&mut self, row: usize, column: usize, mode: SubblockMode) {
        let samples = &mut self.rows[row..row + 5];
        let edge = Edge::of(samples, LEFT + column);
        let predicted = edge.predict(mode);
        for (line, predicted) in samples[1..].iter_mut().zip(predicted) {
            line[LEFT + column..LEFT + column + 4].copy_from_slice(&predicted);
        }
    }
}

/// The samples around a subblock: from the bottom left up, around the corner, and to the right.
struct Edge {
    /// The samples to the left, from the top down.
    left: [u8; 4],
    corner: u8,
    above: [u8; 8],
}

#[expect(clippy::many_single_char_names, reason = "the names of RFC 6386, section 12.3")]
impl Edge {
    /// Reads the border of the subblock that starts at `column` of the second row.
    #[inline(always)]
    fn of(rows: &[[u8; STRIDE]], column: usize) -> Self {
        Self {
            left: [1, 2, 3, 4].map(|row: usize| rows[row][column - 1]),
            corner: rows[0][column - 1],
            above: *rows[0][column..].first_chunk().expect("a row is longer"),
        }
    }

    #[inline(always)]
    fn predict(&self, mode: SubblockMode) -> [[u8; 4]; 4] {
        match mode {
            SubblockMode::Mean => self.mean(),
            SubblockMode::Slope => self.slope(),
            SubblockMode::Above => self.smooth_above(),
            SubblockMode::Left => self.smooth_left(),
            SubblockMode::LeftDown => self.left_down(),
            SubblockMode::RightDown => self.right_down(),
            SubblockMode::VerticalRight => self.vertical_right(),
            SubblockMode::VerticalLeft => self.vertical_left(),
            SubblockMode::HorizontalDown => self.horizontal_down(),
            SubblockMode::HorizontalUp => self.horizontal_up(),
        }
    }

    fn mean(&self) -> [[u8; 4]; 4] {
        let sum: u32 = self.left.iter().chain(&self.above[..4]).map(|one| u32::from(*one)).sum();
        [[((sum + 4) >> 3) as u8; 4]; 4]
    }

    fn slope(&self) -> [[u8; 4]; 4] {
        let [a, b, c, d, ..] = self.above;
        self.left.map(|left| {
            let change = i16::from(left) - i16::from(self.corner);
            [a, b, c, d].map(|above| (i16::from(above) + change).clamp(0, 255) as u8)
        })
    }

    fn smooth_above(&self) -> [[u8; 4]; 4] {
        let [a, b, c, d, e, ..] = self.above;
        [[third(self.corner, a, b), third(a, b, c), third(b, c, d), third(c, d, e)]; 4]
    }

    fn smooth_left(&self) -> [[u8; 4]; 4] {
        let [i, j, k, l] = self.left;
        [third(self.corner, i, j), third(i, j, k), third(j, k, l), third(k, l, l)]
            .map(|sample| [sample; 4])
    }

    fn left_down(&self) -> [[u8; 4]; 4] {
        let [a, b, c, d, e, f, g, h] = self.above;
        let line = [
            third(a, b, c),
            third(b, c, d),
            third(c, d, e),
            third(d, e, f),
            third(e, f, g),
            third(f, g, h),
            third(g, h, h),
        ];
        [0, 1, 2, 3].map(|row| [line[row], line[row + 1], line[row + 2], line[row + 3]])
    }

    fn right_down(&self) -> [[u8; 4]; 4] {
        let ([i, j, k, l], x, [a, b, c, d, ..]) = (self.left, self.corner, self.above);
        let line = [
            third(l, k, j),
            third(k, j, i),
            third(j, i, x),
            third(i, x, a),
            third(x, a, b),
            third(a, b, c),
            third(b, c, d),
        ];
        [3, 2, 1, 0].map(|row| [line[row], line[row + 1], line[row + 2], line[row + 3]])
    }

    fn vertical_right(&self) -> [[u8; 4]; 4] {
        let ([i, j, k, _], x, [a, b, c, d, ..]) = (self.left, self.corner, self.above);
        let (first, second) = (
            [half(x, a), half(a, b), half(b, c), half(c, d)],
            [third(i, x, a), third(x, a, b), third(a, b, c), third(b, c, d)],
        );
        let (third_first, fourth_first) = (third(j, i, x), third(k, j, i));
        [
            first,
            second,
            [third_first, first[0], first[1], first[2]],
            [fourth_first, second[0], second[1], second[2]],
        ]
    }

    fn vertical_left(&self) -> [[u8; 4]; 4] {
        let [a, b, c, d, e, f, g, h] = self.above;
        let (first, second) = (
            [half(a, b), half(b, c), half(c, d), half(d, e)],
            [third(a, b, c), third(b, c, d), third(c, d, e), third(d, e, f)],
        );
        [
            first,
            second,
            [first[1], first[2], first[3], third(e, f, g)],
            [second[1], second[2], second[3], third(f, g, h)],
        ]
    }

    fn horizontal_down(&self) -> [[u8; 4]; 4] {
        let ([i, j, k, l], x, [a, b, c, ..]) = (self.left, self.corner, self.above);
        let line = [
            half(l, k),
            third(l, k, j),
            half(k, j),
            third(k, j, i),
            half(j, i),
            third(j, i, x),
            half(i, x),
            third(i, x, a),
            third(x, a, b),
            third(a, b, c),
        ];
        [6, 4, 2, 0].map(|row| [line[row], line[row + 1], line[row + 2], line[row + 3]])
    }

    fn horizontal_up(&self) -> [[u8; 4]; 4] {
        let [i, j, k, l] = self.left;
        let line = [
            half(i, j),
            third(i, j, k),
            half(j, k),
            third(j, k, l),
            half(k, l),
            third(k, l, l),
            l,
            l,
            l,
            l,
        ];
        [0, 2, 4, 6].map(|row| [line[row], line[row + 1], line[row + 2], line[row + 3]])
    }
}

/// Returns the mean of two, rounded up.
#[inline(always)]
fn half(a: u8, b: u8) -> u8 {
    ((u16::from(a) + u16::from(b) + 1) >> 1) as u8
}

/// Returns the weighted mean of three, the one in the middle twice.
#[inline(always)]
fn third(a: u8, b: u8, c: u8) -> u8 {
    ((u16::from(a) + 2 * u16::from(b) + u16::from(c) + 2) >> 2) as u8
}
