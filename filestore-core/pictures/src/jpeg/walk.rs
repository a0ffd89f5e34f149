//! The order of a scan's blocks (ITU-T T.81, annex A.2), and the selection of the wanted blocks.

use std::ops::Range;

use super::bits::{Bits, Intervals};
use super::huffman::Broken;

/// The caller's deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late;

/// The blocks of one component in a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct ComponentGrid {
    /// The number of blocks in an MCU, across and down.
    pub(super) size: (u32, u32),
    /// The first wanted block across, and the block behind the last.
    pub(super) columns: (u32, u32),
    /// The first wanted block down, and the block behind the last.
    pub(super) rows: (u32, u32),
}

/// The MCUs of a scan.
#[derive(Debug)]
pub(super) struct Grid {
    /// The number of MCUs, across and down.
    pub(super) size: (u32, u32),
    pub(super) components: Vec<ComponentGrid>,
    /// The number of MCUs between restart markers, or 0 without markers.
    pub(super) restart_interval: usize,
}

/// A block in the order of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The component's index in the scan.
    pub(super) component: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    /// True for a wanted block. Other blocks are read only to reach the blocks behind them.
    pub(super) is_wanted: bool,
}

/// A decoder of blocks. The walk calls it in scan order.
pub(super) trait Blocks {
    /// Resets the state that carries over from block to block, at the start of a restart interval.
    fn restart(&mut self);

    /// Reads the block at `place`.
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken>;
}

/// The treatment of restart intervals without wanted blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwanted {
    /// Skips them.
    Skipped,
    /// Reads them, because later scans need them.
    Read,
}

impl Grid {
    /// Passes the blocks of a scan with this `data` to `blocks`, up to the last wanted block. If the data is
    /// broken or ends, the rest of the restart interval is skipped.
    ///
    /// Returns the number of MCUs that were read. Calls `is_late` before every row of MCUs.
    pub(super) fn walk(
        &self,
        data: &[u8],
        unwanted: Unwanted,
        is_late: &dyn Fn() -> bool,
        blocks: &mut impl Blocks,
    ) -> Result<usize, Late> {
        let across = self.size.0 as usize;
        let total = across * self.size.1 as usize;
        let each = if self.restart_interval == 0 { total } else { self.restart_interval };
        let wanted = self.wanted();
        let mut intervals = Intervals::new(data);
        let mut read = 0;

        while let Some(number) = intervals.next() {
            let first = number.saturating_mul(each);
            let end = first.saturating_add(each).min(total);
            if first >= end || first / across >= wanted.rows.1 {
                break;
            }

            if unwanted == Unwanted::Skipped && wanted.has_none_of(first..end, across) {
                // The clock is looked at once a row here too, in as far as there are markers.
                if first % across < each && is_late() {
                    return Err(Late);
                }
                intervals.skip();
                continue;
            }

            blocks.restart();
            read += self.interval(intervals.read(), first..end, &wanted, is_late, blocks)?;
        }

        Ok(read)
    }

    /// Reads the MCUs of one restart interval. Returns their number.
    #[inline(always)]
    fn interval(
        &self,
        mut bits: Bits<'_>,
        mcus: Range<usize>,
        wanted: &Wanted,
        is_late: &dyn Fn() -> bool,
        blocks: &mut impl Blocks,
    ) -> Result<usize, Late> {
        let across = self.size.0 as usize;
        let (mut x, mut y) = (mcus.start % across, mcus.start / across);
        if is_late() {
            return Err(Late);
        }

        let mut read = 0;
        for _ in mcus {
            let is_wanted = wanted.has(x, y);
            if self.mcu(&mut bits, (x as u32, y as u32), is_wanted, blocks).is_err()
                || bits.is_overdrawn()
            {
                break;
            }

            read += 1;
            x += 1;
            if x == across {
                (x, y) = (0, y + 1);
                if y >= wanted.rows.1 {
                    break;
                }
                if is_late() {
                    return Err(Late);
                }
            }
        }
        Ok(read)
    }

    #[inline(always)]
    fn mcu(
        &self,
        bits: &mut Bits<'_>,
        (x, y): (u32, u32),
        is_wanted: bool,
        blocks: &mut impl Blocks,
    ) -> Result<(), Broken> {
        for (component, grid) in self.components.iter().enumerate() {
            for down in 0..grid.size.1 {
                for across in 0..grid.size.0 {
                    let (x, y) = (x * grid.size.0 + across, y * grid.size.1 + down);
                    blocks.block(bits, Place { component, x, y, is_wanted })?;
                }
            }
        }
        Ok(())
    }

    fn wanted(&self) -> Wanted {
        let columns = self.components.iter().map(|grid| in_mcus(grid.columns, grid.size.0));
        let rows = self.components.iter().map(|grid| in_mcus(grid.rows, grid.size.1));
        Wanted { columns: union(columns), rows: union(rows) }
    }
}

/// The columns and rows of MCUs with wanted blocks: the first, and the one behind the last.
struct Wanted {
    columns: (usize, usize),
    rows: (usize, usize),
}

impl Wanted {
    #[inline(always)]
    fn has(&self, x: usize, y: usize) -> bool {
        (self.columns.0..self.columns.1).contains(&x) && (self.rows.0..self.rows.1).contains(&y)
    }

    /// Returns true if no part of `mcus` is wanted. A row has `across` MCUs.
    fn has_none_of(&self, mcus: Range<usize>, across: usize) -> bool {
        let (top, bottom) = (mcus.start / across, (mcus.end - 1) / across);
        let is_beside = top == bottom
            && (mcus.end - top * across <= self.columns.0
                || mcus.start - top * across >= self.columns.1);
        bottom < self.rows.0 || is_beside
    }
}

/// Converts a block span to an MCU span, with `size` blocks in each MCU.
fn in_mcus((from, to): (u32, u32), size: u32) -> (u32, u32) {
    (from / size, to.div_ceil(size))
}

fn union(spans: impl Iterator<Item = (u32, u32)>) -> (usize, usize) {
    let (from, to) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0));
    (from as usize, to as usize)
}
