//! Computes which parts of a picture are decoded, and at which size. Pure: no data, no pixels.
//!
//! Each component has its own scale, N/8: the inverse DCT produces N×N samples for a block. Luminance is
//! decoded somewhat larger than the largest variant needs. Chrominance, which WebP stores at half the size,
//! is decoded at no less than half of the variant's size.

use super::markers::Frame;
use super::{Outline, Sampling};
use crate::Dimensions;
use crate::geometry::Geometry;
use crate::pixels::{Model, Pixels, Planes};

/// The minimum size of decoded luminance, in tenths of the target.
///
/// The resize needs some reduction to do, because the transform's own reduction is softer than Lanczos3. The
/// error (DSSIM) is compared with a variant from a full decode. A value of 10 up to doubles the error. 15
/// adds 3 % on average. 17 adds 2 %, and takes 5 % more time.
pub(super) const LUMINANCE_TENTHS: u32 = 15;
/// The minimum size of decoded chrominance, in tenths of the target. Larger values do not improve the
/// likeness, because WebP stores chrominance at half the size.
pub(super) const CHROMINANCE_TENTHS: u32 = 5;
/// The target pixels around a crop that the resize reads (Lanczos3).
const MARGIN: u32 = 3;

/// The samples of one component that are decoded. Blocks are counted from the component's first block, and
/// samples in the scale of this component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of samples from a block, across and down: 1 to 8.
    pub(super) n: u8,
    /// The first block across, and the block behind the last.
    pub(super) columns: (u32, u32),
    /// The first block down, and the block behind the last.
    pub(super) rows: (u32, u32),
    /// The number of samples across, without samples that only pad the last blocks.
    pub(super) width: u32,
    /// The number of samples down, without samples that only pad the last blocks.
    pub(super) height: u32,
}

/// Returns the largest sampling factors of a frame, across and down.
pub(super) fn largest_sampling(frame: &Frame) -> (u32, u32) {
    let across = frame.components.iter().map(|component| component.h).max().unwrap_or(1);
    let down = frame.components.iter().map(|component| component.v).max().unwrap_or(1);
    (u32::from(across).max(1), u32::from(down).max(1))
}

/// Chooses the parts of the frame's components that all `wanted` pictures need. The components must be the
/// components of `model`, and `wanted` must lie within the frame.
pub(super) fn parts(frame: &Frame, model: Model, wanted: &[Geometry]) -> Vec<Part> {
    let largest = largest_sampling(frame);
    let across =
        span(wanted.iter().map(|g| (g.crop.left, g.crop.width, g.target.width)), frame.width);
    let down =
        span(wanted.iter().map(|g| (g.crop.top, g.crop.height, g.target.height)), frame.height);

    let parts = frame.components.iter().enumerate().map(|(index, component)| {
        let sampling = (u32::from(component.h).max(1), u32::from(component.v).max(1));
        let tenths = tenths(model, index);
        let scales =
            wanted.iter().map(|geometry| smallest_scale(geometry, sampling, largest, tenths));
        let n = scales.max().unwrap_or(8);

        let (columns, width) = axis(across, frame.width, (sampling.0, largest.0), n);
        let (rows, height) = axis(down, frame.height, (sampling.1, largest.1), n);
        Part { n, columns, rows, width, height }
    });
    parts.collect()
}

/// Returns the minimum decoded size of a component, in tenths of the target.
fn tenths(model: Model, component: usize) -> u32 {
    if model.is_chrominance(component) { CHROMINANCE_TENTHS } else { LUMINANCE_TENTHS }
}

/// Finds the smallest scale at which a component has `tenths` tenths of the target, or 8.
fn smallest_scale(
    geometry: &Geometry,
    sampling: (u32, u32),
    largest: (u32, u32),
    tenths: u32,
) -> u8 {
    let Geometry { crop, target } = geometry;
    let scales = (1..8).find(|n| {
        is_enough(*n, (crop.width, target.width), (sampling.0, largest.0), tenths)
            && is_enough(*n, (crop.height, target.height), (sampling.1, largest.1), tenths)
    });
    scales.unwrap_or(8)
}

/// Returns true if `n` samples for each block give `tenths` tenths of the target, along one axis.
fn is_enough(
    n: u8,
    (crop, target): (u32, u32),
    (sampling, largest): (u32, u32),
    tenths: u32,
) -> bool {
    let samples = u64::from(crop) * u64::from(sampling) * u64::from(n);
    10 * samples >= u64::from(target) * u64::from(tenths) * u64::from(largest) * 8
}

/// Returns true if these planes are as good a source for `wanted` as a picture decoded for it alone.
pub(crate) fn suffice(planes: &Planes, wanted: Geometry) -> bool {
    let mut all = planes.planes.iter().enumerate();
    all.all(|(index, plane)| {
        let Pixels { width, height, .. } = plane.samples;
        let size = Dimensions { width, height };
        plane.extent.suffices(size, wanted, tenths(planes.model, index))
    })
}

/// Returns the first pixel of all `crops` with their margins, and the pixel behind the last. Each crop is
/// given as start, length and target length.
fn span(crops: impl Iterator<Item = (u32, u32, u32)>, whole: u32) -> (u32, u32) {
    let grown = crops.map(|(start, length, target)| {
        let margin = MARGIN * length.div_ceil(target.max(1));
        (
            start.saturating_sub(margin),
            start.saturating_add(length).saturating_add(margin).min(whole),
        )
    });
    grown.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, whole))
}

/// Returns the blocks that show the pixels of `span`, and their number of samples at scale `n` within the
/// whole. The component has `sampling` samples for each `largest` samples of the largest sampling.
fn axis(span: (u32, u32), whole: u32, (sampling, largest): (u32, u32), n: u8) -> ((u32, u32), u32) {
    let (sampling, largest, n) = (u64::from(sampling), u64::from(largest), u64::from(n));
    let first = u64::from(span.0) * sampling / (8 * largest);
    let last = (u64::from(span.1) * sampling).div_ceil(8 * largest).max(first + 1);

    let samples = (u64::from(whole) * sampling * n).div_ceil(8 * largest);
    let shown = samples.min(last * n) - (first * n).min(samples);
    ((narrow(first), narrow(last)), narrow(shown).max(1))
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("no more than a side of 16 bits")
}

/// Upper bounds for any sampling.
pub(super) struct Most {
    /// The maximum size of all decoded samples, in bytes.
    pub(super) samples: u64,
    /// The maximum number of samples for each block of 8×8, over all components: `n` squared.
    pub(super) per_block: u64,
}

/// Returns upper bounds for the decoded samples of a picture.
pub(super) fn most_samples(outline: Outline, wanted: &[Geometry]) -> Most {
    let Outline { size, components, sampling, .. } = outline;
    let n = wanted.iter().map(|Geometry { crop, target }| match sampling {
        Sampling::Usual => {
            most_eighths(crop.width, target.width).max(most_eighths(crop.height, target.height))
        }
        Sampling::Mixed => 8,
    });
    let n = n.max().unwrap_or(8).min(8);

    // Blocks are filled up to whole units of at most 32 pixels.
    let padded = (u64::from(size.width) + 32) * (u64::from(size.height) + 32);
    Most { samples: padded * n * n / 64 * u64::from(components), per_block: n * n }
}

/// Returns an upper bound for the scale of a component along one axis, in eighths. The scale is at most one
/// eighth above the scale that its size requires.
fn most_eighths(crop: u32, target: u32) -> u64 {
    let samples = u64::from(target) * 8 * u64::from(LUMINANCE_TENTHS);
    samples.div_ceil(10 * u64::from(crop.max(1))) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Dimensions;
    use crate::geometry::Rectangle;
    use crate::jpeg::markers::FrameComponent;

    fn frame(size: (u32, u32), sampling: &[(u8, u8)]) -> Frame {
        let component =
            |(id, (h, v)): (u8, &(u8, u8))| FrameComponent { id, h: *h, v: *v, table: 0 };
        let components = (1..).zip(sampling).map(component).collect();
        Frame { marker: 0xC0, precision: 8, width: size.0, height: size.1, components }
    }

    fn geometry(left: u32, top: u32, size: (u32, u32), target: (u32, u32)) -> Geometry {
        Geometry {
            crop: Rectangle { left, top, width: size.0, height: size.1 },
            target: Dimensions { width: target.0, height: target.1 },
        }
    }

    proptest! {
        #[test]
        fn parts_are_large_enough_and_memory_is_as_foretold(
            size in (16u32..9000, 16u32..9000),
            luminance in (1u8..=4, 1u8..=4),
            chrominance in prop::option::of((1u8..=4, 1u8..=4)),
            target in 1u32..=1000,
            is_whole: bool,
            is_any: bool,
        ) {
            let kind = if is_any { Sampling::Mixed } else { Sampling::Usual };
            let mut sampling = vec![luminance];
            sampling.extend(chrominance.iter().flat_map(|c| [*c; 2]).map(|c| match kind {
                Sampling::Mixed => c,
                Sampling::Usual => (c.0.min(luminance.0), c.1.min(luminance.1)),
            }));
            let model = if chrominance.is_some() { Model::YCbCr } else { Model::Grey };
            let frame = frame(size, &sampling);
            let side = size.0.min(size.1);
            let target = target.min(side);
            let crop = if is_whole { size } else { (side, side) };
            let (left, top) = ((size.0 - crop.0) / 2, (size.1 - crop.1) / 2);
            let longest = crop.0.max(crop.1);
            let scaled = |side: u32| (side * target / longest).max(1);
            let wanted = [geometry(left, top, crop, (scaled(crop.0), scaled(crop.1)))];
            let parts = parts(&frame, model, &wanted);
            let (across, down) = largest_sampling(&frame);
            for (index, (part, component)) in parts.iter().zip(&frame.components).enumerate() {
                let enough = |crop: u32, target: u32, factor: u8, largest: u32| {
                    let samples = f64::from(crop) * f64::from(factor) / f64::from(largest);
                    let target = f64::from(target) * f64::from(tenths(model, index)) / 10.0;
                    samples * f64::from(part.n) / 8.0 >= target || part.n == 8
                };
                prop_assert!(enough(crop.0, wanted[0].target.width, component.h, across));
                prop_assert!(enough(crop.1, wanted[0].target.height, component.v, down));
                // The crop is within the part.
                let starts = |first: u32, crop: u32, factor: u8, largest: u32| {
                    first * 8 * largest <= crop * u32::from(factor)
                };
                prop_assert!(starts(part.columns.0, left, component.h, across));
                prop_assert!(starts(part.rows.0, top, component.v, down));
            }
            let outline = Outline {
                size: Dimensions { width: size.0, height: size.1 },
                components: sampling.len() as u8,
                holds_coefficients: false,
                sampling: kind,
            };
            let most = most_samples(outline, &wanted).samples;
            let samples: u64 = parts.iter().map(|part| u64::from(part.width) * u64::from(part.height)).sum();
            prop_assert!(samples <= most, "{samples} samples, {most} foretold: {parts:?}");
        }
    }

    #[test]
    fn chrominance_is_decoded_at_half_the_size_it_would_be_shown_in() {
        let wanted = [geometry(0, 0, (1600, 1600), (800, 800))];
        let scales = |sampling| {
            let frame = frame((1600, 1600), sampling);
            parts(&frame, Model::YCbCr, &wanted).iter().map(|p| p.n).collect::<Vec<_>>()
        };
        assert_eq!(scales(&[(1, 1); 3]), [6, 2, 2]);
        assert_eq!(scales(&[(2, 2), (1, 1), (1, 1)]), [6, 4, 4]);
    }

    #[test]
    fn one_decode_serves_the_largest_of_all_that_is_wanted() {
        let small = geometry(0, 0, (4000, 4000), (200, 200));
        let large = geometry(0, 0, (4000, 4000), (1000, 1000));
        let frame = frame((4000, 4000), &[(1, 1)]);
        let parts = |wanted: &[Geometry]| parts(&frame, Model::Grey, wanted);
        assert_eq!(parts(&[small, large]), parts(&[large]));
        assert_eq!((parts(&[small])[0].n, parts(&[large])[0].n), (1, 3));
    }
}
