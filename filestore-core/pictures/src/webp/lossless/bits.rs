//! Reads bits from the lowest of each byte on. Zeros follow the end.

/// The minimum number of bits after a refill.
pub(super) const REFILLED: u32 = 56;

/// A reader of bits. Reads beyond the end return zeros, and [`is_past_end`](Self::is_past_end) reports them.
#[derive(Clone)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The index of the next byte. The index continues to count beyond the end.
    next: usize,
    bits: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, next: 0, bits: 0, count: 0 }
    }

    /// Ensures that at least [`REFILLED`] bits are available.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        // The word at the end is put together, which is rare.
        let word = match self.data.get(self.next..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(),
        };
        self.bits |= word << self.count;
        self.next += ((63 - self.count) / 8) as usize;
        self.count |= REFILLED;
    }

    #[cold]
    fn last_word(&self) -> u64 {
        let rest = self.data.get(self.next..).unwrap_or_default();
        rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// Returns the next bits without consuming them.
    #[inline(always)]
    pub(super) fn peek(&self) -> usize {
        self.bits as usize
    }

    /// Consumes `count` bits, which must be available.
    #[inline(always)]
    pub(super) fn drop(&mut self, count: u32) {
        self.bits >>= count;
        self.count -= count;
    }

    /// Returns the number of available bits.
    #[cfg(test)]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Reads `count` bits, at most 32.
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        if self.count < count {
            self.refill();
        }
        let taken = self.bits & ((1 << count) - 1);
        self.drop(count);
        taken as u32
    }

    /// Returns true if the caller read more bits than the data has.
    pub(super) fn is_past_end(&self) -> bool {
        8 * self.next > 8 * self.data.len() + self.count as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_from_the_lowest_on_and_zeros_behind_the_end() {
        let mut bits = Bits::new(&[0b1001_1100, 0b0100_0001, 0b1110_0001]);
        let taken = [3, 2, 6, 10, 3].map(|count| bits.take(count));
        assert_eq!((taken, bits.is_past_end()), ([4, 3, 12, 40, 7], false));
        assert_eq!((bits.take(32), bits.is_past_end()), (0, true));
    }

    #[test]
    fn a_word_at_the_end_is_not_read_beyond() {
        for length in 0..20u8 {
            let data: Vec<u8> = (1..=length).collect();
            let mut bits = Bits::new(&data);
            let taken: Vec<u8> = (0..length).map(|_| bits.take(8) as u8).collect();
            assert_eq!((taken, bits.is_past_end()), (data.clone(), false));
            bits.take(1);
            assert!(bits.is_past_end(), "{length}");
        }
    }
}
