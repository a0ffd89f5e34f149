//! Undoes the filters of four rows at once with SSE2. Each row is one pixel behind the row above, so the
//! neighbours that a pixel's filter needs are ready one step earlier. Four pixels then wait no longer than
//! one pixel.
//!
//! A lane has 16 bits for each of four channels. If a pixel has fewer channels, the last channels of the lane
//! hold the bytes behind the pixel. This is harmless, because channels do not mix and the next step
//! overwrites the bytes beyond the pixel.

use std::ops::Range;

use safe_arch::{
    add_i8_m128i, add_i16_m128i, bitand_m128i, bitandnot_m128i, bitor_m128i,
    byte_shl_imm_u128_m128i, byte_shr_imm_u128_m128i, cmp_gt_mask_i16_m128i, get_i32_from_m128i_s,
    m128i, max_i16_m128i, min_i16_m128i, pack_i16_to_u8_m128i, set_i32_m128i_s, shr_imm_u16_m128i,
    sub_i16_m128i, unpack_high_i8_m128i, unpack_low_i8_m128i, unpack_low_i32_m128i,
    unpack_low_i64_m128i, zeroed_m128i,
};

use super::unfilter::{AVERAGE, GROUP, PAETH, SUB, UP};

/// The bytes that are read and written at once.
const WORD: usize = 4;

/// The rows of a group, with margins of zeros like in `unfilter`.
pub(super) struct Rows<'a> {
    pub(super) filters: [u8; GROUP],
    pub(super) above: &'a [u8],
    pub(super) filtered: &'a [u8],
    pub(super) plain: &'a mut [u8],
    pub(super) pitch: usize,
    /// The number of pixels in a row.
    pub(super) width: usize,
}

impl Rows<'_> {
    /// Undoes the filters of all four rows. The pixels have `CHANNELS` channels.
    pub(super) fn undo<const CHANNELS: usize>(self) {
        let [one, two, three, four] = self.filters;
        let masks = [Masks::of(one, two), Masks::of(three, four)];
        let end = (self.width + GROUP - 1) * CHANNELS;

        let above = &self.above[part::<CHANNELS>(0, end)];
        let mut filtered = self.filtered.chunks_exact(self.pitch);
        let filtered: [_; GROUP] = std::array::from_fn(|row| {
            &filtered.next().expect("four rows")[part::<CHANNELS>(row, end)]
        });
        let mut plain = self.plain.chunks_exact_mut(self.pitch);
        let plain: [_; GROUP] = std::array::from_fn(|row| {
            &mut plain.next().expect("four rows")[part::<CHANNELS>(row, end)]
        });

        let mut state = State::new();
        for at in (0..end).step_by(CHANNELS) {
            // Written out: `map` of an array becomes a call.
            let [one, two, three, four] = filtered;
            let words = [word(one, at), word(two, at), word(three, at), word(four, at)];
            let pixels = state.step(&masks, word(above, at), words);
            put(plain[0], at, pixels);
            put(plain[1], at, byte_shr_imm_u128_m128i::<4>(pixels));
            put(plain[2], at, byte_shr_imm_u128_m128i::<8>(pixels));
            put(plain[3], at, byte_shr_imm_u128_m128i::<12>(pixels));
        }
    }
}

/// Returns the bytes that a row processes while the first row moves from its first pixel to `end`, where the
/// last row ends. A row starts as many pixels to the left as it is below the first row.
fn part<const CHANNELS: usize>(row: usize, end: usize) -> Range<usize> {
    let first = (GROUP - 1 - row) * CHANNELS;
    first..first + end + WORD
}

/// The neighbours of the next pixels, for the first two rows and for the other two rows.
struct State {
    left: [m128i; 2],
    corner: [m128i; 2],
}

impl State {
    fn new() -> Self {
        Self { left: [zeroed_m128i(); 2], corner: [zeroed_m128i(); 2] }
    }

    /// Undoes one pixel of each row. `above` is the pixel above the first row's pixel. Returns the bytes of
    /// the pixels.
    #[inline]
    fn step(&mut self, masks: &[Masks; 2], above: m128i, filtered: [m128i; GROUP]) -> m128i {
        let zero = zeroed_m128i();
        let [left, lower_left] = self.left;
        // The pixel above a row's is the one that the row above it has just undone.
        let over = unpack_low_i64_m128i(unpack_low_i8_m128i(above, zero), left);
        let lower_over = bitor_m128i(
            byte_shr_imm_u128_m128i::<8>(left),
            byte_shl_imm_u128_m128i::<8>(lower_left),
        );
        let predicted = pack_i16_to_u8_m128i(
            masks[0].predict(left, over, self.corner[0]),
            masks[1].predict(lower_left, lower_over, self.corner[1]),
        );

        let [one, two, three, four] = filtered;
        let filtered =
            unpack_low_i64_m128i(unpack_low_i32_m128i(one, two), unpack_low_i32_m128i(three, four));
        let pixels = add_i8_m128i(filtered, predicted);
        self.corner = [over, lower_over];
        self.left = [unpack_low_i8_m128i(pixels, zero), unpack_high_i8_m128i(pixels, zero)];
        pixels
    }
}

/// The lanes of two rows for each filter.
struct Masks {
    sub: m128i,
    up: m128i,
    average: m128i,
    paeth: m128i,
}

impl Masks {
    fn of(first: u8, second: u8) -> Self {
        let [sub, up, average, paeth] = [SUB, UP, AVERAGE, PAETH].map(|filter| {
            let [first, second] = [first, second].map(|given| -i32::from(given == filter));
            m128i::from([first, first, second, second])
        });
        Self { sub, up, average, paeth }
    }

    /// Returns the filters' predictions, each in its lanes.
    #[inline]
    fn predict(&self, left: m128i, above: m128i, corner: m128i) -> m128i {
        let average = shr_imm_u16_m128i::<1>(add_i16_m128i(left, above));
        let simple = bitor_m128i(bitand_m128i(left, self.sub), bitand_m128i(above, self.up));
        let others = bitor_m128i(
            bitand_m128i(average, self.average),
            bitand_m128i(paeth(left, above, corner), self.paeth),
        );
        bitor_m128i(simple, others)
    }
}

/// Returns Paeth's prediction. The threshold is 3 · corner − left − above. The result is the larger neighbour
/// if the smaller neighbour is not below the threshold, the smaller neighbour if the larger neighbour is not
/// above it, and otherwise the corner.
#[inline]
fn paeth(left: m128i, above: m128i, corner: m128i) -> m128i {
    let tripled = add_i16_m128i(corner, add_i16_m128i(corner, corner));
    let threshold = sub_i16_m128i(sub_i16_m128i(tripled, above), left);
    let (smaller, larger) = (min_i16_m128i(left, above), max_i16_m128i(left, above));

    let near = choose(cmp_gt_mask_i16_m128i(larger, threshold), corner, smaller);
    choose(cmp_gt_mask_i16_m128i(threshold, smaller), near, larger)
}

#[inline]
fn choose(mask: m128i, yes: m128i, no: m128i) -> m128i {
    bitor_m128i(bitand_m128i(mask, yes), bitandnot_m128i(mask, no))
}

#[inline]
fn word(row: &[u8], at: usize) -> m128i {
    let bytes = row[at..at + WORD].try_into().expect("a word");
    set_i32_m128i_s(i32::from_le_bytes(bytes))
}

#[inline]
fn put(row: &mut [u8], at: usize, pixels: m128i) {
    row[at..at + WORD].copy_from_slice(&get_i32_from_m128i_s(pixels).to_le_bytes());
}
