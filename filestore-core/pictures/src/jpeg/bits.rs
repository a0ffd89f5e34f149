//! Reads entropy-coded data as bits (ITU-T T.81, annex F.2.2.5), one restart interval at a time.
//!
//! An interval is first copied without its stuffed bytes. Each refill can then load eight bytes without
//! inspecting them, which saves far more time than the copy takes.

use memchr::memchr;

/// The intervals of one scan: the bytes between its restart markers.
pub(super) struct Intervals<'a> {
    /// The remaining bytes of the scan. `None` after the last interval.
    rest: Option<&'a [u8]>,
    /// The number of the next interval, counted from 0.
    next: usize,
    /// The number of markers that were skipped since the last accepted marker.
    passed: usize,
    /// True once the markers' numbers turned out to be meaningless.
    is_unnumbered: bool,
    /// The current interval without stuffing, followed by zeros for the last refill.
    bytes: Vec<u8>,
}

/// Zeros behind an interval, so that its last bytes load like all others.
const PADDING: [u8; 8] = [0; 8];

impl<'a> Intervals<'a> {
    /// Takes the bytes between a scan's header and the next marker that is not a restart marker.
    pub(super) fn new(scan: &'a [u8]) -> Self {
        Self { rest: Some(scan), next: 0, passed: 0, is_unnumbered: false, bytes: Vec::new() }
    }

    /// Returns the number of the next interval. `None` after the last interval. If the markers' numbers
    /// (modulo 8) show that some markers were lost, the interval numbers skip them.
    pub(super) fn next(&self) -> Option<usize> {
        self.rest.map(|_| self.next)
    }

    /// Skips the next interval without reading it.
    pub(super) fn skip(&mut self) {
        self.walk(|_| {});
    }

    /// Returns the bits of the next interval.
    pub(super) fn read(&mut self) -> Bits<'_> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.walk(|run| bytes.extend_from_slice(run));

        let len = bytes.len();
        bytes.extend_from_slice(&PADDING);
        self.bytes = bytes;
        Bits { bytes: &self.bytes, len, at: 0, buffer: 0, count: 0 }
    }

    /// Passes the next interval's runs of bytes to `take`, and skips the marker behind it.
    ///
    /// Data behind a skipped marker belongs to no interval. A marker directly at the interval's start is
    /// different: the marker was doubled, and the data belongs to the interval.
    fn walk(&mut self, mut take: impl FnMut(&[u8])) {
        let Some(mut rest) = self.rest.take() else { return };
        let mut is_empty = true;
        let mut is_lost = false;

        while let Some(marker) = pass_to_marker(&mut rest, |run| {
            is_empty &= run.is_empty();
            if !is_lost {
                take(run);
            }
        }) {
            if let Some(intervals) = self.intervals_to(marker, rest) {
                self.next += intervals;
                self.rest = Some(rest);
                return;
            }
            is_lost = !is_empty || !is_restart(marker);
        }
    }

    /// Counts the intervals from the one before a `marker` to the one behind it. `None` if the marker and the
    /// data up to the next marker must be skipped. `rest` contains this data.
    fn intervals_to(&mut self, marker: u8, rest: &[u8]) -> Option<usize> {
        if !is_restart(marker) {
            return None;
        }

        let (number, due) = (marker & 7, (self.next % 8) as u8);
        if number == due || self.is_unnumbered {
            self.passed = 0;
            return Some(1);
        }

        let intervals = intervals_to_wrong(number, due, following(rest));
        self.passed = if intervals.is_some() { 0 } else { self.passed + 1 };
        if self.passed < 8 {
            return intervals;
        }
        // The number that is due is not among eight markers: they have no numbers that count.
        self.is_unnumbered = true;
        Some(std::mem::take(&mut self.passed))
    }
}

/// Counts like [`Intervals::intervals_to`], for a marker with a `number` that differs from `due`.
///
/// If the marker that `follows` fits one of the two numbers, it decides. Otherwise the rules of libjpeg's
/// `jpeg_resync_to_restart` apply: a number one or two ahead means lost markers, a number one or two behind
/// means an old marker, and any other number is treated as the expected number.
fn intervals_to_wrong(number: u8, due: u8, follows: Option<u8>) -> Option<usize> {
    let ahead = usize::from(number.wrapping_sub(due) & 7);
    match (follows, ahead) {
        // The number alone is wrong.
        (Some(next), _) if next == (due + 1) & 7 => Some(1),
        // The one that is due is still to come: this one is stray.
        (Some(next), _) if next == due => None,
        // The number is right: as many were lost, or they were there before.
        (Some(next), 1..=4) if next == (number + 1) & 7 => Some(1 + ahead),
        (Some(next), _) if next == (number + 1) & 7 => None,
        (_, 1 | 2) => Some(1 + ahead),
        (_, 6 | 7) => None,
        _ => Some(1),
    }
}

fn is_restart(marker: u8) -> bool {
    matches!(marker, 0xD0..=0xD7)
}

/// Returns the number of the next marker in `rest`, if it is a restart marker.
fn following(mut rest: &[u8]) -> Option<u8> {
    pass_to_marker(&mut rest, |_| {}).filter(|marker| is_restart(*marker)).map(|marker| marker & 7)
}

/// Passes the runs of bytes up to the next marker to `take`, without stuffing and fill bytes, and skips the
/// marker. Returns the marker's code, or `None` at the end.
fn pass_to_marker(rest: &mut &[u8], mut take: impl FnMut(&[u8])) -> Option<u8> {
    while let Some(found) = memchr(0xFF, rest) {
        let bytes = *rest;
        match bytes.get(found + 1) {
            Some(0) => {
                take(&bytes[..=found]);
                *rest = &bytes[found + 2..];
            }
            // Fill before a marker.
            Some(0xFF) => {
                take(&bytes[..found]);
                *rest = &bytes[found + 1..];
            }
            // Markers that stand alone, and mean nothing here.
            Some(0x01 | 0xD8) => {
                take(&bytes[..found]);
                *rest = &bytes[found + 2..];
            }
            Some(marker) => {
                take(&bytes[..found]);
                *rest = &bytes[found + 2..];
                return Some(*marker);
            }
            None => *rest = &bytes[..found],
        }
    }

    take(rest);
    *rest = &[];
    None
}

/// The bits of an interval, most significant first. Zeros follow the end.
pub(super) struct Bits<'a> {
    /// The interval and its padding.
    bytes: &'a [u8],
    /// Bytes of the interval alone.
    len: usize,
    /// The position of the next byte to load. After zeros were appended, this position is behind `bytes`.
    at: usize,
    /// The next bits, at the top. The bits below the top `count` are either the following bits or 0.
    buffer: u64,
    /// The number of valid bits in `buffer`, at most 63.
    count: u32,
}

impl Bits<'_> {
    /// The minimum number of bits after a refill: seven bytes.
    pub(super) const FULL: u32 = 56;

    /// Makes [`FULL`](Self::FULL) bits available.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if let Some(next) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            self.buffer |= u64::from_be_bytes(*next) >> self.count;
            self.at += ((63 - self.count) >> 3) as usize;
            self.count |= Self::FULL;
        } else {
            self.refill_at_the_end();
        }
    }

    #[cold]
    #[inline(never)]
    fn refill_at_the_end(&mut self) {
        // Whatever the buffer holds below its count is loaded once more, with the same value.
        while self.count < Self::FULL {
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.buffer |= u64::from(byte) << (56 - self.count);
            self.at += 1;
            self.count += 8;
        }
    }

    /// Returns the next `count` bits, 1 to 32, without consuming them.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> usize {
        (self.buffer >> (64 - count)) as usize
    }

    /// Consumes `count` bits, which must be available.
    #[inline(always)]
    pub(super) fn consume(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count;
    }

    /// Reads `count` bits, 0 to 16, which must be available.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = (self.buffer >> 32) as u32;
        self.consume(count);
        // Two shifts, since one by 32 is none.
        bits >> 1 >> (31 - count)
    }

    /// Reads `count` bits, 0 to 64. The last bit becomes the lowest bit.
    #[inline]
    pub(super) fn take_many(&mut self, count: u32) -> u64 {
        let mut value = 0;
        let mut left = count;
        while left > 0 {
            let step = left.min(16);
            self.refill();
            value = value << step | u64::from(self.take(step));
            left -= step;
        }
        value
    }

    /// Returns true if the caller read more bits than the interval has.
    #[inline]
    pub(super) fn is_overdrawn(&self) -> bool {
        8 * self.at > 8 * self.len + self.count as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffing_and_fill_are_left_out_and_markers_part_intervals() {
        let mut intervals = Intervals::new(b"a\xFF\0b\xFF\xFF\xD0c\xFF\xD1\xFF\xD2\xFF");
        let mut seen = Vec::new();
        while let Some(number) = intervals.next() {
            let bits = intervals.read();
            seen.push((number, bits.bytes[..bits.len].to_vec()));
        }
        let expected: [(usize, &[u8]); 4] = [(0, b"a\xFFb"), (1, b"c"), (2, b""), (3, b"")];
        assert_eq!(seen, expected.map(|(number, bytes)| (number, bytes.to_vec())));
    }

    #[test]
    fn a_lost_marker_is_noticed_by_the_next_ones_number() {
        let mut intervals = Intervals::new(b"a\xFF\xD0b\xFF\xD3c\xFF\xD0d");
        let mut numbers = Vec::new();
        while let Some(number) = intervals.next() {
            numbers.push(number);
            intervals.skip();
        }
        // D3 follows where D1 was due: two are lost. D0 follows where D4 was due: a damaged number.
        assert_eq!(numbers, [0, 1, 4, 5]);
    }

    /// The number and the bytes of each interval of `scan`.
    fn intervals(scan: &[u8]) -> Vec<(usize, String)> {
        let mut intervals = Intervals::new(scan);
        let mut seen = Vec::new();
        while let Some(number) = intervals.next() {
            let bits = intervals.read();
            seen.push((number, String::from_utf8_lossy(&bits.bytes[..bits.len]).into_owned()));
        }
        seen
    }

    /// The intervals `a` to `l` between markers with these numbers.
    fn scan(numbers: &[u8]) -> Vec<u8> {
        let data = (b'a'..).zip(numbers).flat_map(|(name, number)| [name, 0xFF, 0xD0 + number]);
        data.chain([b'a' + u8::try_from(numbers.len()).unwrap()]).collect()
    }

    #[test]
    fn a_misnumbered_marker_moves_nothing() {
        for wrong in 0..8 {
            let seen = intervals(&scan(&[0, 1, 2, wrong, 4, 5, 6, 7, 0]));
            let expected = (0..).zip('a'..='j').map(|(number, name)| (number, name.to_string()));
            assert_eq!(seen, expected.collect::<Vec<_>>(), "{wrong} where 3 is due");
        }
    }

    #[test]
    fn a_doubled_marker_moves_nothing() {
        let seen = intervals(b"a\xFF\xD0b\xFF\xD1\xFF\xD1c\xFF\xD2d");
        assert_eq!(seen.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(seen.iter().map(|(_, data)| &**data).collect::<String>(), "abcd");
    }

    #[test]
    fn an_old_interval_again_is_left_out() {
        let seen = intervals(b"a\xFF\xD0b\xFF\xD1c\xFF\xD0b\xFF\xD1c\xFF\xD2d");
        assert_eq!(seen.last(), Some(&(3, "d".to_owned())));
        assert_eq!(seen[..3].iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn markers_of_one_number_are_counted() {
        let seen = intervals(&scan(&[0; 20]));
        assert_eq!(seen[..2], [(0, "a".to_owned()), (1, "b".to_owned())]);
        // Eight are passed over before the numbers are known to mean nothing.
        let names = (9..).zip('j'..='u').map(|(number, name)| (number, name.to_string()));
        assert_eq!(seen[2..], names.collect::<Vec<_>>());
    }

    #[test]
    fn a_stray_marker_costs_the_rest_of_its_interval() {
        let seen = intervals(b"a\xFF\xD0b\xFF\x3Cx\xFF\xD1c\xFF\xFF\x3C\xFF\0x\xFF\xD2d");
        let expected = [(0, "a"), (1, "b"), (2, "c"), (3, "d")];
        assert_eq!(seen, expected.map(|(number, data)| (number, data.to_owned())));
    }

    #[test]
    fn a_damaged_marker_costs_the_interval_behind_it() {
        let seen = intervals(b"a\xFF\xD0b\xFF\x51x\xFF\xD2d\xFF\xD3e");
        let expected = [(0, "a"), (1, "b"), (3, "d"), (4, "e")];
        assert_eq!(seen, expected.map(|(number, data)| (number, data.to_owned())));
    }

    #[test]
    fn bits_come_in_order_and_zeros_follow_the_end() {
        let bytes: Vec<u8> = (0..40u8).map(|byte| byte.wrapping_mul(37) % 255).collect();
        let text = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:08b}"));
        let text = text + &"0".repeat(100);
        for step in [1u32, 3, 7, 11, 16] {
            let mut intervals = Intervals::new(&bytes);
            let mut bits = intervals.read();
            let mut at = 0;
            while at + step as usize <= text.len() {
                bits.refill();
                let expected = u32::from_str_radix(&text[at..at + step as usize], 2).unwrap();
                assert_eq!(bits.peek(step), expected as usize);
                assert_eq!(bits.take(step), expected, "{step} bits at {at}");
                at += step as usize;
                assert_eq!(bits.is_overdrawn(), at > 8 * bytes.len(), "{step} bits up to {at}");
            }
        }
        let mut intervals = Intervals::new(&bytes);
        let expected = u64::from_str_radix(&text[..61], 2).unwrap();
        assert_eq!(intervals.read().take_many(61), expected);
    }
}
