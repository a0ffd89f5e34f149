//! Makes a picture's placeholder: scales it to a few dozen pixels, and encodes them as a ThumbHash.

pub(crate) mod hash;

use crate::error::Result;
use crate::geometry::Geometry;
use crate::pipeline::budget::{check_size, memory_needed};
use crate::pipeline::header::{self, Header};
use crate::pipeline::image_file::{Deadline, ImageFile};
use crate::pipeline::plan::plan_placeholder;
use crate::pipeline::retained::Retained;
use crate::pipeline::spare::NoSpare;
use crate::settings::{Limits, Settings};
use crate::source::Source;

/// A planned placeholder. Only the header was read, and the picture is within the limits.
#[derive(Debug)]
pub struct PlannedPlaceholder {
    header: Header,
    wanted: Geometry,
    memory_bytes: u64,
}

/// Makes the placeholder of the image in `source`, on this thread. The placeholder is a
/// [ThumbHash](https://evanw.github.io/thumbhash) of about 25 bytes. A page can paint it before the picture
/// arrives.
///
/// ```
/// use filestore_pictures::{Settings, placeholder};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let photo = std::fs::read("photo.jpg")?;
/// let thumbhash = placeholder(&photo, &Settings::default())?;
/// assert!(thumbhash.len() < 32);
/// # Ok(())
/// # }
/// ```
pub fn placeholder(source: &dyn Source, settings: &Settings) -> Result<Vec<u8>> {
    let deadline = Deadline::after(settings.limits.deadline);
    assess_placeholder(source, &settings.limits)?.make(source, deadline)
}

/// Reads the header of `source`, and checks the limits, without decoding.
pub fn assess_placeholder(source: &dyn Source, limits: &Limits) -> Result<PlannedPlaceholder> {
    let image = ImageFile::new(source, Deadline::NONE)?;
    let header = header::read(&image)?;
    check_size(header.stored, limits)?;

    let wanted = plan_placeholder(header.stored);
    let memory_bytes = memory_needed(&header, &[wanted], image.len(), limits)?;
    Ok(PlannedPlaceholder { header, wanted, memory_bytes })
}

impl PlannedPlaceholder {
    /// Returns an upper bound for the peak memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Decodes the picture as far as the placeholder needs, and makes the placeholder.
    pub fn make(&self, source: &dyn Source, deadline: Deadline) -> Result<Vec<u8>> {
        let image = ImageFile::new(source, deadline)?;
        let retained = Retained::decode(&image, &self.header, &[self.wanted], &NoSpare)?;
        image.check()?;
        retained.placeholder(self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{file, jpeg, photo};

    #[test]
    fn a_photograph_has_the_placeholder_of_its_pixels() {
        let photograph = file(&jpeg(900, 600, &photo(900, 600)));
        let hash = placeholder(&photograph, &Settings::default()).unwrap();
        let ratio = thumbhash::thumb_hash_to_approximate_aspect_ratio(&hash).unwrap();
        assert!((ratio - 1.5).abs() < 0.2, "{ratio}");
        assert!(hash.len() <= 25, "{hash:?}");
    }
}
