//! An LZW decoder into memory, as GIF and TIFF need it (GIF89a, appendix F; TIFF 6.0, section 13).
//!
//! Each string of the table is an earlier string and one more byte. All strings are therefore part of the
//! decoded data. The table contains their positions, and the decoder copies each string in blocks.

/// The longest code, in bits, and the number of strings that codes can name.
const MOST_BITS: u32 = 12;
const MOST_CODES: usize = 1 << MOST_BITS;
/// The number of bytes in one copy. Most strings are shorter.
const BLOCK: usize = 16;
/// The number of spare bytes that [`decode_to`] needs after the decoded bytes.
pub(crate) const ROOM_BYTES: usize = BLOCK;

/// A dialect of LZW.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Codes begin in the lowest bit. Literals have `literal_bits` bits, 2 to 8.
    Gif { literal_bits: u8 },
    /// Codes begin in the highest bit, and grow one code early. Literals have 8 bits.
    Tiff,
}

impl Dialect {
    /// Returns the dialect of a GIF with this minimum code size. `None` if GIF does not allow the size
    /// (GIF89a, appendix F: with one bit, the first code would already be too long for the table).
    pub(crate) fn gif(literal_bits: u8) -> Option<Self> {
        (2..=8).contains(&literal_bits).then_some(Self::Gif { literal_bits })
    }
}

/// The memory for the strings of a table, 64 KiB. Several decodes can share it without clearing it.
pub(crate) struct Strings(Vec<Place>);

impl Strings {
    pub(crate) fn new() -> Self {
        Self(vec![Place::default(); MOST_CODES])
    }
}

/// Decodes `data` to at most `most` bytes. The result is shorter if the data ends or is invalid. The previous
/// contents of `strings` do not matter.
pub(crate) fn decode(data: &[u8], dialect: Dialect, most: usize, strings: &mut Strings) -> Vec<u8> {
    let mut decoded = vec![0; most + ROOM_BYTES];
    let length = decode_to(data, dialect, &mut decoded, strings);
    decoded.truncate(length);
    decoded
}

/// Decodes `data` to the start of `to`, as [`decode`] does, and returns the number of bytes. The last
/// [`ROOM_BYTES`] of `to` are not among them, and hold nonsense afterwards.
pub(crate) fn decode_to(
    data: &[u8],
    dialect: Dialect,
    to: &mut [u8],
    strings: &mut Strings,
) -> usize {
    let strings = &mut strings.0[..];
    match dialect {
        Dialect::Gif { literal_bits } => {
            Decoder::new(literal_bits.into(), 0, to, strings).run(LowFirst(Source::new(data)))
        }
        Dialect::Tiff => Decoder::new(8, 1, to, strings).run(HighFirst(Source::new(data))),
    }
}

/// The bits of the data that are still unread.
struct Source<'a> {
    rest: &'a [u8],
    bits: u64,
    count: u32,
}

impl<'a> Source<'a> {
    fn new(rest: &'a [u8]) -> Self {
        Self { rest, bits: 0, count: 0 }
    }
}

/// The order in which codes store their bits.
trait Codes {
    /// Reads the next code of `bits` bits. `None` at the end.
    fn next(&mut self, bits: u32) -> Option<usize>;
}

struct LowFirst<'a>(Source<'a>);
struct HighFirst<'a>(Source<'a>);

impl Codes for LowFirst<'_> {
    #[inline]
    fn next(&mut self, bits: u32) -> Option<usize> {
        let source = &mut self.0;
        if source.count < bits {
            if let Some((word, rest)) = source.rest.split_first_chunk() {
                source.bits |= u64::from(u32::from_le_bytes(*word)) << source.count;
                (source.rest, source.count) = (rest, source.count + 32);
            } else {
                for byte in source.rest {
                    source.bits |= u64::from(*byte) << source.count;
                    source.count += 8;
                }
                source.rest = &[];
            }
            if source.count < bits {
                return None;
            }
        }

        let code = source.bits & ((1 << bits) - 1);
        (source.bits, source.count) = (source.bits >> bits, source.count - bits);
        Some(narrow(code))
    }
}

impl Codes for HighFirst<'_> {
    #[inline]
    fn next(&mut self, bits: u32) -> Option<usize> {
        let source = &mut self.0;
        if source.count < bits {
            if let Some((word, rest)) = source.rest.split_first_chunk() {
                source.bits = source.bits << 32 | u64::from(u32::from_be_bytes(*word));
                (source.rest, source.count) = (rest, source.count + 32);
            } else {
                for byte in source.rest {
                    source.bits = source.bits << 8 | u64::from(*byte);
                    source.count += 8;
                }
                source.rest = &[];
            }
            if source.count < bits {
                return None;
            }
        }

        source.count -= bits;
        Some(narrow(source.bits >> source.count & ((1 << bits) - 1)))
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 12 bits")]
fn narrow(code: u64) -> usize {
    code as usize
}

/// The position of a string within the decoded data.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: usize,
    length: usize,
}

struct Decoder<'a> {
    literal_bits: u32,
    /// The number of codes by which the code length grows early.
    early: usize,
    most: usize,
    /// Decoded bytes up to `length`, with space for a block after `most`.
    decoded: &'a mut [u8],
    length: usize,
    /// The positions of the known codes. Entries behind them are left over from an earlier decode.
    strings: &'a mut [Place],
}

impl<'a> Decoder<'a> {
    fn new(
        literal_bits: u32,
        early: usize,
        decoded: &'a mut [u8],
        strings: &'a mut [Place],
    ) -> Self {
        let most = decoded.len().saturating_sub(BLOCK);
        Self { literal_bits, early, most, decoded, length: 0, strings }
    }

    fn run(mut self, mut codes: impl Codes) -> usize {
        let clear = 1 << self.literal_bits;
        let (mut bits, mut known) = (self.literal_bits + 1, clear + 2);
        let mut last: Option<Place> = None;

        while self.length < self.most
            && let Some(code) = codes.next(bits)
        {
            if code == clear {
                (bits, known, last) = (self.literal_bits + 1, clear + 2, None);
                continue;
            }
            if code == clear + 1 {
                break;
            }

            // The last string and the first byte of this one, which comes right behind it.
            if let Some(Place { start, length }) = last
                && known < MOST_CODES
            {
                self.strings[known] = Place { start, length: length + 1 };
                known += 1;
                if known + self.early == 1 << bits && bits < MOST_BITS {
                    bits += 1;
                }
            }
            if code >= known {
                break;
            }
            last = Some(if code < clear { self.literal(code) } else { self.repeat(code) });
        }

        self.length
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a literal of more than 8 bits is cut")]
    fn literal(&mut self, code: usize) -> Place {
        let start = self.length;
        self.decoded[start] = code as u8;
        self.length += 1;
        Place { start, length: 1 }
    }

    /// Copies the string of `code`. This can be the string that ends with its own first byte.
    #[inline]
    fn repeat(&mut self, code: usize) -> Place {
        let Place { start: from, length } = self.strings[code % MOST_CODES];
        let to = self.length;
        let length = length.min(self.most - to);

        let mut at = 0;
        while at < length {
            let block: [u8; BLOCK] = self.decoded[from + at..from + at + BLOCK]
                .try_into()
                .expect("a slice of this length");
            self.decoded[to + at..to + at + BLOCK].copy_from_slice(&block);
            at += BLOCK;
        }
        if from + length > to {
            self.decoded[to + length - 1] = self.decoded[to];
        }

        self.length += length;
        Place { start: to, length }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Decodes with a table that is full of nonsense.
    fn decode(data: &[u8], dialect: Dialect, most: usize) -> Vec<u8> {
        let mut strings = Strings(vec![Place { start: 1 << 40, length: 1 << 20 }; MOST_CODES]);
        super::decode(data, dialect, most, &mut strings)
    }

    /// The codes of `data` with the bits of each, as the specifications say. The table is cleared when it
    /// is full, or, if that `is_late`, never.
    fn codes(data: &[u8], literal_bits: u32, early: usize, is_late: bool) -> Vec<(usize, u32)> {
        let clear = 1usize << literal_bits;
        let mut table: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut next, mut bits) = (clear + 2, literal_bits + 1);
        let mut codes = vec![(clear, bits)];
        let code_of = |string: &[u8], table: &HashMap<Vec<u8>, usize>| match string {
            [byte] => usize::from(*byte),
            longer => table[longer],
        };

        let mut string: Vec<u8> = Vec::new();
        for byte in data {
            let longer = [&string[..], &[*byte]].concat();
            if longer.len() == 1 || table.contains_key(&longer) {
                string = longer;
                continue;
            }
            codes.push((code_of(&string, &table), bits));
            string = vec![*byte];
            if next < MOST_CODES {
                table.insert(longer, next);
                next += 1;
                // The decoder learns a string one code later.
                if next + early > 1 << bits && bits < MOST_BITS {
                    bits += 1;
                }
            }
            if next >= MOST_CODES - 2 && !is_late {
                codes.push((clear, bits));
                table.clear();
                (next, bits) = (clear + 2, literal_bits + 1);
            }
        }
        if !string.is_empty() {
            codes.push((code_of(&string, &table), bits));
            if next + early >= 1 << bits && bits < MOST_BITS {
                bits += 1;
            }
        }
        codes.push((clear + 1, bits));
        codes
    }

    fn gif(data: &[u8], literal_bits: u8, is_late: bool) -> Vec<u8> {
        let codes = codes(data, literal_bits.into(), 0, is_late);
        let bits = codes.iter().flat_map(|(code, bits)| (0..*bits).map(move |bit| code >> bit & 1));
        let bits: Vec<_> = bits.collect();
        bits.chunks(8)
            .map(|byte| byte.iter().rev().fold(0, |sum, bit| sum << 1 | u8::from(*bit == 1)))
            .collect()
    }

    fn tiff(data: &[u8]) -> Vec<u8> {
        let codes = codes(data, 8, 1, false);
        let bits =
            codes.iter().flat_map(|(code, bits)| (0..*bits).rev().map(move |bit| code >> bit & 1));
        let mut bits: Vec<_> = bits.collect();
        bits.resize(bits.len().next_multiple_of(8), 0);
        bits.chunks(8)
            .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | u8::from(*bit == 1)))
            .collect()
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(
            parts in prop::collection::vec((any::<u8>(), 1..400usize), 0..200),
            noise in prop::collection::vec(any::<u8>(), 0..9000),
            literal_bits in 2..=8u8,
            is_late in any::<bool>(),
        ) {
            let mut data: Vec<u8> = parts.iter().flat_map(|(b, n)| vec![*b; *n]).collect();
            data.extend(noise);
            prop_assert_eq!(&decode(&tiff(&data), Dialect::Tiff, data.len()), &data);
            prop_assert_eq!(&decode(&tiff(&data), Dialect::Tiff, data.len() + 9), &data);

            let few: Vec<u8> = data.iter().map(|byte| byte >> (8 - literal_bits)).collect();
            let encoded = gif(&few, literal_bits, is_late);
            prop_assert_eq!(decode(&encoded, Dialect::Gif { literal_bits }, few.len()), few);
        }

        #[test]
        fn what_makes_no_sense_ends(
            data in prop::collection::vec(any::<u8>(), 0..3000),
            most in 0..5000usize,
            literal_bits in 2..=8u8,
        ) {
            for dialect in [Dialect::Tiff, Dialect::gif(literal_bits).unwrap()] {
                prop_assert!(decode(&data, dialect, most).len() <= most);
            }
        }

        #[test]
        fn a_cut_file_gives_its_beginning(cut in 0..2000usize) {
            let data: Vec<u8> = (0..4000u32).map(|at| u8::try_from(((at * at) >> 5) & 63).unwrap()).collect();
            let (encoded, in_gif) = (tiff(&data), gif(&data, 6, true));
            let part = decode(&encoded[..cut.min(encoded.len())], Dialect::Tiff, data.len());
            prop_assert!(data.starts_with(&part));
            let part = &in_gif[..cut.min(in_gif.len())];
            let part = decode(part, Dialect::Gif { literal_bits: 6 }, data.len());
            prop_assert!(data.starts_with(&part));
        }
    }

    #[test]
    fn a_gif_has_literals_of_two_to_eight_bits() {
        let is_one = |bits: &u8| Dialect::gif(*bits).is_some();
        assert!((0..=u8::MAX).filter(is_one).eq(2..=8));
    }

    #[test]
    fn no_more_comes_than_is_asked_for() {
        let data = vec![7; 10_000];
        for most in [0, 1, 2, 3, 100, 9_999] {
            assert_eq!(decode(&tiff(&data), Dialect::Tiff, most), data[..most]);
        }
    }
}
