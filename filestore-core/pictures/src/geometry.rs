//! Rectangles, sizes and scales, which all stages use to describe a picture. This module sees no pixels.

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// The width, in pixels.
    pub width: u32,
    /// The height, in pixels.
    pub height: u32,
}

/// A rectangle of a picture and the size it is scaled to. Get one from `Plan::Render` or
/// `Retained::plan_placeholder`.
///
/// The axes depend on the user. A plan uses the displayed picture's axes. After
/// `Orientation::to_stored`, the axes are those of the stored picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The rectangle, in whole pixels of the picture.
    pub(crate) crop: Rectangle,
    /// The size of the result. The size is never larger than `crop`.
    pub(crate) target: Dimensions,
}

/// A rectangle within a picture, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Rectangle {
    /// Returns true if `other` is within this rectangle.
    pub(crate) fn contains(self, other: Self) -> bool {
        other.left >= self.left
            && other.top >= self.top
            && other.left + other.width <= self.left + self.width
            && other.top + other.height <= self.top + self.height
    }
}

/// The position of decoded pixels within the stored picture: the first point, in stored pixels, and the
/// number of decoded pixels for each stored pixel. The last pixels can cover a stored pixel partly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) scale_x: f64,
    pub(crate) scale_y: f64,
}

impl Extent {
    /// The extent of a picture in its stored size.
    pub(crate) const WHOLE: Self = Self { left: 0.0, top: 0.0, scale_x: 1.0, scale_y: 1.0 };

    /// Returns the extent of a picture that was made as `wanted`.
    pub(crate) fn of(wanted: Geometry) -> Self {
        let Geometry { crop, target } = wanted;
        Self {
            left: crop.left.into(),
            top: crop.top.into(),
            scale_x: f64::from(target.width) / f64::from(crop.width),
            scale_y: f64::from(target.height) / f64::from(crop.height),
        }
    }

    /// Returns true if pixels of `size` with this extent show the whole crop in sufficient detail: at least
    /// `tenths` tenths of the target's size, or all stored pixels.
    pub(crate) fn suffices(self, size: Dimensions, wanted: Geometry, tenths: u32) -> bool {
        let Geometry { crop, target } = wanted;
        let across = (crop.left, crop.width, target.width);
        let down = (crop.top, crop.height, target.height);
        suffices_along(across, (size.width, self.left, self.scale_x), tenths)
            && suffices_along(down, (size.height, self.top, self.scale_y), tenths)
    }
}

/// Compares one axis of a crop and its target with the `shown` pixels of a picture. These pixels begin at the
/// stored pixel `from`.
fn suffices_along(
    (first, crop, target): (u32, u32, u32),
    (shown, from, scale): (u32, f64, f64),
    tenths: u32,
) -> bool {
    let (first, crop) = (f64::from(first), f64::from(crop));
    from <= first
        && (first + crop - from) * scale <= f64::from(shown)
        && (scale >= 1.0 || 10.0 * crop * scale >= f64::from(target) * f64::from(tenths))
}

/// Counts the pixels of a picture with this `size`.
pub(crate) fn area(size: Dimensions) -> u64 {
    u64::from(size.width) * u64::from(size.height)
}
