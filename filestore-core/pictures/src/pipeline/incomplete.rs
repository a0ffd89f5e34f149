//! Incomplete pictures: show the rows that arrived, and make the missing rows transparent, like a browser.

use std::ops::Range;

use crate::geometry::Geometry;
use crate::pixels::{Layout, Pixels};

/// Copies the nearest row of `arrived` into the missing rows, so that a resize does not mix the last row with
/// undefined pixels. `arrived` must not be empty.
pub(crate) fn fill(pixels: &mut Pixels, arrived: &Range<u32>) {
    let row = pixels.width as usize * pixels.layout.channels();
    let (first, last) = (arrived.start as usize * row, (arrived.end as usize - 1) * row);

    for to in (0..first).step_by(row) {
        pixels.data.copy_within(first..first + row, to);
    }
    for to in (last + row..pixels.data.len()).step_by(row) {
        pixels.data.copy_within(last..last + row, to);
    }
}

/// Makes the missing rows transparent. `pixels` are RGB or RGBA and show the `wanted` part of the picture, in
/// stored axes. `None` if no row of this part arrived.
pub(crate) fn mask(pixels: Pixels, arrived: &Range<u32>, wanted: Geometry) -> Option<Pixels> {
    let Pixels { layout, width, height, data } = pixels;
    let mut rgba = match layout {
        Layout::Rgba => data,
        Layout::Rgb => data.as_chunks().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]).collect(),
        Layout::Grey | Layout::GreyAlpha | Layout::Inks(_) => {
            unreachable!("`to_srgb` makes RGB or RGBA")
        }
    };

    let mut shows = false;
    for (y, row) in (0u32..).zip(rgba.chunks_exact_mut(4 * width as usize)) {
        let share = share(y, arrived, wanted);
        shows |= share > 0.0;
        for [.., alpha] in row.as_chunks_mut::<4>().0 {
            *alpha = scaled(*alpha, share);
        }
    }
    shows.then_some(Pixels { layout: Layout::Rgba, width, height, data: rgba })
}

/// Returns how much of row `y` of the target arrived, from 0 to 1.
fn share(y: u32, arrived: &Range<u32>, wanted: Geometry) -> f64 {
    let Geometry { crop, target } = wanted;
    let rows = f64::from(crop.height) / f64::from(target.height);
    let top = f64::from(crop.top) + f64::from(y) * rows;

    let shown = (top + rows).min(arrived.end.into()) - top.max(arrived.start.into());
    (shown / rows).clamp(0.0, 1.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a byte")]
fn scaled(alpha: u8, share: f64) -> u8 {
    (f64::from(alpha) * share).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dimensions;
    use crate::geometry::Rectangle;

    fn rows(values: &[u8]) -> Pixels {
        let height = u32::try_from(values.len()).unwrap();
        let data = values.iter().flat_map(|value| [*value; 6]).collect();
        Pixels { layout: Layout::Rgb, width: 2, height, data }
    }

    #[test]
    fn missing_rows_repeat_the_nearest() {
        for (arrived, expected) in [
            (0..2, [1, 2, 2, 2, 2]),
            (3..5, [4, 4, 4, 4, 5]),
            (1..4, [2, 2, 3, 4, 4]),
            (0..5, [1, 2, 3, 4, 5]),
        ] {
            let mut pixels = rows(&[1, 2, 3, 4, 5]);
            fill(&mut pixels, &arrived);
            assert_eq!(pixels, rows(&expected), "{arrived:?}");
        }
    }

    #[test]
    fn what_did_not_come_is_transparent() {
        // Rows 20 to 60 of a picture become four, of which 35 rows arrived.
        let wanted = Geometry {
            crop: Rectangle { left: 0, top: 20, width: 20, height: 40 },
            target: Dimensions { width: 2, height: 4 },
        };
        let alpha = |arrived| {
            let masked = mask(rows(&[9; 4]), &arrived, wanted)?;
            Some(masked.data.chunks(8).map(|row| row[3]).collect::<Vec<_>>())
        };
        assert_eq!(alpha(0..35), Some(vec![255, 128, 0, 0]));
        assert_eq!(alpha(55..100), Some(vec![0, 0, 0, 128]));
        assert_eq!(alpha(0..20), None);
    }
}
