//! TIFF (TIFF 6.0; BigTIFF): the first directory.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd;
use super::{Format, Header};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// The facts that decoding a TIFF needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TiffHeader {
    /// Bytes of a decoded pixel, all samples, before it is made 8 bits deep.
    pub(crate) pixel_bytes: u64,
}

/// The most values of a tag: each takes 32 bytes in the decoder (found by fuzzing), which the budget
/// counts in.
/// A picture's longest tag has one for each row, its profile one for each byte.
const MAX_VALUES: u64 = 1 << 20;

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut directory = ifd::Directory::default();
    ifd::read_first(&mut fields, &mut directory)?;
    if directory.most_values > MAX_VALUES {
        return Err(broken("a tag with too many values"));
    }

    let stored = Dimensions { width: side(directory.width)?, height: side(directory.height)? };
    let samples = directory.samples_per_pixel.unwrap_or(1).clamp(1, u64::from(u16::MAX));
    let bits = directory.bits_per_sample.unwrap_or(1).clamp(8, u64::from(u16::MAX));
    Ok(Header {
        format: Format::Tiff(TiffHeader { pixel_bytes: samples * bits.div_ceil(8) }),
        stored,
        orientation: Orientation::from_exif(directory.orientation.unwrap_or(1)),
    })
}

fn side(value: Option<u64>) -> io::Result<u32> {
    u32::try_from(value.ok_or_else(|| broken("no size"))?).map_err(|_| broken("an absurd size"))
}
