//! GIF (GIF89a, section 18) and BMP (`BITMAPCOREHEADER`, `BITMAPINFOHEADER`): sizes at fixed places.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::{Format, Header, MAX_CHUNKS};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// Reads the size of the logical screen, on which the first frame is shown. A screen of no size is as
/// large as that frame.
pub(super) fn parse_gif<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(6)?;
    let mut stored = size_16(&mut fields)?;
    if stored.width == 0 || stored.height == 0 {
        stored = first_frame(&mut fields)?;
    }
    Ok(Header { format: Format::Gif, stored, orientation: Orientation::default() })
}

fn size_16<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Dimensions> {
    Ok(Dimensions { width: fields.le16()?.into(), height: fields.le16()?.into() })
}

/// Reads the size of the first frame, with the rest of the screen's descriptor to come.
fn first_frame<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Dimensions> {
    let flags = fields.u8()?;
    fields.skip(2)?;
    if flags & 0x80 != 0 {
        fields.skip(3 << ((flags & 7) + 1))?;
    }

    for _ in 0..MAX_CHUNKS {
        match fields.u8()? {
            0x2C => {
                fields.skip(4)?;
                return size_16(fields);
            }
            0x21 => {
                fields.skip(1)?;
                skip_blocks(fields)?;
            }
            _ => break,
        }
    }
    Err(broken("no frame"))
}

fn skip_blocks<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<()> {
    for _ in 0..MAX_CHUNKS {
        match fields.u8()? {
            0 => return Ok(()),
            length => fields.skip(length.into())?,
        }
    }
    Err(broken("too many blocks"))
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
