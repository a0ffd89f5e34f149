//! Turns the planes of a picture with alpha into pixels, in the stored size.

use super::lossy::{Component, Components};
use crate::pixels::{Layout, Pixels, video_to_rgb};

/// Joins a fully decoded picture with its plane of `alpha`.
///
/// Like libwebp, enlarges chrominance to the size of luminance, with weights of 9, 3, 3 and 1 for the nearest
/// samples.
pub(super) fn join(components: &Components, alpha: &[u8]) -> Pixels {
    let [y, cb, cr] = &components.planes;
    let mut data = vec![0; 4 * y.width * y.height];
    let mut upsampled = [Upsampled::new(cb), Upsampled::new(cr)];

    let rows = data.chunks_exact_mut(4 * y.width);
    let samples = y.samples.chunks_exact(y.width).zip(alpha.chunks_exact(y.width));
    for (row, (pixels, (luminance, alpha))) in rows.zip(samples).enumerate() {
        let [cb, cr] = &mut upsampled;
        let chrominance = cb.row(row).iter().zip(cr.row(row));
        let samples = luminance.iter().zip(chrominance).zip(alpha);
        for (pixel, ((y, (cb, cr)), alpha)) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(samples)
        {
            let [red, green, blue] = video_to_rgb(*y, *cb, *cr);
            *pixel = [red, green, blue, *alpha];
        }
    }
    Pixels { layout: Layout::Rgba, width: y.width as u32, height: y.height as u32, data }
}

/// A chrominance component during enlargement to twice its size, row by row.
struct Upsampled<'a> {
    component: &'a Component,
    /// A row of the stored size, times four, weighted vertically.
    between: Vec<u16>,
    row: Vec<u8>,
}

impl<'a> Upsampled<'a> {
    fn new(component: &'a Component) -> Self {
        let width = component.width;
        Self { component, between: vec![0; width], row: vec![0; 2 * width] }
    }

    /// Returns row `row` of the enlarged component. The row can be one sample longer than the picture.
    fn row(&mut self, row: usize) -> &[u8] {
        let Component { width, height, ref samples, .. } = *self.component;
        let near = row / 2;
        let far =
            if row.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(height - 1) };
        let line = |at: usize| &samples[at * width..(at + 1) * width];
        for (sum, (near, far)) in self.between.iter_mut().zip(line(near).iter().zip(line(far))) {
            *sum = 3 * u16::from(*near) + u16::from(*far);
        }

        let sums = &self.between;
        let (mut before, last) = (sums[0], sums[width - 1]);
        let behind = sums[1..].iter().chain([&last]);
        for (pair, (sum, behind)) in
            self.row.as_chunks_mut::<2>().0.iter_mut().zip(sums.iter().zip(behind))
        {
            *pair = [before, *behind].map(|beside| ((3 * sum + beside + 8) >> 4) as u8);
            before = *sum;
        }
        &self.row
    }
}
