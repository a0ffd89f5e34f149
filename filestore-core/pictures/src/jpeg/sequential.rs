//! Scans of sequential frames (ITU-T T.81, annex F.2). Each block becomes samples at once.

use std::rc::Rc;

use super::bits::Bits;
use super::block::{Coefficients, Inverse, NOWHERE, Needed, Plane};
use super::huffman::{AcTable, Broken, DcTable, END};
use super::walk::{Blocks, Place};

/// A component, as a scan decodes it.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) dc: Rc<DcTable>,
    pub(super) ac: Rc<AcTable>,
    /// Dequantization in zigzag order. Zeros follow the block's end.
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
        self.0[place.component].block(bits, place)
    }
}

impl Decoder {
    #[inline(always)]
    fn block(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        if !place.is_wanted {
            return self.pass(bits);
        }
        if self.needed.last == 0 {
            return self.mean(bits, place);
        }

        let mut coefficients: Coefficients = [0.0; NOWHERE as usize + 1];
        if self.coefficients(bits, &mut coefficients)? {
            self.inverse.put(&coefficients, &mut self.plane, place.x, place.y);
        } else {
            self.inverse.put_flat(coefficients[0], &mut self.plane, place.x, place.y);
        }
        Ok(())
    }

    /// Reads a block only to reach the next block.
    #[inline(always)]
    fn pass(&mut self, bits: &mut Bits<'_>) -> Result<(), Broken> {
        bits.refill();
        self.prediction = self.prediction.wrapping_add(self.dc.difference(bits)?);
        self.ac.skip(bits, 1)?;
        Ok(())
    }

    /// Reads a block, and decodes only its mean.
    #[inline(always)]
    fn mean(&mut self, bits: &mut Bits<'_>, place: Place) -> Result<(), Broken> {
        bits.refill();
        self.prediction = self.prediction.wrapping_add(self.dc.difference(bits)?);
        self.ac.skip(bits, 1)?;
        self.inverse.put_flat(
            self.prediction as f32 * self.factors[0],
            &mut self.plane,
            place.x,
            place.y,
        );
        Ok(())
    }

    /// Reads the needed coefficients of a block. Returns true if any coefficient after the first is present.
    #[inline(always)]
    fn coefficients(&mut self, bits: &mut Bits<'_>, to: &mut Coefficients) -> Result<bool, Broken> {
        bits.refill();
        self.prediction = self.prediction.wrapping_add(self.dc.difference(bits)?);
        to[0] = self.prediction as f32 * self.factors[0];

        bits.refill();
        let mut step = self.ac.step(bits)?;
        let mut at = 1 + step.advance;
        if at > END {
            return Ok(false);
        }

        loop {
            let last = (at - 1) % (2 * END);
            let place = self.needed.places[last].min(NOWHERE);
            to[usize::from(place)] = step.value as f32 * self.factors[last];
            if at > self.needed.last {
                break;
            }
            bits.refill();
            step = self.ac.step(bits)?;
            at += step.advance;
        }

        self.ac.skip(bits, at)?;
        Ok(true)
    }
}
