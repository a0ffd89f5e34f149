//! Undoes the filters of rows (W3C PNG third edition, section 9), several rows at once.

use super::{Broken, Shape};

/// The number of rows in one step.
pub(super) const GROUP: usize = 4;

/// The filter types, as a row's first byte names them.
pub(super) const NONE: u8 = 0;
pub(super) const SUB: u8 = 1;
pub(super) const UP: u8 = 2;
pub(super) const AVERAGE: u8 = 3;
pub(super) const PAETH: u8 = 4;

/// The rows of a group while their filters are undone, and the row above them.
///
/// Each row has margins of zero pixels. The left margin is for the filters. The right margin reaches to the
/// pixel where the last row of a group is when the first row ends.
pub(crate) struct Unfilter {
    shape: Shape,
    /// The bytes from the start of a row to its first pixel, and to the start of the next row.
    margin: usize,
    pitch: usize,
    above: Vec<u8>,
    filtered: Vec<u8>,
    plain: Vec<u8>,
}

impl Unfilter {
    pub(crate) fn new(shape: Shape) -> Self {
        let margin = (GROUP - 1) * shape.channels;
        // Four bytes are read and written at once.
        let pitch = margin + shape.row_bytes() + margin + 4;
        let [above, filtered, plain] = [1, GROUP, GROUP].map(|rows| vec![0; rows * pitch]);
        Self { shape, margin, pitch, above, filtered, plain }
    }

    /// Undoes the filters of rows and passes the rows to `taken`. Each row is stored behind its filter byte.
    pub(crate) fn undo(
        &mut self,
        stored: &[u8],
        mut taken: impl FnMut(&[u8]),
    ) -> Result<(), Broken> {
        let groups = stored.chunks(GROUP * (1 + self.shape.row_bytes()));
        groups.into_iter().try_for_each(|group| self.undo_some(group, &mut taken))
    }

    /// Undoes the filters of at most [`GROUP`] rows.
    fn undo_some(&mut self, stored: &[u8], taken: impl FnMut(&[u8])) -> Result<(), Broken> {
        let mut filters = [NONE; GROUP];
        let rows = stored.chunks_exact(1 + self.shape.row_bytes());
        for (filter, row) in filters.iter_mut().zip(rows.clone()) {
            *filter = row[0];
        }
        if filters.iter().any(|filter| *filter > PAETH) {
            return Err("an unknown filter".into());
        }

        let rows = rows.map(|row| &row[1..]);
        if filters == [NONE; GROUP] {
            if let Some(last) = rows.clone().next_back() {
                self.above[self.margin..][..last.len()].copy_from_slice(last);
            }
            rows.for_each(taken);
            return Ok(());
        }

        let count = rows.len();
        for (filtered, row) in self.filtered.chunks_exact_mut(self.pitch).zip(rows) {
            filtered[self.margin..][..row.len()].copy_from_slice(row);
        }
        self.undo_group(filters);
        let (margin, bytes) = (self.margin, self.shape.row_bytes());
        let plain = self.plain.chunks_exact(self.pitch).map(|row| &row[margin..][..bytes]);
        let plain = plain.take(count);
        if let Some(last) = plain.clone().next_back() {
            self.above[margin..][..bytes].copy_from_slice(last);
        }
        plain.for_each(taken);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn undo_group(&mut self, filters: [u8; GROUP]) {
        let rows = super::wave::Rows {
            filters,
            above: &self.above,
            filtered: &self.filtered,
            plain: &mut self.plain,
            pitch: self.pitch,
            width: self.shape.width,
        };
        match self.shape.channels {
            1 => rows.undo::<1>(),
            2 => rows.undo::<2>(),
            3 => rows.undo::<3>(),
            _ => rows.undo::<4>(),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn undo_group(&mut self, filters: [u8; GROUP]) {
        let (margin, bytes) = (self.margin, self.shape.row_bytes());
        let mut above = &self.above[margin..][..bytes];
        let filtered = self.filtered.chunks_exact(self.pitch);
        let rows = self.plain.chunks_exact_mut(self.pitch).zip(filtered).zip(filters);
        for ((plain, filtered), filter) in rows {
            let plain = &mut plain[margin..][..bytes];
            plain.copy_from_slice(&filtered[margin..][..bytes]);
            undo_row(filter, self.shape.channels, above, plain);
            above = plain;
        }
    }
}

/// Undoes the filter of one row, byte by byte, as the standard describes it.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn undo_row(filter: u8, channels: usize, above: &[u8], row: &mut [u8]) {
    for at in 0..row.len() {
        let before = at.checked_sub(channels);
        let left = before.map_or(0, |before| row[before]);
        let corner = before.map_or(0, |before| above[before]);
        let predicted = match filter {
            SUB => left,
            UP => above[at],
            AVERAGE => left.midpoint(above[at]),
            PAETH => paeth(left, above[at], corner),
            _ => 0,
        };
        row[at] = row[at].wrapping_add(predicted);
    }
}

/// Returns the neighbour that is closest to left + above − corner. If several are equally close, returns the
/// first.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i32::from);
    let [from_left, from_above, from_corner] = [b - c, a - c, a + b - 2 * c].map(i32::abs);
    if from_left <= from_above && from_left <= from_corner {
        left
    } else if from_above <= from_corner {
        above
    } else {
        corner
    }
}
