//! Scans of progressive frames (ITU-T T.81, annex G). The coefficients stay in memory until the last scan.
//!
//! The decoder keeps the coefficients that the scale needs. If later scans refine the other coefficients, it
//! keeps one bit for each of them (zero or not), because reading a refinement needs this bit.

use std::ops::Range;
use std::rc::Rc;

use super::bits::Bits;
use super::block::{Coefficients, Inverse, NOWHERE, Needed, Plane};
use super::huffman::{AcTable, Broken, DcTable, END};
use super::markers::Scan;
use super::scale::Part;
use super::walk::{Blocks, Late, Place};

/// The coefficients of a component in memory.
#[derive(Debug)]
pub(super) struct Held {
    /// The number of blocks in memory, across and down.
    size: (u32, u32),
    /// The number of coefficients in memory for each block.
    each: usize,
    coefficients: Vec<i16>,
    /// For each block, one bit for each place in zigzag order that is not zero. Empty if no scan refines the
    /// coefficients.
    history: Vec<u64>,
    needed: Needed,
    /// The AC scans to read, identified by the start of their data.
    chosen: Vec<usize>,
    /// The average error of each coefficient that is not zero, in N×N rows: half of the sum that the unread
    /// bits can add.
    missing: [f32; END],
}

impl Held {
    /// Allocates `size` blocks at scale `n`. Only DC scans are read until a call of [`choose`](Self::choose).
    pub(super) fn new(size: (u32, u32), n: u8) -> Self {
        let each = usize::from(n) * usize::from(n);
        Self {
            size,
            each,
            coefficients: vec![0; size.0 as usize * size.1 as usize * each],
            history: Vec::new(),
            needed: Needed::new(n),
            chosen: Vec::new(),
            missing: [0.0; END],
        }
    }

    /// Chooses which of the component's `scans` to read. Call it before the first scan. Omits a refinement if
    /// its step is below `slack`, in units of a coefficient at quantization 1.
    pub(super) fn choose<'a>(
        &mut self,
        scans: impl DoubleEndedIterator<Item = &'a Scan>,
        factors: &[f32; 2 * END],
        slack: f32,
    ) {
        let mut refined = 0;
        for scan in scans.rev().filter(|scan| scan.band.start > 0) {
            let band = from(scan.band.start) & below(scan.band.end);
            let adds = scan.band.clone().any(|at| {
                let step = factors[at] * f32::from(1u16 << scan.high);
                self.needed.mask >> at & 1 == 1 && (scan.high == 0 || step > slack)
            });

            // Reading a refinement takes knowing all that was there before in its whole band.
            if adds || band & refined != 0 {
                self.chosen.push(scan.data.start);
                if scan.high > 0 {
                    refined |= band;
                }
            }
        }

        if refined != 0 {
            self.history = vec![0; self.size.0 as usize * self.size.1 as usize];
        }
    }

    /// Returns the index of a block. `None` for a block that only pads the last MCU or is not in memory.
    #[inline(always)]
    fn index(&self, place: Place) -> Option<usize> {
        (place.x < self.size.0 && place.y < self.size.1)
            .then(|| place.y as usize * self.size.0 as usize + place.x as usize)
    }

    /// Returns true if an AC scan must be read.
    pub(super) fn wants(&self, scan: &Scan) -> bool {
        self.chosen.contains(&scan.data.start)
    }

    /// Records that an AC scan was read.
    pub(super) fn note(&mut self, scan: &Scan) {
        for at in scan.band.clone() {
            if let Some(missing) = self.missing.get_mut(usize::from(self.needed.places[at])) {
                *missing = f32::from((1u16 << scan.low) - 1) / 2.0;
            }
        }
    }

    /// Returns true if later scans refine the coefficients in memory.
    pub(super) fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// Writes the samples of the blocks in `part` to `plane`.
    pub(super) fn put(
        &self,
        factors: &[f32; 2 * END],
        inverse: &Inverse,
        part: &Part,
        plane: &mut Plane,
        is_late: &dyn Fn() -> bool,
    ) -> Result<(), Late> {
        let mut in_rows = [0.0; END];
        for (place, factor) in self.needed.places.iter().zip(factors) {
            if *place != NOWHERE {
                in_rows[usize::from(*place)] = *factor;
            }
        }

        for y in part.rows.0..part.rows.1.min(self.size.1) {
            if is_late() {
                return Err(Late);
            }

            for x in part.columns.0..part.columns.1.min(self.size.0) {
                let start = (y as usize * self.size.0 as usize + x as usize) * self.each;
                let block = &self.coefficients[start..start + self.each];
                if block[1..].iter().all(|coefficient| *coefficient == 0) {
                    inverse.put_flat(f32::from(block[0]) * in_rows[0], plane, x, y);
                    continue;
                }

                let mut coefficients: Coefficients = [0.0; NOWHERE as usize + 1];
                let rows = in_rows.iter().zip(&self.missing);
                for ((to, value), (factor, missing)) in coefficients.iter_mut().zip(block).zip(rows)
                {
                    *to = (f32::from(*value) + f32::from(value.signum()) * missing) * factor;
                }
                inverse.put(&coefficients, plane, x, y);
            }
        }
        Ok(())
    }
}

/// A DC scan of one or more components.
pub(super) struct DcScan {
    pub(super) components: Vec<DcComponent>,
    /// The lowest bit in the scan.
    pub(super) low: u8,
}

/// A component of a DC scan.
pub(super) struct DcComponent {
    /// The table of differences. `None` for a refinement.
    pub(super) table: Option<Rc<DcTable>>,
    pub(super) held: Held,
    pub(super) prediction: i32,
}

impl Blocks for DcScan {
    fn restart(&mut self) {
        for component in &mut self.components {
            component.prediction = 0;
        }
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        let DcComponent { table, held, prediction } = &mut self.components[place.component];
        bits.refill();
        let at = held.index(place).map(|index| index * held.each);
        let dc = at.and_then(|at| held.coefficients.get_mut(at));

        if let Some(table) = table {
            *prediction = prediction.wrapping_add(table.difference(bits)?);
            if let Some(dc) = dc {
                *dc = (*prediction << self.low) as i16;
            }
        } else {
            let bit = bits.take(1) << self.low;
            if let Some(dc) = dc {
                *dc |= bit as i16;
            }
        }
        Ok(())
    }
}

/// The first scan for some AC coefficients of a component.
pub(super) struct AcFirst {
    pub(super) table: Rc<AcTable>,
    pub(super) held: Held,
    pub(super) band: Range<usize>,
    pub(super) low: u8,
    /// The number of following blocks without coefficients in this band.
    pub(super) ended: u32,
}

impl Blocks for AcFirst {
    fn restart(&mut self) {
        self.ended = 0;
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        if self.ended > 0 {
            self.ended -= 1;
            return Ok(());
        }

        let index = self.held.index(place);
        if self.held.history.is_empty() {
            let is_held = place.is_wanted && index.is_some();
            let last = if is_held { self.held.needed.last } else { 0 };
            return self.read(bits, index.unwrap_or(0), last, |_| {});
        }

        let mut history = 0u64;
        self.read(bits, index.unwrap_or(0), END, |at| history |= 1 << at)?;
        if let Some(held) = index.and_then(|index| self.held.history.get_mut(index)) {
            *held |= history;
        }
        Ok(())
    }
}

impl AcFirst {
    /// Reads a block. Reads coefficients up to place `last` one by one, and passes the places of coefficients
    /// that are not zero to `seen`. Skips the rest.
    #[inline(always)]
    fn read(
        &mut self,
        bits: &mut Bits<'_>,
        index: usize,
        last: usize,
        mut seen: impl FnMut(usize),
    ) -> Result<(), Broken> {
        let mut at = self.band.start;
        let start = index * self.held.each;

        while at < self.band.end {
            if at > last {
                return self.pass(bits, at);
            }

            bits.refill();
            let step = self.table.progressive_step(bits, &mut self.ended)?;
            at += step.advance;
            if at > self.band.end {
                return Ok(());
            }

            let place = self.held.needed.places[at - 1];
            if step.value != 0 {
                seen(at - 1);
                if place != NOWHERE
                    && let Some(to) = self.held.coefficients.get_mut(start + usize::from(place))
                {
                    *to = (step.value << self.low) as i16;
                }
            }
        }
        Ok(())
    }

    /// Skips the rest of a block, from place `at` on.
    #[inline(always)]
    fn pass(&mut self, bits: &mut Bits<'_>, mut at: usize) -> Result<(), Broken> {
        while at < self.band.end {
            bits.refill();
            if let Some(next) = self.table.pass_several(bits, at, self.band.end) {
                at = next;
            } else {
                at += self.table.progressive_step(bits, &mut self.ended)?.advance;
            }
        }
        Ok(())
    }
}

/// A scan that adds one bit to AC coefficients of a component.
pub(super) struct AcRefinement {
    pub(super) table: Rc<AcTable>,
    pub(super) held: Held,
    pub(super) band: Range<usize>,
    pub(super) low: u8,
    /// The number of following blocks without new coefficients in this band.
    pub(super) ended: u32,
}

impl Blocks for AcRefinement {
    fn restart(&mut self) {
        self.ended = 0;
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        let Some(index) = self.held.index(place) else { return Err(Broken) };
        let history = *self.held.history.get(index).ok_or(Broken)?;
        let mut at = self.band.start;

        if self.ended == 0 {
            let mut found = history;
            while at < self.band.end {
                bits.refill();
                let symbol = self.table.codes.symbol(bits)?;
                let (run, size) = (u32::from(symbol >> 4), symbol & 15);
                if size == 0 && run < 15 {
                    self.ended = (1 << run) + bits.take(run);
                    break;
                }

                let is_negative = size != 0 && bits.take(1) == 0;
                // The place of the zero after so many: places passed on the way are refined.
                let mut zeros = !history & from(at) & below(self.band.end);
                for _ in 0..run {
                    zeros &= zeros.wrapping_sub(1);
                }
                let to = zeros.trailing_zeros() as usize;
                self.correct(bits, index, history & from(at) & below(to.min(self.band.end)));

                if size != 0 && to < self.band.end {
                    found |= 1 << to;
                    self.set(index, to, if is_negative { -1 << self.low } else { 1 << self.low });
                }
                at = to.min(self.band.end) + 1;
            }
            self.held.history[index] = found;
        }

        if self.ended > 0 {
            self.ended -= 1;
            self.correct(bits, index, history & from(at) & below(self.band.end));
        }
        Ok(())
    }
}

impl AcRefinement {
    /// Reads one bit for each of `places`, and adds it if the coefficient is in memory.
    #[inline(always)]
    fn correct(&mut self, bits: &mut Bits<'_>, index: usize, places: u64) {
        let count = places.count_ones();
        if count == 0 {
            return;
        }
        let values = bits.take_many(count);
        let mut held = places & self.held.needed.mask;
        if values == 0 {
            return;
        }

        while held != 0 {
            let at = held.trailing_zeros() as usize;
            held &= held - 1;
            // The first place's bit was read first.
            let later = (places >> at >> 1).count_ones();
            if values >> later & 1 == 1 {
                let start = index * self.held.each + usize::from(self.held.needed.places[at]);
                let Some(value) = self.held.coefficients.get_mut(start) else { continue };
                let bit = 1i16 << self.low;
                if *value & bit == 0 {
                    *value = value.wrapping_add(if *value < 0 { -bit } else { bit });
                }
            }
        }
    }

    #[inline(always)]
    fn set(&mut self, index: usize, at: usize, value: i16) {
        let place = self.held.needed.places[at];
        if place != NOWHERE
            && let Some(to) =
                self.held.coefficients.get_mut(index * self.held.each + usize::from(place))
        {
            *to = value;
        }
    }
}

/// Returns the places from `at` on, out of 64.
#[inline(always)]
fn from(at: usize) -> u64 {
    if at < END { u64::MAX << at } else { 0 }
}

/// Returns the places before `at`, out of 64.
#[inline(always)]
fn below(at: usize) -> u64 {
    !from(at)
}
