//! The part of a picture that becomes a variant, and the variant's size. Pure: no I/O, no pixels.

use super::header::Header;
use crate::domain::record::Dimensions;
use crate::domain::variant::{Fit, VariantSize};
use crate::variant::geometry::{Geometry, Rectangle};

/// The factor by which a picture must be larger than its target, on both sides, to be as good a
/// source as a still larger one.
///
/// Lanczos3 leaves the lower half of the spectrum as it was, so nothing is lost that the smaller
/// picture could show.
pub(crate) const ENOUGH: u32 = 2;
/// The longer side of a reduced copy, in pixels: enough for all sizes.
const REDUCED_SIDE: u32 = ENOUGH * 1000;
/// The longer side of the pixels behind a placeholder: ThumbHash takes up to 100, and keeps at most 7
/// waves across.
const SKETCH_SIDE: u32 = 64;

/// The way in which a picture becomes a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The picture is no larger than asked, and is the answer itself.
    PassThrough,
    /// A new picture is made.
    Render(Geometry),
}

/// Plans a variant of a picture that is `displayed` pixels large, both sides at least 1.
///
/// The longest edge at most `size`: pass through. Else [`Fit::Cover`] gives a square of side
/// min(size, shortest edge) from the centre, [`Fit::Inside`] the whole picture with its longest
/// edge at `size`. Nothing is ever enlarged, and no side becomes 0.
pub(crate) fn plan(displayed: Dimensions, size: VariantSize, fit: Fit) -> Plan {
    let Dimensions { width, height } = displayed;
    let (longest, shortest) = (width.max(height), width.min(height));
    if longest <= size.pixels() {
        return Plan::PassThrough;
    }

    Plan::Render(match fit {
        Fit::Cover => {
            let side = size.pixels().min(shortest);
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
                width: scaled(width, size.pixels(), longest),
                height: scaled(height, size.pixels(), longest),
            },
        },
    })
}

/// Plans a variant of the picture that `header` describes, in the axes of its stored pixels.
pub(crate) fn plan_stored(header: &Header, size: VariantSize, fit: Fit) -> Plan {
    match plan(header.displayed(), size, fit) {
        Plan::PassThrough => Plan::PassThrough,
        Plan::Render(displayed) => {
            Plan::Render(header.orientation.to_stored(displayed, header.stored))
        }
    }
}

/// Plans the reduced copy of a picture too large to be retained whole: uncropped, its longer side
/// at [`REDUCED_SIDE`]. `None` if the picture is no larger than that.
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

/// The fate of a picture that is no larger than asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Small {
    /// The original is the answer.
    PassesThrough,
    /// A variant is made in the picture's own size.
    IsRendered,
}

impl Small {
    /// Plans a variant of the picture that `header` describes, as [`plan_stored`] does.
    pub(crate) fn planned(self, header: &Header, size: VariantSize, fit: Fit) -> Plan {
        match (plan_stored(header, size, fit), self) {
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

/// Plans the pixels that a placeholder is made of: the whole picture, its longer side at
/// [`SKETCH_SIDE`] at most.
pub(crate) fn plan_sketch(stored: Dimensions) -> Geometry {
    let Dimensions { width, height } = stored;
    let longest = width.max(height).max(SKETCH_SIDE);
    Geometry {
        crop: Rectangle { left: 0, top: 0, width, height },
        target: Dimensions {
            width: scaled(width, SKETCH_SIDE, longest),
            height: scaled(height, SKETCH_SIDE, longest),
        },
    }
}

/// Scales `side` with the longest side at [`REDUCED_SIDE`], rounded down, at least 1.
fn reduced(side: u32, longest: u32) -> u32 {
    let scaled = u64::from(side) * u64::from(REDUCED_SIDE) / u64::from(longest);
    u32::try_from(scaled).unwrap_or(side).max(1)
}

/// Returns `side · numerator / denominator`, rounded to the nearest, at least 1.
fn scaled(side: u32, numerator: u32, denominator: u32) -> u32 {
    let exact = u64::from(side) * u64::from(numerator);
    let rounded = (exact + u64::from(denominator) / 2) / u64::from(denominator);
    u32::try_from(rounded).expect("a side scaled down is no larger than before").max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::variant::VARIANT_SIZES;

    fn size(pixels: u32) -> VariantSize {
        VariantSize::from_path(&pixels.to_string(), &pixels.to_string()).unwrap()
    }

    fn geometry(width: u32, height: u32, pixels: u32, fit: Fit) -> Geometry {
        match plan(Dimensions { width, height }, size(pixels), fit) {
            Plan::Render(geometry) => geometry,
            Plan::PassThrough => panic!("{width}×{height} passes through"),
        }
    }

    #[test]
    fn a_picture_passes_through_up_to_the_size_and_not_a_pixel_beyond() {
        let plan_of = |width, height| plan(Dimensions { width, height }, size(200), Fit::Cover);
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
            pick in 0usize..VARIANT_SIZES.len(), inside: bool,
        ) {
            let pixels = VARIANT_SIZES[pick];
            let fit = if inside { Fit::Inside } else { Fit::Cover };
            match plan(Dimensions { width, height }, size(pixels), fit) {
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
