//! JPEG with our own decoder (`variant::jpeg`).

use super::{Decoded, MAX_PROFILE_BYTES, check_same_size};
use crate::domain::error::Result;
use crate::variant::geometry::Geometry;
use crate::variant::jpeg::{Failure, Jpeg};
use crate::variant::pipeline::budget::check_scans;
use crate::variant::pipeline::header::{Header, JpegHeader};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, unsupported};
use crate::variant::pixels::Picture;

/// Decodes the picture as [`decode`](super::decode) says.
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

    let profile = picture.profile(MAX_PROFILE_BYTES);
    Ok(Decoded { picture: Picture::Planes(planes), profile, came: None })
}
