//! Computes which part of a picture becomes a variant, and the variant's size. Pure: no I/O, no pixels.

use super::header::Header;
use crate::geometry::{Geometry, Rectangle};
use crate::{Dimensions, Fit, Wanted};

/// The factor by which a picture must be larger than its target, on both sides, to be as good a source as an
/// even larger picture.
///
/// Lanczos3 does not change the lower half of the spectrum, so the smaller picture loses no visible detail.
pub(crate) const ENOUGH: u32 = 2;
/// The longer side of a reduced copy, in pixels. This length is enough for all sizes.
const REDUCED_SIDE: u32 = ENOUGH * 1000;
/// The longer side of the pixels for a placeholder. ThumbHash accepts up to 100 pixels, and keeps at most 7
/// waves across.
const PLACEHOLDER_SIDE: u32 = 64;

/// The way to make a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// The picture is no larger than requested: the original is the answer.
    PassThrough,
    /// A new picture must be rendered.
    Render(Geometry),
}

/// Plans a variant of a picture with `displayed` pixels. Both sides of a variant must be at least 1.
///
/// If the longer side is at most `side`, the picture passes through. Otherwise, [`Fit::Cover`] cuts a square
/// from the centre, with a side of min(side, shorter side). [`Fit::Inside`] scales the whole picture so that
/// its longer side is `side`. The plan never enlarges a picture, and no side becomes 0.
pub(crate) fn plan(displayed: Dimensions, Wanted { side, fit }: Wanted) -> Plan {
    let Dimensions { width, height } = displayed;
    let (longest, shortest) = (width.max(height), width.min(height));
    if longest <= side {
        return Plan::PassThrough;
    }

    Plan::Render(match fit {
        Fit::Cover => {
            let side = side.min(shortest);
            Geometry {
                crop: Rectangle {
                    left: (width - shortest) / 2,
                    top: (height - shortest) / 2,
                    width: shortest,
                    height: shortest,
                },
                target: Dimensions { width: side, height: side },
            }
        }
        Fit::Inside => Geometry {
            crop: Rectangle { left: 0, top: 0, width, height },
            target: Dimensions {
                width: scaled(width, side, longest),
                height: scaled(height, side, longest),
            },
        },
    })
}

/// Plans a variant of the picture that `header` describes, in stored axes.
pub(crate) fn plan_stored(header: &Header, wanted: Wanted) -> Plan {
    match plan(header.displayed(), wanted) {
        Plan::PassThrough => Plan::PassThrough,
        Plan::Render(displayed) => {
            Plan::Render(header.orientation.to_stored(displayed, header.stored))
        }
    }
}

/// Plans the reduced copy of a picture that is too large to be retained. The copy is uncropped, and its
/// longer side is [`REDUCED_SIDE`]. `None` if the picture is no larger than that.
pub(crate) fn plan_reduced(stored: Dimensions) -> Option<Geometry> {
    let Dimensions { width, height } = stored;
    let longest = width.max(height);
    if longest <= REDUCED_SIDE {
        return None;
    }

    Some(Geometry {
        crop: Rectangle { left: 0, top: 0, width, height },
        target: Dimensions { width: reduced(width, longest), height: reduced(height, longest) },
    })
}

/// The treatment of a picture that is not larger than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Small {
    /// The original is the answer.
    PassesThrough,
    /// The crate renders a variant in the picture's own size.
    IsRendered,
}

impl Small {
    /// Plans a variant of the picture that `header` describes, as [`plan_stored`] does.
    pub(crate) fn planned(self, header: &Header, wanted: Wanted) -> Plan {
        match (plan_stored(header, wanted), self) {
            (Plan::PassThrough, Self::IsRendered) => Plan::Render(plan_whole(header.stored)),
            (plan, _) => plan,
        }
    }
}

/// Plans a picture in its own size.
fn plan_whole(stored: Dimensions) -> Geometry {
    let Dimensions { width, height } = stored;
    Geometry { crop: Rectangle { left: 0, top: 0, width, height }, target: stored }
}

/// Plans the pixels for a placeholder: the whole picture, with a longer side of at most [`PLACEHOLDER_SIDE`].
pub(crate) fn plan_placeholder(stored: Dimensions) -> Geometry {
    let Dimensions { width, height } = stored;
    let longest = width.max(height).max(PLACEHOLDER_SIDE);
    Geometry {
        crop: Rectangle { left: 0, top: 0, width, height },
        target: Dimensions {
            width: scaled(width, PLACEHOLDER_SIDE, longest),
            height: scaled(height, PLACEHOLDER_SIDE, longest),
        },
    }
}

/// Scales `side` so that the longest side becomes [`REDUCED_SIDE`]. Rounds down, to at least 1.
fn reduced(side: u32, longest: u32) -> u32 {
    let scaled = u64::from(side) * u64::from(REDUCED_SIDE) / u64::from(longest);
    u32::try_from(scaled).unwrap_or(side).max(1)
}

/// Returns `side · numerator / denominator`, rounded to the nearest number, at least 1.
fn scaled(side: u32, numerator: u32, denominator: u32) -> u32 {
    let exact = u64::from(side) * u64::from(numerator);
    let rounded = (exact + u64::from(denominator) / 2) / u64::from(denominator);
    u32::try_from(rounded).expect("a side scaled down is no larger than before").max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn geometry(width: u32, height: u32, side: u32, fit: Fit) -> Geometry {
        match plan(Dimensions { width, height }, Wanted::new(side, fit)) {
            Plan::Render(geometry) => geometry,
            Plan::PassThrough => panic!("{width}×{height} passes through"),
        }
    }

    #[test]
    fn a_picture_passes_through_up_to_the_size_and_not_a_pixel_beyond() {
        let plan_of = |width, height| plan(Dimensions { width, height }, Wanted::cover(200));
        assert_eq!(plan_of(200, 200), Plan::PassThrough);
        assert_eq!(plan_of(200, 1), Plan::PassThrough);
        assert_ne!(plan_of(201, 1), Plan::PassThrough);
        assert_ne!(plan_of(1, 201), Plan::PassThrough);
    }

    #[test]
    fn extreme_aspects_keep_a_pixel() {
        assert_eq!(geometry(1, 10_000, 200, Fit::Cover).target, Dimensions { width: 1, height: 1 });
        assert_eq!(
            geometry(10_000, 1, 200, Fit::Inside).target,
            Dimensions { width: 200, height: 1 }
        );
    }

    #[test]
    fn a_short_edge_below_the_size_gives_the_side() {
        let geometry = geometry(300, 150, 200, Fit::Cover);
        assert_eq!(geometry.target, Dimensions { width: 150, height: 150 });
        assert_eq!(geometry.crop, Rectangle { left: 75, top: 0, width: 150, height: 150 });
    }

    proptest! {
        #[test]
        fn a_plan_stays_within_the_picture_and_never_enlarges(
            width in 1u32..=70_000, height in 1u32..=70_000,
            pixels in 1u32..=16_383, inside: bool,
        ) {
            let fit = if inside { Fit::Inside } else { Fit::Cover };
            match plan(Dimensions { width, height }, Wanted::new(pixels, fit)) {
                Plan::PassThrough => prop_assert!(width.max(height) <= pixels),
                Plan::Render(Geometry { crop, target }) => {
                    prop_assert!(width.max(height) > pixels);
                    prop_assert!(crop.left + crop.width <= width && crop.top + crop.height <= height);
                    prop_assert!(target.width >= 1 && target.width <= crop.width);
                    prop_assert!(target.height >= 1 && target.height <= crop.height);
                    // The crop is centred: what is cut off on two sides differs by a pixel at most.
                    prop_assert!(width - crop.width - 2 * crop.left <= 1);
                    prop_assert!(height - crop.height - 2 * crop.top <= 1);
                    match fit {
                        Fit::Cover => {
                            prop_assert_eq!(target.width, pixels.min(width).min(height));
                            prop_assert_eq!(target.width, target.height);
                            prop_assert_eq!(crop.width, width.min(height));
                        }
                        Fit::Inside => {
                            prop_assert_eq!(target.width.max(target.height), pixels);
                            prop_assert_eq!((crop.width, crop.height), (width, height));
                        }
                    }
                }
            }
        }
    }
}
