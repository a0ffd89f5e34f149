//! Reads bits of the arithmetic coder ("boolean entropy decoder", RFC 6386, section 7).
//!
//! The next bits of the partition are at the top of a 64-bit window, so several decisions need only one
//! refill. Reading does not check for missing bits: the caller must refill often enough.

/// The shift that restores an interval to at least 128, indexed by its size minus one.
const SHIFTS: [u8; 256] = scaled().0;
/// The interval's size minus one after that shift, indexed by the size minus one before it.
const SCALED: [u8; 256] = scaled().1;

const fn scaled() -> ([u8; 256], [u8; 256]) {
    let (mut shifts, mut scaled) = ([0; 256], [0; 256]);
    let mut last = 0;
    while last < 255u8 {
        let shift = (last + 1).leading_zeros();
        shifts[last as usize] = shift as u8;
        scaled[last as usize] = ((last + 1) << shift) - 1;
        last += 1;
    }
    (shifts, scaled)
}

/// The rest of a partition, and the state of its coder. Zeros follow the partition's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bools<'a> {
    /// The bytes that are not loaded yet.
    rest: &'a [u8],
    /// The next bits, at the top. The bits below the top `count` are either the following bits or 0.
    value: u64,
    /// The size of the coder's interval minus one: 127 to 254.
    last: u32,
    /// The number of valid bits in `value`, at most 63.
    count: u32,
    /// The number of zero bytes appended after the end.
    made_up: usize,
}

impl<'a> Bools<'a> {
    /// The minimum number of bits after a refill. A decision consumes at most seven bits, and looks at eight.
    const FULL: u32 = 56;

    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, value: 0, last: 254, count: 0, made_up: 0 }
    }

    /// Returns true if the caller read more bits than the partition has.
    pub(super) fn is_overdrawn(&self) -> bool {
        8 * self.made_up > self.count as usize
    }

    /// Loads enough bits for six decisions.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            self.value |= u64::from_be_bytes(*next) >> self.count;
            self.rest = &self.rest[((63 - self.count) >> 3 & 7) as usize..];
            self.count |= Self::FULL;
        } else {
            // By value: a coder whose address is taken is kept in memory, not in registers.
            *self = self.refilled_at_the_end();
        }
    }

    #[cold]
    #[inline(never)]
    fn refilled_at_the_end(mut self) -> Self {
        // Bits below the count are loaded once more, with the same value.
        while self.count < Self::FULL {
            let byte = if let Some((byte, rest)) = self.rest.split_first() {
                self.rest = rest;
                *byte
            } else {
                self.made_up += 1;
                0
            };
            self.value |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
        self
    }

    /// Reads a decision that is false with `probability` of 256. The bits of the decision must be available.
    #[inline(always)]
    pub(super) fn next(&mut self, probability: u8) -> bool {
        let split = (self.last * u32::from(probability)) >> 8;
        let big_split = u64::from(split + 1) << 56;
        if self.value >= big_split {
            self.value -= big_split;
            self.keep(self.last.wrapping_sub(1).wrapping_sub(split));
            true
        } else {
            self.keep(split);
            false
        }
    }

    /// Continues with an interval of size `last` + 1, scaled to at least 128.
    #[inline(always)]
    fn keep(&mut self, last: u32) {
        // A look-up is faster than counting zeros and shifting.
        let index = usize::from(last as u8);
        let shift = u32::from(SHIFTS[index]);
        self.last = u32::from(SCALED[index]);
        self.value <<= shift;
        self.count -= shift;
    }

    /// Reads a sign with equal probabilities, and applies it to `value`.
    ///
    /// Call this only after the first value of a partition. After the first decision, the interval is smaller than
    /// 255, so halving it needs a shift by exactly one.
    #[inline(always)]
    pub(super) fn signed(&mut self, value: i32) -> i32 {
        let split = self.last >> 1;
        let big_split = u64::from(split + 1) << 56;
        // Without a branch: half of all guesses would be wrong.
        let is_negative = self.value >= big_split;
        let mask = u64::from(is_negative).wrapping_neg();
        self.value = self.value.wrapping_sub(big_split & mask) << 1;
        self.last = (self.last.wrapping_sub(u32::from(is_negative)) | 1) & 0xFF;
        self.count -= 1;
        (value ^ mask as i32).wrapping_sub(mask as i32)
    }

    /// Refills and reads one decision.
    #[inline]
    pub(super) fn bool(&mut self, probability: u8) -> bool {
        self.refill();
        self.next(probability)
    }

    /// Reads a flag.
    pub(super) fn flag(&mut self) -> bool {
        self.bool(128)
    }

    /// Reads a number of `bits` bits, at most 8.
    pub(super) fn number(&mut self, bits: u32) -> u8 {
        (0..bits).fold(0, |number, _| number << 1 | u8::from(self.flag()))
    }

    /// Reads a number of `bits` bits, at most 7, and its sign.
    pub(super) fn signed_number(&mut self, bits: u32) -> i32 {
        let number = i32::from(self.number(bits));
        if self.flag() { -number } else { number }
    }

    /// Reads a signed number behind a flag; 0 if the flag is not set.
    pub(super) fn optional(&mut self, bits: u32) -> i32 {
        if self.flag() { self.signed_number(bits) } else { 0 }
    }
}
