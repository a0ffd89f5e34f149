//! Computes which parts of a picture are decoded, and how much each is reduced. Pure: no data, no pixels.

use super::output::Part;
use super::{Dimensions, Geometry};

/// The minimum size of reduced luminance, in tenths of the target.
pub(super) const LUMINANCE_TENTHS: u32 = 20;
/// The minimum size of reduced chrominance, in tenths of the target. WebP stores chrominance at half the
/// size.
pub(super) const CHROMINANCE_TENTHS: u32 = 10;
/// The reduction, in tenths, above which the loop filter is skipped.
///
/// The figures are from six photographs of quality 80, compared with variants of their originals. Without the
/// filter, a reduction by 2 loses 0.4 to 1.2 dB (of 38 to 44), and a reduction by 2.56 loses 0.2 to 0.8 dB. A
/// reduction by 4 loses 0.1 to 1.4 dB (of 41 to 45), including the loss from the means of squares. libwebp
/// and sharp skip the filter from 1.33 on. The filter takes 2.5 ns a pixel.
const UNFILTERED_TENTHS: u32 = 40;
/// The target pixels around a crop that the resize reads (Lanczos3).
const MARGIN: u32 = 3;
/// The largest reduction: one sample for a macroblock.
const MOST: usize = 16;

/// The requested parts of a picture.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Wanted<'a> {
    /// The whole picture in its stored size.
    Whole,
    /// Only the parts that serve all of these geometries, which lie within the picture.
    Serving(&'a [Geometry]),
}

/// The parts of all components. All parts show the same macroblocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) all: [Part; 3],
    /// True if the picture is shown so large that the loop filter is visible. No part is reduced in this
    /// case.
    pub(super) is_filtered: bool,
}

/// Chooses the parts of a picture with this `size` that the `wanted` pictures need.
pub(super) fn parts(size: Dimensions, wanted: Wanted<'_>) -> Parts {
    let geometries = match wanted {
        Wanted::Whole => &[],
        Wanted::Serving(geometries) => geometries,
    };
    let across = geometries.iter().map(|g| (g.crop.left, g.crop.width, g.target.width));
    let down = geometries.iter().map(|g| (g.crop.top, g.crop.height, g.target.height));
    let (columns, rows) = (span(across, size.width), span(down, size.height));

    let is_filtered = reduction(geometries, UNFILTERED_TENTHS, 1) == 0;
    let (luminance, chrominance) = if is_filtered {
        (1, 1)
    } else {
        (
            reduction(geometries, LUMINANCE_TENTHS, 1).max(1),
            reduction(geometries, CHROMINANCE_TENTHS, 2).clamp(1, MOST / 2),
        )
    };

    let half = Dimensions { width: size.width.div_ceil(2), height: size.height.div_ceil(2) };
    let chrominance = part(half, (columns, rows), 8, chrominance);
    Parts {
        all: [part(size, (columns, rows), 16, luminance), chrominance, chrominance],
        is_filtered,
    }
}

/// Finds the largest reduction, a power of two, that leaves a component at least `tenths` tenths of all
/// targets. The component has a sample for `pixels` pixels on each side. 0 if even the unreduced component is
/// too small.
fn reduction(geometries: &[Geometry], tenths: u32, pixels: u32) -> usize {
    let sides: Vec<_> = geometries
        .iter()
        .flat_map(|Geometry { crop, target }| {
            [(crop.width, target.width), (crop.height, target.height)]
        })
        .collect();

    let reductions = [1, 2, 4, 8, MOST].into_iter().take_while(|reduction| {
        let needed = u64::from(tenths * pixels) * *reduction as u64;
        let mut enough =
            sides.iter().map(|(has, to)| 10 * u64::from(*has) >= u64::from(*to) * needed);
        !sides.is_empty() && enough.all(|is_enough| is_enough)
    });
    reductions.last().unwrap_or(0)
}

/// Returns the first macroblock that shows one of `crops` with their margins, and the macroblock behind the
/// last. Each crop is given as start, length and target length.
fn span(crops: impl Iterator<Item = (u32, u32, u32)>, whole: u32) -> (usize, usize) {
    let pixels = crops
        .map(|(start, length, target)| {
            let margin = MARGIN * length.div_ceil(target.max(1));
            let end = start.saturating_add(length).saturating_add(margin);
            (start.saturating_sub(margin), end.min(whole))
        })
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));

    let (start, end) = pixels.unwrap_or((0, whole));
    ((start / 16) as usize, end.div_ceil(16).max(start / 16 + 1) as usize)
}

/// Describes the part of a component of `size`. The component's macroblocks have `side` samples on each side.
fn part(
    size: Dimensions,
    (columns, rows): ((usize, usize), (usize, usize)),
    side: usize,
    reduction: usize,
) -> Part {
    let [width, height] =
        [(size.width, columns), (size.height, rows)].map(|(whole, (first, behind))| {
            let whole = (whole as usize).div_ceil(reduction);
            whole.min(behind * side / reduction).saturating_sub(first * side / reduction).max(1)
        });
    Part { side, reduction, columns, rows, width, height }
}

/// Returns an upper bound for the number of samples that are decoded for `wanted`, in all components.
pub(in super::super) fn most_samples(size: Dimensions, wanted: Wanted<'_>) -> u64 {
    let Parts { all, .. } = parts(size, wanted);
    // Filtered planes are filled up to whole macroblocks.
    let bytes = all.iter().zip([16, 8, 8]).map(|(part, side): (_, usize)| {
        let [width, height] =
            [part.columns, part.rows].map(|(first, behind)| ((behind - first) * side) as u64);
        (width * height).div_ceil((part.reduction * part.reduction) as u64)
    });
    bytes.sum()
}
