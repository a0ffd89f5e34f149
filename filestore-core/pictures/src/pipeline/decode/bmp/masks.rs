//! Channels within a pixel of 16 or 32 bits.

use super::Info;

/// The channels: red, green, blue, alpha.
pub(super) struct Masks([Channel; 4]);

/// A channel of up to 32 adjacent bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Channel {
    shift: u32,
    /// The number of bits to use, at most 8. 0 for a missing channel.
    bits: u32,
}

impl Masks {
    /// Reads masks. `None` if a mask has gaps, or if two masks share a bit. A mask without bits is a channel
    /// of 0. For alpha, it means that there is no alpha.
    pub(super) fn new(masks: [u32; 4], bits: u16) -> Option<Self> {
        let whole = if bits >= 32 { u32::MAX } else { (1 << bits) - 1 };
        let masks = masks.map(|mask| mask & whole);
        let is_disjoint = masks
            .iter()
            .enumerate()
            .all(|(at, mask)| masks[..at].iter().all(|other| other & mask == 0));
        if !is_disjoint {
            return None;
        }

        let mut channels = [Channel { shift: 0, bits: 0 }; 4];
        for (channel, mask) in channels.iter_mut().zip(masks) {
            *channel = Channel::new(mask)?;
        }
        Some(Self(channels))
    }

    pub(super) fn has_alpha(&self) -> bool {
        self.0[3].bits > 0
    }

    /// Adds the pixels of a stored row as RGB, or as RGBA if there is alpha.
    pub(super) fn pixels(&self, row: &[u8], info: &Info, pixels: &mut Vec<u8>) {
        let channels = if self.has_alpha() { 4 } else { 3 };
        let bytes = info.bits / 8;
        for stored in row.chunks_exact(bytes).take(info.width) {
            let value = stored.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            let all = self.0.map(|channel| channel.of(value));
            pixels.extend_from_slice(&all[..channels]);
        }
    }
}

impl Channel {
    fn new(mask: u32) -> Option<Self> {
        if mask == 0 {
            return Some(Self { shift: 0, bits: 0 });
        }
        let (shift, bits) = (mask.trailing_zeros(), mask.count_ones());
        let is_one_piece = mask >> shift == u32::MAX >> (32 - bits);
        let more = bits.saturating_sub(8);
        is_one_piece.then_some(Self { shift: shift + more, bits: bits - more })
    }

    /// Returns the channel of a pixel, from 0 to 255.
    fn of(self, pixel: u32) -> u8 {
        if self.bits == 0 {
            return 0;
        }
        let most = (1u32 << self.bits) - 1;
        let value = pixel >> self.shift & most;
        u8::try_from((value * 255 + most / 2) / most).expect("a share of 255")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_of_every_width_fill_a_byte() {
        for bits in 1..=32 {
            let mask = u32::MAX >> (32 - bits);
            for shift in 0..=32 - bits {
                let channel = Channel::new(mask << shift).unwrap();
                assert_eq!((channel.of(u32::MAX), channel.of(0)), (255, 0), "{bits} at {shift}");
            }
        }
        assert_eq!(Channel::new(0b1000_0100), None, "in pieces");
        assert!(Masks::new([0xFF00, 0xFF, 0, 0], 16).is_some(), "no blue");
        assert!(Masks::new([0xFF00, 0x1FF, 0, 0], 16).is_none(), "a bit in common");
        let beyond = Masks::new([0x7C00, 0x3E0, 0x1F, 0xFF00_0000], 16).unwrap();
        assert!(!beyond.has_alpha(), "alpha beyond the pixel");
    }
}
