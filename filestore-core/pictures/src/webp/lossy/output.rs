//! The planes for decoded samples. The planes can show a part of the picture, and can be reduced.
//!
//! A macroblock is reduced while it is in the processor's first-level cache. The means of squares become
//! samples. The side of a square is a power of two. A small variant therefore needs no plane of the stored
//! size.

use super::patch::Patch;

/// The wanted part of a component, and its reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The samples on each side of a macroblock, before the reduction.
    pub(super) side: usize,
    /// The samples on each side of a square that becomes one sample: 1, 2, 4, 8 or 16.
    pub(super) reduction: usize,
    /// The first macroblock across, and the macroblock behind the last.
    pub(super) columns: (usize, usize),
    /// The first macroblock down, and the macroblock behind the last.
    pub(super) rows: (usize, usize),
    /// The number of reduced samples across.
    pub(super) width: usize,
    /// The number of reduced samples down.
    pub(super) height: usize,
}

/// A plane that is filled macroblock by macroblock.
#[derive(Debug)]
pub(super) struct Output {
    part: Part,
    /// The number of samples from one row to the next.
    pub(super) width: usize,
    /// The number of rows.
    height: usize,
    pub(super) samples: Vec<u8>,
}

impl Output {
    /// Makes an empty plane.
    pub(super) fn new(part: Part) -> Self {
        let (width, height) = (part.width, part.height);
        Self { part, width, height, samples: vec![0; width * height] }
    }

    /// Makes a plane like [`new`](Self::new), for a component with `side` samples on each side of a
    /// macroblock. Samples outside the picture, in the last macroblocks, stay until the end, because the
    /// filter reads them.
    pub(super) fn of_whole_macroblocks(part: Part, side: usize) -> Self {
        let [width, height] =
            [part.columns, part.rows].map(|(first, behind)| (behind - first) * side);
        Self { part, width, height, samples: vec![0; width * height] }
    }

    /// Returns the samples of the part, row by row without padding. `rows` is the number of decoded
    /// macroblock rows. At least one of them must belong to the part.
    pub(super) fn into_samples(self, rows: usize) -> Vec<u8> {
        let Self { part, width, mut samples, .. } = self;
        if width > part.width {
            for row in 1..part.height {
                let start = row * width;
                samples.copy_within(start..start + part.width, row * part.width);
            }
        }
        samples.truncate(part.width * part.height);

        let arrived = (rows - part.rows.0) * part.side / part.reduction;
        for row in arrived.max(1)..part.height {
            let last = (row - 1) * part.width;
            samples.copy_within(last..last + part.width, last + part.width);
        }
        samples
    }

    /// Writes the macroblock at `row` and `column` of the picture to its position, if it is wanted.
    #[inline(always)]
    pub(super) fn put<const ROWS: usize, const SIDE: usize>(
        &mut self,
        patch: &Patch<ROWS>,
        (row, column): (usize, usize),
    ) {
        let Part { reduction, columns, rows, .. } = self.part;
        if !(columns.0..columns.1).contains(&column) || !(rows.0..rows.1).contains(&row) {
            return;
        }

        let side = SIDE / reduction;
        let (left, top) = ((column - columns.0) * side, (row - rows.0) * side);
        match reduction {
            1 => self.put_reduced::<ROWS, SIDE, 1>(patch, left, top),
            2 => self.put_reduced::<ROWS, SIDE, 2>(patch, left, top),
            4 => self.put_reduced::<ROWS, SIDE, 4>(patch, left, top),
            8 => self.put_reduced::<ROWS, SIDE, 8>(patch, left, top),
            _ => self.put_reduced::<ROWS, SIDE, 16>(patch, left, top),
        }
    }

    #[inline(always)]
    fn put_reduced<const ROWS: usize, const SIDE: usize, const N: usize>(
        &mut self,
        patch: &Patch<ROWS>,
        left: usize,
        top: usize,
    ) {
        let (width, height) = (self.width, self.height);
        let side = SIDE / N;
        if left >= width || top >= height {
            return;
        }

        let kept = side.min(width - left);
        let lines = self.samples[top * width + left..].chunks_mut(width);
        for (row, line) in lines.enumerate().take(side.min(height - top)) {
            let reduced = reduce_row::<ROWS, SIDE, N>(patch, row);
            if kept == side {
                line[..side].copy_from_slice(&reduced[..side]);
            } else {
                line[..kept].copy_from_slice(&reduced[..kept]);
            }
        }
    }
}

/// Returns row `row` of the reduced macroblock, which has `SIDE / N` samples.
#[inline(always)]
fn reduce_row<const ROWS: usize, const SIDE: usize, const N: usize>(
    patch: &Patch<ROWS>,
    row: usize,
) -> [u8; SIDE] {
    if N == 1 {
        return *patch.row(row);
    }

    let mut sums = [0u16; SIDE];
    for line in 0..N {
        for (sum, sample) in sums.iter_mut().zip(patch.row::<SIDE>(row * N + line)) {
            *sum += u16::from(*sample);
        }
    }

    let mut reduced = [0; SIDE];
    let area = (N * N) as u32;
    for (mean, sums) in reduced.iter_mut().zip(sums.chunks_exact(N)) {
        let sum: u32 = sums.iter().map(|sum| u32::from(*sum)).sum();
        *mean = ((sum + area / 2) / area) as u8;
    }
    reduced
}
