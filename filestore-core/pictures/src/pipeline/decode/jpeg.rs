//! JPEG with our own decoder (`jpeg`).

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, icc};
use crate::error::{Result, corrupt, unsupported};
use crate::geometry::Geometry;
use crate::jpeg::{Failure, Jpeg};
use crate::pipeline::budget::check_scans;
use crate::pipeline::header::{Header, JpegHeader};
use crate::pipeline::image_file::ImageFile;
use crate::pixels::Picture;

/// Decodes the picture, see [`decode`](super::decode).
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    jpeg: JpegHeader,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let model = jpeg.model.ok_or_else(|| unsupported("JPEG"))?;
    let file = image.read_all()?;
    let picture = Jpeg::survey(&file).map_err(corrupt)?;
    check_scans(header.stored, picture.scan_count() as u64)?;

    let size = picture.size().ok_or_else(|| corrupt("no frame"))?;
    check_same_size(header, size.width as usize, size.height as usize)?;
    let decoded = picture.decode(model, wanted, &|| image.is_late());
    let planes = decoded.map_err(|failure| match failure {
        Failure::Late => image.explain("deadline"),
        Failure::Corrupt(why) => corrupt(why),
    })?;

    let profile = icc(picture.profile(MAX_PROFILE_BYTES));
    Ok(Decoded { picture: Picture::Planes(planes), profile, arrived: None })
}
