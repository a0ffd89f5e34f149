//! GIF (GIF89a, section 18) and BMP (`BITMAPCOREHEADER`, `BITMAPINFOHEADER`): sizes at fixed places.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::{Format, Header};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// Reads the size of the logical screen, on which the first frame is shown.
pub(super) fn parse_gif<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(6)?;
    let stored = Dimensions { width: fields.le16()?.into(), height: fields.le16()?.into() };
    Ok(Header { format: Format::Gif, stored, orientation: Orientation::default() })
}

/// Returns true if `size`, the low byte of the length of a BMP's second header, is that of a known
/// version.
pub(super) fn is_bmp_header_size(size: u8) -> bool {
    matches!(size, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124)
}

pub(super) fn parse_bmp<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(14)?;

    let stored = if fields.le32()? == 12 {
        Dimensions { width: fields.le16()?.into(), height: fields.le16()?.into() }
    } else {
        let width = fields.le32()?;
        // A negative height says that the rows run from top to bottom.
        let height = fields.le32()?.cast_signed().unsigned_abs();
        if width > i32::MAX.unsigned_abs() {
            return Err(broken("a negative width"));
        }
        Dimensions { width, height }
    };
    Ok(Header { format: Format::Bmp, stored, orientation: Orientation::default() })
}
