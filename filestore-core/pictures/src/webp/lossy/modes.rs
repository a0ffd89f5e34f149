//! Reads the prediction modes of macroblocks (RFC 6386, sections 10, 11.2 and 11.3).

use super::bools::Bools;
use super::frame::Frame;
use super::tables::SUBBLOCK_MODE_PROBABILITIES;

/// A prediction mode for all luminance or chrominance of a macroblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The mean of the samples above and to the left.
    Mean,
    /// The samples above.
    Above,
    /// The samples to the left.
    Left,
    /// The samples above, changed like the samples to the left differ from the corner ("true motion").
    Slope,
}

/// A prediction mode for a 4×4 block (`B_DC_PRED` and so on), in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubblockMode {
    Mean,
    Slope,
    Above,
    Left,
    LeftDown,
    RightDown,
    VerticalRight,
    VerticalLeft,
    HorizontalDown,
    HorizontalUp,
}

/// The prediction of a macroblock's luminance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luminance {
    Whole(Mode),
    /// The modes of the subblocks, row by row.
    Subblocks([SubblockMode; 16]),
}

/// The data about a macroblock in the first partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Macroblock {
    pub(super) segment: usize,
    /// True if the macroblock is flagged as having no coefficients.
    pub(super) is_skipped: bool,
    pub(super) luminance: Luminance,
    pub(super) chrominance: Mode,
}

/// A reader of modes, with the neighbours that later modes depend on.
pub(super) struct Modes<'a> {
    bools: Bools<'a>,
    segment_tree: Option<[u8; 3]>,
    skip: Option<u8>,
    /// The modes of the subblocks above, four for each macroblock.
    above: Vec<[SubblockMode; 4]>,
    left: [SubblockMode; 4],
}

impl<'a> Modes<'a> {
    pub(super) fn new(frame: &Frame<'a>, columns: usize) -> Self {
        Self {
            bools: frame.modes,
            segment_tree: frame.segment_tree,
            skip: frame.skip,
            above: vec![[SubblockMode::Mean; 4]; columns],
            left: [SubblockMode::Mean; 4],
        }
    }

    /// Returns true if the caller read more than the partition has.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.bools.is_overdrawn()
    }

    /// Begins a row of macroblocks.
    pub(super) fn begin_row(&mut self) {
        self.left = [SubblockMode::Mean; 4];
    }

    /// Reads the next macroblock of the row, at `column`.
    pub(super) fn read(&mut self, column: usize) -> Macroblock {
        let segment = self.segment_tree.map_or(0, |tree| read_segment(&mut self.bools, tree));
        let is_skipped = self.skip.is_some_and(|probability| self.bools.bool(probability));
        let luminance = self.read_luminance(column);
        let chrominance = read_chrominance(&mut self.bools);
        Macroblock { segment, is_skipped, luminance, chrominance }
    }

    fn read_luminance(&mut self, column: usize) -> Luminance {
        let Some(above) = self.above.get_mut(column) else {
            return Luminance::Whole(Mode::Mean);
        };
        if !self.bools.bool(145) {
            return Luminance::Subblocks(read_subblocks(&mut self.bools, above, &mut self.left));
        }

        let mode = read_whole(&mut self.bools);
        let as_subblock = match mode {
            Mode::Mean => SubblockMode::Mean,
            Mode::Above => SubblockMode::Above,
            Mode::Left => SubblockMode::Left,
            Mode::Slope => SubblockMode::Slope,
        };
        *above = [as_subblock; 4];
        self.left = [as_subblock; 4];
        Luminance::Whole(mode)
    }
}

fn read_segment(bools: &mut Bools<'_>, tree: [u8; 3]) -> usize {
    if bools.bool(tree[0]) {
        2 + usize::from(bools.bool(tree[2]))
    } else {
        usize::from(bools.bool(tree[1]))
    }
}

fn read_whole(bools: &mut Bools<'_>) -> Mode {
    bools.refill();
    match (bools.next(156), bools) {
        (true, bools) => {
            if bools.next(128) {
                Mode::Slope
            } else {
                Mode::Left
            }
        }
        (false, bools) => {
            if bools.next(163) {
                Mode::Above
            } else {
                Mode::Mean
            }
        }
    }
}

fn read_chrominance(bools: &mut Bools<'_>) -> Mode {
    bools.refill();
    if !bools.next(142) {
        Mode::Mean
    } else if !bools.next(114) {
        Mode::Above
    } else if bools.next(183) {
        Mode::Slope
    } else {
        Mode::Left
    }
}

fn read_subblocks(
    bools: &mut Bools<'_>,
    above: &mut [SubblockMode; 4],
    left: &mut [SubblockMode; 4],
) -> [SubblockMode; 16] {
    let mut local = *bools;
    let mut modes = [SubblockMode::Mean; 16];

    for (row, left) in modes.as_chunks_mut::<4>().0.iter_mut().zip(left) {
        for (mode, above) in row.iter_mut().zip(above.iter_mut()) {
            let probabilities = &SUBBLOCK_MODE_PROBABILITIES[*above as usize][*left as usize];
            *mode = read_subblock(&mut local, probabilities);
            *above = *mode;
            *left = *mode;
        }
    }

    *bools = local;
    modes
}

/// Reads a subblock's mode along its tree (section 11.2).
#[inline(always)]
fn read_subblock(bools: &mut Bools<'_>, probabilities: &[u8; 9]) -> SubblockMode {
    bools.refill();
    if !bools.next(probabilities[0]) {
        return SubblockMode::Mean;
    }
    if !bools.next(probabilities[1]) {
        return SubblockMode::Slope;
    }
    if !bools.next(probabilities[2]) {
        return SubblockMode::Above;
    }

    if !bools.next(probabilities[3]) {
        if !bools.next(probabilities[4]) {
            return SubblockMode::Left;
        }
        return if bools.next(probabilities[5]) {
            SubblockMode::VerticalRight
        } else {
            SubblockMode::RightDown
        };
    }

    bools.refill();
    if !bools.next(probabilities[6]) {
        SubblockMode::LeftDown
    } else if !bools.next(probabilities[7]) {
        SubblockMode::VerticalLeft
    } else if bools.next(probabilities[8]) {
        SubblockMode::HorizontalUp
    } else {
        SubblockMode::HorizontalDown
    }
}
