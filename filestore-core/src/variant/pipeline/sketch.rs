//! The placeholder of a picture: all of it in a few dozen pixels, and those as a ThumbHash.

use std::fs::File;

use super::aside::NoSpare;
use super::budget::{check_size, memory_needed};
use super::header::{self, Header};
use super::image_file::{Deadline, ImageFile};
use super::plan::plan_sketch;
use super::retained::Retained;
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, Result};
use crate::domain::record::Thumbhash;
use crate::variant::geometry::Geometry;
use crate::variant::pixels::{Layout, Pixels};

/// A placeholder to be made, known from the header alone, which has passed the limits.
#[derive(Debug)]
pub(crate) struct Sketch {
    header: Header,
    wanted: Geometry,
    /// The bytes held at the peak.
    pub(crate) memory_bytes: u64,
}

/// Reads the header of `file` and checks the limits. Decodes nothing.
pub(crate) fn assess_sketch(file: &File, config: &VariantConfig) -> Result<Sketch> {
    let image = ImageFile::new(file, Deadline::NONE)?;
    let header = header::read(&image)?;
    check_size(header.stored, config)?;

    let wanted = plan_sketch(header.stored);
    let memory_bytes = memory_needed(&header, &[wanted], image.len(), config)?;
    Ok(Sketch { header, wanted, memory_bytes })
}

/// Decodes the picture as far as its placeholder needs, and makes that.
pub(crate) fn sketch_file(planned: &Sketch, file: &File, deadline: Deadline) -> Result<Thumbhash> {
    let image = ImageFile::new(file, deadline)?;
    let retained = Retained::decode(&image, &planned.header, &[planned.wanted], &NoSpare)?;
    image.check()?;
    retained.sketch(planned.wanted)
}

/// Makes the ThumbHash of upright sRGB pixels.
pub(crate) fn thumbhash(pixels: &Pixels) -> Result<Thumbhash> {
    let rgba: Vec<u8> = match pixels.layout {
        Layout::Rgba => pixels.data.clone(),
        _ => pixels.data.as_chunks().0.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]).collect(),
    };

    let (width, height) = (pixels.width as usize, pixels.height as usize);
    let bytes = thumbhash::rgba_to_thumb_hash(width, height, &rgba);
    Thumbhash::new(&bytes)
        .ok_or_else(|| Error::internal("making a placeholder", "a hash of no known length"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::fixtures::{file, jpeg, photo};

    /// Paints a picture whose left half is `left` and whose right half is `right`.
    fn halves(layout: Layout, left: &[u8], right: &[u8]) -> Pixels {
        let row = [left.repeat(32), right.repeat(32)].concat();
        Pixels { layout, width: 64, height: 32, data: row.repeat(32) }
    }

    #[test]
    fn a_placeholder_shows_colours_shape_and_what_is_transparent() {
        let hash = thumbhash(&halves(Layout::Rgb, &[200, 30, 20], &[20, 40, 200])).unwrap();
        let (width, height, rgba) = thumbhash::thumb_hash_to_rgba(hash.as_bytes()).unwrap();
        assert!(width == 32 && (16..=18).contains(&height), "{width}×{height}");
        let (first, last) = (&rgba[..4], &rgba[4 * (width - 1)..4 * width]);
        assert!(first[0] > first[2] + 60 && last[2] > last[0] + 60, "{first:?} {last:?}");
        assert_eq!((first[3], last[3]), (255, 255));

        let hash = thumbhash(&halves(Layout::Rgba, &[200, 30, 20, 255], &[0; 4])).unwrap();
        let (width, _, rgba) = thumbhash::thumb_hash_to_rgba(hash.as_bytes()).unwrap();
        // A few waves make the whole placeholder: its edges are soft.
        assert!(rgba[3] > 200 && rgba[4 * width - 1] < 100, "{} {}", rgba[3], rgba[4 * width - 1]);
    }

    #[test]
    fn a_photograph_has_the_placeholder_of_its_pixels() {
        let photograph = file(&jpeg(900, 600, &photo(900, 600)));
        let config = VariantConfig::default();
        let planned = assess_sketch(&photograph, &config).unwrap();
        let hash = sketch_file(&planned, &photograph, Deadline::NONE).unwrap();
        let ratio = thumbhash::thumb_hash_to_approximate_aspect_ratio(hash.as_bytes()).unwrap();
        assert!((ratio - 1.5).abs() < 0.2, "{ratio}");
        assert!(hash.as_bytes().len() <= 25, "{hash:?}");
    }
}
