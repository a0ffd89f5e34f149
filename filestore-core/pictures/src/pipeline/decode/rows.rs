//! Reduces a picture while its rows arrive. The whole picture is neither held in memory nor resized.
//!
//! Squares of pixels become their mean. The reduced picture is as good a source as the whole picture if it is
//! at least [`ENOUGH`] times as large as the requested size. The filter of the resize does the rest. If a
//! length is not a multiple of the square's side, some squares are one pixel shorter, so that all have about
//! equal weight.

use std::error::Error;

use crate::Dimensions;
use crate::geometry::{Extent, Geometry};
use crate::pipeline::plan::ENOUGH;
use crate::pipeline::spare::Step;
use crate::pixels::{Layout, Picture, Pixels, Reduced};

/// The pixels of the target around a crop that the resize reads (Lanczos3).
const MARGIN: u32 = 3;
/// The longest side of a square, in pixels. The sums of this many rows fit into 16 bits.
const MOST: u32 = 128;

/// The required stored pixels of one axis, divided into squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: u32,
    length: u32,
    squares: u32,
}

/// The rows of a picture, decoded from top to bottom.
pub(super) struct Rows {
    stored: Dimensions,
    layout: Layout,
    /// The side of a square, in pixels. 1 means the whole picture in its stored size.
    side: u32,
    columns: Span,
    rows: Span,
    /// The next stored row, and its row of squares.
    next: u32,
    square: u32,
    /// The columns of each square.
    widths: Vec<usize>,
    sums: Sums,
    data: Vec<u8>,
}

/// The sums of each channel over the rows of the current squares.
enum Sums {
    Opaque(Vec<u16>),
    /// Colours are multiplied by the alpha of their pixels.
    Alpha(Vec<u32>),
}

impl Rows {
    /// Expects the rows of a picture of size `stored`. One pass serves all `wanted`.
    pub(super) fn new(stored: Dimensions, layout: Layout, wanted: &[Geometry]) -> Self {
        let side = side(wanted);
        // Without a reduction, all rows are kept, so that later requests for other parts can use them.
        let served = if side == 1 { &[] } else { wanted };
        let columns = served.iter().map(|g| (g.crop.left, g.crop.width, g.target.width));
        let rows = served.iter().map(|g| (g.crop.top, g.crop.height, g.target.height));
        let (columns, rows) = (span(columns, stored.width, side), span(rows, stored.height, side));

        let samples = columns.length as usize * layout.channels();
        let sums = match (side, layout.has_alpha()) {
            (1, _) => Sums::Opaque(Vec::new()),
            (_, false) => Sums::Opaque(vec![0; samples]),
            (_, true) => Sums::Alpha(vec![0; samples]),
        };
        let made = columns.squares as usize * rows.squares as usize;
        let widths = (0..columns.squares).map(|square| columns.side(square) as usize).collect();
        let data = Vec::with_capacity(made * layout.channels());
        Self { stored, layout, side, columns, rows, next: 0, square: 0, widths, sums, data }
    }

    /// Counts the bytes of a stored row.
    pub(super) fn row_bytes(&self) -> usize {
        self.stored.width as usize * self.layout.channels()
    }

    /// Counts the rows that must arrive, from the first row.
    pub(super) fn needed(&self) -> u32 {
        self.rows.first + self.rows.length
    }

    /// Returns true if the next row is visible in a result.
    pub(super) fn wants_next(&self) -> bool {
        self.next >= self.rows.first && !self.is_complete()
    }

    /// Returns true if all visible rows have arrived. The other rows need no decoding.
    pub(super) fn is_complete(&self) -> bool {
        self.next >= self.needed()
    }

    /// Skips the next row.
    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    /// Takes the next row with all its pixels.
    pub(super) fn push(&mut self, row: &[u8]) {
        if self.wants_next() {
            let channels = self.layout.channels();
            let first = self.columns.first as usize * channels;
            self.add(&row[first..first + self.columns.length as usize * channels]);
        }
        self.next += 1;
    }

    fn add(&mut self, row: &[u8]) {
        if self.side == 1 {
            self.data.extend_from_slice(row);
            return;
        }

        let rows = self.rows.side(self.square);
        let is_last_of_square = self.next + 1 == self.rows.first + self.rows.edge(self.square + 1);
        self.square += u32::from(is_last_of_square);
        let flush = is_last_of_square.then_some(rows);
        let (widths, data) = (&self.widths[..], &mut self.data);
        match (&mut self.sums, self.layout) {
            (Sums::Opaque(sums), layout) => {
                for (sum, sample) in sums.iter_mut().zip(row) {
                    *sum += u16::from(*sample);
                }
                match (flush, layout) {
                    (None, _) => {}
                    (Some(rows), Layout::Grey) => means::<1>(sums, widths, rows, data),
                    (Some(rows), Layout::Rgb) => means::<3>(sums, widths, rows, data),
                    (Some(rows), _) => means::<4>(sums, widths, rows, data),
                }
            }
            (Sums::Alpha(sums), Layout::GreyAlpha) => {
                with_alpha::<2>(row, sums, widths, flush, data);
            }
            (Sums::Alpha(sums), _) => with_alpha::<4>(row, sums, widths, flush, data),
        }
    }

    /// Returns the picture. `None` if visible rows are missing.
    pub(super) fn finish(self) -> Option<Picture> {
        if !self.is_complete() {
            return None;
        }

        let pixels = Pixels {
            layout: self.layout,
            width: self.columns.squares,
            height: self.rows.squares,
            data: self.data,
        };
        if self.side == 1 {
            return Some(Picture::Whole(pixels));
        }
        let extent = Extent {
            left: self.columns.first.into(),
            top: self.rows.first.into(),
            scale_x: self.columns.scale(),
            scale_y: self.rows.scale(),
        };
        Some(Picture::Reduced(Reduced { pixels, extent }))
    }
}

impl Step for Rows {
    fn take(&mut self, rows: &[u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
        rows.chunks_exact(self.row_bytes()).for_each(|row| self.push(row));
        Ok(())
    }
}

impl Span {
    /// Returns the pixels before a square.
    fn edge(self, square: u32) -> u32 {
        let before = u64::from(square) * u64::from(self.length) / u64::from(self.squares.max(1));
        u32::try_from(before).unwrap_or(self.length)
    }

    /// Returns the pixels of a square along this axis.
    fn side(self, square: u32) -> u32 {
        self.edge(square + 1) - self.edge(square)
    }

    /// Returns the squares for each stored pixel.
    fn scale(self) -> f64 {
        f64::from(self.squares) / f64::from(self.length)
    }
}

/// Finds the largest squares whose means suffice for all `wanted`.
fn side(wanted: &[Geometry]) -> u32 {
    let sides = wanted.iter().flat_map(|Geometry { crop, target }| {
        [(crop.width, target.width), (crop.height, target.height)]
    });
    let most = sides.map(|(crop, target)| crop / (ENOUGH * target).max(1)).min();
    most.unwrap_or(1).clamp(1, MOST)
}

/// Returns the stored pixels that the crops and their margins need. Each crop is given as start, length and
/// target length. Squares are `side` pixels long, or one pixel shorter.
fn span(crops: impl Iterator<Item = (u32, u32, u32)>, whole: u32, side: u32) -> Span {
    let grown = crops.map(|(start, length, target)| {
        let margin = MARGIN * length.div_ceil(target.max(1));
        (start.saturating_sub(margin), (start + length).saturating_add(margin).min(whole))
    });
    let (first, end) = grown.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, whole));
    let length = end - first;
    Span { first, length, squares: length.div_ceil(side) }
}

/// A division by a square's pixels, rounded.
#[derive(Clone, Copy)]
struct Mean {
    /// 2³² divided by the pixels, rounded down.
    reciprocal: u64,
}

impl Mean {
    fn of(pixels: usize) -> Self {
        Self { reciprocal: (1 << 32) / pixels as u64 }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a mean of bytes is one")]
    fn of_sum(self, sum: u32) -> u8 {
        ((u64::from(sum) * self.reciprocal + (1 << 31)) >> 32) as u8
    }
}

/// Appends the means of squares with these `widths` and summed `rows`, and clears the sums.
fn means<const CHANNELS: usize>(sums: &mut [u16], widths: &[usize], rows: u32, data: &mut Vec<u8>) {
    let mut usual = (0, Mean::of(1));
    let mut rest = sums.as_chunks::<CHANNELS>().0;
    for width in widths {
        let (columns, later) = rest.split_at(*width);
        rest = later;
        let mut totals = [0u32; CHANNELS];
        for column in columns {
            for (total, sum) in totals.iter_mut().zip(column) {
                *total += u32::from(*sum);
            }
        }
        if usual.0 != *width {
            usual = (*width, Mean::of(width * rows as usize));
        }
        data.extend_from_slice(&totals.map(|total| usual.1.of_sum(total)));
    }
    sums.fill(0);
}

/// Adds a row with alpha as the last channel. With `flush` (the summed rows), appends the means of their
/// squares and clears the sums.
fn with_alpha<const CHANNELS: usize>(
    row: &[u8],
    sums: &mut [u32],
    widths: &[usize],
    flush: Option<u32>,
    data: &mut Vec<u8>,
) {
    let sums = sums.as_chunks_mut::<CHANNELS>().0;
    for (sum, pixel) in sums.iter_mut().zip(row.as_chunks::<CHANNELS>().0) {
        let alpha = u32::from(pixel[CHANNELS - 1]);
        for channel in 0..CHANNELS - 1 {
            sum[channel] += u32::from(pixel[channel]) * alpha;
        }
        sum[CHANNELS - 1] += alpha;
    }
    let Some(rows) = flush else { return };

    let mut rest = &*sums;
    for width in widths {
        let (square, later) = rest.split_at(*width);
        rest = later;
        let mut totals = [0u32; CHANNELS];
        for column in square {
            for (total, sum) in totals.iter_mut().zip(column) {
                *total += sum;
            }
        }
        data.extend_from_slice(&straight(totals, square.len() * rows as usize));
    }
    sums.as_flattened_mut().fill(0);
}

/// Returns the mean of this many `pixels` with straight alpha. The arguments are the sums of the colours,
/// each multiplied by alpha, and the sum of alpha.
#[expect(clippy::cast_possible_truncation, reason = "means of bytes are bytes")]
fn straight<const CHANNELS: usize>(totals: [u32; CHANNELS], pixels: usize) -> [u8; CHANNELS] {
    let alpha = totals[CHANNELS - 1];
    let mut mean = totals.map(|total| (total + alpha / 2).checked_div(alpha).unwrap_or(0) as u8);
    mean[CHANNELS - 1] = Mean::of(pixels).of_sum(alpha);
    mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rectangle;

    fn geometry(
        (left, width, to): (u32, u32, u32),
        (top, height, down): (u32, u32, u32),
    ) -> Geometry {
        Geometry {
            crop: Rectangle { left, top, width, height },
            target: Dimensions { width: to, height: down },
        }
    }

    /// Pixels without order, the same in each run.
    fn noise(size: Dimensions, layout: Layout) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(7);
        let bytes = size.width as usize * size.height as usize * layout.channels();
        std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
    }

    fn taken(size: Dimensions, layout: Layout, data: &[u8], wanted: &[Geometry]) -> Picture {
        let mut rows = Rows::new(size, layout, wanted);
        for row in data.chunks(rows.row_bytes()) {
            rows.push(row);
        }
        rows.finish().unwrap()
    }

    /// The mean of the pixels of a square by its definition: in floating point, with colours weighed by
    /// alpha.
    fn expected(size: Dimensions, layout: Layout, data: &[u8], square: Rectangle) -> Vec<f64> {
        let channels = layout.channels();
        let pixels = (square.top..(square.top + square.height).min(size.height)).flat_map(|y| {
            let across = square.left..(square.left + square.width).min(size.width);
            across.map(move |x| (y * size.width + x) as usize * channels)
        });
        let pixels: Vec<_> = pixels.map(|at| &data[at..at + channels]).collect();
        let weight = |pixel: &[u8]| {
            if layout.has_alpha() { f64::from(pixel[channels - 1]) } else { 1.0 }
        };
        let all: f64 = pixels.iter().map(|pixel| weight(pixel)).sum();
        let mean = |channel: usize| {
            let sum: f64 = pixels.iter().map(|p| f64::from(p[channel]) * weight(p)).sum();
            sum / all
        };
        let mut means: Vec<_> = (0..channels).map(mean).collect();
        if layout.has_alpha() {
            means[channels - 1] = all / pixels.iter().map(|_| 1.0).sum::<f64>();
        }
        means
    }

    #[test]
    fn squares_become_their_mean_and_differ_by_a_pixel_at_most() {
        let size = Dimensions { width: 67, height: 45 };
        for layout in [Layout::Grey, Layout::GreyAlpha, Layout::Rgb, Layout::Rgba] {
            let data = noise(size, layout);
            for target in [3, 5, 8, 16] {
                let wanted = geometry((0, 67, target), (0, 45, target));
                let side = 45 / (2 * target);
                let picture = taken(size, layout, &data, &[wanted]);
                let Picture::Reduced(reduced) = picture else {
                    assert_eq!(side, 1);
                    continue;
                };
                let Pixels { width, height, data: means, .. } = &reduced.pixels;
                assert_eq!((*width, *height), (67u32.div_ceil(side), 45u32.div_ceil(side)));

                for (at, mean) in means.chunks(layout.channels()).enumerate() {
                    let at = u32::try_from(at).unwrap();
                    let (column, row) = (at % width, at / width);
                    let [left, right] = [column, column + 1].map(|edge| edge * 67 / width);
                    let [top, bottom] = [row, row + 1].map(|edge| edge * 45 / height);
                    let (across, down) = (right - left, bottom - top);
                    assert!(across.abs_diff(side) <= 1 && down.abs_diff(side) <= 1);
                    let square = Rectangle { left, top, width: across, height: down };
                    for (was, is) in expected(size, layout, &data, square).iter().zip(mean) {
                        assert!(
                            (was - f64::from(*is)).abs() <= 0.51,
                            "{layout:?} {at}: {was} {is}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_last_column_and_row_weigh_as_much_as_others() {
        // One white line in a picture with sides that are no multiples of the squares.
        let size = Dimensions { width: 81, height: 81 };
        let lines: [fn(u32, u32) -> bool; 4] =
            [|x, _| x == 80, |_, y| y == 80, |x, _| x == 0, |_, y| y == 0];
        for target in [1, 2, 4] {
            for (line, is_light) in lines.iter().enumerate() {
                let pixels =
                    (0..81 * 81).map(|at| if is_light(at % 81, at / 81) { 255 } else { 0 });
                let data: Vec<u8> = pixels.collect();
                let wanted = geometry((0, 81, target), (0, 81, target));
                let Picture::Reduced(reduced) = taken(size, Layout::Grey, &data, &[wanted]) else {
                    panic!("not reduced");
                };
                let Pixels { width, height, data, .. } = reduced.pixels;
                let sum: u32 = data.iter().copied().map(u32::from).sum();
                let mean = f64::from(sum) / f64::from(width * height);
                assert!((mean * 81.0 / 255.0 - 1.0).abs() < 0.1, "{target}, line {line}: {mean}");
            }
        }
    }

    #[test]
    fn the_extremes_stay_what_they_are() {
        let size = Dimensions { width: 300, height: 300 };
        for (layout, light) in [Layout::Grey, Layout::Rgba]
            .into_iter()
            .flat_map(|layout| [(layout, 0), (layout, 255), (layout, 254)])
        {
            for target in [1, 2, 9, 40] {
                let data = vec![light; 300 * 300 * layout.channels()];
                let wanted = geometry((0, 300, target), (0, 300, target));
                let Picture::Reduced(reduced) = taken(size, layout, &data, &[wanted]) else {
                    panic!("not reduced");
                };
                assert!(reduced.pixels.data.iter().all(|byte| *byte == light), "{light} {target}");
            }
        }
    }

    #[test]
    fn a_transparent_colour_does_not_show_in_the_mean() {
        let size = Dimensions { width: 8, height: 8 };
        let row: Vec<u8> =
            (0..8).flat_map(|x| if x % 2 == 0 { [200, 100, 50, 255] } else { [0; 4] }).collect();
        let wanted = geometry((0, 8, 1), (0, 8, 1));
        let Picture::Reduced(reduced) = taken(size, Layout::Rgba, &row.repeat(8), &[wanted]) else {
            panic!("not reduced");
        };
        assert!(reduced.pixels.data.chunks(4).all(|pixel| pixel == [200, 100, 50, 128]));
    }

    #[test]
    fn a_crop_is_decoded_with_its_margins_and_no_further() {
        let size = Dimensions { width: 1000, height: 2000 };
        let wanted = geometry((0, 1000, 100), (500, 1000, 100));
        let mut rows = Rows::new(size, Layout::Grey, &[wanted]);
        let mut row = vec![0; 1000];
        let mut shown = 0;
        while !rows.is_complete() {
            shown += u32::from(rows.wants_next());
            row.fill(u8::try_from(rows.next / 8).unwrap());
            if rows.wants_next() { rows.push(&row) } else { rows.skip() }
        }
        assert_eq!((rows.next, shown), (1530, 1060));
        let Some(Picture::Reduced(Reduced { pixels, extent })) = rows.finish() else {
            panic!("not reduced");
        };
        assert_eq!((pixels.width, pixels.height), (200, 212));
        assert_eq!((extent.left, extent.top, extent.scale_x), (0.0, 470.0, 0.2));
        assert!((58..=59).contains(&pixels.data[0]));
    }

    #[test]
    fn a_picture_that_is_not_reduced_is_whole_whatever_is_wanted_of_it() {
        let size = Dimensions { width: 30, height: 20 };
        let data = noise(size, Layout::Rgb);
        for wanted in [vec![], vec![geometry((5, 20, 11), (0, 20, 11))]] {
            let Picture::Whole(pixels) = taken(size, Layout::Rgb, &data, &wanted) else {
                panic!("reduced");
            };
            assert_eq!(pixels.data, data);
        }
    }

    #[test]
    fn rows_that_are_missing_are_no_picture() {
        let size = Dimensions { width: 30, height: 20 };
        let wanted = geometry((0, 30, 3), (0, 20, 2));
        let mut rows = Rows::new(size, Layout::Grey, &[wanted]);
        (0..19).for_each(|_| rows.push(&[9; 30]));
        assert!(rows.finish().is_none());
    }
}
