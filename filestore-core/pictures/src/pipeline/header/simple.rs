//! Reads the size of GIF (GIF89a, section 18) and BMP (`BITMAPCOREHEADER`, `BITMAPINFOHEADER`) from fixed
//! positions.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::{Format, Header, MAX_CHUNKS};
use crate::Dimensions;
use crate::pipeline::orient::Orientation;

/// The maximum number of GIF blocks before the first frame. No decoder keeps more metadata.
const MAX_BLOCKS: usize = 1 << 16;

/// Reads the size of the logical screen. Like browsers, enlarges it to include the first frame, because some
/// programs write a screen that is too small or empty.
pub(super) fn parse_gif<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(6)?;
    let mut stored = size_16(&mut fields)?;
    match first_frame(&mut fields) {
        Ok(frame) => {
            stored.width = stored.width.max(frame.width);
            stored.height = stored.height.max(frame.height);
        }
        // If the file ends early, the screen size counts.
        Err(_) if stored.width > 0 && stored.height > 0 => {}
        Err(error) => return Err(error),
    }
    Ok(Header { format: Format::Gif, stored, orientation: Orientation::default() })
}

fn size_16<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Dimensions> {
    Ok(Dimensions { width: fields.le16()?.into(), height: fields.le16()?.into() })
}

/// Reads the right and lower edge of the first frame. The reader is inside the screen descriptor.
fn first_frame<R: Read + Seek>(fields: &mut Fields<R>) -> io::Result<Dimensions> {
    let flags = fields.u8()?;
    fields.skip(2)?;
    if flags & 0x80 != 0 {
        fields.skip(3 << ((flags & 7) + 1))?;
    }

    let mut blocks = MAX_BLOCKS;
    for _ in 0..MAX_CHUNKS {
        match fields.u8()? {
            0x2C => {
                let place = size_16(fields)?;
                let size = size_16(fields)?;
                if size.width == 0 || size.height == 0 {
                    return Ok(size);
                }
                return Ok(Dimensions {
                    width: place.width + size.width,
                    height: place.height + size.height,
                });
            }
            0x21 => {
                fields.skip(1)?;
                skip_blocks(fields, &mut blocks)?;
            }
            _ => break,
        }
    }
    Err(broken("no frame"))
}

/// Skips blocks, at most `most`, which counts down.
fn skip_blocks<R: Read + Seek>(fields: &mut Fields<R>, most: &mut usize) -> io::Result<()> {
    while *most > 0 {
        match fields.u8()? {
            0 => return Ok(()),
            length => fields.skip(length.into())?,
        }
        *most -= 1;
    }
    Err(broken("too many blocks"))
}

/// Returns true if a known version of the second BMP header has this `size`, the low byte of the header's
/// length.
pub(super) fn is_bmp_header_size(size: u8) -> bool {
    // The second header of OS/2 can end after any field.
    matches!(size, 12 | 108 | 124 | 42 | 46)
        || ((16..=64).contains(&size) && size.is_multiple_of(4))
}

pub(super) fn parse_bmp<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    fields.skip(14)?;

    let stored = if fields.le32()? == 12 {
        Dimensions { width: fields.le16()?.into(), height: fields.le16()?.into() }
    } else {
        let width = fields.le32()?;
        // If the height is negative, the rows run from top to bottom.
        let height = fields.le32()?.cast_signed().unsigned_abs();
        if width > i32::MAX.unsigned_abs() {
            return Err(broken("a negative width"));
        }
        Dimensions { width, height }
    };
    Ok(Header { format: Format::Bmp, stored, orientation: Orientation::default() })
}
