//! Decodes a frame, macroblock by macroblock.

use super::bools::Bools;
use super::filter::{Step, Strengths, filter_row};
use super::frame::Frame;
use super::modes::{Luminance, Macroblock, Modes};
use super::output::{Output, Part};
use super::patch::{Borders, ChrominancePatch, LuminancePatch};
use super::scale::Parts;
use super::tokens::{Coefficients, HasMeans, Neighbours};

/// The caller's deadline passed.
pub(super) struct Late;

/// The decoded part of a picture.
pub(super) struct Decoded {
    /// The samples of each component. Missing rows repeat the nearest row.
    pub(super) samples: [Vec<u8>; 3],
    /// The number of decoded macroblock rows.
    pub(super) rows: usize,
}

/// The state between macroblocks.
pub(super) struct Decoder<'a> {
    frame: Frame<'a>,
    modes: Modes<'a>,
    columns: usize,
    above: Vec<Above>,
    left: Neighbours,
    coefficients: Coefficients,
    luminance: LuminancePatch,
    chrominance: [ChrominancePatch; 2],
    outputs: [Output; 3],
    /// The part of luminance to decode. Rows and columns are the same for all components.
    part: Part,
    filter: Option<Strengths>,
    /// The filter steps for the current row.
    steps: Vec<Step>,
}

/// The state that the macroblocks below depend on.
#[derive(Debug, Clone, Copy)]
struct Above {
    luminance: [u8; 16],
    chrominance: [[u8; 8]; 2],
    neighbours: Neighbours,
}

impl<'a> Decoder<'a> {
    /// Prepares to decode the `parts` of the components.
    pub(super) fn new(frame: Frame<'a>, parts: &Parts) -> Self {
        let columns = frame.size.width.div_ceil(16) as usize;
        let above = Above {
            luminance: [0; 16],
            chrominance: [[0; 8]; 2],
            neighbours: Neighbours::default(),
        };
        let filter = parts.is_filtered.then(|| Strengths::new(frame.filter));
        let outputs = [(0, 16), (1, 8), (2, 8)].map(|(index, side)| {
            let part = parts.all[index];
            if filter.is_some() {
                Output::of_whole_macroblocks(part, side)
            } else {
                Output::new(part)
            }
        });
        Self {
            modes: Modes::new(&frame, columns),
            columns,
            above: vec![above; columns],
            left: Neighbours::default(),
            coefficients: Coefficients::NONE,
            luminance: LuminancePatch::new(),
            chrominance: [ChrominancePatch::new(), ChrominancePatch::new()],
            outputs,
            part: parts.all[0],
            filter,
            steps: Vec::new(),
            frame,
        }
    }

    /// Decodes down to the last wanted row. `None` if no row of the part was decoded.
    pub(super) fn run(mut self, is_late: &dyn Fn() -> bool) -> Result<Option<Decoded>, Late> {
        let partitions = self.frame.tokens.len();
        let mut rows = 0;
        for row in 0..self.part.rows.1 {
            if is_late() {
                return Err(Late);
            }

            let mut tokens = self.frame.tokens[row % partitions];
            let is_whole = self.row(row, &mut tokens);
            self.frame.tokens[row % partitions] = tokens;

            if let Some(strengths) = &self.filter
                && let Some(row) = row.checked_sub(self.part.rows.0)
            {
                filter_row(&mut self.outputs, row, &self.steps, strengths.is_simple);
            }
            if !is_whole {
                break;
            }
            rows = row + 1;
        }

        if rows <= self.part.rows.0 {
            return Ok(None);
        }
        Ok(Some(Decoded { samples: self.outputs.map(|output| output.into_samples(rows)), rows }))
    }

    /// Decodes a row of macroblocks. Returns false if the data ends within it.
    fn row(&mut self, row: usize, tokens: &mut Bools<'_>) -> bool {
        self.modes.begin_row();
        self.left = Neighbours::default();
        self.steps.clear();

        for column in 0..self.columns {
            let macroblock = self.modes.read(column);
            let has_coefficients = self.read_coefficients(column, &macroblock, tokens);
            if tokens.is_overdrawn() || self.modes.is_overdrawn() {
                return false;
            }

            self.reconstruct(row, column, &macroblock, has_coefficients);
            self.outputs[0].put::<17, 16>(&self.luminance, (row, column));
            self.outputs[1].put::<9, 8>(&self.chrominance[0], (row, column));
            self.outputs[2].put::<9, 8>(&self.chrominance[1], (row, column));
            self.note_step(column, &macroblock, has_coefficients);
        }
        true
    }

    fn read_coefficients(
        &mut self,
        column: usize,
        macroblock: &Macroblock,
        tokens: &mut Bools<'_>,
    ) -> bool {
        let has_means = match macroblock.luminance {
            Luminance::Whole(_) => HasMeans::Yes,
            Luminance::Subblocks(_) => HasMeans::No,
        };
        let above = &mut self.above[column].neighbours;
        if macroblock.is_skipped {
            above.pass(has_means);
            self.left.pass(has_means);
            return false;
        }

        let quantizer = &self.frame.quantizers[macroblock.segment];
        let sides = (above, &mut self.left);
        self.coefficients.read(tokens, &self.frame.probabilities, quantizer, has_means, sides)
    }

    /// Computes the samples of the macroblock in the patches.
    #[inline(always)]
    fn reconstruct(
        &mut self,
        row: usize,
        column: usize,
        macroblock: &Macroblock,
        has_coefficients: bool,
    ) {
        let borders = Borders { has_above: row > 0, has_left: column > 0 };
        if !has_coefficients {
            self.coefficients = Coefficients::NONE;
        }
        let Coefficients { blocks, extents } = &self.coefficients;
        let next = self.above.get(column + 1).map(|above| above.luminance);
        let above = &mut self.above[column];

        self.luminance.set_borders(borders, &above.luminance);
        match &macroblock.luminance {
            Luminance::Whole(mode) => {
                self.luminance.predict::<16>(*mode, borders);
                for (number, (block, extent)) in blocks.iter().zip(extents).take(16).enumerate() {
                    self.luminance.add(number / 4 * 4, number % 4 * 4, block, *extent);
                }
            }
            Luminance::Subblocks(modes) => {
                let last = [self.luminance.last_above(); 4];
                let above_right = if borders.has_above {
                    next.and_then(|next| next.first_chunk().copied()).unwrap_or(last)
                } else {
                    last
                };
                self.luminance.set_above_right(above_right);
                self.luminance.put_subblocks(modes, &blocks[..16], &extents[..16]);
            }
        }
        above.luminance = *self.luminance.last_row();

        for (index, patch) in self.chrominance.iter_mut().enumerate() {
            patch.set_borders(borders, &above.chrominance[index]);
            patch.predict::<8>(macroblock.chrominance, borders);
            let first = 16 + 4 * index;
            let blocks = blocks[first..first + 4].iter().zip(&extents[first..first + 4]);
            for (number, (block, extent)) in blocks.enumerate() {
                patch.add(number / 2 * 4, number % 2 * 4, block, *extent);
            }
            above.chrominance[index] = *patch.last_row();
        }
    }

    /// Records the filter step for the macroblock, if the frame has a filter and the macroblock is wanted.
    fn note_step(&mut self, column: usize, macroblock: &Macroblock, has_coefficients: bool) {
        let Some(strengths) = &self.filter else { return };
        let (first, behind) = self.part.columns;
        if !(first..behind).contains(&column) {
            return;
        }

        let by_subblocks = matches!(macroblock.luminance, Luminance::Subblocks(_));
        self.steps.push(Step {
            strength: strengths.of(macroblock.segment, by_subblocks.into()),
            has_inner_edges: by_subblocks || has_coefficients,
        });
    }
}
