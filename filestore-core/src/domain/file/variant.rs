//! Options of a variant: size, fit and motion.

use std::str::FromStr;

use crate::domain::error::{Error, Result};

/// Sizes of variants: the square's side, in pixels.
pub const VARIANT_SIZES: [u32; 7] = [200, 250, 300, 400, 500, 700, 1000];

/// The variant size in pixels: one of [`VARIANT_SIZES`], for example
/// `VariantSize::try_from(400)?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantSize(u32);

impl VariantSize {
    /// Reads the two numbers of a request path. The numbers are plain decimal digits (`0200`,
    /// `+200` and `2e2` are invalid), equal, and one of the sizes. The error names the wrong
    /// number.
    pub fn from_path(width: &str, height: &str) -> Result<Self> {
        let size = parse_side("width", width)?;
        if parse_side("height", height)? == size {
            return Ok(Self(size));
        }
        Err(Error::invalid("height", format!("width and height are equal, width is {size}"))
            .with_allowed([size.to_string()]))
    }

    /// Returns the size, in pixels.
    pub const fn pixels(self) -> u32 {
        self.0
    }
}

impl TryFrom<i32> for VariantSize {
    type Error = Error;

    /// Converts an `i32`, the type of an integer literal. Same errors as for `u32`.
    fn try_from(side: i32) -> Result<Self> {
        Self::try_from(u32::try_from(side).unwrap_or(0))
    }
}

impl TryFrom<u32> for VariantSize {
    type Error = Error;

    /// Converts a number of pixels. `InvalidField` with the allowed sizes for any other number.
    fn try_from(pixels: u32) -> Result<Self> {
        parse_side("size", &pixels.to_string()).map(Self)
    }
}

fn parse_side(field: &str, text: &str) -> Result<u32> {
    // Digits alone, the first of them no zero: each size has one spelling.
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    let side = text.parse().ok().filter(|side| is_plain && VARIANT_SIZES.contains(side));
    side.ok_or_else(|| {
        let allowed = VARIANT_SIZES.map(|size| size.to_string());
        Error::invalid(field, format!("{field} is one of {}", allowed.join(", ")))
            .with_allowed(allowed)
    })
}

/// How a picture fits the square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// Fills the square. The parts that overhang are cut off evenly on both sides.
    #[default]
    Cover,
    /// Keeps the whole picture and the aspect ratio. The result is square only if the picture is.
    Inside,
}

impl FromStr for Fit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "cover" => Ok(Self::Cover),
            "inside" => Ok(Self::Inside),
            _ => {
                Err(Error::invalid("fit", "fit is cover or inside")
                    .with_allowed(["cover", "inside"]))
            }
        }
    }
}

/// Which part of an animation the variant shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Motion {
    /// The first frame.
    #[default]
    Still,
    /// All frames. If the picture is not animated, the variant is the still picture.
    Animated,
}

impl From<bool> for Motion {
    /// Converts `true` to [`Animated`](Self::Animated).
    fn from(animated: bool) -> Self {
        if animated { Self::Animated } else { Self::Still }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    #[test]
    fn only_equal_allowed_plain_numbers_are_a_size() {
        assert_eq!(VariantSize::from_path("700", "700").unwrap().pixels(), 700);

        for bad in
            ["", "0", "0200", "+200", "2e2", "200.0", " 200", "201", "-200", "٢٠٠", "99999999999"]
        {
            for (width, height, field) in [(bad, "200", "width"), ("200", bad, "height")] {
                let error = VariantSize::from_path(width, height).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidField, "{bad:?}");
                assert_eq!(error.details().field.as_deref(), Some(field), "{bad:?}");
                assert_eq!(error.details().allowed.len(), VARIANT_SIZES.len());
            }
        }

        let unequal = VariantSize::from_path("200", "400").unwrap_err();
        assert_eq!(unequal.details().field.as_deref(), Some("height"));
    }

    #[test]
    fn the_fit_is_cover_unless_said_otherwise() {
        assert_eq!(Fit::default(), Fit::Cover);
        assert_eq!("inside".parse::<Fit>().unwrap(), Fit::Inside);
        assert_eq!("Cover".parse::<Fit>().unwrap_err().details().allowed, ["cover", "inside"]);
    }
}
