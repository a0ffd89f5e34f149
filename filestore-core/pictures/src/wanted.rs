//! The picture that a caller requests, and the result.

use bytes::Bytes;

use crate::error::{Result, invalid};

/// The longest side of a WebP, in pixels.
const MAX_SIDE: u32 = 16_383;

/// A picture to make: a square's side, and how the picture fills this square. The crate never enlarges a
/// picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The square's side, in pixels: 1 to 16383.
    pub side: u32,
    /// How the picture fills the square.
    pub fit: Fit,
}

impl Wanted {
    /// Requests a picture of `side` pixels. `fit` tells how the picture fills its square.
    pub const fn new(side: u32, fit: Fit) -> Self {
        Self { side, fit }
    }

    /// Requests a square of `side` pixels, cut from the centre of the picture.
    pub const fn cover(side: u32) -> Self {
        Self::new(side, Fit::Cover)
    }

    /// Requests the whole picture, with `side` pixels along its longer side.
    pub const fn inside(side: u32) -> Self {
        Self::new(side, Fit::Inside)
    }

    /// Refuses sides that a WebP file cannot have.
    pub(crate) fn check(self) -> Result<()> {
        if (1..=MAX_SIDE).contains(&self.side) {
            return Ok(());
        }
        let message = format!("the side must be 1 to {MAX_SIDE} pixels, not {}", self.side);
        Err(invalid(message).with_limit(MAX_SIDE.into()))
    }
}

/// How a picture fills its square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// Fills the square. The parts that overhang are cut off evenly on both sides.
    #[default]
    Cover,
    /// Fits the whole picture into the square. The result is square only if the picture is square.
    Inside,
}

/// The result of a rendering. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// The picture is no larger than requested. Use the original's bytes, unchanged.
    PassThrough {
        /// The media type, detected from the bytes.
        mime: &'static str,
    },
    /// The bytes of a WebP file.
    WebP(Bytes),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_side_has_as_many_pixels_as_a_webp_can_have() {
        assert!(Wanted::cover(1).check().is_ok() && Wanted::inside(16_383).check().is_ok());
        for side in [0, 16_384] {
            let error = Wanted::cover(side).check().unwrap_err();
            assert_eq!((error.kind(), error.limit()), (ErrorKind::InvalidArgument, Some(16_383)));
        }
    }
}
