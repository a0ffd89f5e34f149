//! Huffman tables (ITU-T T.81, annexes C and F), stored as look-up tables of whole coefficients.
//!
//! A look-up of [`LOOK`] bits returns a code together with the bits that follow it: the value, its distance
//! in the block, and the number of bits. A second look-up, of [`SKIP`] bits, skips as many coefficients as
//! fit. The second look-up serves coefficients that a reduced picture does not need.

use super::bits::Bits;

/// The bits of the look-up for one coefficient.
const LOOK: u32 = 12;
/// The bits of the look-up that skips several coefficients.
const SKIP: u32 = 13;

/// The end of a block, in zigzag order.
pub(super) const END: usize = 64;

/// The data is invalid, and the rest of its interval is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// The codes of one table, as its segment lists them.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    /// Code and length for each sequence of [`LOOK`] bits: `length << 8 | symbol`, or 0 for longer codes.
    short: Box<[u16; 1 << LOOK]>,
    /// The first code that is too large for each length, in the top bits of 16.
    ends: [u32; 17],
    /// For each length, the index of the first symbol minus the first code.
    starts: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// Builds the codes from the number of codes of each length, 1 to 16 bits, and their symbols. `None` if
    /// they do not fit.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut codes = Self {
            short: Box::new([0; 1 << LOOK]),
            ends: [0; 17],
            starts: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0u32, 0usize);

        for length in 1..=16u32 {
            let count = usize::from(counts[length as usize - 1]);
            codes.starts[length as usize] = index as i32 - code as i32;
            for symbol in symbols.get(index..index + count)? {
                if code >= 1 << length {
                    return None;
                }
                if length <= LOOK {
                    let from = (code << (LOOK - length)) as usize;
                    let entry = (length << 8) as u16 | u16::from(*symbol);
                    codes.short[from..from + (1 << (LOOK - length))].fill(entry);
                }
                code += 1;
            }

            index += count;
            codes.ends[length as usize] = code << (16 - length);
            code <<= 1;
        }

        Some(codes)
    }

    /// Reads the next symbol. Needs 16 bits, and consumes at most 16.
    #[inline]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Result<u8, Broken> {
        let entry = self.short[bits.peek(LOOK)];
        if entry != 0 {
            bits.consume(u32::from(entry >> 8));
            return Ok(entry as u8);
        }
        self.long_symbol(bits)
    }

    #[cold]
    #[inline(never)]
    fn long_symbol(&self, bits: &mut Bits<'_>) -> Result<u8, Broken> {
        let next = bits.peek(16) as u32;
        for length in LOOK + 1..=16 {
            if next < self.ends[length as usize] {
                bits.consume(length);
                let index = (next >> (16 - length)) as i32 + self.starts[length as usize];
                return usize::try_from(index)
                    .ok()
                    .and_then(|at| self.symbols.get(at))
                    .copied()
                    .ok_or(Broken);
            }
        }
        Err(Broken)
    }
}

/// Returns the value of `size` bits (T.81, F.2.2.1, EXTEND).
#[inline(always)]
fn extend(bits: u32, size: u32) -> i32 {
    let value = bits as i32;
    if size > 0 && bits >> (size - 1) == 0 { value - (1 << size) + 1 } else { value }
}

/// A table of DC differences.
#[derive(Debug)]
pub(super) struct DcTable {
    codes: Codes,
    /// `difference << 16 | bits`, or 0 if there are too many bits.
    single: Box<[u32; 1 << LOOK]>,
}

impl DcTable {
    pub(super) fn new(codes: Codes) -> Self {
        let mut single = Box::new([0; 1 << LOOK]);
        for (start, (to, entry)) in (0u32..).zip(single.iter_mut().zip(codes.short.iter())) {
            let (length, size) = (u32::from(entry >> 8), u32::from(entry & 0xFF));
            if length > 0 && length + size <= LOOK {
                let value = extend(start >> (LOOK - length - size) & ((1 << size) - 1), size);
                *to = (value as u32) << 16 | (length + size);
            }
        }
        Self { codes, single }
    }

    /// Reads the next difference. Needs 32 bits, and consumes at most 32.
    #[inline(always)]
    pub(super) fn difference(&self, bits: &mut Bits<'_>) -> Result<i32, Broken> {
        let entry = self.single[bits.peek(LOOK)];
        if entry != 0 {
            bits.consume(entry & 0xFFFF);
            return Ok(entry as i32 >> 16);
        }
        let size = u32::from(self.codes.symbol(bits)?);
        if size > 16 {
            return Err(Broken);
        }
        Ok(extend(bits.take(size), size))
    }
}

/// One step in a block's AC coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// The number of places to advance, including the step's own place. [`END`] means "end of block".
    pub(super) advance: usize,
    /// The coefficient at the last of these places, or 0.
    pub(super) value: i32,
}

/// A table of AC coefficients.
#[derive(Debug)]
pub(super) struct AcTable {
    pub(super) codes: Codes,
    /// `value << 16 | advance << 8 | bits`, or 0 if there are too many bits or the code needs a second
    /// look-up.
    single: Box<[u32; 1 << LOOK]>,
    /// `advance << 8 | bits` of as many steps as fit. The end of the block adds [`ENDED`] to the advance. If
    /// no step fits, the entry is [`NOTHING`].
    several: Box<[u16; 1 << SKIP]>,
}

/// Added to the advance if the steps include "end of block".
const ENDED: usize = 128;
/// An advance larger than every step.
const NOTHING: u16 = 64 << 8;

/// The kind of frame that a table belongs to. Progressive frames have runs of ended blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Sequential,
    Progressive,
}

impl AcTable {
    pub(super) fn new(codes: Codes, coding: Coding) -> Self {
        let mut single = Box::new([0; 1 << LOOK]);
        for (start, entry) in (0..).zip(single.iter_mut()) {
            *entry = Self::first(&codes, start, coding);
        }
        let mut several = Box::new([0; 1 << SKIP]);
        for (start, entry) in (0..).zip(several.iter_mut()) {
            *entry = Self::fitting(&single, start);
        }
        Self { codes, single, several }
    }

    /// Computes the entry of `single` for codes that start with `start`.
    fn first(codes: &Codes, start: u32, coding: Coding) -> u32 {
        let entry = codes.short[start as usize];
        let (length, run, size) =
            (u32::from(entry >> 8), u32::from(entry >> 4 & 15), u32::from(entry & 15));
        let is_run_of_blocks = size == 0 && (1..15).contains(&run);
        if entry == 0 || length + size > LOOK || (is_run_of_blocks && coding == Coding::Progressive)
        {
            return 0;
        }

        let value = extend(start >> (LOOK - length - size) & ((1 << size) - 1), size);
        let advance = if size == 0 && run < 15 { END as u32 } else { run + 1 };
        (value as u32) << 16 | advance << 8 | (length + size)
    }

    /// Computes the entry of `several` for codes that start with `start`.
    fn fitting(single: &[u32; 1 << LOOK], start: u32) -> u16 {
        let (mut used, mut advance) = (0, 0);
        while used < SKIP {
            let next = (start << used & ((1 << SKIP) - 1)) >> (SKIP - LOOK);
            let entry = single[next as usize];
            let (bits, step) = (entry & 0xFF, (entry >> 8 & 0xFF) as usize);
            if entry == 0 || used + bits > SKIP {
                break;
            }

            if step == END {
                return ((ENDED + advance) as u16) << 8 | (used + bits) as u16;
            }
            if advance + step >= END {
                break;
            }
            used += bits;
            advance += step;
        }
        if used == 0 { NOTHING } else { (advance as u16) << 8 | used as u16 }
    }

    /// Reads the next step of a sequential block. Needs 32 bits, and consumes at most 32.
    #[inline(always)]
    pub(super) fn step(&self, bits: &mut Bits<'_>) -> Result<Step, Broken> {
        let entry = self.single[bits.peek(LOOK)];
        if entry != 0 {
            bits.consume(entry & 0xFF);
            return Ok(Step { advance: (entry >> 8 & 0xFF) as usize, value: entry as i32 >> 16 });
        }
        self.long_step(bits)
    }

    #[inline(never)]
    fn long_step(&self, bits: &mut Bits<'_>) -> Result<Step, Broken> {
        let symbol = self.codes.symbol(bits)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        let advance = if size == 0 && run < 15 { END } else { run + 1 };
        Ok(Step { advance, value: extend(bits.take(size), size) })
    }

    /// Skips the rest of a sequential block, from place `at` on.
    #[inline(always)]
    pub(super) fn skip(&self, bits: &mut Bits<'_>, mut at: usize) -> Result<(), Broken> {
        const STEPS: u32 = Bits::FULL / SKIP;

        while at < END {
            bits.refill();
            for _ in 0..STEPS {
                let entry = self.several[bits.peek(SKIP)];
                let next = at + usize::from(entry >> 8);
                if next < END {
                    bits.consume(u32::from(entry & 0xFF));
                    at = next;
                } else if next > ENDED && next < ENDED + END {
                    bits.consume(u32::from(entry & 0xFF));
                    return Ok(());
                } else {
                    // A long code, or one of several that reach the block's end without saying so.
                    bits.refill();
                    at += self.step(bits)?.advance;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads the next step of a block in the first scan of some AC coefficients. If a run of ended blocks
    /// begins, sets `ended` to the number of blocks after this one. Needs 32 bits.
    #[inline(always)]
    pub(super) fn progressive_step(
        &self,
        bits: &mut Bits<'_>,
        ended: &mut u32,
    ) -> Result<Step, Broken> {
        let entry = self.single[bits.peek(LOOK)];
        if entry != 0 {
            bits.consume(entry & 0xFF);
            return Ok(Step { advance: (entry >> 8 & 0xFF) as usize, value: entry as i32 >> 16 });
        }
        self.long_progressive_step(bits, ended)
    }

    #[inline(never)]
    fn long_progressive_step(&self, bits: &mut Bits<'_>, ended: &mut u32) -> Result<Step, Broken> {
        let symbol = self.codes.symbol(bits)?;
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && run < 15 {
            *ended = (1 << run) + bits.take(run) - 1;
            return Ok(Step { advance: END, value: 0 });
        }
        Ok(Step { advance: run as usize + 1, value: extend(bits.take(size), size) })
    }

    /// Skips several coefficients of a block in the first scan of coefficients up to `end`. Returns the place
    /// behind them, or `None` if they need a second look-up. Needs and consumes at most [`SKIP`] bits.
    #[inline(always)]
    pub(super) fn pass_several(&self, bits: &mut Bits<'_>, at: usize, end: usize) -> Option<usize> {
        let entry = self.several[bits.peek(SKIP)];
        let next = at + usize::from(entry >> 8);
        if next < end {
            bits.consume(u32::from(entry & 0xFF));
            return Some(next);
        }
        if next > ENDED && next < ENDED + end {
            bits.consume(u32::from(entry & 0xFF));
            return Some(END);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::Intervals;
    use super::*;

    /// Codes of lengths 2 to 16, among them all kinds of symbols.
    fn codes() -> Codes {
        let counts = [0, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let symbols = [
            0x01, 0x00, 0x02, 0x11, 0x03, 0x21, 0xF0, 0x31, 0x12, 0x04, 0xF1, 0x05, 0x07, 0x0A,
            0x40, 0xE8, 0x2F,
        ];
        Codes::new(&counts, &symbols).unwrap()
    }

    #[test]
    fn codes_that_do_not_fit_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 3;
        assert!(Codes::new(&counts, &[1, 2, 3]).is_none());
        assert!(Codes::new(&counts, &[1, 2]).is_none());
        counts[0] = 2;
        assert!(Codes::new(&counts, &[1, 2]).is_some());
    }

    #[test]
    fn passing_over_a_block_ends_where_reading_it_does() {
        let table = AcTable::new(codes(), Coding::Sequential);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..200).map(|_| random.u8(..255)).collect();
            let (mut read, mut passed) = (Intervals::new(&bytes), Intervals::new(&bytes));
            let (mut read, mut passed) = (read.read(), passed.read());
            for _ in 0..4 {
                let mut at = 1;
                let outcome = loop {
                    if at >= END {
                        break Ok(());
                    }
                    read.refill();
                    match table.step(&mut read) {
                        Ok(step) => at += step.advance,
                        Err(broken) => break Err(broken),
                    }
                };
                assert_eq!(table.skip(&mut passed, 1), outcome);
                if outcome.is_err() {
                    break;
                }
                read.refill();
                passed.refill();
                assert_eq!(passed.peek(32), read.peek(32));
            }
        }
    }
}
