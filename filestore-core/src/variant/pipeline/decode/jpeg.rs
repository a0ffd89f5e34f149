//! JPEG with our own decoder (`variant::jpeg`), or with zune-jpeg where ours does not take the
//! picture.

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, zune};
use crate::domain::error::Result;
use crate::variant::geometry::Geometry;
use crate::variant::jpeg::{Failure, Jpeg};
use crate::variant::pipeline::budget::check_scans;
use crate::variant::pipeline::header::{Header, JpegHeader};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::corrupt;
use crate::variant::pixels::Picture;

/// Decodes the picture as [`decode`](super::decode) says.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    jpeg: JpegHeader,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let file = image.read_all()?;
    let picture = Jpeg::survey(&file).map_err(corrupt)?;
    check_scans(header.stored, picture.scan_count() as u64)?;
    if !jpeg.scales {
        return zune::decode(image, header, jpeg, picture.bytes());
    }

    let size = picture.size().ok_or_else(|| corrupt("no frame"))?;
    check_same_size(header, size.width as usize, size.height as usize)?;
    let planes = picture.decode(wanted, &|| image.is_late()).map_err(|failure| match failure {
        Failure::Late => image.explain("deadline"),
        Failure::Corrupt(why) => corrupt(why),
    })?;

    Ok(Decoded { picture: Picture::Planes(planes), profile: picture.profile(MAX_PROFILE_BYTES) })
}
