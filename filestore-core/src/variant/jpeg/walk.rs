//! The order of a scan's blocks (ITU-T T.81, annex A.2), and which of them are wanted.

use super::bits::{Bits, Intervals};
use super::huffman::Broken;

/// Time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late;

/// One component in a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    /// Blocks in an MCU, across and down.
    pub(super) size: (u32, u32),
    /// The blocks wanted: the first, and the one behind the last.
    pub(super) columns: (u32, u32),
    pub(super) rows: (u32, u32),
}

/// The MCUs of a scan.
#[derive(Debug)]
pub(super) struct Grid {
    /// MCUs across and down.
    pub(super) size: (u32, u32),
    pub(super) lanes: Vec<Lane>,
    /// MCUs between restart markers, 0 for no markers.
    pub(super) restart_interval: usize,
}

/// A block that a scan comes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The component's place in the scan.
    pub(super) lane: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    /// Whether it is wanted. Others are read only for what follows them.
    pub(super) is_wanted: bool,
}

/// What a decoder of blocks does, in the order in which a scan has them.
pub(super) trait Blocks {
    /// Forgets what carries over from block to block: a restart interval begins.
    fn restart(&mut self);

    /// Reads one block.
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken>;
}

impl Grid {
    /// Gives `blocks` those of a scan with this `data` up to the last one wanted. Whole restart
    /// intervals of which none is wanted are passed over if `may_pass`. Where the data is broken or
    /// ends, what is left of the restart interval is not given.
    ///
    /// Returns how many MCUs were read. `is_late` is asked before every row of them.
    pub(super) fn walk(
        &self,
        data: &[u8],
        may_pass: bool,
        is_late: &dyn Fn() -> bool,
        blocks: &mut impl Blocks,
    ) -> Result<usize, Late> {
        let across = self.size.0 as usize;
        let total = across * self.size.1 as usize;
        let each = if self.restart_interval == 0 { total } else { self.restart_interval };
        let (columns, rows) = self.wanted();
        let mut intervals = Intervals::new(data);
        let mut read = 0;
        while let Some(number) = intervals.next() {
            let first = number.saturating_mul(each);
            let end = first.saturating_add(each).min(total);
            if first >= end || first / across >= rows.1 {
                break;
            }
            let (top, bottom) = (first / across, (end - 1) / across);
            let is_beside = top == bottom
                && (end - top * across <= columns.0 || first - top * across >= columns.1);
            if may_pass && (bottom < rows.0 || is_beside) {
                // The clock is looked at once a row here too, in as far as there are markers.
                if first % across < each && is_late() {
                    return Err(Late);
                }
                intervals.skip();
                continue;
            }
            blocks.restart();
            let mut bits = intervals.read();
            let (mut x, mut y) = (first % across, first / across);
            if is_late() {
                return Err(Late);
            }
            for _ in first..end {
                let is_wanted =
                    (columns.0..columns.1).contains(&x) && (rows.0..rows.1).contains(&y);
                if self.mcu(&mut bits, (x as u32, y as u32), is_wanted, blocks).is_err()
                    || bits.is_overdrawn()
                {
                    break;
                }
                read += 1;
                x += 1;
                if x == across {
                    (x, y) = (0, y + 1);
                    if y >= rows.1 {
                        break;
                    }
                    if is_late() {
                        return Err(Late);
                    }
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
        for (index, lane) in self.lanes.iter().enumerate() {
            for down in 0..lane.size.1 {
                for across in 0..lane.size.0 {
                    let (x, y) = (x * lane.size.0 + across, y * lane.size.1 + down);
                    blocks.block(bits, Place { lane: index, x, y, is_wanted })?;
                }
            }
        }
        Ok(())
    }

    /// Columns and rows of MCUs that have wanted blocks.
    fn wanted(&self) -> ((usize, usize), (usize, usize)) {
        let union = |spans: &mut dyn Iterator<Item = (u32, u32)>| {
            let (from, to) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0));
            (from as usize, to as usize)
        };
        let in_mcus = |(from, to): (u32, u32), size: u32| (from / size, to.div_ceil(size));
        (
            union(&mut self.lanes.iter().map(|lane| in_mcus(lane.columns, lane.size.0))),
            union(&mut self.lanes.iter().map(|lane| in_mcus(lane.rows, lane.size.1))),
        )
    }
}
