//! Encodes a picture of a few dozen pixels as a ThumbHash.

use crate::pixels::{Layout, Pixels};

/// Makes the ThumbHash of upright sRGB pixels.
pub(crate) fn thumbhash(pixels: &Pixels) -> Vec<u8> {
    let rgba: Vec<u8> = match pixels.layout {
        Layout::Rgba => pixels.data.clone(),
        _ => pixels.data.as_chunks().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]).collect(),
    };

    let (width, height) = (pixels.width as usize, pixels.height as usize);
    thumbhash::rgba_to_thumb_hash(width, height, &rgba)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paints a picture whose left half is `left` and whose right half is `right`.
    fn halves(layout: Layout, left: &[u8], right: &[u8]) -> Pixels {
        let row = [left.repeat(32), right.repeat(32)].concat();
        Pixels { layout, width: 64, height: 32, data: row.repeat(32) }
    }

    #[test]
    fn a_placeholder_shows_colours_shape_and_what_is_transparent() {
        let hash = thumbhash(&halves(Layout::Rgb, &[200, 30, 20], &[20, 40, 200]));
        let (width, height, rgba) = thumbhash::thumb_hash_to_rgba(&hash).unwrap();
        assert!(width == 32 && (16..=18).contains(&height), "{width}×{height}");
        let (first, last) = (&rgba[..4], &rgba[4 * (width - 1)..4 * width]);
        assert!(first[0] > first[2] + 60 && last[2] > last[0] + 60, "{first:?} {last:?}");
        assert_eq!((first[3], last[3]), (255, 255));

        let hash = thumbhash(&halves(Layout::Rgba, &[200, 30, 20, 255], &[0; 4]));
        let (width, _, rgba) = thumbhash::thumb_hash_to_rgba(&hash).unwrap();
        // A few waves make the whole placeholder: its edges are soft.
        assert!(rgba[3] > 200 && rgba[4 * width - 1] < 100, "{} {}", rgba[3], rgba[4 * width - 1]);
    }
}
