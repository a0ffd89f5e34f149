//! Entropy-coded data as bits (ITU-T T.81, annex F.2.2.5), one restart interval at a time.
//!
//! An interval is copied once without its stuffed bytes. After that a refill is one load of eight
//! bytes that need not be looked at, which pays for the copy many times over.

use memchr::memchr;

/// The intervals of one scan: the bytes between its restart markers.
pub(super) struct Intervals<'a> {
    /// The bytes left of the scan; `None` once the last interval was handed out.
    rest: Option<&'a [u8]>,
    /// The number of the next interval, counted from 0.
    next: usize,
    /// An interval without its stuffing, followed by zeros for the last refill.
    bytes: Vec<u8>,
}

/// Zeros behind an interval, so that its last bytes are loaded like all others.
const PADDING: [u8; 8] = [0; 8];

impl<'a> Intervals<'a> {
    /// Cuts the bytes between a scan's header and the next marker that is not a restart.
    pub(super) fn new(scan: &'a [u8]) -> Self {
        Self { rest: Some(scan), next: 0, bytes: Vec::new() }
    }

    /// Returns the number of the next interval, `None` behind the last one. Numbers are skipped
    /// where the markers' own count (modulo 8) shows that some were lost.
    pub(super) fn next(&self) -> Option<usize> {
        self.rest.map(|_| self.next)
    }

    /// Passes over the next interval without reading it.
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

    /// Gives `take` the runs of bytes up to the next restart marker, and steps over that.
    fn walk(&mut self, mut take: impl FnMut(&[u8])) {
        let Some(mut rest) = self.rest.take() else { return };

        while let Some(found) = memchr(0xFF, rest) {
            match rest.get(found + 1) {
                Some(0) => {
                    take(&rest[..=found]);
                    rest = &rest[found + 2..];
                }
                // Fill before a marker.
                Some(0xFF) => {
                    take(&rest[..found]);
                    rest = &rest[found + 1..];
                }
                Some(marker @ 0xD0..=0xD7) => {
                    take(&rest[..found]);
                    self.next += 1 + self.lost_before(*marker);
                    self.rest = Some(&rest[found + 2..]);
                    return;
                }
                Some(_) => {
                    take(&rest[..found]);
                    rest = &rest[found + 2..];
                }
                None => {
                    rest = &rest[..found];
                }
            }
        }

        take(rest);
    }

    /// Counts the intervals lost before a restart `marker`, by its number.
    fn lost_before(&self, marker: u8) -> usize {
        let lost = usize::from(marker.wrapping_sub(0xD0).wrapping_sub((self.next % 8) as u8) & 7);
        // More than a few is a marker with a damaged number, not so many lost ones.
        if lost < 4 { lost } else { 0 }
    }
}

/// Bits of an interval, the most significant first; behind its end come zeros.
pub(super) struct Bits<'a> {
    /// The interval and its padding.
    bytes: &'a [u8],
    /// Bytes of the interval alone.
    len: usize,
    /// The place of the next byte to load; behind `bytes` after zeros were made up.
    at: usize,
    /// The next bits, at the top. Below `count` bits stand those that follow, or 0.
    buffer: u64,
    /// The bits of `buffer` that are accounted for, at most 63.
    count: u32,
}

impl Bits<'_> {
    /// The bits that are there at least after a refill: seven bytes.
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

    /// Returns the next `count` bits, 1 to 32, without passing them.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> usize {
        (self.buffer >> (64 - count)) as usize
    }

    /// Passes `count` bits that are there.
    #[inline(always)]
    pub(super) fn consume(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count;
    }

    /// Takes `count` bits that are there, 0 to 16.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = (self.buffer >> 32) as u32;
        self.consume(count);
        // Two shifts, since one by 32 is none.
        bits >> 1 >> (31 - count)
    }

    /// Takes `count` bits, 0 to 64, the last one in the lowest place.
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

    /// Returns true if more was taken than the interval has.
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
