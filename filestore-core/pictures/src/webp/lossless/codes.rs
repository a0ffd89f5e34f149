//! Prefix codes (RFC 9649, section 3.7.2) as look-up tables.
//!
//! An entry has two bytes, and the first table of a code covers at most [`ROOT_BITS`] bits. The tables of the
//! group in use therefore fit into the first-level cache together.

use super::Broken;
use super::bits::Bits;

/// The maximum bits that the first table of a code covers.
const ROOT_BITS: u32 = 10;
/// The longest code, in bits.
const MOST_BITS: usize = 15;

/// Returns the maximum size of an image's tables, in bytes: eight for each pixel. The minimum is enough for a
/// hundred groups, and the maximum for some thousand, which is as many as encoders write.
pub(super) fn most_bytes(pixels: usize) -> usize {
    (8 * pixels).clamp(1 << 20, 32 << 20)
}

/// The symbols for code lengths, in the order in which their own lengths are stored.
const LENGTH_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The position of a code in the [`Tables`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Code {
    start: usize,
    /// The bits that the first table covers, all set. 0 for a code with a single symbol, which needs no bits.
    mask: usize,
}

impl Code {
    /// Returns true if the code has a single symbol.
    pub(super) fn is_one_symbol(self) -> bool {
        self.mask == 0
    }
}

/// The tables of many codes, one behind the other.
///
/// An entry is a symbol (12 bits) and the number of bits of its code (4 bits). A number above [`ROOT_BITS`]
/// refers to a second table for the additional bits. The symbol is then the offset of this table from the
/// first table.
pub(super) struct Tables {
    entries: Vec<u16>,
    /// The maximum size of the tables, in bytes.
    most_bytes: usize,
}

impl Tables {
    /// Allocates tables for the codes of an image with `pixels` pixels.
    pub(super) fn new(pixels: usize) -> Self {
        Self { entries: Vec::new(), most_bytes: most_bytes(pixels) }
    }

    /// Reads the next symbol. All bits of its code must be available.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>, code: Code) -> usize {
        let entry = self.entries[code.start + (bits.peek() & code.mask)];
        let length = u32::from(entry & 15);
        if length <= ROOT_BITS {
            bits.drop(length);
            return usize::from(entry >> 4);
        }

        bits.drop(ROOT_BITS);
        let further = bits.peek() & ((1 << (length - ROOT_BITS)) - 1);
        let entry = self.entries[code.start + usize::from(entry >> 4) + further];
        bits.drop(u32::from(entry & 15));
        usize::from(entry >> 4)
    }

    /// Reads a code of `alphabet` symbols, and adds its tables.
    pub(super) fn read(&mut self, bits: &mut Bits<'_>, alphabet: usize) -> Result<Code, Broken> {
        let mut lengths = vec![0; alphabet];
        if bits.take(1) == 1 {
            read_simple(bits, &mut lengths)?;
        } else {
            read_lengths(bits, &mut lengths)?;
        }
        self.add(&lengths)
    }

    /// Adds the tables of the canonical code with these symbol lengths. Length 0 means that the symbol has no
    /// code.
    fn add(&mut self, lengths: &[u8]) -> Result<Code, Broken> {
        let start = self.entries.len();
        let mut counts = [0usize; MOST_BITS + 1];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        counts[0] = 0;

        let longest =
            counts.iter().rposition(|count| *count > 0).ok_or("a code without symbols")?;
        if counts.iter().sum::<usize>() == 1 {
            let symbol = lengths.iter().position(|length| *length > 0).unwrap_or_default();
            self.entries.push(entry(symbol, 0));
            return Ok(Code { start, mask: 0 });
        }
        if !is_complete(&counts) {
            return Err("a code that does not fill its tree");
        }

        let root = ROOT_BITS.min(longest as u32);
        let size = start + (1 << root);
        if 2 * size > self.most_bytes {
            return Err("too many codes");
        }
        self.entries.resize(size, 0);
        self.fill(lengths, counts, (start, root));
        Ok(Code { start, mask: (1 << root) - 1 })
    }

    /// Fills the first table, which begins at `start` and covers `root` bits, and adds the second tables.
    fn fill(
        &mut self,
        lengths: &[u8],
        counts: [usize; MOST_BITS + 1],
        (start, root): (usize, u32),
    ) {
        let mut code = 0usize;
        // The second table under way: the first bits of its codes, its place, its end.
        let (mut prefix, mut second, mut end) = (usize::MAX, 0, 0);
        let mut left = counts;
        for (symbol, length) in by_length(lengths, &counts) {
            if length <= root {
                let places = (code..1 << root).step_by(1 << length);
                places.for_each(|at| self.entries[start + at] = entry(symbol, length));
            } else {
                let first = code & ((1 << root) - 1);
                if first != prefix {
                    let further = second_bits(&left, length, root);
                    (prefix, second) = (first, self.entries.len());
                    end = second + (1 << further);
                    self.entries.resize(end, 0);
                    self.entries[start + first] = entry(second - start, ROOT_BITS + further);
                }
                let further = length - root;
                let places = (second + (code >> root)..end).step_by(1 << further);
                places.for_each(|at| self.entries[at] = entry(symbol, further));
            }
            left[length as usize] -= 1;
            code = after(code, length);
        }
    }
}

/// Reads a code with one or two symbols, each with one bit.
fn read_simple(bits: &mut Bits<'_>, lengths: &mut [u8]) -> Result<(), Broken> {
    let has_two = bits.take(1) == 1;
    let first = if bits.take(1) == 1 { bits.take(8) } else { bits.take(1) };
    let symbols = [Some(first), has_two.then(|| bits.take(8))];
    for symbol in symbols.into_iter().flatten() {
        *lengths.get_mut(symbol as usize).ok_or("a symbol outside the code")? = 1;
    }
    Ok(())
}

/// Reads the lengths of a code, which are themselves stored with a prefix code.
fn read_lengths(bits: &mut Bits<'_>, lengths: &mut [u8]) -> Result<(), Broken> {
    let mut own = [0; LENGTH_ORDER.len()];
    let count = 4 + bits.take(4) as usize;
    for symbol in LENGTH_ORDER.iter().take(count) {
        own[*symbol] = bits.take(3) as u8;
    }
    let mut tables = Tables::new(0);
    let code = tables.add(&own)?;

    let mut symbols = lengths.len();
    if bits.take(1) == 1 {
        let width = 2 + 2 * bits.take(3);
        symbols = 2 + bits.take(width) as usize;
        if symbols > lengths.len() {
            return Err("more lengths than symbols");
        }
    }

    let mut last = 8;
    let mut rest = lengths;
    for _ in 0..symbols {
        if rest.is_empty() {
            break;
        }
        bits.refill();
        let symbol = tables.symbol(bits, code);
        let (length, times) = match symbol {
            16 => (last, 3 + bits.take(2)),
            17 => (0, 3 + bits.take(3)),
            18 => (0, 11 + bits.take(7)),
            length => (length as u8, 1),
        };
        if length > 0 {
            last = length;
        }
        let (now, later) =
            rest.split_at_mut_checked(times as usize).ok_or("more lengths than symbols")?;
        now.fill(length);
        rest = later;
    }
    Ok(())
}

/// Returns true if the codes fill their tree, so that each sequence of bits has a meaning.
fn is_complete(counts: &[usize; MOST_BITS + 1]) -> bool {
    let used = counts.iter().enumerate().map(|(length, count)| count << (MOST_BITS - length));
    used.sum::<usize>() == 1 << MOST_BITS
}

/// Lists the symbols in the order of their codes, with their lengths.
fn by_length(
    lengths: &[u8],
    counts: &[usize; MOST_BITS + 1],
) -> impl Iterator<Item = (usize, u32)> + use<> {
    let mut next = [0; MOST_BITS + 1];
    for length in 1..=MOST_BITS {
        next[length] = next[length - 1] + counts[length - 1];
    }
    let mut sorted = vec![(0, 0); counts.iter().sum()];
    for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
        let place = &mut next[usize::from(*length)];
        sorted[*place] = (symbol, u32::from(*length));
        *place += 1;
    }
    sorted.into_iter()
}

/// Returns the number of bits for a second table that starts with a code of this `length`. The result is the
/// number that the longest code with the same first bits needs. `left` has the remaining number of codes for
/// each length.
fn second_bits(left: &[usize; MOST_BITS + 1], length: u32, root: u32) -> u32 {
    let mut length = length;
    let mut free = 1 << (length - root);
    while (length as usize) < MOST_BITS && free > left[length as usize] {
        free = (free - left[length as usize]) << 1;
        length += 1;
    }
    length - root
}

/// Returns the code after `code`. The code has `length` bits, and the first bit is the lowest.
fn after(code: usize, length: u32) -> usize {
    let zeros = !code & ((1 << length) - 1);
    match zeros.checked_ilog2() {
        Some(highest) => code & ((1 << highest) - 1) | 1 << highest,
        None => code,
    }
}

fn entry(symbol: usize, length: u32) -> u16 {
    (symbol << 4) as u16 | length as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the code of each symbol, by the canonical rule: shorter first, then by symbol.
    fn codes(lengths: &[u8]) -> Vec<(usize, u32)> {
        let mut next = 0u32;
        let mut codes = vec![(0, 0); lengths.len()];
        for length in 1..=15u32 {
            next <<= 1;
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, l)| u32::from(**l) == length)
            {
                codes[symbol] = ((next.reverse_bits() >> (32 - length)) as usize, length);
                next += 1;
            }
        }
        codes
    }

    /// Splits the longest or the shortest leaf of a tree until it has so many.
    fn lengths(symbols: usize, random: &mut fastrand::Rng) -> Vec<u8> {
        let mut lengths = vec![1u8, 1];
        while lengths.len() < symbols {
            let at = random.usize(..lengths.len());
            if lengths[at] < 15 {
                lengths[at] += 1;
                lengths.push(lengths[at]);
            }
        }
        random.shuffle(&mut lengths);
        lengths
    }

    #[test]
    fn each_code_means_its_symbol_whatever_follows() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut tables = Tables::new(0);
        for symbols in [2, 3, 19, 40, 256, 280, 2328] {
            for _ in 0..5 {
                let lengths = lengths(symbols, &mut random);
                let code = tables.add(&lengths).unwrap();
                for (symbol, (bits, length)) in codes(&lengths).into_iter().enumerate() {
                    let data = (bits as u64 | random.u64(..) << length).to_le_bytes();
                    let mut bits = Bits::new(&data);
                    bits.refill();
                    let before = bits.count();
                    assert_eq!(tables.symbol(&mut bits, code), symbol);
                    assert_eq!(before - bits.count(), length);
                }
            }
        }
    }

    #[test]
    fn a_code_of_one_symbol_takes_no_bits() {
        let mut tables = Tables::new(0);
        let code = tables.add(&[0, 0, 7, 0]).unwrap();
        let mut bits = Bits::new(&[]);
        assert_eq!(tables.symbol(&mut bits, code), 2);
        assert!(code.is_one_symbol() && !bits.is_past_end());
    }

    #[test]
    fn codes_that_fill_no_tree_are_refused() {
        for lengths in [&[0, 0, 0][..], &[1, 2, 0], &[1, 1, 1], &[2, 2, 2, 2, 2], &[15, 1]] {
            assert!(Tables::new(0).add(lengths).is_err(), "{lengths:?}");
        }
    }

    #[test]
    fn tables_have_an_end() {
        let mut tables = Tables::new(0);
        let lengths = lengths(256, &mut fastrand::Rng::with_seed(3));
        let added = std::iter::repeat_with(|| tables.add(&lengths)).take(10_000);
        assert!(added.filter(Result::is_err).count() > 0);
        assert!(2 * tables.entries.len() <= most_bytes(0) + 8192);
    }
}
