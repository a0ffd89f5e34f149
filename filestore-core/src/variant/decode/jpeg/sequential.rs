//! Scans of sequential frames (ITU-T T.81, annex F.2): each block becomes samples at once.

use std::rc::Rc;

use super::bits::Bits;
use super::block::{Coefficients, Inverse, Needed, Plane};
use super::huffman::{AcTable, Broken, DcTable, END};
use super::walk::{Blocks, Place};

/// A component, as a scan decodes it.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) dc: Rc<DcTable>,
    pub(super) ac: Rc<AcTable>,
    /// Dequantization, in zigzag order; behind the block's end come zeros.
    pub(super) factors: [f32; 2 * END],
    pub(super) needed: Needed,
    pub(super) inverse: Inverse,
    pub(super) plane: Plane,
    pub(super) prediction: i32,
}

/// The components of a scan.
pub(super) struct Decoders(pub(super) Vec<Decoder>);

impl Blocks for Decoders {
    fn restart(&mut self) {
        for decoder in &mut self.0 {
            decoder.prediction = 0;
        }
    }

    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        self.0[place.lane].block(bits, place)
    }
}

impl Decoder {
    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        bits.refill();
        let difference = self.dc.difference(bits)?;
        self.prediction = self.prediction.wrapping_add(difference);
        if !place.is_wanted {
            return self.ac.skip(bits, 1);
        }
        let dc = self.prediction as f32 * self.factors[0];
        if self.needed.last == 0 {
            self.inverse.put_flat(dc, &mut self.plane, place.x, place.y);
            return self.ac.skip(bits, 1);
        }
        self.rest(bits, place, dc)
    }

    #[inline(always)]
    fn rest(&mut self, bits: &mut Bits<'_>, place: Place, dc: f32) -> Result<(), Broken> {
        bits.refill();
        let mut step = self.ac.step(bits)?;
        let mut at = 1 + step.advance;
        if at > END {
            self.inverse.put_flat(dc, &mut self.plane, place.x, place.y);
            return Ok(());
        }
        let mut coefficients: Coefficients = [0.0; 2 * END];
        coefficients[0] = dc;
        loop {
            let last = (at - 1) % (2 * END);
            let to = usize::from(self.needed.places[last]) % (2 * END);
            coefficients[to] = step.value as f32 * self.factors[last];
            if at > self.needed.last {
                break;
            }
            bits.refill();
            step = self.ac.step(bits)?;
            at += step.advance;
        }
        self.ac.skip(bits, at)?;
        self.inverse.put(&coefficients, &mut self.plane, place.x, place.y);
        Ok(())
    }
}
